/* espeak.c - the default worker: batches of JSON lines in, one WAV per segment out
 * (jobs/PROTOCOL.md).
 *
 * It speaks through libespeak-ng.so.1 if the library exists at run time, else through the program
 * espeak-ng. It needs neither at build time. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "espeak_batch.h"
#include "espeak_words.h"

enum { MAX_BATCH = 64, MAX_SAMPLES = 48000 * 3600 };

/* ---- what we need of libespeak-ng's public interface (speak_lib.h), by its ABI ---- */

enum {
	SYNCHRONOUS = 2,
	INIT_DONT_EXIT = 1 << 15,
	POS_CHARACTER = 1,
	CHARS_UTF8 = 1,
	END_PAUSE = 0x1000,
	EE_FINE = 0
};
enum parameter {
	PARAM_RATE = 1,
	PARAM_VOLUME = 2,
	PARAM_PITCH = 3,
	PARAM_RANGE = 4,
	PARAM_GAP = 7
};

enum event_type { EVENT_LAST = 0, EVENT_WORD = 1, EVENT_CLAUSE_ENDS = 5 };

struct event { /* espeak_EVENT */
	int type;
	unsigned id;
	int position, length; /* of a word in the text: characters, from 1 */
	int ms;               /* since the start of the sound */
	int sample;
	void *user;
	union {
		int number;
		const char *name;
		char string[8];
	} more;
};

typedef int synth_callback(short *samples, int count, struct event *events);

struct voice { /* espeak_VOICE */
	const char *name, *languages, *identifier;
	unsigned char gender, age, variant, reserved;
	int score;
	void *spare;
};

static struct {
	int (*initialize)(int output, int buffer_ms, const char *path, int options);
	void (*set_callback)(synth_callback *callback);
	int (*synth)(const void *text, size_t size, unsigned position, int position_type,
		     unsigned end, unsigned flags, unsigned *id, void *user);
	int (*set_voice)(const char *name);
	int (*set_voice_like)(struct voice *wanted);
	struct voice *(*current_voice)(void);
	int (*set_parameter)(int parameter, int value, int relative);
	const char *(*info)(const char **path);
} espeak;

static int sample_rate = 22050;
static bool by_library; /* speaks through the library, not the program */
static char version[64] = "unknown";

/* Samples of the current text. The library calls back with pieces of sound. */
static short *samples;
static size_t sample_count, sample_room;
static bool too_long;

/* Words of the current text. */
static struct espeak_word *words;
static size_t word_count, word_room;

/* Notes the words of a piece of sound. */
static void note_words(const struct event *e)
{
	for (; e && e->type != EVENT_LAST; e++) {
		int64_t now = (int64_t)e->ms * sample_rate / 1000;
		if (word_count && words[word_count - 1].end == words[word_count - 1].begin &&
		    (e->type == EVENT_WORD || e->type == EVENT_CLAUSE_ENDS))
			words[word_count - 1].end = now;
		if (e->type != EVENT_WORD || e->position < 1 || e->length < 1)
			continue;
		GROW(words, word_count, word_room);
		words[word_count++] = (struct espeak_word){(size_t)e->position - 1, now, now};
	}
}

/* A synth_callback. Returns 1 to stop when the sound is too long. */
static int on_samples(short *piece, int count, struct event *events)
{
	note_words(events);
	if (!piece || count <= 0)
		return 0;
	if (sample_count + (size_t)count > MAX_SAMPLES) {
		too_long = true;
		return 1;
	}
	if (sample_count + (size_t)count > sample_room) {
		sample_room = (sample_count + (size_t)count) * 2;
		samples = xrealloc(samples, sample_room * sizeof(*samples));
	}
	memcpy(samples + sample_count, piece, (size_t)count * sizeof(*samples));
	sample_count += (size_t)count;
	return 0;
}

/* Returns false if the library is missing or cannot be used. */
static bool load_library(void)
{
	static const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"espeak_Initialize", &espeak.initialize},
		{"espeak_SetSynthCallback", &espeak.set_callback},
		{"espeak_Synth", &espeak.synth},
		{"espeak_SetVoiceByName", &espeak.set_voice},
		{"espeak_SetVoiceByProperties", &espeak.set_voice_like},
		{"espeak_GetCurrentVoice", &espeak.current_voice},
		{"espeak_SetParameter", &espeak.set_parameter},
		{"espeak_Info", &espeak.info},
	};
	void *lib = dlopen("libespeak-ng.so.1", RTLD_NOW);
	if (!lib)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		void *symbol = dlsym(lib, wanted[i].name);
		if (!symbol)
			return false;
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	int rate = espeak.initialize(SYNCHRONOUS, 0, NULL, INIT_DONT_EXIT);
	if (rate <= 0)
		return false;
	sample_rate = rate;
	espeak.set_callback(on_samples);
	const char *text = espeak.info(NULL);
	snprintf(version, sizeof(version), "%.40s", text ? text : "unknown");
	return true;
}

/* Sets `version` by asking the program espeak-ng. Returns false if it is not installed. */
static bool find_program(void)
{
	FILE *p = popen("espeak-ng --version 2>/dev/null", "re");
	char line[200] = "";
	bool has_line = p && fgets(line, sizeof(line), p);
	const char *colon = strstr(line, ": "), *number = colon ? colon + 2 : line;
	if (!p || pclose(p) != 0 || !has_line)
		return false;
	snprintf(version, sizeof(version), "%.*s", (int)strcspn(number, " \n"), number);
	return true;
}

/* ---- segments ---- */

/* Writes the reason into error, cut to room. Returns -1. */
PRINTF(3, 4)
static int fail(char *error, size_t room, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(error, room, fmt, args);
	va_end(args);
	return -1;
}

static void put_little_endian(unsigned char *to, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

/* The header of a WAV file with one channel of 16-bit samples. */
static void make_wav_header(unsigned char h[44], uint32_t data_bytes, uint32_t bytes_behind)
{
	memcpy(h, "RIFF....WAVEfmt ", 16);
	put_little_endian(h + 4, 36 + data_bytes + bytes_behind, 4);
	put_little_endian(h + 16, 16, 4);
	put_little_endian(h + 20, 1, 2);
	put_little_endian(h + 22, 1, 2);
	put_little_endian(h + 24, (uint32_t)sample_rate, 4);
	put_little_endian(h + 28, (uint32_t)sample_rate * 2, 4);
	put_little_endian(h + 32, 2, 2);
	put_little_endian(h + 34, 16, 2);
	memcpy(h + 36, "data", 4);
	put_little_endian(h + 40, data_bytes, 4);
}

/* Writes the samples of a text to a file, and behind them its words. -1 with the reason in error.
 */
static int write_wav(const char *path, const char *text, char *error, size_t room)
{
	unsigned char h[44];
	struct str chunks = STR_INIT;
	FILE *f = fopen(path, "we");
	if (!f)
		return fail(error, room, "%s: %s", path, strerror(errno));
	espeak_words_chunks(&chunks, text, words, word_count, (int64_t)sample_count);
	make_wav_header(h, (uint32_t)(sample_count * sizeof(*samples)), (uint32_t)chunks.len);
	bool fine = fwrite(h, sizeof(h), 1, f) == 1 &&
		    fwrite(samples, sizeof(*samples), sample_count, f) == sample_count &&
		    fwrite(str_text(&chunks), 1, chunks.len, f) == chunks.len;
	str_free(&chunks);
	fine = fclose(f) == 0 && fine;
	return fine ? 0 : fail(error, room, "%s: %s", path, strerror(errno));
}

/* Whether the voice has this language. Each language in its list is a byte of priority and a text;
 * a zero byte ends the list. */
static bool speaks_language(const struct voice *v, const char *language)
{
	for (const char *p = v->languages; p && *p; p += strlen(p) + 1)
		if (!strcasecmp(p + 1, language))
			return true;
	return false;
}

/* Sets the library's voice by its file's name ("en-us"), else by language ("en-gb", "fr-fr"), as
 * the program espeak-ng does. A variant ("+f3") works only with a file's name, which the language's
 * voice provides. Returns false if there is no such voice. */
static bool choose_voice(const char *name)
{
	char language[64], full[128];
	size_t plain = strcspn(name, "+");

	if (espeak.set_voice(name) == EE_FINE)
		return true;
	if (plain >= sizeof(language))
		return false;
	snprintf(language, sizeof(language), "%.*s", (int)plain, name);
	struct voice wanted = {.languages = language};
	if (espeak.set_voice_like(&wanted) != EE_FINE)
		return false;
	const struct voice *found = espeak.current_voice();
	/* the library returns the nearest language; accept only the exact one */
	if (!found || !found->identifier || !speaks_language(found, language))
		return false;
	snprintf(full, sizeof(full), "%s%s", found->identifier, name + plain);
	return !name[plain] || espeak.set_voice(full) == EE_FINE;
}

/* Writes a WAV file, in a child whose library has not spoken yet. -1 with the reason in error. */
static int speak(const struct espeak_task *t, const char *path, char *error, size_t room)
{
	espeak.set_parameter(PARAM_RATE, t->speed, 0);
	espeak.set_parameter(PARAM_VOLUME, t->amplitude, 0);
	espeak.set_parameter(PARAM_PITCH, t->pitch, 0);
	espeak.set_parameter(PARAM_RANGE, t->range, 0);
	espeak.set_parameter(PARAM_GAP, t->gap, 0);
	int status = espeak.synth(t->text, strlen(t->text) + 1, 0, POS_CHARACTER, 0,
				  CHARS_UTF8 | END_PAUSE, NULL, NULL);
	if (too_long)
		return fail(error, room, "more than an hour of sound");
	if (status != EE_FINE || !sample_count)
		return fail(error, room, "espeak-ng made no sound of it");
	return write_wav(path, t->text, error, room);
}

/* Sets the library's voice unless it is set already. -1 with the reason in error. */
static int load_voice(const char *voice, char *error, size_t room)
{
	static char loaded[128];
	if (!strcmp(loaded, voice))
		return 0;
	loaded[0] = 0;
	if (!choose_voice(voice))
		return fail(error, room, "espeak-ng has no voice \"%.100s\"", voice);
	snprintf(loaded, sizeof(loaded), "%s", voice);
	return 0;
}

/* Speaks in a child, while this process only loads voices: speech changes the length of later
 * speech in a process by some per cent, and the same task must give the same file. */
static int speak_by_library(const struct espeak_task *t, const char *path, char *error, size_t room)
{
	int p[2], status = 0;
	if (load_voice(t->voice ? t->voice : "en", error, room) < 0)
		return -1;
	if (pipe(p) < 0)
		return fail(error, room, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		int failed = speak(t, path, error, room);
		_exit(failed && write(p[1], error, strlen(error)) >= 0);
	}
	close(p[1]);
	ssize_t n = pid > 0 ? read(p[0], error, room - 1) : -1;
	error[n > 0 ? n : 0] = 0;
	close(p[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return fail(error, room, "no process could be started: %s", strerror(errno));
	if (status && n <= 0)
		return fail(error, room, "espeak-ng ended with status %d", status);
	return status ? -1 : 0;
}

/* In a child: executes espeak-ng with `in` as its stdin. Does not return. */
static void exec_program(const struct espeak_task *t, const char *path, int in)
{
	char speed[16], pitch[16], amplitude[16], gap[16];
	snprintf(speed, sizeof(speed), "%d", t->speed);
	snprintf(pitch, sizeof(pitch), "%d", t->pitch);
	snprintf(amplitude, sizeof(amplitude), "%d", t->amplitude);
	snprintf(gap, sizeof(gap), "%d", t->gap);
	dup2(in, 0);
	dup2(2, 1);
	execlp("espeak-ng", "espeak-ng", "-v", t->voice ? t->voice : "en", "-s", speed, "-p", pitch,
	       "-a", amplitude, "-g", gap, "-w", path, "--stdin", (char *)NULL);
	_exit(127);
}

/* Speaks a segment by the program espeak-ng. -1 with the reason in error. */
static int speak_by_program(const struct espeak_task *t, const char *path, char *error, size_t room)
{
	int p[2], status = 0;
	unlink(path);
	if (pipe(p) < 0)
		return fail(error, room, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		close(p[1]);
		exec_program(t, path, p[0]);
	}
	close(p[0]);
	size_t len = strlen(t->text);
	bool written = pid > 0 && write(p[1], t->text, len) == (ssize_t)len;
	close(p[1]);
	bool fine = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
		    access(path, F_OK) == 0;
	return fine && written ? 0
			       : fail(error, room, "espeak-ng ended with status %d, voice \"%s\"",
				      status, t->voice ? t->voice : "en");
}

/* An espeak_render. Renames x.tmp, so that a file under its final name is complete. */
static int render_segment(const struct espeak_task *t, char *error, size_t room)
{
	const char *out = getenv("BURST_OUT");
	char path[4096], temp[4096 + 8];
	if (!t->text || !t->file || strstr(t->file, ".."))
		return fail(error, room, "a segment needs a text and a file");
	snprintf(path, sizeof(path), "%s/%s", out && *out ? out : ".", t->file);
	snprintf(temp, sizeof(temp), "%s.tmp", path);
	int failed = by_library ? speak_by_library(t, temp, error, room)
				: speak_by_program(t, temp, error, room);
	if (!failed && rename(temp, path) < 0)
		failed = fail(error, room, "%s: %s", path, strerror(errno));
	if (failed)
		unlink(temp);
	return failed;
}

int main(void)
{
	signal(SIGPIPE,
	       SIG_IGN); /* an espeak-ng that does not read its text must not end the worker */
	by_library = load_library();
	if (!by_library && !find_program()) {
		printf("{\"hello\":1,\"protocol\":1,\"engine\":\"espeak\","
		       "\"error\":\"neither libespeak-ng.so.1 nor the program espeak-ng is on this "
		       "pod\"}\n");
		return 1;
	}
	printf("{\"hello\":1,\"protocol\":1,\"engine\":\"espeak\",\"version\":\"%s\","
	       "\"sample_rate\":%d,\"max_batch\":%d,\"gpu\":false}\n",
	       version, sample_rate, MAX_BATCH);
	fflush(stdout);

	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	while ((len = getline(&line, &room, stdin)) > 0)
		espeak_batch(line, (size_t)len, render_segment);
	free(line);
	return 0;
}
