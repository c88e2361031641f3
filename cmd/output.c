#include "output.h"

#include <stdlib.h>

#include "base/log.h"

#define RED    "\033[31m"
#define YELLOW "\033[33m"
#define DIM    "\033[2m"
#define PLAIN  "\033[0m"

static const char *colour_of(enum log_level level)
{
	switch (level) {
	case LOG_ERROR: return RED;
	case LOG_WARN: return YELLOW;
	case LOG_NOTE: return "";
	case LOG_INFO:
	case LOG_DEBUG:
	case LOG_TRACE: return DIM;
	}
	return "";
}

static void (*before_line)(void);

void output_before_line(void (*fn)(void))
{
	before_line = fn;
}

static void print(const struct cmd_context *ctx, enum log_level level, const char *front, const char *text)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	const char *colour = ctx->color ? colour_of(level) : "";

	if (before_line)
		before_line();
	str_add(&line, colour);
	str_add(&line, front);
	str_add_printable(&line, text, strlen(text), 0);
	str_add(&line, *colour ? PLAIN "\n" : "\n");
	fwrite(str_text(&line), 1, line.len, stderr); /* in one piece: others may write there too */
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

void output_safe_line(FILE *to, const char *text, size_t len)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	str_add_printable(&line, text, len, 0);
	str_addc(&line, '\n');
	fwrite(str_text(&line), 1, line.len, to);
}

/* All that utf8_hostile() knows is of three bytes at most. */
static unsigned code_point(const unsigned char *p, size_t len)
{
	return len == 1 ? p[0] : len == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu) : (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

char *output_json_line(const json_t *value)
{
	CLEANUP(free_text) char *line = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	struct str safe = STR_INIT;

	if (!line) /* no memory: nothing else can fail here */
		abort();
	/* what would drive a terminal stands in texts alone: with a backslash it means the same */
	for (const unsigned char *p = (const unsigned char *)line; *p;) {
		size_t len = MAX(utf8_sequence(p, strnlen((const char *)p, 4)), 1);
		if (utf8_hostile(p, len))
			str_addf(&safe, "\\u%04X", code_point(p, len));
		else
			str_addn(&safe, p, len);
		p += len;
	}
	return str_detach(&safe);
}

void output_json(json_t *value)
{
	CLEANUP(free_text) char *line = output_json_line(value);

	puts(line);
	json_decref(value);
}
