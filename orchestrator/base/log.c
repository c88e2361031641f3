/* log.c - formats log lines and removes secrets from them. */
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

/* Longest first: where one secret is a part of another, the whole of the longer one must go. */
static void keep_secret(const char *text)
{
	size_t at = state.count;

	GROW(state.secrets, state.count, state.cap);
	for (; at && strlen(state.secrets[at - 1]) < strlen(text); at--)
		state.secrets[at] = state.secrets[at - 1];
	state.secrets[at] = xstrdup(text);
	state.count++;
}

void log_secret(const char *text)
{
	if (!text || strlen(text) < 6)
		return;
	pthread_mutex_lock(&state.lock);
	bool known = false;
	for (size_t i = 0; i < state.count; i++)
		known = known || !strcmp(state.secrets[i], text);
	if (!known)
		keep_secret(text);
	pthread_mutex_unlock(&state.lock);
}

/* The first secret at or behind `at`, and of those beginning there the longest; NULL when there is
 * none. */
static const char *find_secret(const struct str *text, size_t at, size_t *len)
{
	const char *first = NULL;

	for (size_t i = 0; i < state.count; i++) {
		size_t n = strlen(state.secrets[i]);
		const char *found = memmem(text->s + at, text->len - at, state.secrets[i], n);
		if (found && (!first || found < first)) {
			first = found;
			*len = n;
		}
	}
	return first;
}

/* One pass forward: the word put in may itself hold a secret. */
static void redact(struct str *text)
{
	size_t at = 0, len = 0;
	const char *found = text->s ? find_secret(text, 0, &len) : NULL;

	if (!found)
		return;
	struct str out = STR_MAX(text->max);
	for (; found; found = find_secret(text, at, &len)) {
		str_addn(&out, text->s + at, (size_t)(found - text->s) - at);
		str_add(&out, "[secret]");
		at = (size_t)(found - text->s) + len;
	}
	str_addn(&out, text->s + at, text->len - at);
	out.over = out.over || text->over;
	str_free(text);
	*text = out;
}

void log_redact(struct str *text)
{
	pthread_mutex_lock(&state.lock);
	redact(text);
	pthread_mutex_unlock(&state.lock);
}

void log_redact_field(char *field, size_t room)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, field);
	log_redact(&text);
	if (text.len && strcmp(text.s, field))
		copy_text(field, room, text.s);
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
