/* fuzz_input.c - any bytes as a script, a manifest, a WAV file or an output pattern. What is
 * accepted must be whole: ids that name files, texts with words, pieces within their limits.
 *
 * The first byte chooses the reader. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/pattern.h"
#include "jobs/manifest.h"
#include "jobs/tts/compare.h"
#include "jobs/tts/join.h"
#include "jobs/tts/state.h"
#include "jobs/text/script.h"
#include "jobs/tts/wav.h"
#include "script_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_pieces(const char *text)
{
	const struct split_limits limits = {30, 8};
	struct piece *pieces;
	size_t count = split_text(text, &limits, NULL, &pieces);

	assert(count > 0);
	for (size_t i = 0; i < count; i++)
		assert(pieces[i].len > 0 && utf8_valid(pieces[i].text, pieces[i].len));
	free(pieces);
}

/* What is heard in two seconds and then in a tenth of one is all shown, in two lines at a time. */
static void check_captions(const char *text)
{
	const struct cue cues[] = {{text, 0, 2000, NULL, 0}, {text, 2100, 2200, NULL, 0}};
	struct caption *made;
	size_t count = captions_make(&made, cues, ARRAY_LEN(cues), 1000);

	assert(count > 0 && made[0].begin == 0);
	for (size_t i = 0; i < count; i++) {
		struct piece *lines;
		size_t n = captions_wrap(made[i].text, NULL, &lines);
		assert(n > 0 && n <= CAPTION_LINES && made[i].begin <= made[i].end);
		assert(utf8_valid(made[i].text, strlen(made[i].text)));
		for (size_t k = 0; k < n; k++)
			assert(utf8_valid(lines[k].text, lines[k].len));
		free(lines);
	}
	captions_free(made, count);
}

static void check_text(const char *text)
{
	check_pieces(text);
	check_captions(text);
}

/* named: the script has a speaker A. */
static void read_script(uint8_t kind, bool named, const char *bytes, size_t len)
{
	CLEANUP(script_free) struct script s = {0};
	const char *source = script_add_source(&s, "f");
	struct speakers speakers = {0};

	if (named && speakers_add(&speakers, "A=a", NULL) == 0)
		s.speakers = &speakers;
	switch (kind) {
	case 0: input_read_text(&s, source, bytes, len, INPUT_AUTO); break;
	case 1: input_read_text(&s, source, bytes, len, INPUT_PARAGRAPHS); break;
	case 2: input_read_jsonl(&s, source, bytes, len); break;
	case 3: input_read_table(&s, source, bytes, len, false); break;
	case 4: input_read_table(&s, source, bytes, len, true); break;
	default: input_read_markdown(&s, source, bytes, len); break;
	}
	size_t lines = 1;
	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	check_script(&s, lines, check_text);
	speakers_free(&speakers);
}

/* A line that was taken is one that we could have written: written again it says the same. */
static void write_again(const struct manifest_entry *entry, const struct segment_result *result)
{
	struct segment segment = {.id = (char *)entry->id};
	struct segment_result back = {0};
	struct manifest m = {0};
	struct err err = {0};

	assert(result->bytes >= 0 && result->seconds >= 0 && result->sample_rate >= 0 &&
	       result->tries >= 0);
	COPY_TEXT(segment.key, entry->key);
	CLEANUP(json_decref) json_t *line = manifest_line(&segment, result, entry->file, "");
	json_object_set_new(line, "seconds", json_real(result->seconds));
	manifest_add_result(line, result);
	CLEANUP(free_text) char *text = jsonx_line(line);
	assert(text && manifest_parse("m", text, strlen(text), false, &m, &err) == 0 &&
	       m.count == 1);
	manifest_restore(&m.entries[0], &back);
	assert(!strcmp(m.entries[0].id, entry->id) && !strcmp(m.entries[0].file, entry->file));
	assert(!strcmp(m.entries[0].key, entry->key) && !strcmp(back.sha256, result->sha256) &&
	       back.bytes == result->bytes);
	assert(back.seconds == result->seconds && back.tries == result->tries &&
	       back.suspect == result->suspect);
	manifest_free(&m);
}

static void read_manifest(const char *bytes, size_t len)
{
	struct manifest m = {0};
	struct segment_result result = {0};
	struct err err = {0};
	size_t count;

	if (manifest_parse("m", bytes, len, false, &m, &err) == 0) {
		for (size_t i = 0; i < m.count; i++) {
			assert(manifest_find(&m, m.entries[i].file, &count) && count > 0);
			manifest_restore(&m.entries[i], &result);
			write_again(&m.entries[i], &result);
		}
		manifest_free(&m);
	}
	assert(manifest_parse("m", bytes, len, true, &m, &err) == 0);
	manifest_free(&m);
}

static FILE *file_of(const void *bytes, size_t len, char path[40])
{
	int fd = memfd_create("wav", 0);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	snprintf(path, 40, "/proc/self/fd/%d", fd);
	return fdopen(fd, "r");
}

/* A header that we write for sound of this kind says the same. */
static void write_header(const struct wav_info *info)
{
	unsigned char header[WAV_HEADER_BYTES + 64] = {0};
	uint32_t bytes =
		(uint32_t)(64 / wav_frame_bytes(&info->format) * wav_frame_bytes(&info->format));
	struct wav_info back;
	char path[40];
	struct err err;

	wav_make_header(header, &info->format, bytes, false);
	CLEANUP(file_close) FILE *f = file_of(header, WAV_HEADER_BYTES + bytes, path);
	assert(wav_read_header(f, &back, &err) == 0 &&
	       wav_same_format(&back.format, &info->format));
	assert(back.data_offset == WAV_HEADER_BYTES &&
	       back.frames * wav_frame_bytes(&back.format) == bytes);
}

/* A sound is good, or what is wrong with it is said; and it is as long as its header has it. */
static void judge(const char *path, const struct wav_info *info)
{
	static const struct check_limits limits = {.min_duration = 0.3,
						   .max_duration = 3,
						   .max_silence = 2,
						   .max_clipped = 0.001,
						   .cap_s = 40,
						   .speed = 1};
	struct check verdict = {0};
	struct err err = {0};

	if (check_wav(path, "W, \xc3\xa9.", &limits, &verdict, &err) < 0)
		abort();
	assert(verdict.ok || verdict.reason[0]);
	if (info)
		assert(verdict.seconds >= 0 && verdict.sample_rate == info->format.rate);
}

/* Marks are within the sound, and words within the text. */
static void match_marks(FILE *f, const struct wav_info *info)
{
	static const char text[] = "W, \xc3\xa9.";
	struct wav_mark *marks;
	struct cue_word *words;
	size_t count = wav_marks(f, info, &marks);

	for (size_t i = 0; i < count; i++)
		assert(marks[i].begin >= 0 && marks[i].begin <= marks[i].end &&
		       marks[i].end <= info->frames && marks[i].text[0]);
	size_t found = words_match(text, text, NULL, marks, count, &words);
	for (size_t i = 0; i < found; i++)
		assert(words[i].from < words[i].to && words[i].to < sizeof(text) &&
		       (i == 0 || words[i].from >= words[i - 1].to));
	free(words);
	wav_marks_free(marks, count);
}

/* A transcript is a line of UTF-8, and compared with any text it gives a verdict that can be shown.
 */
static void match_transcript(FILE *f, const struct wav_info *info)
{
	static const char text[] = "In 1984, W paid $5.50, \xc3\xa9.";
	static const char *const languages[] = {"en", "de", NULL};
	CLEANUP(free_text) char *heard = wav_transcript(f, info);
	struct comparison c;

	for (size_t i = 0; heard && i < ARRAY_LEN(languages); i++) {
		assert(utf8_valid(heard, strlen(heard)));
		compare_texts(heard, text, languages[i], &c);
		compare_texts(text, heard, languages[i], &c);
		assert(c.run <= c.differing && utf8_valid(c.said, strlen(c.said)) &&
		       utf8_valid(c.got, strlen(c.got)));
	}
}

static void read_wav(const char *bytes, size_t len)
{
	struct wav_info info;
	struct wav_sound sound;
	char path[40];
	struct err err = {0};
	CLEANUP(file_close) FILE *f = file_of(bytes, len, path);

	bool is_wav = wav_read_header(f, &info, &err) == 0;
	judge(path, is_wav ? &info : NULL);
	if (!is_wav)
		return;
	assert(info.data_offset + info.frames * wav_frame_bytes(&info.format) <= (int64_t)len);
	if (wav_listen(f, &info, &sound, &err) == 0)
		assert(sound.peak >= 0 && sound.clipped >= 0 && sound.clipped <= 1);
	write_header(&info);
	match_marks(f, &info);
	match_transcript(f, &info);
}

static void match_pattern(const char *bytes, size_t len)
{
	CLEANUP(free_text) char *pattern = xstrndup(bytes, len);

	pattern_match(pattern, pattern + strlen(pattern) / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!len)
		return 0;
	str_addn(&text, data + 1, len - 1);
	switch (data[0] % 9) {
	case 6: read_manifest(str_text(&text), text.len); break;
	case 7: read_wav(str_text(&text), text.len); break;
	case 8: match_pattern(str_text(&text), text.len); break;
	default: read_script(data[0] % 9, data[0] >= 0x80, str_text(&text), text.len); break;
	}
	return 0;
}
