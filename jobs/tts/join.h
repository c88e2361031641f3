/* join.h - what makes one track of finished segments: sound, loudness, captions and chapters */
#ifndef BURST_JOBS_TTS_JOIN_H
#define BURST_JOBS_TTS_JOIN_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "jobs/text/script.h"
#include "wav.h"

/* ---- join ----
 * Joins the finished segments of a script into one track, with sample-exact subtitles and
 * chapters. */

#define JOIN_FORMATS_MOST 5

/* How the encoded formats hold their sound; 0: as the format does by itself. */
struct join_coding {
	int kbit, channels, rate; /* bit rate in kbit/s, samples a second */
};

struct ffmpeg_format;
struct join_meter;

struct join_piece {
	const char *file; /* relative to the folder */
	const char *text;
	enum border border; /* between it and the piece before */
	int chapter;        /* index; -1: none */
	/* the script's pause before it, in seconds; replaces that of the border if it is longer */
	double before_s;
	double seconds;       /* its length; 0: unknown */
	const char *language; /* of its text, as in split_end_at() */
	const char *spoken;   /* the text as the engine got it; NULL: `text` */
	/* Fitted to the time of a cue: it begins at at_s in the track, or late rather than over the
	 * piece before, and without a pause of its own. at_s negative: right behind that piece. Not
	 * fitted: its border decides. */
	bool fitted;
	double at_s;
	double until_s; /* when it should end; 0: another piece of its cue follows */
	bool heading;
};

struct join_options {
	const char *name; /* of the track's files, without their endings; NULL: JOIN_USUAL_NAME */
	const char *job;  /* whose track it is, for the record of its files; NULL: "" */
	double pauses_s[BORDERS]; /* silence between two pieces, by their border */
	/* leave out the silence and the stray sounds at the ends of the pieces: then the pauses
	 * last as long as pauses_s says */
	bool trim;
	bool normalise;
	double lufs;
	bool subtitles;
	bool words;                    /* write joined.words.json */
	bool partial;                  /* segments are missing */
	bool by_chapter;               /* also a file for each chapter, of a whole track */
	const struct lexicon *lexicon; /* that made `spoken` of the pieces' texts; NULL: none */
	/* bytes of samples above which the track is written as RF64; 0: WAV_MOST_BYTES */
	int64_t plain_bytes;
	/* joined.m4b and the like; ends with NULL if shorter */
	const struct ffmpeg_format *formats[JOIN_FORMATS_MOST];
	struct join_coding coding;      /* of those */
	struct join_meter *meter;       /* measures how far the join is; NULL: not needed */
	const struct script_book *book; /* for the tags of `formats`; NULL: none */
};

/* The silence before a piece, in seconds, if another one is before it. */
static inline double join_pause_s(const struct join_options *options, enum border border,
				  double before_s)
{
	return MAX(options->pauses_s[border], before_s);
}

/* Whether chapters get files of these formats: a book is one file. */
bool join_has_sound_format(const struct join_options *options);
/* How long a join takes for a second of sound on an idle machine, in ms. */
double join_ms_per_s(const struct join_options *options);

/* Writes dir/joined.wav and, if requested, joined.srt, joined.vtt and chapters.txt (if there are
 * chapter titles). Uses constant memory and renames the files into place once all are complete. The
 * first piece decides the format; ffmpeg converts the others. A track that is too long for a WAV
 * file is RF64. If segments are missing (options->partial) the names are joined.partial.wav and the
 * like, so that an earlier whole track stays. A whole one removes those, and the files of earlier
 * tracks of the job that it did not replace. Without ffmpeg the loudness is unchanged. A note
 * reports that, and each of `formats` that failed. by_chapter: "chapter-01 TITLE.m4b" and the like,
 * in each of `formats` (WAV if there are none), with subtitles, cut from the whole track. */
int join_pieces(const char *dir, const struct join_piece *pieces, size_t count,
		const char *const *chapters, size_t chapter_count,
		const struct join_options *options, struct str *notes, struct err *err);

/* ---- the files of the track ---- */

#define JOIN_USUAL_NAME "joined"

/* What of a text can be in a file's name on every system, in at most so many bytes; NULL: nothing.
 * The caller frees it. */
char *join_portable_name(const char *text, size_t most);
/* The stem of the files of a chapter, from 1 on; 0: of what is before the first one. title: NULL:
 * none. The caller frees it. */
char *join_chapter_stem(size_t number, const char *title);
/* Returns NULL if `join.name` can be this, else what is wrong with it. */
const char *join_name_fault(const char *name);
/* The track's name: the title (NULL: none) stands for {title}. The caller frees it. */
char *join_name_make(const char *name, const char *title);
/* All names that a track of this name which lacks segments may have; ends with NULL. Free with
 * texts_free(). */
char **join_partial_names(const char *name);

/* The record of the files that joins made in an output folder. A file counts as burst's own while
 * it has the length and the time that it had. */
struct made;
struct made *made_read(int folder); /* empty if there is none */
void made_free(struct made *m);     /* accepts NULL */
/* Whether a join has made a file of this name. */
bool made_has(const struct made *m, const char *name);
/* Adds a finished file of the working folder. */
int made_add(struct made *m, const char *job, int work, const char *name, struct err *err);
/* Writes the record, then moves the added files to the output folder. */
int made_place(struct made *m, int work, int folder, struct err *err);
/* Writes the record. whole: first removes what earlier joins of this job made and this one did not,
 * with a note. */
int made_settle(struct made *m, const char *job, int folder, bool whole, struct str *notes,
		struct err *err);

/* ---- join meter ----
 * How far the join of a track is. Thread-safe: the join's thread reports each pass over the
 * sound, another thread asks for the share. */

/* What a pass takes for a second of sound, in ms of one idle processor: measured with 22,050
 * samples a second. */
#define JOIN_COPY_MS    0.3
#define JOIN_TRIM_MS    0.15
#define JOIN_PAUSES_MS  0.15 /* finds the pauses of the voices */
#define JOIN_MEASURE_MS 1.8
#define JOIN_LIMIT_MS   1.3 /* sets the loudness and limits the peaks */
#define JOIN_GAIN_MS    0.4 /* sets the loudness */
/* Peaks of speech nearly always need the limiter, and then a second try. */
#define JOIN_LOUDNESS_MS (JOIN_MEASURE_MS + 2 * JOIN_LIMIT_MS)

struct join_meter *join_meter_new(void);
void join_meter_free(struct join_meter *m); /* accepts NULL, as all of these do */

/* The join begins; its passes take so many ms for a second of sound. */
void join_meter_begin(struct join_meter *m, double of_all);
/* What took so many ms for a second of sound is over, or was not needed. */
void join_meter_done(struct join_meter *m, double so_far);
/* A pass begins, which takes of_pass ms for a second of sound. The pass moves the position of fd,
 * which it may share with a child, from 0 to `bytes` (0: not known). fd must stay open until
 * join_meter_passed(). */
void join_meter_pass(struct join_meter *m, double of_pass, int fd, int64_t bytes);
void join_meter_passed(struct join_meter *m);
/* The share of the join that is done, from 0 to 1; 0 before it begins. */
double join_meter_share(struct join_meter *m);

/* ---- ffmpeg ----
 * Runs ffmpeg without a shell: converts WAV files and sets their loudness. ffmpeg is optional.
 */

/* Returns whether ffmpeg exists and runs. */
bool ffmpeg_found(void);
/* Each takes descriptors, since a path could have become a link: `from` is a WAV file, `to` a name
 * in the folder `dir`, where only burst may write. */

/* Converts a file to this format. ERR_NOT_FOUND: ffmpeg is not installed. */
int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
		   struct err *err);
/* Brings a track to a loudness (EBU R128, true peak at most -1.5 dB) in two or three passes. Keeps
 * length and rate; writes 16 bits. *lufs: the loudness of the result. ERR_JOB: there is not enough
 * sound. */
int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
		    double target, struct join_meter *meter, double *lufs, struct err *err);
/* What an encoded track says of itself. */
struct ffmpeg_tags {
	const char *metadata; /* a FFMETADATA file in dir, with or without chapters */
	const char *cover;    /* a JPEG or PNG file in dir; NULL: none */
	bool is_png;
	char language[4]; /* ISO 639-2; "": unknown */
};
/* Encodes a track, or a part of it: share of its sound. ERR_JOB: ffmpeg is missing or fails. */
int ffmpeg_encode(int from, int dir, const struct ffmpeg_tags *tags, const char *to,
		  const struct ffmpeg_format *format, const struct join_coding *coding,
		  struct join_meter *meter, double share, struct err *err);
/* Converts a whole file into a WAV file of one channel and 16 bits, at most ten minutes of it.
 * kind: ffmpeg's name for the file's format. rate 0: unchanged. ERR_NOT_FOUND: ffmpeg is not
 * installed; ERR_JOB: it cannot read the file. */
int ffmpeg_decode(const struct str *file, const char *kind, int rate, struct str *wav,
		  struct err *err);

/* A format that a joined track can be converted to. */
struct ffmpeg_format {
	const char *name;                       /* in the config, and the file's ending: "m4b" */
	const char *codec, *quality, *settings; /* arguments; quality: without a bit rate */
	const int *kbits, *rates; /* those that it can have, ends with 0; NULL: any from 8 on */
	int kbit_most;            /* 0: it has no bit rate */
	bool chapters_are_tags;   /* they are written as Vorbis comments */
	/* a picture of its own, or a tag in base64 */
	enum { COVER_STREAM, COVER_TAG, COVER_NONE } cover;
	double ms_per_s; /* as JOIN_COPY_MS */
	bool is_book;    /* an EPUB, whose sound it is */
};
/* Returns NULL for an unknown name. */
const struct ffmpeg_format *ffmpeg_format_find(const char *name);
/* ERR_CONFIG: the format cannot have this bit rate (in kbit/s), or so many samples a second. */
int ffmpeg_check_kbit(const struct ffmpeg_format *format, const struct join_coding *coding,
		      struct err *err);
int ffmpeg_check_rate(const struct ffmpeg_format *format, int rate, struct err *err);

/* ---- captions ----
 * The captions of a spoken text: at most 2 lines of 42 characters, on screen for at least a
 * second. Pure. */

/* A word of a cue that its engine marked: bytes of the text, and when it is heard. */
struct cue_word {
	size_t from, to;
	struct span at;
};

/* Text that is spoken from sample `begin` to sample `end` of the joined track. All is borrowed. */
struct cue {
	const char *text;
	int64_t begin, end;
	const char *language; /* as in split_end_at() */
	int rate;             /* samples a second */
	/* The words that its engine marked, in order. NULL: none, then its pauses decide. */
	const struct cue_word *words;
	size_t word_count;
	struct span sound;         /* from its first to its last sound; empty: unknown */
	const struct span *pauses; /* in order; NULL: unknown */
	size_t pause_count;
};

/* The spoken length of a valid text, in letters: what the time of its speech grows with. language:
 * as in split_end_at(). */
double times_letters(const char *text, const char *language);

/* When each place of a cue's text is heard: by its marked words, else by the pauses that belong to
 * the ends of its sentences and clauses. Between them its letters decide. */
struct timeline;
struct timeline *timeline_make(const struct cue *cue);
void timeline_free(struct timeline *t); /* accepts NULL */
/* The samples at which the word that begins at this byte of the text begins, and at which the word
 * that ends there ends. */
int64_t timeline_begin(const struct timeline *t, size_t at);
int64_t timeline_end(const struct timeline *t, size_t at);

/* Finds the words of marks in the text that is shown. The marks name words of the spoken text,
 * which the lexicon (NULL: none) makes of the shown one. Leaves out words that are not found.
 * Returns the count; 0 if the marks fit another text. Times are as in the marks; the caller frees
 * *out. */
size_t words_match(const char *shown, const char *spoken, const struct lexicon *lexicon,
		   const struct wav_mark *marks, size_t count, struct cue_word **out);
/* Appends a JSON array with an object for each word of the track: word, start and end in seconds,
 * segment; estimated: its engine did not mark it. The cues are those of the pieces. */
void words_json(struct str *to, const struct cue *cues, const struct join_piece *pieces,
		size_t count);

#define CAPTION_WIDTH 42 /* in columns; a Chinese, Japanese or Korean character takes two */
#define CAPTION_LINES 2

struct caption {
	char *text;
	int64_t begin, end;   /* in samples */
	const char *language; /* of its first word, as in split_end_at(); borrowed */
};

/* Makes a caption of each sentence, or several if it needs more than two lines: these end after a
 * comma or the like, and after a word only if nothing else fits. A sentence too short for a second
 * on screen shares a caption with its neighbours. A caption stays until the next one begins
 * if it needs that to last a second; the last one may outlast the track. Only speech of more than
 * 84 characters a second breaks that rule. Returns the count; free *out with captions_free(). For
 * subtitles_srt() and tests. */
size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate);
void captions_free(struct caption *captions, size_t count);

/* Cuts a text into lines: two of like length if two are enough, else full ones. Cuts a word longer
 * than a line. language: as in split_end_at(). Returns the count. The caller frees *out; its texts
 * point into `text`. For subtitles_srt() and tests. */
size_t captions_wrap(const char *text, const char *language, struct piece **out);

/* ---- subtitles ----
 * SRT, VTT and FFMETADATA chapters from times in samples. Pure. */

/* Append the captions of the cues. zero: the sample from which times count; rate: samples a second.
 */
void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int64_t zero, int rate);
void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int64_t zero, int rate);
/* Writes chapters for `ffmpeg -i audio -i FILE -map_chapters 1`. Leaves out chapters without sound
 * (begin == end). */
void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate);
/* Appends a value of FFMETADATA, and ends its line. */
void subtitles_add_value(struct str *to, const char *value);

/* ---- book ---- */

/* Append the tags of a track, for FFMETADATA: its names, and the cover as Ogg holds it
 * (https://wiki.xiph.org/VorbisComment#METADATA_BLOCK_PICTURE). */
void book_add_tags(struct str *to, const struct script_book *book);
void book_add_picture(struct str *to, const struct str *cover);
/* The language's code of ISO 639-2; "": unknown. */
void book_language(const struct script_book *book, char code[4]);

/* The same as Vorbis comments (CHAPTER000, CHAPTER000NAME), which players of FLAC and Opus read. */
void subtitles_chapter_tags(struct str *to, const struct cue *chapters, size_t count, int rate);

#endif
