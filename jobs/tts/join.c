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
#include "track.h"

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

static int add_silence(struct track *t, int64_t frames, struct err *err)
{
	static const unsigned char zeros[65536];

	t->frames += frames;
	for (int64_t left = frames * wav_frame_bytes(&t->format); left > 0;) {
		size_t n = (size_t)MIN(left, (int64_t)sizeof(zeros));
		if (track_write(t, zeros, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	return 0;
}

/* Converts a piece of another rate, number of channels or coding. The caller closes *out. */
static int open_converted(struct track *t, FILE *from, FILE **out, struct wav_info *info,
			  struct err *err)
{
	if (ffmpeg_convert(fileno(from), t->work, "convert.wav", &t->format, err) < 0)
		return err_wrap(err,
				"its sound format differs from the first segment's; converting");
	return track_open_wav(t->work, "convert.wav", out, info, err);
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

	if (track_open_wav(t->out, piece->file, &f, &info, err) < 0)
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
	if (track_copy_samples(t, f, &info, err) < 0)
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

/* Takes the first piece's format, and writes the header for the expected length. */
static int begin_track(struct track *t, const struct join_piece *pieces, struct err *err)
{
	const int64_t plain = t->options->plain_bytes, most = plain ? plain : WAV_MOST_BYTES;
	CLEANUP(file_close) FILE *first = NULL;
	struct wav_info info;
	double frames = 0;

	if (track_open_wav(t->out, pieces[0].file, &first, &info, err) < 0)
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
	return track_write_header(t, err);
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
	return track_write_header(t, err) < 0 ? -1 : sync_track(t, err);
}

/* ERR_LOCAL: the file's length differs from `frames` by more than a millisecond. */
static int check_length(int dir, const char *file, int64_t frames, struct err *err)
{
	CLEANUP(file_close) FILE *f = NULL;
	struct wav_info info;

	if (track_open_wav(dir, file, &f, &info, err) < 0)
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

/* Writes joined.words.json. */
static int write_words(const struct track *t, const struct join_piece *pieces, struct str *notes,
		       struct err *err)
{
	CLEANUP(str_free) struct str words = STR_INIT;

	words_json(&words, t->cues, pieces, t->cue_count);
	str_addf(notes, "%s.%swords.json: when each word is heard\n", t->name, t->part_of_name);
	return track_put_text(t, t->name, "words.json", &words, err);
}

static int write_texts(const struct track *t, const struct join_piece *pieces, struct str *notes,
		       struct err *err)
{
	CLEANUP(str_free) struct str srt = STR_INIT;
	CLEANUP(str_free) struct str vtt = STR_INIT;

	if (t->options->subtitles) {
		subtitles_srt(&srt, t->cues, t->cue_count, 0, t->format.rate);
		subtitles_vtt(&vtt, t->cues, t->cue_count, 0, t->format.rate);
		if (track_put_text(t, t->name, "srt", &srt, err) < 0 ||
		    track_put_text(t, t->name, "vtt", &vtt, err) < 0)
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
	return track_put_text(t, "chapters", "txt", &t->chapter_list, err);
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
	CLEANUP(free_text) char *name = track_file_name(t, t->name, "wav");

	if (track_put(t, "part.wav", name, err) < 0)
		return -1;
	if (made_place(t->made, t->work, t->out, err) < 0)
		return err_wrap(err, "%s", t->dir);
	if (fsync(t->out) < 0 && errno != EINVAL) /* some file systems cannot fsync folders */
		return err_set(err, ERR_LOCAL, "%s: fsync: %s", t->dir, strerror(errno));
	if (!t->options->partial)
		remove_partial(t);
	return made_settle(t->made, t->job, t->out, whole, notes, err);
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
	if (set_loudness(t, notes, err) < 0 || track_encode(t, pieces, notes, err) < 0 ||
	    (t->options->by_chapter && track_make_chapters(t, pieces, notes, err) < 0) ||
	    write_texts(t, pieces, notes, err) < 0)
		return -1;
	return put_all(t, notes, err);
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
