/* encode.c - makes files for players of a finished track: its formats, its chapters, the book to
 * read along */
#include "track.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"
#include "readalong.h"

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

	if (track_open_wav(t->work, "part.wav", &from, &info, err) < 0)
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
	int copied = track_write_header(&part, err) < 0
			     ? -1
			     : track_copy_samples(&part, from, &info, err);
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

int track_encode(struct track *t, const struct join_piece *pieces, struct str *notes,
		 struct err *err)
{
	const struct ffmpeg_format *const *formats = t->options->formats;

	for (size_t i = 0; i < JOIN_FORMATS_MOST && formats[i]; i++) {
		CLEANUP(free_text) char *name = track_file_name(t, t->name, formats[i]->name);
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
		if (track_put(t, "encoded", name, err) < 0)
			return -1;
		str_addf(notes, "%s: %s\n", name,
			 formats[i]->is_book ? "its text is marked while it is heard"
			 : t->heard          ? "with its chapters"
					     : "the same track");
	}
	return 0;
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
		CLEANUP(free_text) char *name = track_file_name(t, stem, formats[i]->name);
		struct err why = {0};
		if (encode_format(t, sound, formats[i], name, notes, &why) == 0) {
			if (track_put(t, "encoded", name, err) < 0)
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
	CLEANUP(free_text) char *name = track_file_name(t, stem, "wav");
	return track_put(t, sound->wav, name, err);
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
	return track_put_text(t, stem, "srt", &srt, err) < 0
		       ? -1
		       : track_put_text(t, stem, "vtt", &vtt, err);
}

int track_make_chapters(struct track *t, const struct join_piece *pieces, struct str *notes,
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

bool join_has_sound_format(const struct join_options *options)
{
	for (size_t i = 0; i < JOIN_FORMATS_MOST && options->formats[i]; i++)
		if (!options->formats[i]->is_book)
			return true;
	return false;
}
