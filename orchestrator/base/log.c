#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

static struct {
	enum log_level most;
	log_sink *sink;
	void *ctx;
	char **secrets;
	size_t count, cap;
	pthread_mutex_t lock;
} state = {.most = LOG_NOTE, .lock = PTHREAD_MUTEX_INITIALIZER};

void log_setup(enum log_level most, log_sink *sink, void *ctx)
{
	state.most = most;
	state.sink = sink;
	state.ctx = ctx;
}

bool log_wants(enum log_level level)
{
	return state.sink && level <= state.most;
}

void log_secret(const char *text)
{
	if (!text || strlen(text) < 6)
		return;
	pthread_mutex_lock(&state.lock);
	bool known = false;
	for (size_t i = 0; i < state.count; i++)
		known = known || !strcmp(state.secrets[i], text);
	if (!known) {
		GROW(state.secrets, state.count, state.cap);
		state.secrets[state.count++] = xstrdup(text);
	}
	pthread_mutex_unlock(&state.lock);
}

static void redact_one(struct str *text, const char *secret)
{
	size_t len = strlen(secret);
	char *found;

	while (text->s && (found = memmem(text->s, text->len, secret, len))) {
		struct str out = STR_INIT;
		str_addn(&out, text->s, (size_t)(found - text->s));
		str_add(&out, "[secret]");
		str_add(&out, found + len);
		size_t max = text->max;
		str_free(text);
		*text = out;
		text->max = max;
	}
}

void log_redact(struct str *text)
{
	pthread_mutex_lock(&state.lock);
	for (size_t i = 0; i < state.count; i++)
		redact_one(text, state.secrets[i]);
	pthread_mutex_unlock(&state.lock);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	if (!log_wants(level))
		return;
	char *raw = NULL;
	va_list ap;
	va_start(ap, fmt);
	int len = vasprintf(&raw, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	CLEANUP(str_free) struct str line = STR_INIT;
	str_add(&line, raw);
	free(raw);
	log_redact(&line);
	state.sink(state.ctx, level, str_text(&line));
}
