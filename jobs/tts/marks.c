/* marks.c - reads what stands behind the samples of a WAV file: the words that an engine marked,
 * and the transcript of a check
 *
 * A `cue ` chunk holds the start of each word. A LIST chunk of type `adtl` holds for each start a
 * `labl` (the word) and a `ltxt` (its length in samples). Other programs show them as markers.
 * A chunk `hear` is burst's own: the transcript as UTF-8. Other programs skip it. */
#include "wav.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define CHUNK_MOST      ((int64_t)16 << 20)
#define CHUNKS_MOST     64
#define LABEL_MOST      4096
#define TRANSCRIPT_MOST ((size_t)256 << 10)

/* A mark while its chunks are read. */
struct point {
	uint32_t id;
	struct wav_mark mark;
};

struct points {
	struct point *list;
	size_t count;
};

struct chunk {
	unsigned char *bytes; /* NULL: none */
	size_t len;
};

static uint32_t read_le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Reads the bytes of a chunk at the file's position. Keeps the first of two. */
static void read_chunk(FILE *f, uint32_t len, struct chunk *to)
{
	if (to->bytes || len > CHUNK_MOST)
		return;
	to->bytes = xmalloc((size_t)len + 1);
	to->len = fread(to->bytes, 1, len, f);
	if (to->len == len)
		return;
	free(to->bytes); /* the file is cut */
	*to = (struct chunk){0};
}

/* A chunk that is looked for. */
struct wanted {
	const char *name;
	struct chunk *to;
};

/* Reads the wanted chunks from behind the samples. */
static void find_chunks(FILE *f, const struct wav_info *info, const struct wanted *wanted,
			size_t count)
{
	unsigned char head[8];
	int64_t at = info->data_offset + info->frames * wav_frame_bytes(&info->format);

	at += at & 1;
	for (int i = 0; i < CHUNKS_MOST; i++) {
		if (fseeko(f, (off_t)at, SEEK_SET) < 0 ||
		    fread(head, 1, sizeof(head), f) != sizeof(head))
			return;
		uint32_t len = read_le32(head + 4);
		for (size_t k = 0; k < count; k++)
			if (!memcmp(head, wanted[k].name, 4))
				read_chunk(f, len, wanted[k].to);
		at += 8 + (int64_t)len + (len & 1);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int by_begin(const void *a, const void *b)
{
	const struct wav_mark *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void read_points(const struct chunk *cues, int64_t frames, struct points *to)
{
	enum { POINT_BYTES = 24 };
	uint32_t count = cues->len < 4 ? 0 : read_le32(cues->bytes);

	if (count > (cues->len - MIN(cues->len, (size_t)4)) / POINT_BYTES)
		return;
	to->list = xcalloc(count + 1, sizeof(*to->list));
	for (uint32_t i = 0; i < count; i++) {
		const unsigned char *p = cues->bytes + 4 + (size_t)i * POINT_BYTES;
		int64_t begin = read_le32(p + 20);
		if (memcmp(p + 8, "data", 4) || begin > frames)
			continue;
		to->list[to->count++] = (struct point){read_le32(p), {begin, begin, NULL}};
	}
	qsort(to->list, to->count, sizeof(*to->list), by_id);
}

static struct point *find_point(const struct points *in, uint32_t id)
{
	struct point wanted = {.id = id};

	return in->count ? bsearch(&wanted, in->list, in->count, sizeof(wanted), by_id) : NULL;
}

/* The text of a label without its end; NULL: none that can be shown. */
static char *read_label(const unsigned char *bytes, size_t len)
{
	const char *text = (const char *)bytes;

	len = strnlen(text, len);
	if (!len || len > LABEL_MOST || !utf8_valid(text, len))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] < 0x20 || bytes[i] == 0x7f)
			return NULL;
	return xstrndup(text, len);
}

static void read_labels(const struct chunk *labels, int64_t frames, const struct points *to)
{
	if (labels->len < 4 || memcmp(labels->bytes, "adtl", 4) != 0)
		return;
	for (size_t at = 4; at + 12 <= labels->len;) {
		const unsigned char *p = labels->bytes + at;
		size_t len = read_le32(p + 4);
		struct point *point = find_point(to, read_le32(p + 8));
		if (len < 4 || len > labels->len - at - 8)
			return;
		if (point && !memcmp(p, "labl", 4) && !point->mark.text)
			point->mark.text = read_label(p + 12, len - 4);
		else if (point && !memcmp(p, "ltxt", 4) && len >= 8)
			point->mark.end =
				MIN(point->mark.begin + (int64_t)read_le32(p + 12), frames);
		at += 8 + len + (len & 1);
	}
}

size_t wav_marks(FILE *f, const struct wav_info *info, struct wav_mark **out)
{
	struct chunk cues = {0}, labels = {0};
	struct points points = {0};
	size_t count = 0;

	*out = NULL;
	find_chunks(f, info, (struct wanted[]){{"cue ", &cues}, {"LIST", &labels}}, 2);
	if (cues.bytes && labels.bytes)
		read_points(&cues, info->frames, &points);
	if (points.count) {
		read_labels(&labels, info->frames, &points);
		*out = xcalloc(points.count, sizeof(**out));
	}
	for (size_t i = 0; i < points.count; i++)
		if (points.list[i].mark.text)
			(*out)[count++] = points.list[i].mark;
	if (count)
		qsort(*out, count, sizeof(**out), by_begin);
	free(points.list);
	free(cues.bytes);
	free(labels.bytes);
	return count;
}

void wav_marks_free(struct wav_mark *marks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(marks[i].text);
	free(marks);
}

char *wav_transcript(FILE *f, const struct wav_info *info)
{
	struct chunk heard = {0};
	CLEANUP(str_free) struct str clean = STR_INIT;

	find_chunks(f, info, (struct wanted[]){{"hear", &heard}}, 1);
	if (!heard.bytes)
		return NULL;
	size_t len = strnlen((const char *)heard.bytes, heard.len);
	if (len <= TRANSCRIPT_MOST)
		str_add_printable(&clean, (const char *)heard.bytes, len, 0);
	free(heard.bytes);
	return len <= TRANSCRIPT_MOST ? str_detach(&clean) : NULL;
}
