/* tts_helpers.h - what the tests of the jobs share: small files in their folder, WAV files
 * made of tones. */
#ifndef BURST_TESTS_TTS_HELPERS_H
#define BURST_TESTS_TTS_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "base/path.h"
#include "jobs/tts/wav.h"
#include "folder.h"

static inline void put(const char *name, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *path = in_folder(name);

	put_bytes(path, bytes, len);
}

static inline void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static inline char *get_text(const char *name)
{
	CLEANUP(free_text) char *path = in_folder(name);
	struct str text = STR_INIT;
	struct err err = {0};

	if (path_read(path, 1 << 24, &text, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	return str_detach(&text);
}

static inline bool is_there(const char *name)
{
	CLEANUP(free_text) char *path = in_folder(name);

	return path_exists(path);
}

/* Removes the names that a test leaves behind. */
static inline void clear_folder(void)
{
	path_remove_tree(folder, NULL);
	mkdir(folder, 0755);
}

/* A tone of 440 Hz, 16 bits; amplitude 0..1, above 1 it clips. A silence is put into its middle. */
static inline void put_tone(const char *name, int rate, int channels, double seconds,
			    double amplitude, double silence)
{
	struct wav_format format = {.rate = rate, .channels = channels, .bits = 16};
	size_t tone = (size_t)lround(seconds * rate), quiet = (size_t)lround(silence * rate),
	       frames = tone + quiet;
	size_t len = WAV_HEADER_BYTES + frames * 2 * (size_t)channels;
	unsigned char *bytes = xcalloc(1, len), *p = bytes + WAV_HEADER_BYTES;

	wav_make_header(bytes, &format, (int64_t)len - WAV_HEADER_BYTES, false);
	for (size_t i = 0; i < frames; i++) {
		bool sounds = i < tone / 2 || i >= tone / 2 + quiet;
		double x = sounds ? amplitude * sin(6.283185307179586 * 440 * (double)i / rate) : 0;
		long v = lround(x > 1 ? 32767 : x < -1 ? -32768 : x * 32767);
		for (int c = 0; c < channels; c++, p += 2) {
			p[0] = (unsigned char)(v & 0xff);
			p[1] = (unsigned char)(v >> 8 & 0xff);
		}
	}
	put(name, bytes, len);
	free(bytes);
}

/* Ends a forked child with this exit status. It becomes another program, so that valgrind does not
 * count as leaked what only its parent's registers point to. */
static inline _Noreturn void leave_child(int status)
{
	char number[12];

	snprintf(number, sizeof(number), "%d", status);
	execl("/bin/sh", "sh", "-c", "exit $0", number, (char *)NULL);
	_exit(127);
}

#endif
