/* script.h - the text to speak: the items of a script as its readers produce them, and what cuts
 * and cleans their text */
#ifndef BURST_JOBS_TTS_SCRIPT_H
#define BURST_JOBS_TTS_SCRIPT_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/section.h"
#include "base/str.h"
#include "job.h"

/* ---- split ----
 * Cuts a text into pieces that an engine can speak at once. Pure. Lengths are in code points; a
 * cut never falls inside a UTF-8 sequence or before a combining mark. */

struct split_limits {
	size_t max_chars; /* of a piece; at least 2 x min_chars */
	size_t min_chars; /* of a piece, unless the whole text is shorter */
};

struct piece {
	const char *text; /* points into the text; not terminated */
	size_t len;       /* in bytes */
};

/* Appends the text with white space as single blanks, without control and zero-width characters.
 * The text must be valid UTF-8. */
void split_normalise(struct str *to, const char *text, size_t len);
/* Returns whether the text has anything to speak: a letter, a digit, a symbol with a name. */
bool split_has_words(const char *text);
/* Returns whether this is such a character. */
bool split_is_spoken(uint32_t c);
/* Returns whether the character belongs to the one before it: combining marks and joiners. */
bool split_is_mark(uint32_t c);
/* How a valid text ends, quotes and brackets aside. */
enum split_end { SPLIT_WORD, SPLIT_COMMA, SPLIT_STOP };
enum split_end split_end(const char *text, size_t len);
/* What ends at this place of a normalised text: a sentence, a clause, or neither. The full stops of
 * abbreviations and of ordinal numbers end nothing; "Dr.", "19." and the like depend on the
 * language. language: ISO 639-1 code, regions are ignored ("de", "de_AT"); NULL: unknown. */
enum split_end split_end_at(const char *text, const char *at, const char *language);
/* Returns whether the blank at this place holds its neighbours together, as in French "Qui ?". */
bool split_glues(const char *text, const char *at);
/* Signs that end a sentence or a clause, and those that close a quotation or brackets. */
bool split_is_stop(uint32_t c);
bool split_is_comma(uint32_t c);
bool split_is_closing(uint32_t c);
/* The number of code points in `len` bytes. */
size_t split_chars(const char *text, size_t len);

/* Cuts a normalised text at the last sentence end that fits, else at the last comma or its like,
 * else between words, else inside a word. The caller frees *out. Returns the count, at least 1
 * unless the text is empty. language: as in split_end_at(). */
size_t split_text(const char *text, const struct split_limits *limits, const char *language,
		  struct piece **out);

/* ---- script ----
 * The text to speak, as the readers of the input formats produce it: items in order, and a list
 * of mistakes with file and line. */

/* What lies between an item and the one before it, the weakest first. The joined track makes a
 * silence of it (join.pauses). */
enum border {
	BORDER_NONE, /* it is the first, or the text goes on */
	BORDER_SENTENCE,
	BORDER_LINE,
	BORDER_PARAGRAPH,
	BORDER_HEADING, /* above or below a heading */
	BORDER_SCENE,
	BORDER_CHAPTER,
	BORDERS
};

struct script_item {
	char *id;         /* NULL until burst makes one */
	const char *stem; /* of the id that burst makes; NULL: none. The script owns it */
	char *text;       /* normalised, never empty */
	char *voice;      /* NULL: the job's */
	char *speaker;    /* who speaks, by a column or a label; NULL: unknown */
	json_t *options;  /* object or NULL: passed to the engine; overrides the job's options */
	json_t *extra;    /* object or NULL: unknown keys, copied to the manifest */
	bool has_seed;
	int64_t seed;
	const char *source; /* file and line, for messages; the script owns the name */
	size_t line;
	int chapter; /* index; -1: before the first chapter */
	bool heading;
	bool listed;           /* an item of a list or a row of a table: short ones may merge */
	enum border border;    /* set by the readers without regard to headings and chapters */
	bool after_blank;      /* an empty paragraph is before it: a scene break if few have one */
	double before_s;       /* seconds of pauses that stand alone before it */
	double begin_s, end_s; /* the time of its subtitle; both 0: it has none */
};

struct script {
	struct script_item *items;
	size_t count, cap;
	char **chapters; /* titles */
	size_t chapter_count, chapter_cap;
	char **sources;
	size_t source_count, source_cap;
	json_t *ids;   /* id -> index */
	json_t *notes; /* the names of elements of HTML that numbers of footnotes lead to */
	/* job.columns: which columns of a table are for what; NULL: by their usual names */
	const struct section *columns;
	json_t *told;                    /* names of columns and speakers that were complained of */
	const struct speakers *speakers; /* job.speakers; NULL: the key is absent */
	bool list_numbers;               /* job.list_numbers: speak the numbers of ordered lists */
	json_t *labels; /* without speakers: name -> how often a text begins like its label */
	size_t labelled;

	const struct job_setup
		*job_setup; /* decides which files of a folder may be read; NULL: all */
	/* Checks a voice; returns -1 with a message if it is unknown. NULL: accept all. */
	int (*check_voice)(void *ctx, const char *voice, struct err *err);
	/* Checks the options of an item; returns -1 with a message if the engine rejects them.
	 * NULL: accept all. */
	int (*check_options)(void *ctx, json_t *options, struct err *err);
	void *ctx;

	bool timed;                       /* its items have times: subtitles */
	double pause_s;                   /* seconds of pause before the next item */
	enum border border;               /* at least this lies before the next item */
	bool blank;                       /* an empty paragraph lies before the next item */
	size_t scenes;                    /* scene breaks */
	struct script_plain {             /* how plain text was read */
		size_t lines, paragraphs; /* those that begin right below another text, or apart */
		size_t joined;            /* wrapped lines */
		size_t notes;             /* numbers of footnotes that were dropped */
	} plain;
	struct script_silent { /* parts of the script that are not spoken */
		size_t code_blocks, images, footnotes, wordless, formulas, navigation, page_numbers,
			tags, entities, extra_pages, shortcodes, block_marks, imports, emoji,
			comments, lost_chapters, licences, contents, stamps, messages, directions,
			sounds;
	} silent;
	struct script_book { /* what the input says of itself; NULL: nothing */
		char *title, *author, *narrator, *language, *year, *publisher;
		char *cover_name; /* a file beside the script */
		struct str cover; /* a JPEG or PNG file */
	} book;

	size_t complaints; /* number of mistakes; the first one is kept */
	char complaint[512];
};

enum input_mode { INPUT_AUTO, INPUT_LINES, INPUT_PARAGRAPHS };

/* Reads an input file or a folder of .txt files. name is for messages. Merges items that are too
 * short and makes missing ids. ERR_CONFIG: the first mistake and how many more there are. */
int script_load(struct script *script, const char *path, const char *name, enum input_mode mode,
		const struct split_limits *limits, struct err *err);
void script_free(struct script *script);

/* The readers, one for each format; pure. They report mistakes to the script. For script_load(),
 * tests and fuzzers. tabs: TSV, else CSV or its like. */
void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode);
void input_read_jsonl(struct script *s, const char *source, const char *bytes, size_t len);
void input_read_table(struct script *s, const char *source, const char *bytes, size_t len,
		      bool tabs);
/* Returns whether the text begins with Anki's "#separator:": then it is a table, whatever its
 * file's name. */
bool input_is_exported_table(const char *bytes, size_t len);
void input_read_markdown(struct script *s, const char *source, const char *bytes, size_t len);
/* For input_read_markdown(): appends the text without what is neither Markdown nor speech, and
 * counts that. Keeps the number of each line. The text has LF, not CRLF. */
void unspoken_mask(struct str *to, const char *text, struct script_silent *silent);
/* Skips the markers of quotes and list items at the start of a line. */
const char *unspoken_skip_containers(const char *line);
void input_read_html(struct script *s, const char *source, const char *bytes, size_t len);
/* SRT or WebVTT: an item for each cue, with its times. */
void input_read_subtitles(struct script *s, const char *source, const char *bytes, size_t len);
/* EPUB 2 and 3. Also sets s->book. */
void input_read_epub(struct script *s, const char *source, const char *bytes, size_t len);

/* For the readers: takes what a line of front matter ("title: x", or TOML's "title = x") says of
 * the book. Keeps what was said before. */
void book_read_line(struct script_book *book, const char *line, size_t len);
/* Reads the front matter at the very top of a text: YAML or TOML between lines of "---" or "+++",
 * Pandoc's "% Title", or lines from "Title: x" to a blank one. Returns the start of the text. */
const char *front_matter_read(struct script_book *book, const char *bytes, const char *end);

/* Returns whether a normalised line of plain text begins a chapter: "# One", "CHAPTER ONE",
 * "2. Kapitel: ...". */
bool heading_is(const char *line);
/* Returns whether it is such a line without a title of its own: "Chapter 1". */
bool heading_is_bare(const char *text, size_t len);
/* The small letter of a capital one; any other character as it is. */
uint32_t heading_fold(uint32_t c);

/* Appends the parts of the script that are not spoken, as in "2 code blocks, 1 footnote"; nothing
 * if there are none. */
void script_tell_silent(const struct script *s, struct str *to);

/* The value that a text looks like, of an engine's option: a number, a boolean, else a text.
 * Returns a new reference. */
json_t *script_option_value(const char *text);

/* Appends that texts begin with speakers' labels, if most of them do and nothing says whose voice
 * they have. */
void script_tell_labels(const struct script *s, struct str *to);
/* For the readers: complains about a name once for each source; fmt has a "%s" for it in quotes. */
void script_complain_once(struct script *s, const char *source, size_t line, const char *name,
			  const char *fmt);

/* Appends how the script was read: "read as 2 chapters, 40 paragraphs, 3 scene breaks", and the
 * order of the files of a folder; nothing if there is no structure. */
void script_tell_read(const struct script *s, struct str *to);

/* For the readers: keeps a source's name for messages. Returns the script's own copy. */
const char *script_add_source(struct script *s, const char *name);
/* For the readers: reports a mistake; line 0: of the whole source. */
void script_complain(struct script *s, const char *source, size_t line, const char *fmt, ...)
	PRINTF(4, 5);
/* For the readers: takes over id, voice, options and extra of the item, sets its text from raw
 * bytes, and checks all. Also empties the item if it refuses it, after a complaint, or if the text
 * has nothing to speak: a pause, or signs alone, are a silence before the next item. */
void script_add(struct script *s, struct script_item *item, const char *raw, size_t len);
/* The same for a text that may hold tags and entities of HTML, as programs export it: reads them as
 * HTML and counts them. "a < b" and "<name>" stay. */
void script_add_marked(struct script *s, struct script_item *item, const char *raw, size_t len);
/* For the readers: at least this border lies before the next item. A border of a scene counts as a
 * scene break. */
void script_border(struct script *s, enum border border);
/* For the readers: begins a chapter. Returns its index. */
int script_add_chapter(struct script *s, const char *title);
/* After the readers: merges items and makes ids. ERR_CONFIG: the mistakes, or there are no items.
 */
int script_end(struct script *s, const char *name, const struct split_limits *limits,
	       struct err *err);
/* Returns NULL if this can be a file's name on every system, else what is wrong with it. */
const char *script_id_fault(const char *id);
/* The same for an id whose "/" make folders. */
const char *script_path_fault(const char *id);

/* Reads the next line of a text without its end (LF or CRLF) and moves *at. Returns false at the
 * end. */
bool next_line(const char **at, const char *end, const char **line, size_t *len);
/* Returns whether a line has nothing but blanks and tabs. */
bool line_is_blank(const char *line, size_t len);

static inline void script_free_cleanup(struct script *s)
{
	script_free(s);
}

/* ---- plain text ----
 * What sites and programs put around a plain text. Pure. */

/* The lines of a file that are the text itself. */
struct plain_book {
	const char *begin, *end;
	size_t line; /* lines of the file before it */
};

/* Finds the book between the licences of Project Gutenberg, or below front matter, and reads its
 * names. */
struct plain_book plain_book(struct script *s, const char *bytes, size_t len);
/* Drops the marks of typists from a paragraph: "_emphasis_", the number of a footnote. Returns
 * false if it is not spoken at all: a footnote, a picture. Counts what it drops. */
bool plain_clean(struct script *s, struct str *text);

/* Rewrites an exported chat, or a screenplay, so that each speech is a line "NAME: words", without
 * times and directions, which are counted. Keeps the number of lines. Returns false, and leaves
 * *to, if the text is neither. */
bool dialogue_rewrite(struct script *s, const char *bytes, size_t len, struct str *to);

/* ---- speakers ----
 * Who speaks a text: "Alice: Hello" and "[Alice] Hello", by the map of job.speakers. Pure. */

struct speaker {
	char *name;
	char *voice; /* NULL: it is no speaker, and its label is spoken */
};

struct speakers {
	struct speaker *list;
	size_t count, cap;
};

/* Adds "NAME=VOICE", or "NAME". ERR_CONFIG: there is no name, or it is there already. */
int speakers_add(struct speakers *s, const char *pair, struct err *err);
void speakers_free(struct speakers *s);
/* Finds a speaker by name, whatever the case of its ASCII letters. s NULL: there are none. */
const struct speaker *speakers_find(const struct speakers *s, const char *name, size_t len);
/* The length of the label of a known speaker at the start of a text, with the blanks behind it; 0:
 * there is none. */
size_t speakers_label(const struct speakers *s, const char *text, size_t len,
		      const struct speaker **who);
/* The length of what looks like the label of any speaker at the start of a text; 0: nothing does.
 */
size_t speakers_guess(const char *text, size_t len, const char **name, size_t *name_len);

/* Returns the start of the first line but the first that begins like a speaker's label, or NULL;
 * NULL also if there are no speakers. */
const char *speakers_next(const struct speakers *s, const char *text, size_t len);

/* ---- lexicon ----
 * Replaces words by their spoken form, from a file of "word<TAB>spoken as" lines. A third column
 * may say "any-case" (of ASCII letters), "ipa": what is said are phonemes, and "pattern": the word
 * is an extended regular expression of POSIX without back references, of which a match has at most
 * 256 bytes.
 *
 * The replacement happens before a long text is cut. Subtitles and manifest show the words of the
 * script. Pure. */

struct lexicon;

/* How an engine takes phonemes within a text: "[[phonemes]]", or "[word](/phonemes/)". */
struct phoneme_marks {
	const char *engine;         /* its name, for messages */
	const char *word;           /* stands before the word; NULL: the word is left out */
	const char *before, *after; /* stand around the phonemes; NULL: it takes none */
};

/* Reads the file's bytes; name is for messages. ERR_CONFIG names file and line. Free with
 * lexicon_free(). */
int lexicon_read(struct lexicon **out, const char *name, const char *bytes, size_t len,
		 const struct phoneme_marks *ipa, struct err *err);
void lexicon_free(struct lexicon *lexicon);

/* A word of the script and its replacement, as byte ranges. */
struct lexicon_swap {
	size_t spoken, spoken_len;
	size_t shown, shown_len;
};

struct lexicon_text {
	char *spoken;
	struct lexicon_swap *swaps; /* in order of the text */
	size_t count, cap;
};

/* Replaces the words of a normalised text; of several matches at one place, the longest word, else
 * the first pattern. A match
 * that begins or ends with a letter or a digit must not touch another letter or digit there.
 * lexicon NULL: no change. Free with lexicon_text_free(). */
void lexicon_apply(const struct lexicon *lexicon, const char *text, size_t len,
		   struct lexicon_text *out);
/* The script's words that begin in this range of the spoken text. The caller frees them. */
char *lexicon_shown(const struct lexicon_text *t, const char *text, size_t from, size_t to);
void lexicon_text_free(struct lexicon_text *t);

static inline void lexicon_text_free_cleanup(struct lexicon_text *t)
{
	lexicon_text_free(t);
}

/* ---- letters ----
 * Finds which scripts a text is written in, so that no engine renders letters that it cannot
 * read. */

enum letters {
	LETTERS_LATIN = 1 << 0,
	LETTERS_GREEK = 1 << 1,
	LETTERS_CYRILLIC = 1 << 2,
	LETTERS_ARMENIAN = 1 << 3,
	LETTERS_HEBREW = 1 << 4,
	LETTERS_ARABIC = 1 << 5,
	LETTERS_DEVANAGARI = 1 << 6,
	LETTERS_INDIC = 1 << 7, /* the other scripts of India and Sri Lanka */
	LETTERS_THAI = 1 << 8,
	LETTERS_GEORGIAN = 1 << 9,
	LETTERS_HANGUL = 1 << 10,
	LETTERS_KANA = 1 << 11,
	LETTERS_HAN = 1 << 12,
};

/* Returns NULL if at least half of the text's letters are of KNOWN (a set of the above; 0: all), or
 * if it has none. Else returns the name of the most frequent other script. The text must be valid
 * UTF-8. Letters of scripts that are not listed do not count. */
const char *letters_foreign(const char *text, unsigned known);

/* ---- pause ----
 * Cuts a text at its pauses: "[pause 0.5s]" and what other programs write, inside a text or alone
 * on its line. Knows the signs of scene breaks. Pure. */

#define PAUSE_MOST_S 60.0

/* The text between two pauses. */
struct pause_part {
	const char *text; /* points into the text; not terminated; no blanks at its ends; may be
			     empty */
	size_t len;       /* in bytes */
	double before_s;  /* sum of the pauses directly before it; 0: none */
};

/* Cuts a text at its pauses and returns the number of parts: one more than pauses. The caller frees
 * *out. *bad is NULL, or points at the first invalid pause (*bad_len bytes of the text). */
size_t pause_parts(const char *text, struct pause_part **out, const char **bad, size_t *bad_len);
/* The bytes of the pause tag that begins at p; 0: there is none. *seconds: negative if it cannot
 * be read, or is longer than PAUSE_MOST_S. For pause_parts() and readers that drop other tags. */
size_t pause_tag(const char *p, double *seconds);
/* Returns whether a normalised line is only a scene break, such as "* * *", "---" or "#". */
bool pause_is_scene_break(const char *line);

#endif
