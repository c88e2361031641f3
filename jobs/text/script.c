/* script.c - collects the items of a script and the mistakes of its readers */
#include "script.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "base/str.h"

#define ID_MAX_BYTES   100
#define PATH_MAX_BYTES 180 /* the pod has the file in one folder, under a name of this length */
#define FOLDERS_MOST   8
#define TEXT_MAX_BYTES ((size_t)1 << 20)
#define ITEMS_MAX      1000000
#define MIN_DIGITS     3
#define FILES_LISTED   6
#define BLANKS_FEW     4 /* at most one paragraph of so many follows an empty one */

const char *script_add_source(struct script *s, const char *name)
{
	GROW(s->sources, s->source_count, s->source_cap);
	return s->sources[s->source_count++] = xstrdup(name);
}

void script_complain(struct script *s, const char *source, size_t line, const char *fmt, ...)
{
	struct mistakes *m = s->job_setup ? s->job_setup->mistakes : NULL;
	struct err err = {0};
	char what[380];
	va_list ap;

	if (s->complaints++ && !m)
		return;
	va_start(ap, fmt);
	vformat_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (line)
		err_set(&err, ERR_CONFIG, "%.*s:%zu: %s", utf8_fit(source, 90), source, line, what);
	else
		err_set(&err, ERR_CONFIG, "%.*s: %s", utf8_fit(source, 90), source, what);
	if (s->complaints == 1)
		COPY_TEXT(s->complaint, err.msg);
	(void)mistakes_note(m, NULL, &err);
}

/* Frees what the item owns, and empties it. */
static void free_item(struct script_item *item)
{
	free(item->id);
	free(item->text);
	free(item->voice);
	free(item->speaker);
	json_decref(item->options);
	json_decref(item->extra);
	*item = (struct script_item){0};
}

static void book_free(struct script_book *book)
{
	free(book->title);
	free(book->author);
	free(book->narrator);
	free(book->cover_name);
	free(book->language);
	free(book->year);
	free(book->publisher);
	str_free(&book->cover);
}

void script_free(struct script *s)
{
	for (size_t i = 0; i < s->count; i++)
		free_item(&s->items[i]);
	for (size_t i = 0; i < s->chapter_count; i++)
		free(s->chapters[i]);
	for (size_t i = 0; i < s->source_count; i++)
		free(s->sources[i]);
	free(s->items);
	free(s->chapters);
	free(s->sources);
	json_decref(s->ids);
	json_decref(s->notes);
	json_decref(s->told);
	json_decref(s->labels);
	book_free(&s->book);
	*s = (struct script){0};
}

static bool is_wav_name(const char *name)
{
	size_t len = strlen(name);

	return len >= 4 && !strcasecmp(name + len - 4, ".wav");
}

const char *script_id_fault(const char *id)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	size_t len = strlen(id);

	if (!len)
		return "it is empty";
	if (len > ID_MAX_BYTES)
		return "it is longer than 100 bytes";
	if (strchr(id, '/') || !path_is_safe(id))
		return "it is not a regular file name";
	if (id[0] == '.' || id[0] == '-' || id[0] == ' ' || id[len - 1] == ' ' ||
	    id[len - 1] == '.')
		return "it must not begin with a dot, a dash or a blank, nor end with a dot or a "
		       "blank";
	if (strpbrk(id, ":*?\"<>|"))
		return "it holds one of : * ? \" < > |";
	str_add_printable(&shown, id, len, 0);
	return strcmp(str_text(&shown), id) ? "it holds characters that cannot be seen" : NULL;
}

const char *script_path_fault(const char *id)
{
	const char *fault = NULL;
	size_t folders = 0;

	if (strlen(id) > PATH_MAX_BYTES)
		return "it is longer than 180 bytes";
	for (const char *part = id; part && !fault;) {
		size_t len = strcspn(part, "/");
		bool folder = part[len] == '/';
		CLEANUP(free_text) char *name = xstrndup(part, len);
		fault = script_id_fault(name);
		if (!fault && folder && (++folders > FOLDERS_MOST || is_wav_name(name)))
			fault = folders > FOLDERS_MOST ? "it has more than 8 folders"
						       : "a folder in it ends in .wav";
		part = folder ? part + len + 1 : NULL;
	}
	return fault;
}

/* Notes that item `index` has the id. Returns false after complaining that another has it. */
static bool claim_id(struct script *s, const struct script_item *item, size_t index)
{
	if (!s->ids)
		s->ids = json_object();
	json_t *other = json_object_get(s->ids, item->id);
	if (!other) {
		json_object_set_new(s->ids, item->id, json_integer((json_int_t)index));
		return true;
	}
	const struct script_item *first = &s->items[json_integer_value(other)];
	script_complain(s, item->source, item->line, "id \"%s\" already exists (%s:%zu)", item->id,
			first->source, first->line);
	return false;
}

/* Claims the id of item `index`. Returns false after a complaint. */
static bool check_id(struct script *s, const struct script_item *item, size_t index)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *fault = script_path_fault(item->id);

	if (!fault)
		return claim_id(s, item, index);
	str_add_printable(&shown, item->id, strlen(item->id), 60);
	script_complain(s, item->source, item->line, "id \"%s\" cannot name a file: %s",
			str_text(&shown), fault);
	return false;
}

/* Returns false after a complaint. */
static bool check_voice(struct script *s, const struct script_item *item)
{
	struct err why = {0};

	if (item->voice && !utf8_valid(item->voice, strlen(item->voice))) {
		script_complain(s, item->source, item->line, "the voice is not valid UTF-8");
		return false;
	}
	if (!item->voice || !s->check_voice || s->check_voice(s->ctx, item->voice, &why) == 0)
		return true;
	script_complain(s, item->source, item->line, "%s", why.msg);
	return false;
}

/* Returns false after a complaint. */
static bool check_options(struct script *s, const struct script_item *item)
{
	struct err why = {0};

	if (!item->options || !s->check_options ||
	    s->check_options(s->ctx, item->options, &why) == 0)
		return true;
	script_complain(s, item->source, item->line, "%s", why.msg);
	return false;
}

/* Notes the silence of a line without words: longer than between two such lines. */
static void add_wordless(struct script *s, const struct script_item *item, const char *text)
{
	if (pause_is_scene_break(text)) {
		script_border(s, BORDER_SCENE);
		return;
	}
	s->border = MAX(s->border, item->border == BORDER_LINE ? BORDER_PARAGRAPH : BORDER_SCENE);
	s->silent.wordless++;
}

/* Returns false if the text has nothing to speak: its silence is added before the next item.
 * Complains about an invalid pause. */
static bool check_words(struct script *s, const struct script_item *item, const char *text)
{
	struct pause_part *parts;
	const char *bad;
	size_t bad_len = 0, count = pause_parts(text, &parts, &bad, &bad_len);
	double pause_s = 0;
	bool words = false;

	for (size_t i = 0; i < count; i++) {
		CLEANUP(free_text) char *part = xstrndup(parts[i].text, parts[i].len);
		words |= split_has_words(part);
		pause_s += parts[i].before_s;
	}
	free(parts);
	if (bad)
		script_complain(s, item->source, item->line,
				"\"%.*s\" is not a pause; write it like [pause 0.5s], %g s at "
				"most",
				(int)MIN(bad_len, (size_t)40), bad, PAUSE_MOST_S);
	if (words || bad)
		return true;
	if (count > 1)
		s->pause_s = MIN(s->pause_s + pause_s, PAUSE_MOST_S);
	else
		add_wordless(s, item, text);
	return false;
}

/* Sets item->text. Returns false if the item is to be dropped: its text cannot be read, or has
 * nothing to speak. After any other complaint the item stays. */
static bool set_text(struct script *s, struct script_item *item, const char *raw, size_t len)
{
	struct str text = STR_INIT;
	bool speaks = true;

	if (len > TEXT_MAX_BYTES) {
		script_complain(s, item->source, item->line, "the text is longer than 1 MiB");
		return false;
	}
	if (!utf8_valid(raw, len)) {
		script_complain(s, item->source, item->line, "the text is not valid UTF-8");
		return false;
	}
	split_normalise(&text, raw, len);
	if (!text.len)
		script_complain(s, item->source, item->line, "the text is empty");
	else
		speaks = check_words(s, item, str_text(&text));
	item->text = str_detach(&text);
	return speaks;
}

void script_complain_once(struct script *s, const char *source, size_t line, const char *name,
			  const char *fmt)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	CLEANUP(free_text) char *key = xasprintf("%s\n%s", source, name);

	if (!s->told)
		s->told = json_object();
	if (json_object_get(s->told, key))
		return;
	json_object_set_new(s->told, key, json_true());
	str_addc(&shown, '"');
	str_add_printable(&shown, name, strlen(name), 40);
	str_addc(&shown, '"');
	script_complain(s, source, line, fmt, str_text(&shown));
}

/* Counts a text that begins like a speaker's label. */
static void count_label(struct script *s, const struct script_item *item)
{
	const char *name;
	size_t len;

	if (item->heading || !speakers_guess(item->text, strlen(item->text), &name, &len))
		return;
	CLEANUP(free_text) char *key = xstrndup(name, len);
	if (!s->labels)
		s->labels = json_object();
	json_int_t seen = json_integer_value(json_object_get(s->labels, key));
	json_object_set_new(s->labels, key, json_integer(seen + 1));
	s->labelled++;
}

/* Sets item->speaker by the label of its text, and removes the label. Returns false after a
 * complaint: job.speakers lacks the speaker, or the label has no text. */
static bool take_label(struct script *s, struct script_item *item)
{
	const struct speaker *who;
	const char *name;
	size_t len = strlen(item->text), name_len;
	size_t label = speakers_label(s->speakers, item->text, len, &who);

	if (!label && s->speakers->count && speakers_guess(item->text, len, &name, &name_len)) {
		CLEANUP(free_text) char *unknown = xstrndup(name, name_len);
		script_complain_once(
			s, item->source, item->line, unknown,
			"%s reads like a speaker's label: give it a voice in "
			"job.speakers, as in \"NAME=VOICE\", or list \"NAME\" alone to "
			"speak it");
		return false;
	}
	if (!label || !who->voice)
		return true;
	if (label >= len) {
		script_complain(s, item->source, item->line, "nothing follows the label \"%s\"",
				item->text);
		return false;
	}
	item->speaker = xstrdup(who->name);
	memmove(item->text, item->text + label, len - label + 1);
	return true;
}

/* Sets the item's voice by who speaks. A voice of its own wins. Returns false after a complaint. */
static bool take_speaker(struct script *s, struct script_item *item)
{
	const struct speaker *named =
		item->voice ? speakers_find(s->speakers, item->voice, strlen(item->voice)) : NULL;

	if (!s->speakers && !item->speaker)
		count_label(s, item);
	if (s->speakers && !item->speaker && !item->heading && !take_label(s, item))
		return false;
	if (named && named->voice) {
		free(item->voice);
		item->voice = xstrdup(named->voice);
	}
	if (item->voice || !item->speaker)
		return true;
	const struct speaker *who =
		speakers_find(s->speakers, item->speaker, strlen(item->speaker));
	if (who && who->voice) {
		item->voice = xstrdup(who->voice);
		return true;
	}
	script_complain_once(
		s, item->source, item->line, item->speaker,
		"speaker %s has no voice: set job.speakers = [\"NAME=VOICE\", ...], or "
		"job.columns = { keep = [\"speaker\"]; } to speak all in one voice");
	return false;
}

enum { LABELS_LEAST = 2, LABELS_SHOWN = 4 };

void script_tell_labels(const struct script *s, struct str *to)
{
	CLEANUP(str_free) struct str some = STR_INIT;
	size_t shown = 0;
	const char *name;
	json_t *seen;

	if (s->labelled < LABELS_LEAST || s->labelled * 2 < s->count)
		return;
	json_object_foreach (s->labels, name, seen)
		if (shown++ < LABELS_SHOWN)
			str_addf(&some, "%s\"%s:\"", some.len ? ", " : "", name);
	str_addf(to,
		 "%zu of %zu texts begin like a speaker's label (%s%s), and the label is spoken: "
		 "give "
		 "each a voice with job.speakers = [\"NAME=VOICE\", ...], or set job.speakers = []",
		 s->labelled, s->count, str_text(&some), shown > LABELS_SHOWN ? ", ..." : "");
}

void script_border(struct script *s, enum border border)
{
	s->border = MAX(s->border, border);
	s->scenes += border == BORDER_SCENE;
}

/* What the readers saw before this item, and what follows from headings and chapters. */
static enum border border_before(const struct script *s, const struct script_item *item)
{
	const struct script_item *before = s->count ? &s->items[s->count - 1] : NULL;
	enum border seen = MAX(item->border, s->border);

	if (!before)
		return BORDER_NONE;
	if (before->heading)
		return MAX(seen,
			   BORDER_HEADING); /* also between the titles of a part and a chapter */
	if (before->chapter != item->chapter)
		return BORDER_CHAPTER;
	return item->heading ? MAX(seen, BORDER_HEADING) : seen;
}

/* Adds an item of one speaker. */
static void add_item(struct script *s, struct script_item *item, const char *raw, size_t len)
{
	if (s->count >= ITEMS_MAX) {
		script_complain(s, item->source, item->line, "more than %d lines to speak",
				ITEMS_MAX);
		free_item(item);
		return;
	}
	size_t before = s->complaints, whole;
	bool good = set_text(s, item, raw, len);
	whole = good ? strlen(item->text) : 0;
	good = good && take_speaker(s, item);
	/* what follows the label may be a silence: "Alice: ..." */
	if (good && strlen(item->text) < whole && s->complaints == before)
		good = check_words(s, item, item->text);
	if (good && item->speaker && speakers_next(s->speakers, raw, len)) {
		script_complain(
			s, item->source, item->line,
			"another speaker's label stands in the text of \"%s\": give it a row of "
			"its own",
			item->speaker);
		good = false;
	}
	good = check_voice(s, item) && good;
	good = check_options(s, item) && good;
	/* only a kept item may claim an id: a dropped item's index goes to the next one */
	if (!good || (item->id && !check_id(s, item, s->count))) {
		free_item(item);
		return;
	}
	item->before_s = s->pause_s;
	item->border = border_before(s, item);
	item->after_blank = s->blank && item->border == BORDER_PARAGRAPH;
	s->pause_s = 0;
	s->border = BORDER_NONE;
	s->blank = false;
	GROW(s->items, s->count, s->cap);
	s->items[s->count++] = *item;
	*item = (struct script_item){0};
}

static bool text_is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]))
			return false;
	return true;
}

/* The end of the lines of one speaker: where the next label begins a line, else `end`. */
static const char *speech_end(const struct script *s, const char *raw, const char *end)
{
	const char *next = speakers_next(s->speakers, raw, (size_t)(end - raw));

	return next ? next : end;
}

/* The part of an item from one byte of its text to another: it has a share of its time, and its id
 * with a number. */
static struct script_item part_of(const struct script_item *item, size_t number, double from,
				  double to)
{
	struct script_item part = *item;
	double length_s = item->end_s - item->begin_s;

	part.id = item->id ? xasprintf("%s-%zu", item->id, number) : NULL;
	part.text = part.speaker = NULL;
	part.voice = item->voice ? xstrdup(item->voice) : NULL;
	part.options = json_incref(item->options);
	part.extra = json_incref(item->extra);
	part.begin_s = item->begin_s + length_s * from;
	part.end_s = item->begin_s + length_s * to;
	part.border = number > 1 ? BORDER_LINE : item->border;
	return part;
}

/* Adds an item for each speaker of a text whose lines begin with labels, and empties the item. */
static void add_speakers(struct script *s, struct script_item *item, const char *raw, size_t len)
{
	const char *end = raw + len;
	size_t number = 0;

	for (const char *at = raw, *stop; at < end; at = stop) {
		stop = speech_end(s, at, end);
		if (text_is_blank(at, (size_t)(stop - at)))
			continue;
		struct script_item part = part_of(item, ++number, (double)(at - raw) / (double)len,
						  (double)(stop - raw) / (double)len);
		add_item(s, &part, at, (size_t)(stop - at));
	}
	free_item(item);
}

void script_add(struct script *s, struct script_item *item, const char *raw, size_t len)
{
	if (!item->speaker && !item->heading && speech_end(s, raw, raw + len) < raw + len)
		add_speakers(s, item, raw, len);
	else
		add_item(s, item, raw, len);
}

int script_add_chapter(struct script *s, const char *title)
{
	GROW(s->chapters, s->chapter_count, s->chapter_cap);
	s->chapters[s->chapter_count++] = xstrdup(title);
	return (int)s->chapter_count - 1;
}

/* Empty paragraphs are scene breaks, unless the book has one between most of its paragraphs. */
static void break_at_blanks(struct script *s)
{
	size_t blanks = 0;

	for (size_t i = 0; i < s->count; i++)
		blanks += s->items[i].after_blank;
	for (size_t i = 0; blanks * BLANKS_FEW <= s->count && i < s->count; i++) {
		if (!s->items[i].after_blank)
			continue;
		s->items[i].border = BORDER_SCENE;
		s->scenes++;
	}
}

/* What separates two merged texts: they would sound like one without a stop. */
static const char *separator_behind(const struct script_item *a)
{
	return split_end(a->text, strlen(a->text)) == SPLIT_WORD ? ". " : " ";
}

/* Returns whether b, which follows a, may become a part of a: only in a list or table, since the
 * track could not keep the pause between two paragraphs. */
static bool may_merge(const struct script_item *a, const struct script_item *b,
		      const struct split_limits *limits)
{
	return a->listed && b->listed && b->border <= BORDER_LINE && b->before_s == 0 &&
	       !strcmp(a->voice ? a->voice : "", b->voice ? b->voice : "") &&
	       !strcmp(a->speaker ? a->speaker : "", b->speaker ? b->speaker : "") &&
	       split_chars(a->text, strlen(a->text)) + strlen(separator_behind(a)) +
			       split_chars(b->text, strlen(b->text)) <=
		       limits->max_chars;
}

static bool is_short(const struct script_item *item, const struct split_limits *limits)
{
	return split_chars(item->text, strlen(item->text)) < limits->min_chars;
}

static void merge_into(struct script_item *to, struct script_item *from)
{
	char *both = xasprintf("%s%s%s", to->text, separator_behind(to), from->text);

	free(to->text);
	to->text = both;
	free_item(from);
}

static void merge_items(struct script *s, const struct split_limits *limits)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct script_item *last = kept ? &s->items[kept - 1] : NULL, *next = &s->items[i];
		/* a short item joins the next one, or at the end of its list the one before */
		bool ends = i + 1 == s->count || !may_merge(next, &s->items[i + 1], limits);
		if (last && may_merge(last, next, limits) &&
		    (is_short(last, limits) || (ends && is_short(next, limits)))) {
			merge_into(last, next);
		} else {
			struct script_item moved = *next;
			*next = (struct script_item){0};
			s->items[kept++] = moved;
		}
	}
	s->count = kept;
}

static int digits_of(size_t number)
{
	int digits = 1;

	for (; number >= 10; number /= 10)
		digits++;
	return digits;
}

/* Makes the ids of the items of a file of a folder: its name, with a number if there are several.
 * Returns how many there are from `first` on. */
static size_t name_items(struct script *s, size_t first)
{
	const char *stem = s->items[first].stem;
	size_t count = 0;

	while (first + count < s->count && s->items[first + count].stem == stem)
		count++;
	for (size_t i = 0; i < count; i++) {
		struct script_item *item = &s->items[first + i];
		item->id = count == 1 ? xstrdup(stem)
				      : xasprintf("%s-%0*zu", stem, digits_of(count), i + 1);
		if (!check_id(s, item, first + i))
			break;
	}
	return count;
}

/* Makes the missing ids: the item's number, with leading zeros. */
static void number_items(struct script *s)
{
	int digits = MIN_DIGITS;

	for (size_t n = 1000; n <= s->count; n *= 10)
		digits++;
	for (size_t i = 0; i < s->count; i++) {
		struct script_item *item = &s->items[i];
		if (item->id)
			continue;
		if (item->stem) {
			i += name_items(s, i) - 1;
			continue;
		}
		item->id = xasprintf("%0*zu", digits, i + 1);
		claim_id(s, item, i);
	}
}

static void add_count(struct str *to, size_t count, const char *one, const char *several)
{
	if (count)
		str_addf(to, "%s%zu %s", to->len ? ", " : "", count, count == 1 ? one : several);
}

void script_tell_silent(const struct script *s, struct str *to)
{
	const struct script_silent *n = &s->silent;

	add_count(to, n->code_blocks, "code block", "code blocks");
	add_count(to, n->images, "image", "images");
	add_count(to, n->footnotes, "footnote", "footnotes");
	add_count(to, n->wordless, "silent line", "silent lines");
	add_count(to, n->formulas, "formula", "formulas");
	add_count(to, n->navigation, "list of links", "lists of links");
	add_count(to, n->page_numbers, "page number", "page numbers");
	add_count(to, n->tags, "HTML tag", "HTML tags");
	add_count(to, n->entities, "HTML entity (its character is)",
		  "HTML entities (their characters are)");
	add_count(to, n->extra_pages, "page outside the reading order",
		  "pages outside the reading order");
	add_count(to, n->shortcodes, "shortcode", "shortcodes");
	add_count(to, n->block_marks, "block mark", "block marks");
	add_count(to, n->imports, "import", "imports");
	add_count(to, n->emoji, "emoji code", "emoji codes");
	add_count(to, n->comments, "comment", "comments");
	add_count(to, n->lost_chapters, "chapter of the contents that leads nowhere",
		  "chapters of the contents that lead nowhere");
	add_count(to, n->licences, "licence of Project Gutenberg", "licences of Project Gutenberg");
	add_count(to, n->contents, "table of contents", "tables of contents");
	add_count(to, n->stamps, "time of a message", "times of messages");
	add_count(to, n->messages, "message without a text", "messages without a text");
	add_count(to, n->directions, "stage direction", "stage directions");
	add_count(to, n->sounds, "described sound", "described sounds");
}

/* The chapters that have texts. */
static size_t count_chapters(const struct script *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->items[i].chapter >= 0 &&
			 (i == 0 || s->items[i - 1].chapter != s->items[i].chapter);
	return count;
}

/* All files of a few; the first ones and the last of many. */
static void add_files(const struct script *s, struct str *to)
{
	size_t shown = s->source_count > FILES_LISTED ? FILES_LISTED - 1 : s->source_count;

	for (size_t i = 0; i < s->source_count; i++) {
		const char *file = path_base(s->sources[i]);
		if (i >= shown && i + 1 < s->source_count)
			continue;
		str_add(to, i == 0 ? "; files in this order: " : i > shown ? ", ..., " : ", ");
		str_add_printable(to, file, strlen(file), 60);
	}
}

void script_tell_read(const struct script *s, struct str *to)
{
	CLEANUP(str_free) struct str parts = STR_INIT;

	add_count(&parts, count_chapters(s), "chapter", "chapters");
	if (!s->plain.lines)
		add_count(&parts, s->plain.paragraphs, "paragraph", "paragraphs");
	else
		add_count(&parts, s->plain.paragraphs + s->plain.lines, "line", "lines");
	if (s->plain.lines && s->plain.paragraphs > 1)
		str_addf(&parts, " in %zu paragraphs", s->plain.paragraphs);
	add_count(&parts, s->scenes, "scene break", "scene breaks");
	if (parts.len)
		str_addf(to, "read as %s", str_text(&parts));
	if (s->plain.joined)
		str_addf(to, "; %zu wrapped line%s joined (job.input_mode)", s->plain.joined,
			 s->plain.joined == 1 ? "" : "s");
	if (parts.len && s->source_count > 1)
		add_files(s, to);
}

int script_end(struct script *s, const char *name, const struct split_limits *limits,
	       struct err *err)
{
	/* else each mistake has a line of its own */
	bool alone = !(s->job_setup && s->job_setup->mistakes);

	if (!s->complaints) {
		break_at_blanks(s);
		merge_items(s, limits);
		number_items(s);
	}
	if (s->complaints > 1 && alone)
		return err_set(err, ERR_CONFIG, "%.*s (and %zu more)", utf8_fit(s->complaint, 450),
			       s->complaint, s->complaints - 1);
	if (s->complaints)
		return err_set(err, ERR_CONFIG, "%s", s->complaint);
	if (!s->count)
		return err_set(err, ERR_CONFIG, "%s: there is nothing to speak in it", name);
	return 0;
}

bool next_line(const char **at, const char *end, const char **line, size_t *len)
{
	*line = bytes_next_line(at, end, len);
	if (!*line)
		return false;
	if (*len && (*line)[*len - 1] == '\r')
		--*len;
	return true;
}

bool line_is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t')
			return false;
	return true;
}
