/* output.c - writes log lines and the final error to the terminal, without secrets or control
 * characters. */
#include "output.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "table.h"

static const char *colour_of(enum log_level level)
{
	switch (level) {
	case LOG_ERROR: return COLOR_RED;
	case LOG_WARN: return COLOR_YELLOW;
	case LOG_NOTE: return "";
	case LOG_INFO:
	case LOG_DEBUG:
	case LOG_TRACE: return COLOR_DIM;
	}
	return "";
}

static void (*before_line)(void), (*after_line)(void);
static bool stamped;

void output_around_lines(void (*before)(void), void (*after)(void))
{
	before_line = before;
	after_line = after;
}

void output_stamp(bool on)
{
	stamped = on;
}

static void add_stamp(struct str *to)
{
	char when[32];

	str_addf(to, "%s ", clock_rfc3339(when, sizeof(when), clock_wall_ms()));
}

/* Writes the line in one call, since other processes may write there too. */
static void put_line(FILE *to, const struct str *line)
{
	if (to == stderr && before_line)
		before_line();
	fwrite(str_text(line), 1, line->len, to);
	if (to == stderr && after_line)
		after_line();
}

static void print(const struct cmd_context *ctx, enum log_level level, const char *front,
		  const char *text)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	const char *colour = ctx->color ? colour_of(level) : "";

	if (stamped)
		add_stamp(&line);
	str_add(&line, colour);
	str_add(&line, front);
	str_add_printable(&line, text, strlen(text), 0);
	str_add(&line, *colour ? COLOR_OFF "\n" : "\n");
	put_line(stderr, &line);
}

static void sink(void *ctx, enum log_level level, const char *line)
{
	const char *front = level == LOG_ERROR ? "error: " : level == LOG_WARN ? "warning: " : "";

	print(ctx, level, front, line);
}

static enum log_level level_of(const struct cmd_context *ctx)
{
	if (ctx->trace)
		return LOG_TRACE;
	if (ctx->quiet)
		return LOG_WARN;
	return ctx->verbose > 1 ? LOG_DEBUG : ctx->verbose ? LOG_INFO : LOG_NOTE;
}

void output_setup(struct cmd_context *ctx)
{
	log_setup(level_of(ctx), sink, ctx);
}

void output_error(const struct cmd_context *ctx, const struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, err->msg);
	log_redact(&text);
	print(ctx, LOG_ERROR, "burst: ", str_text(&text));
}

void output_mistakes(const struct cmd_context *ctx, const struct err *err)
{
	const struct mistakes *m = &ctx->mistakes;
	bool told = false;

	for (size_t i = 0; i < m->count; i++) {
		output_error(ctx, &m->list[i].err);
		told = told || !strcmp(m->list[i].err.msg, err->msg);
	}
	if (m->more)
		log_line(LOG_ERROR, "and %zu more mistakes", m->more);
	if (!told)
		output_error(ctx, err);
}

void output_safe_line(FILE *to, const char *text, size_t len)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	str_add_printable(&line, text, len, 0);
	str_addc(&line, '\n');
	put_line(to, &line);
}

void output_line(FILE *to, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len >= 0)
		output_safe_line(to, text, (size_t)len);
	free(text);
}

void output_event(const char *fmt, ...)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	add_stamp(&line);
	if (len >= 0)
		str_add(&line, text);
	free(text);
	output_safe_line(stderr, str_text(&line), line.len);
}

void output_lines(FILE *to, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len)))
		output_safe_line(to, line, len);
}

static unsigned code_point(const unsigned char *p, size_t len)
{
	unsigned c = len == 1 ? p[0] : len == 2 ? p[0] & 0x1f : p[0] & 0x0f;

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* Escapes what jansson leaves: DEL, C1 controls and direction marks. They have one to three bytes,
 * and in a line of JSON they can only be inside a text. */
static char *without_controls(const char *line)
{
	struct str out = STR_INIT;
	size_t left = strlen(line);

	while (left) {
		const unsigned char *p = (const unsigned char *)line;
		size_t step = MAX(utf8_sequence(p, left), (size_t)1);
		if (utf8_hostile(p, step))
			str_addf(&out, "\\u%04x", code_point(p, step));
		else
			str_addn(&out, p, step);
		line += step;
		left -= step;
	}
	return str_detach(&out);
}

char *output_json_line(const json_t *value)
{
	CLEANUP(free_text)
	char *line = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (!line) /* out of memory: nothing else can fail here */
		abort();
	return without_controls(line);
}

void output_json(json_t *value)
{
	CLEANUP(free_text) char *line = output_json_line(value);

	puts(line);
	json_decref(value);
}
