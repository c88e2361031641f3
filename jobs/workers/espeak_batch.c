/* espeak_batch.c - reads a batch as one JSON line, has each segment rendered, and prints the
 * answers (jobs/PROTOCOL.md). */
#include "espeak_batch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- tasks ---- */

static void read_options(struct cursor *c, struct espeak_task *t)
{
	const struct {
		const char *key;
		int *to;
	} known[] = {
		{"speed", &t->speed}, {"rate", &t->speed},          {"pitch", &t->pitch},
		{"range", &t->range}, {"amplitude", &t->amplitude}, {"gap", &t->gap},
	};
	char *key;
	if (!cursor_at(c, '{'))
		return cursor_skip(c);
	while ((key = cursor_key(c))) {
		int *to = NULL;
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strcmp(known[i].key, key))
				to = known[i].to;
		if (to)
			*to = cursor_int(c);
		else
			cursor_skip(c);
		free(key);
	}
}

static void read_member(struct cursor *c, struct espeak_task *t, const char *key)
{
	char **to = !strcmp(key, "id")      ? &t->id
		    : !strcmp(key, "file")  ? &t->file
		    : !strcmp(key, "text")  ? &t->text
		    : !strcmp(key, "voice") ? &t->voice
					    : NULL;
	cursor_blanks(c);
	if (!strcmp(key, "options"))
		return read_options(c, t);
	if (!to || c->p >= c->end || *c->p != '"')
		return cursor_skip(c);
	free(*to);
	*to = cursor_text(c);
}

struct espeak_task espeak_task_read(struct cursor *c)
{
	struct espeak_task t = {.speed = 175, .pitch = 50, .range = 50, .amplitude = 100};
	char *key;
	while ((key = cursor_key(c))) {
		read_member(c, &t, key);
		free(key);
	}
	return t;
}

void espeak_task_free(struct espeak_task *t)
{
	free(t->id);
	free(t->file);
	free(t->text);
	free(t->voice);
}

/* ---- answers ---- */

void espeak_quote(FILE *to, const char *text)
{
	putc('"', to);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(to, "\\%c", *p);
		else if (*p < 0x20)
			fprintf(to, "\\u%04x", *p);
		else
			putc(*p, to);
	}
	putc('"', to);
}

static int64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void answer(const struct espeak_task *t, espeak_render *render)
{
	char error[400];
	int64_t began = clock_ms();
	int failed = render(t, error, sizeof(error));
	printf("{\"segment\":");
	espeak_quote(stdout, t->id ? t->id : "");
	printf(",\"ok\":%s", failed ? "false,\"error\":" : "true,\"file\":");
	espeak_quote(stdout, failed ? error : t->file);
	printf(",\"ms\":%lld}\n", (long long)(clock_ms() - began));
	fflush(stdout);
}

static void render_segments(struct cursor *c, espeak_render *render)
{
	if (!cursor_at(c, '['))
		return;
	while (!cursor_at(c, ']') && c->p < c->end) {
		cursor_at(c, ',');
		if (!cursor_at(c, '{'))
			return;
		struct espeak_task t = espeak_task_read(c);
		answer(&t, render);
		espeak_task_free(&t);
	}
}

void espeak_batch(const char *line, size_t len, espeak_render *render)
{
	struct cursor c = {line, line + len};
	char *key, *batch = NULL;
	if (!cursor_at(&c, '{'))
		return;
	while ((key = cursor_key(&c))) {
		if (!strcmp(key, "segments")) {
			render_segments(&c, render);
		} else if (!strcmp(key, "batch") && !batch) {
			batch = cursor_text(&c);
		} else {
			cursor_skip(&c);
		}
		free(key);
	}
	printf("{\"batch\":");
	espeak_quote(stdout, batch ? batch : "");
	printf(",\"done\":true}\n");
	fflush(stdout);
	free(batch);
}
