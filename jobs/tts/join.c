/* join.c - joins the segments of a script into one track with subtitles and chapters */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"
#include "readalong.h"
#include "wav.h"

/* What is kept around the speech of a trimmed piece, so that soft beginnings and echoes stay. */
#define LEAD_S      0.05
#define TAIL_S      0.1
#define TRACK_END_S 0.3

enum { STRAYS_LISTED = 5, OVERDUE_LISTED = 5 };

#define OVERDUE_S 0.05 /* a shorter delay is not seen */

/* The lengths of pieces are rounded: leave room for that. */
#define NEARLY 0.99

/* The join writes to the disk after so much, so that the samples written show its progress. */
enum { SYNC_BYTES = 64 << 20 };

/* burst's own folder in the output folder while a join runs */
#define WORK_NAME ".joined.work"

struct track {
	const char *dir;
	const struct join_options *options;
	const char *name; /* of its files, without their endings */
	const char *job;
	const char *part_of_name; /* "partial.": segments are missing; "" */
	struct made *made;        /* the files that are complete */
	bool lacks;               /* a file could not be made */
	int out, work;            /* descriptors, so that each path is looked up once */
	FILE *f;
	struct wav_format format;
	int64_t frames;
	int64_t tail;  /* of the frames: silence of the last piece that was kept */
	size_t strays; /* pieces with stray sounds */
	struct str stray_files;
	size_t fitted, overdue; /* cues with times; those that end after theirs */
	struct str overdue_files;
	int64_t latest;   /* the largest delay of a cue's begin, in frames */
	int64_t synced;   /* bytes of samples */
	bool long_header; /* RF64 */
	struct cue *cues; /* one per piece; the cues own their words and pauses */
	size_t cue_count;
	struct cue *chapters; /* one per title */
	size_t chapter_count;
	size_t heard;            /* chapters with sound */
	struct str chapter_list; /* FFMETADATA; empty if no chapter has sound */
};

static void track_close(struct track *t)
{
	made_free(t->made);
	file_close(t->f);
	t->f = NULL;
	fd_close(t->work);
	if (t->out >= 0)
		path_remove_tree_at(t->out, WORK_NAME, WORK_NAME, NULL);
	fd_close(t->out);
	for (size_t i = 0; i < t->cue_count; i++) {
		free((void *)t->cues[i].pauses);
		free((void *)t->cues[i].words);
	}
	free(t->cues);
	free(t->chapters);
	str_free(&t->chapter_list);
	str_free(&t->stray_files);
	str_free(&t->overdue_files);
}

static int write_bytes(struct track *t, const void *bytes, size_t len, struct err *err)
{
	if (fwrite(bytes, 1, len, t->f) != len)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	return 0;
}

static int add_silence(struct track *t, int64_t frames, struct err *err)
{
	static const unsigned char zeros[65536];

	t->frames += frames;
	for (int64_t left = frames * wav_frame_bytes(&t->format); left > 0;) {
		size_t n = (size_t)MIN(left, (int64_t)sizeof(zeros));
		if (write_bytes(t, zeros, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	return 0;
}

static int copy_samples(struct track *t, FILE *from, const struct wav_info *info, struct err *err)
{
	char block[65536];

	if (fseeko(from, info->data_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	for (int64_t left = info->frames * wav_frame_bytes(&info->format); left > 0;) {
		size_t n = fread(block, 1, (size_t)MIN(left, (int64_t)sizeof(block)), from);
		if (!n)
			return err_set(err, ERR_LOCAL, "%s",
				       ferror(from) ? strerror(errno) : "the file shrank");
		if (write_bytes(t, block, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	t->frames += info->frames;
	return 0;
}

/* Opens a plain file below the folder without following a link. The caller closes *out. */
static int open_wav(int dir, const char *name, FILE **out, struct wav_info *info, struct err *err)
{
	int fd = path_open_below(dir, name, O_RDONLY);
	CLEANUP(file_close) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	if (wav_read_header(f, info, err) < 0)
		return -1;
	*out = TAKE(f);
	return 0;
}

/* Converts a piece of another rate, number of channels or coding. The caller closes *out. */
static int open_converted(struct track *t, FILE *from, FILE **out, struct wav_info *info,
			  struct err *err)
{
	if (ffmpeg_convert(fileno(from), t->work, "convert.wav", &t->format, err) < 0)
		return err_wrap(err,
				"its sound format differs from the first segment's; converting");
	return open_wav(t->work, "convert.wav", out, info, err);
}

/* Returns whether something needs the times of the words. */
static bool wants_times(const struct join_options *options)
{
	return options->subtitles || options->words;
}

/* What it takes to make the plain track, in ms for a second of sound. */
static double assembly_ms(const struct join_options *options)
{
	return JOIN_COPY_MS + (options->trim ? JOIN_TRIM_MS : 0) +
	       (wants_times(options) ? JOIN_PAUSES_MS : 0);
}

static void shift_span(struct span *span, int64_t by)
{
	span->begin += by;
	span->end += by;
}

/* Sets the words that the engine marked in a piece's own file; their times count from its start. */
static void find_words(const struct track *t, FILE *f, const struct wav_info *info,
		       const struct join_piece *piece, struct cue *cue)
{
	struct wav_mark *marks;
	struct cue_word *words;

	if (!wants_times(t->options))
		return;
	size_t count = wav_marks(f, info, &marks);
	cue->word_count = words_match(piece->text, piece->spoken ? piece->spoken : piece->text,
				      t->options->lexicon, marks, count, &words);
	for (size_t i = 0; i < cue->word_count; i++) {
		words[i].at.begin = words[i].at.begin * t->format.rate / info->format.rate;
		words[i].at.end = words[i].at.end * t->format.rate / info->format.rate;
	}
	cue->words = words;
	wav_marks_free(marks, count);
}

/* Moves the words to the place of the piece in the track. cut: what it lacks of its file's start.
 */
static void place_words(struct cue *cue, int64_t cut)
{
	struct cue_word *words = (struct cue_word *)cue->words;

	for (size_t i = 0; i < cue->word_count; i++)
		shift_span(&words[i].at, cue->begin - cut);
}

/* Sets the pauses of the voice, which tell when a text without marked words is spoken. */
static void find_pauses(const struct track *t, FILE *f, const struct wav_info *info,
			struct cue *cue)
{
	struct span *pauses;
	int count;

	if (!wants_times(t->options) || cue->word_count ||
	    (count = wav_pauses(f, info, &pauses, &cue->sound, NULL)) < 0)
		return;
	shift_span(&cue->sound, cue->begin);
	for (int i = 0; i < count; i++)
		shift_span(&pauses[i], cue->begin);
	cue->pauses = pauses;
	cue->pause_count = (size_t)count;
}

/* Silence before piece i, in seconds; of the track's beginning and end, what a piece may keep. */
static double pause_before(const struct track *t, const struct join_piece *pieces, size_t i)
{
	return i > 0 && i < t->cue_count
		       ? join_pause_s(t->options, pieces[i].border, pieces[i].before_s)
		       : TRACK_END_S;
}

/* Silence between the speech of piece i and that of the piece before, in frames. */
static int64_t gap_before(const struct track *t, const struct join_piece *pieces, size_t i)
{
	return i ? llround(pause_before(t, pieces, i) * t->format.rate) : 0;
}

/* Silence before the sound of piece i, in frames. lead, tail: the silence that its sound begins
 * with, and that of the piece before ends with. */
static int64_t silence_before(const struct track *t, const struct join_piece *pieces, size_t i,
			      int64_t lead, int64_t tail)
{
	const struct join_piece *piece = &pieces[i];

	if (!piece->fitted || piece->at_s < 0)
		return MAX(gap_before(t, pieces, i) - tail - lead, (int64_t)0);
	return MAX(llround(piece->at_s * t->format.rate) - t->frames - lead, (int64_t)0);
}

/* Notes whether the piece, whose speech lies between these frames, fits the time of its cue. */
static void note_fit(struct track *t, const struct join_piece *piece, int64_t begin, int64_t end)
{
	const double rate = t->format.rate;
	double over_s = (double)end / rate - piece->until_s;

	if (!piece->fitted)
		return;
	if (piece->at_s >= 0)
		t->latest = MAX(t->latest, begin - llround(piece->at_s * rate));
	if (piece->until_s <= 0)
		return;
	t->fitted++;
	if (over_s > OVERDUE_S && ++t->overdue <= OVERDUE_LISTED)
		str_addf(&t->overdue_files, "%s%s by %.2f s", t->overdue > 1 ? ", " : "",
			 piece->file, over_s);
}

static void tell_fit(const struct track *t, struct str *notes)
{
	if (!t->fitted)
		return;
	if (!t->overdue)
		str_addf(notes, "all %zu cues fit their times\n", t->fitted);
	else
		str_addf(notes, "%zu of %zu cues end after their time: %s%s", t->overdue, t->fitted,
			 str_text(&t->overdue_files), t->overdue > OVERDUE_LISTED ? ", ..." : "");
	if (t->overdue && (double)t->latest > OVERDUE_S * t->format.rate)
		str_addf(notes, "; others begin up to %.2f s late",
			 (double)t->latest / t->format.rate);
	if (t->overdue)
		str_addc(notes, '\n');
}

static void note_strays(struct track *t, const char *file, size_t strays)
{
	if (strays && ++t->strays <= STRAYS_LISTED)
		str_addf(&t->stray_files, "%s%s", t->strays > 1 ? ", " : "", file);
}

/* Narrows the range of the piece's samples to its speech, and a little silence around it, a third
 * and two thirds of the pauses at most. Sets lead and t->tail to what is kept of that. */
static int trim_piece(struct track *t, FILE *f, const struct join_piece *pieces, size_t i,
		      struct wav_info *info, int64_t *lead, struct err *err)
{
	const double rate = info->format.rate;
	struct wav_trim trim;

	if (wav_trim(f, info, &trim, err) < 0)
		return -1;
	int64_t before = llround(MIN(LEAD_S, pause_before(t, pieces, i) / 3) * rate),
		behind = llround(MIN(TAIL_S, pause_before(t, pieces, i + 1) * 2 / 3) * rate);
	*lead = MIN(before, trim.begin - trim.least);
	t->tail = MIN(behind, trim.most - trim.end);
	info->data_offset += (trim.begin - *lead) * wav_frame_bytes(&info->format);
	info->frames = trim.end + t->tail - (trim.begin - *lead);
	note_strays(t, pieces[i].file, trim.strays);
	return 0;
}

/* Appends the pause before piece i and its sound, and fills its cue. */
static int add_piece(struct track *t, const struct join_piece *pieces, size_t i, struct err *err)
{
	const struct join_piece *piece = &pieces[i];
	struct cue *cue = &t->cues[i];
	CLEANUP(file_close) FILE *f = NULL;
	struct wav_info info;
	int64_t lead = 0, before = t->tail, whole;

	if (open_wav(t->out, piece->file, &f, &info, err) < 0)
		return err_wrap(err, "%s", piece->file);
	*cue = (struct cue){
		.text = piece->text, .language = piece->language, .rate = t->format.rate};
	find_words(t, f, &info, piece, cue); /* a conversion loses them */
	if (!wav_same_format(&info.format, &t->format)) {
		CLEANUP(file_close) FILE *other = TAKE(f);
		if (open_converted(t, other, &f, &info, err) < 0)
			return err_wrap(err, "%s", piece->file);
	}
	whole = info.data_offset;
	t->tail = 0;
	if (t->options->trim && trim_piece(t, f, pieces, i, &info, &lead, err) < 0)
		return err_wrap(err, "%s", piece->file);
	if (add_silence(t, silence_before(t, pieces, i, lead, before), err) < 0)
		return -1;
	if (!t->long_header &&
	    (t->frames + info.frames) * wav_frame_bytes(&t->format) > WAV_MOST_BYTES)
		return err_set(err, ERR_BUG, "%s.wav: longer than its segments", t->name);
	cue->begin = t->frames;
	place_words(cue, (info.data_offset - whole) / wav_frame_bytes(&t->format));
	find_pauses(t, f, &info, cue);
	if (copy_samples(t, f, &info, err) < 0)
		return err_wrap(err, "%s", piece->file);
	cue->end = t->frames;
	note_fit(t, piece, cue->begin + lead, cue->end - t->tail);
	return 0;
}

/* Extends the chapter (-1: none) to the track's end; `at` is its start at its first piece. */
static void add_chapter(struct track *t, int chapter, int64_t at)
{
	if (chapter < 0 || (size_t)chapter >= t->chapter_count)
		return;
	struct cue *c = &t->chapters[chapter];
	if (c->begin < 0)
		c->begin = at;
	c->end = t->frames;
}

/* Writes the header at the file's current position. */
static int write_header(struct track *t, struct err *err)
{
	unsigned char header[WAV_RF64_HEADER_BYTES];
	size_t len = wav_make_header(header, &t->format, t->frames * wav_frame_bytes(&t->format),
				     t->long_header);

	return write_bytes(t, header, len, err);
}

/* Takes the first piece's format, and writes the header for the expected length. */
static int begin_track(struct track *t, const struct join_piece *pieces, struct err *err)
{
	const int64_t plain = t->options->plain_bytes, most = plain ? plain : WAV_MOST_BYTES;
	CLEANUP(file_close) FILE *first = NULL;
	struct wav_info info;
	double frames = 0;

	if (open_wav(t->out, pieces[0].file, &first, &info, err) < 0)
		return err_wrap(err, "%s", pieces[0].file);
	t->format = info.format;
	for (size_t i = 0; i < t->cue_count; i++) {
		bool placed = pieces[i].fitted && pieces[i].at_s >= 0;
		frames = placed ? MAX(frames, pieces[i].at_s * t->format.rate)
				: frames + (double)gap_before(t, pieces, i);
		frames += pieces[i].seconds * t->format.rate;
	}
	frames *= wav_frame_bytes(&t->format);
	join_meter_pass(t->options->meter, assembly_ms(t->options), fileno(t->f), (int64_t)frames);
	t->long_header = frames > (double)most * NEARLY;
	return write_header(t, err);
}

static int sync_track(struct track *t, struct err *err)
{
	if (fflush(t->f) != 0 || fsync(fileno(t->f)) < 0)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	t->synced = t->frames * wav_frame_bytes(&t->format);
	return 0;
}

/* Counts the chapters with sound (heard) and fills chapter_list. */
static void list_chapters(struct track *t)
{
	for (size_t i = 0; i < t->chapter_count; i++)
		t->heard += t->chapters[i].begin != t->chapters[i].end;
	if (t->heard)
		subtitles_chapters(&t->chapter_list, t->chapters, t->chapter_count, t->format.rate);
}

/* Writes all pieces and the gaps between them, then the header with the real length. */
static int write_track(struct track *t, const struct join_piece *pieces, struct str *notes,
		       struct err *err)
{
	if (begin_track(t, pieces, err) < 0)
		return -1;
	for (size_t i = 0; i < t->cue_count; i++) {
		if (add_piece(t, pieces, i, err) < 0)
			return -1;
		add_chapter(t, pieces[i].chapter, t->cues[i].begin);
		if (t->frames * wav_frame_bytes(&t->format) - t->synced > SYNC_BYTES &&
		    sync_track(t, err) < 0)
			return -1;
	}
	list_chapters(t);
	tell_fit(t, notes);
	if (t->strays)
		str_addf(notes, "stray sounds left out of the track in %zu file%s: %s%s\n",
			 t->strays, t->strays == 1 ? "" : "s", str_text(&t->stray_files),
			 t->strays > STRAYS_LISTED ? ", ..." : "");
	if (fseeko(t->f, 0, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	return write_header(t, err) < 0 ? -1 : sync_track(t, err);
}

/* ERR_LOCAL: the file's length differs from `frames` by more than a millisecond. */
static int check_length(int dir, const char *file, int64_t frames, struct err *err)
{
	CLEANUP(file_close) FILE *f = NULL;
	struct wav_info info;

	if (open_wav(dir, file, &f, &info, err) < 0)
		return -1;
	if (llabs((long long)(info.frames - frames)) * 1000 >
	    info.format.rate) /* tolerance: a millisecond */
		return err_set(err, ERR_LOCAL, "ffmpeg changed the length by %lld samples",
			       (long long)(info.frames - frames));
	return 0;
}

/* Replaces the plain track by one at the requested loudness. */
static int set_track_loudness(struct track *t, double *lufs, struct err *err)
{
	CLEANUP(fd_close) int from = path_open_below(t->work, "part.wav", O_RDONLY);

	if (from < 0)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	if (ffmpeg_loudness(from, t->work, "loud.wav", &t->format, t->options->lufs,
			    t->options->meter, lufs, err) < 0 ||
	    check_length(t->work, "loud.wav", t->frames, err) < 0)
		return err_wrap(err, "loudness of %s.wav", t->name);
	if (renameat(t->work, "loud.wav", t->work, "part.wav") < 0)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	return 0;
}

/* Also notes the track's length. Without ffmpeg or enough sound, the loudness stays as it is. */
static int set_loudness(struct track *t, struct str *notes, struct err *err)
{
	struct err why = {0};
	char length[24];
	double lufs = 0;

	if (t->options->normalise && !ffmpeg_found())
		err_set(&why, ERR_JOB, "ffmpeg is not installed");
	else if (t->options->normalise && set_track_loudness(t, &lufs, &why) < 0 &&
		 why.kind != ERR_JOB)
		return err_set(err, why.kind, "%s", why.msg);
	if (t->options->normalise)
		join_meter_done(t->options->meter, assembly_ms(t->options) + JOIN_LOUDNESS_MS);
	str_addf(notes, "%s.%swav: %s", t->name, t->part_of_name,
		 duration_show(length, sizeof(length), t->frames * 1000 / t->format.rate));
	if (why.kind)
		str_addf(notes, ", loudness left as it is: %s\n", why.msg);
	else if (t->options->normalise)
		str_addf(notes, " at %.1f LUFS\n", lufs);
	else
		str_addc(notes, '\n');
	return 0;
}

/* "joined.srt", or "joined.partial.srt": a track that lacks segments must not replace a whole one.
 */
static char *output_name(const struct track *t, const char *stem, const char *ending)
{
	return xasprintf("%s.%s%s", stem, t->part_of_name, ending);
}

/* Gives a finished file its name, in burst's own folder until all are finished. */
static int put_finished(const struct track *t, const char *from, const char *to, struct err *err)
{
	if (renameat(t->work, from, t->work, to) < 0)
		return err_set(err, ERR_LOCAL, "%s/%s: %s", t->dir, to, strerror(errno));
	return made_add(t->made, t->job, t->work, to, err);
}

/* What is encoded: the whole track, or a chapter of it. */
struct sound {
	const char *wav;   /* in the working folder */
	const char *title; /* NULL: the track */
	size_t number, of; /* of the chapter */
	double share;      /* of the track */
};

static const struct sound whole_track = {.wav = "part.wav", .share = 1};

/* Adds the chapters to a FFMETADATA file as the format takes them. */
static void add_chapters(const struct track *t, const struct ffmpeg_format *format, struct str *to)
{
	CLEANUP(str_free) struct str tags = STR_INIT;
	const struct str *list = format->chapters_are_tags ? &tags : &t->chapter_list;

	if (!t->heard)
		return;
	subtitles_chapter_tags(&tags, t->chapters, t->chapter_count, t->format.rate);
	str_add(to, str_text(list) + strlen(";FFMETADATA1\n"));
}

/* Writes the files that an encoder needs beside the track: tags with chapters, and the cover. */
static int write_tags(const struct track *t, const struct sound *sound,
		      const struct ffmpeg_format *format, bool with_cover, struct ffmpeg_tags *out,
		      struct err *err)
{
	const struct script_book *book = t->options->book;
	const struct str *cover = book && book->cover.len && with_cover ? &book->cover : NULL;
	CLEANUP(str_free) struct str text = STR_INIT;

	*out = (struct ffmpeg_tags){.metadata = "tags.txt"};
	str_add(&text, ";FFMETADATA1\n");
	if (book) {
		book_add_tags(&text, book);
		book_language(book, out->language);
	}
	if (cover && format->cover == COVER_TAG)
		book_add_picture(&text, cover);
	if (sound->title) { /* replaces that of the book */
		str_add(&text, "title=");
		subtitles_add_value(&text, sound->title);
		str_addf(&text, "track=%zu/%zu\n", sound->number, sound->of);
	} else {
		add_chapters(t, format, &text);
	}
	if (path_write_at(t->work, "tags.txt", "tags.txt", str_text(&text), text.len, 0600, err) <
	    0)
		return -1;
	if (!cover || format->cover != COVER_STREAM)
		return 0;
	out->cover = "cover";
	out->is_png = cover->s[0] == '\x89';
	return path_write_at(t->work, "cover", "cover", cover->s, cover->len, 0600, err);
}

/* Encodes the track; without its cover if ffmpeg cannot take that. ERR_JOB: ffmpeg fails. */
static int encode_format(const struct track *t, const struct sound *sound,
			 const struct ffmpeg_format *format, const char *name, struct str *notes,
			 struct err *err)
{
	struct ffmpeg_tags tags;
	struct err why = {0};

	for (int with_cover = 1; with_cover >= 0; with_cover--) {
		CLEANUP(fd_close) int from = path_open_below(t->work, sound->wav, O_RDONLY);
		if (from < 0)
			return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
		if (write_tags(t, sound, format, with_cover, &tags, err) < 0)
			return -1;
		if (ffmpeg_encode(from, t->work, &tags, "encoded", format, &t->options->coding,
				  t->options->meter, sound->share, err) == 0) {
			if (why.kind)
				str_addf(notes, "%s: without its cover: %s\n", name, why.msg);
			return 0;
		}
		if (err->kind != ERR_JOB || !tags.cover)
			return -1;
		why = *err;
	}
	return -1;
}

/* ---- parts of the track ---- */

/* Pieces between two borders of chapters. */
struct stretch {
	size_t from, count;
	size_t number;     /* of the chapter, from 1 on; 0: before the first one */
	const char *title; /* NULL: it has none */
};

/* Finds the next stretch; {0}: before the first one. */
static bool next_stretch(const struct track *t, const struct join_piece *pieces, struct stretch *s)
{
	s->from += s->count;
	if (s->from >= t->cue_count)
		return false;
	const int chapter = pieces[s->from].chapter;
	for (s->count = 1;
	     s->from + s->count < t->cue_count && pieces[s->from + s->count].chapter == chapter;)
		s->count++;
	s->number += chapter >= 0;
	s->title = chapter >= 0 ? t->chapters[chapter].text : NULL;
	return true;
}

/* Copies a part of the finished track to a WAV file in the working folder. */
static int cut_track(const struct track *t, int64_t begin, int64_t end, const char *to,
		     struct err *err)
{
	CLEANUP(file_close) FILE *from = NULL;
	struct wav_info info;

	if (open_wav(t->work, "part.wav", &from, &info, err) < 0)
		return -1;
	unlinkat(t->work, to, 0);
	int fd = path_open_new_at(t->work, to, O_RDWR, 0666);
	CLEANUP(file_close) FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!f)
		return err_set(err, ERR_LOCAL, "%s: %s", to, strerror(errno));
	info.data_offset += begin * wav_frame_bytes(&info.format);
	info.frames = MIN(end, info.frames) - begin;
	struct track part = {
		.name = "chapter", .f = f, .format = info.format, .frames = info.frames};
	part.long_header = info.frames * wav_frame_bytes(&info.format) > WAV_MOST_BYTES;
	double share = (double)info.frames / (double)t->frames;
	join_meter_pass(t->options->meter, JOIN_COPY_MS * share, -1, 0);
	int copied = write_header(&part, err) < 0 ? -1 : copy_samples(&part, from, &info, err);
	join_meter_passed(t->options->meter);
	if (copied < 0)
		return -1;
	return fflush(f) == 0 && fsync(fd) == 0
		       ? 0
		       : err_set(err, ERR_LOCAL, "%s: %s", to, strerror(errno));
}

/* ---- a book that is read along ---- */

/* Encodes the sound of each chapter of a book; it lasts until that of the next one begins. Fills
 * the chapters and their count. The caller frees their audio. */
static int encode_book(const struct track *t, const struct join_piece *pieces,
		       const struct ffmpeg_format *format, struct readalong_chapter *chapters,
		       size_t *count, struct str *notes, struct err *err)
{
	const struct script_book *book = t->options->book;

	for (struct stretch s = {0}; next_stretch(t, pieces, &s); ++*count) {
		struct readalong_chapter *c = &chapters[*count];
		const size_t next = s.from + s.count;
		*c = (struct readalong_chapter){
			.title = s.title && *s.title                   ? s.title
				 : book && book->title && *book->title ? book->title
								       : t->name,
			.named = s.title != NULL,
			.from = s.from,
			.count = s.count,
			.begin = s.from ? t->cues[s.from].begin : 0,
			.end = next < t->cue_count ? t->cues[next].begin : t->frames,
			.audio = xasprintf("audio-%zu.m4a", *count),
		};
		const struct sound sound = {"chapter.wav", c->title, *count + 1, t->heard,
					    (double)(c->end - c->begin) / (double)t->frames};
		if (cut_track(t, c->begin, c->end, sound.wav, err) < 0 ||
		    encode_format(t, &sound, format, c->audio, notes, err) < 0) {
			++*count;
			return -1;
		}
		if (renameat(t->work, "encoded", t->work, c->audio) < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", c->audio, strerror(errno));
	}
	return 0;
}

/* Makes the book "encoded" in the working folder. ERR_JOB: ffmpeg fails, or it would be too large.
 */
static int make_book(const struct track *t, const struct join_piece *pieces,
		     const struct ffmpeg_format *format, struct str *notes, struct err *err)
{
	struct readalong_chapter *chapters = xcalloc(t->cue_count, sizeof(*chapters));
	size_t count = 0;
	int result = encode_book(t, pieces, format, chapters, &count, notes, err);

	if (result == 0)
		result = readalong_write(&(struct readalong){.dir = t->work,
							     .name = t->name,
							     .book = t->options->book,
							     .pieces = pieces,
							     .cues = t->cues,
							     .rate = t->format.rate,
							     .chapters = chapters,
							     .count = count,
							     .now_s = clock_wall_ms() / 1000},
					 "encoded", err);
	for (size_t i = 0; i < count; i++)
		free(chapters[i].audio);
	free(chapters);
	return result;
}

/* ---- the files beside the track ---- */

/* Makes joined.m4b and the like from the finished track. If a format fails, adds a note: the track
 * exists, so the run has not failed. */
static int encode_formats(struct track *t, const struct join_piece *pieces, struct str *notes,
			  struct err *err)
{
	const struct ffmpeg_format *const *formats = t->options->formats;

	for (size_t i = 0; i < JOIN_FORMATS_MOST && formats[i]; i++) {
		CLEANUP(free_text) char *name = output_name(t, t->name, formats[i]->name);
		struct err why = {0};
		int made = formats[i]->is_book
				   ? make_book(t, pieces, formats[i], notes, &why)
				   : encode_format(t, &whole_track, formats[i], name, notes, &why);
		if (made < 0) {
			if (why.kind != ERR_JOB)
				return err_set(err, why.kind, "%s", why.msg);
			str_addf(notes, "%s: not made: %s\n", name, why.msg);
			t->lacks = true;
			continue;
		}
		if (put_finished(t, "encoded", name, err) < 0)
			return -1;
		str_addf(notes, "%s: %s\n", name,
			 formats[i]->is_book ? "its text is marked while it is heard"
			 : t->heard          ? "with its chapters"
					     : "the same track");
	}
	return 0;
}

static int put_text(const struct track *t, const char *stem, const char *ending,
		    const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *name = output_name(t, stem, ending);

	return path_write_at(t->work, name, name, str_text(text), text->len, 0666, err) < 0
		       ? -1
		       : made_add(t->made, t->job, t->work, name, err);
}

/* Writes joined.words.json. */
static int write_words(const struct track *t, const struct join_piece *pieces, struct str *notes,
		       struct err *err)
{
	CLEANUP(str_free) struct str words = STR_INIT;

	words_json(&words, t->cues, pieces, t->cue_count);
	str_addf(notes, "%s.%swords.json: when each word is heard\n", t->name, t->part_of_name);
	return put_text(t, t->name, "words.json", &words, err);
}

static int write_texts(const struct track *t, const struct join_piece *pieces, struct str *notes,
		       struct err *err)
{
	CLEANUP(str_free) struct str srt = STR_INIT;
	CLEANUP(str_free) struct str vtt = STR_INIT;

	if (t->options->subtitles) {
		subtitles_srt(&srt, t->cues, t->cue_count, 0, t->format.rate);
		subtitles_vtt(&vtt, t->cues, t->cue_count, 0, t->format.rate);
		if (put_text(t, t->name, "srt", &srt, err) < 0 ||
		    put_text(t, t->name, "vtt", &vtt, err) < 0)
			return -1;
		str_addf(notes, "%s.%ssrt, %s.%svtt: subtitles\n", t->name, t->part_of_name,
			 t->name, t->part_of_name);
	}
	if (t->options->words && write_words(t, pieces, notes, err) < 0)
		return -1;
	if (!t->heard)
		return 0;
	str_addf(notes, "chapters.%stxt: %zu chapter%s\n", t->part_of_name, t->heard,
		 t->heard == 1 ? "" : "s");
	return put_text(t, "chapters", "txt", &t->chapter_list, err);
}

/* Makes the working folder and the track's file in it; removes what an interrupted join left. */
static int open_work_folder(struct track *t, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(t->dir, WORK_NAME);

	t->out = path_open_dir(t->dir);
	if (t->out < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", t->dir, strerror(errno));
	t->made = made_read(t->out);
	if (path_remove_tree_at(t->out, WORK_NAME, path, err) < 0)
		return -1;
	if (mkdirat(t->out, WORK_NAME, 0700) < 0 ||
	    (t->work = openat(t->out, WORK_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
		    0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	int fd = path_open_new_at(t->work, "part.wav", O_RDWR, 0666);
	t->f = fd < 0 ? NULL : fdopen(fd, "w+");
	return t->f ? 0 : err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
}

/* Called once the whole track is there. */
static void remove_partial(const struct track *t)
{
	char **names = join_partial_names(t->name);

	for (size_t i = 0; names[i]; i++)
		unlinkat(t->out, names[i], 0);
	texts_free(names);
}

/* Moves all files to their places, and removes those that they replace. */
static int put_all(const struct track *t, struct str *notes, struct err *err)
{
	const bool whole = !t->options->partial && !t->lacks;
	CLEANUP(free_text) char *name = output_name(t, t->name, "wav");

	if (put_finished(t, "part.wav", name, err) < 0)
		return -1;
	if (made_place(t->made, t->work, t->out, err) < 0)
		return err_wrap(err, "%s", t->dir);
	if (fsync(t->out) < 0 && errno != EINVAL) /* some file systems cannot fsync folders */
		return err_set(err, ERR_LOCAL, "%s: fsync: %s", t->dir, strerror(errno));
	if (!t->options->partial)
		remove_partial(t);
	return made_settle(t->made, t->job, t->out, whole, notes, err);
}

/* ---- a file for each chapter ---- */

/* Makes the files of a chapter whose sound is in the working folder. */
static int encode_chapter(struct track *t, const struct sound *sound, const char *stem,
			  struct str *notes, struct err *err)
{
	const struct ffmpeg_format *const *formats = t->options->formats;

	for (size_t i = 0; i < JOIN_FORMATS_MOST && formats[i]; i++) {
		if (formats[i]->is_book)
			continue;
		CLEANUP(free_text) char *name = output_name(t, stem, formats[i]->name);
		struct err why = {0};
		if (encode_format(t, sound, formats[i], name, notes, &why) == 0) {
			if (put_finished(t, "encoded", name, err) < 0)
				return -1;
			continue;
		}
		if (why.kind != ERR_JOB)
			return err_set(err, why.kind, "%s", why.msg);
		str_addf(notes, "%s: not made: %s\n", name, why.msg);
		t->lacks = true;
	}
	if (join_has_sound_format(t->options))
		return 0;
	CLEANUP(free_text) char *name = output_name(t, stem, "wav");
	return put_finished(t, sound->wav, name, err);
}

static int write_chapter_subtitles(const struct track *t, size_t from, size_t count, int64_t zero,
				   const char *stem, struct err *err)
{
	CLEANUP(str_free) struct str srt = STR_INIT;
	CLEANUP(str_free) struct str vtt = STR_INIT;

	if (!t->options->subtitles)
		return 0;
	subtitles_srt(&srt, &t->cues[from], count, zero, t->format.rate);
	subtitles_vtt(&vtt, &t->cues[from], count, zero, t->format.rate);
	return put_text(t, stem, "srt", &srt, err) < 0 ? -1 : put_text(t, stem, "vtt", &vtt, err);
}

/* Makes the files of each chapter: the pieces between two borders of chapters. A track that lacks
 * segments gets none, since a chapter might be missing. */
static int make_chapters(struct track *t, const struct join_piece *pieces, struct str *notes,
			 struct err *err)
{
	size_t made = 0;

	if (t->options->partial || !t->heard)
		return 0;
	for (struct stretch s = {0}; next_stretch(t, pieces, &s); made++) {
		CLEANUP(free_text) char *stem = join_chapter_stem(s.number, s.title);
		const int64_t begin = t->cues[s.from].begin,
			      end = t->cues[s.from + s.count - 1].end;
		const struct sound sound = {"chapter.wav", s.title ? s.title : stem, s.number,
					    t->heard, (double)(end - begin) / (double)t->frames};
		if (cut_track(t, begin, end, sound.wav, err) < 0 ||
		    encode_chapter(t, &sound, stem, notes, err) < 0 ||
		    write_chapter_subtitles(t, s.from, s.count, begin, stem, err) < 0)
			return -1;
	}
	str_addf(notes, "chapter-*: %zu file%s of chapters\n", made, made == 1 ? "" : "s");
	return 0;
}

static int make_track(struct track *t, const struct join_piece *pieces, struct str *notes,
		      struct err *err)
{
	if (open_work_folder(t, err) < 0)
		return -1;
	join_meter_begin(t->options->meter, join_ms_per_s(t->options));
	int added = write_track(t, pieces, notes, err);
	join_meter_passed(t->options->meter);
	if (added < 0)
		return -1;
	file_close(t->f);
	t->f = NULL;
	if (set_loudness(t, notes, err) < 0 || encode_formats(t, pieces, notes, err) < 0 ||
	    (t->options->by_chapter && make_chapters(t, pieces, notes, err) < 0) ||
	    write_texts(t, pieces, notes, err) < 0)
		return -1;
	return put_all(t, notes, err);
}

bool join_has_sound_format(const struct join_options *options)
{
	for (size_t i = 0; i < JOIN_FORMATS_MOST && options->formats[i]; i++)
		if (!options->formats[i]->is_book)
			return true;
	return false;
}

double join_ms_per_s(const struct join_options *options)
{
	double ms = assembly_ms(options) + (options->normalise ? JOIN_LOUDNESS_MS : 0) +
		    (options->by_chapter ? JOIN_COPY_MS : 0);

	for (size_t i = 0; i < JOIN_FORMATS_MOST && options->formats[i]; i++) {
		const struct ffmpeg_format *f = options->formats[i];
		ms += f->ms_per_s * (options->by_chapter && !f->is_book ? 2 : 1) +
		      (f->is_book ? JOIN_COPY_MS : 0);
	}
	return ms;
}

int join_pieces(const char *dir, const struct join_piece *pieces, size_t count,
		const char *const *chapters, size_t chapter_count,
		const struct join_options *options, struct str *notes, struct err *err)
{
	struct track t = {.dir = dir,
			  .options = options,
			  .name = options->name ? options->name : JOIN_USUAL_NAME,
			  .job = options->job ? options->job : "",
			  .part_of_name = options->partial ? "partial." : "",
			  .out = -1,
			  .work = -1,
			  .cue_count = count,
			  .chapter_count = chapter_count};

	if (!count)
		return 0;
	t.cues = xcalloc(count, sizeof(*t.cues));
	t.chapters = xcalloc(chapter_count + 1, sizeof(*t.chapters));
	for (size_t i = 0; i < chapter_count; i++)
		t.chapters[i] = (struct cue){.text = chapters[i], .begin = -1, .end = -1};
	int result = make_track(&t, pieces, notes, err);
	track_close(&t);
	return result;
}
