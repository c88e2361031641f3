/* err.c - errors: a kind for code, a sentence for people; all mistakes of a file; log lines
 * without secrets */
#include "err.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- log ---- */

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

/* Inserts a copy into the list of secrets, the longest first: if one secret is a part of another,
 * the longer one must be replaced as a whole. */
static void add_secret(const char *text)
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
	bool listed = false;
	for (size_t i = 0; i < state.count; i++)
		listed = listed || !strcmp(state.secrets[i], text);
	if (!listed)
		add_secret(text);
	pthread_mutex_unlock(&state.lock);
}

/* Returns where the first secret at or behind `at` begins, and its length; of several that begin
 * there, the longest. NULL: there is none. */
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

/* Replaces all secrets; the caller holds the lock. One pass forward, which does not search
 * "[secret]" itself: a secret may be a part of that. */
static void replace_secrets(struct str *text)
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
	replace_secrets(text);
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

/* ---- err ---- */

/* Room for a message before it is cut: log_redact() could not recognize a cut secret. */
enum { UNCUT_MAX = 4096 };

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	char msg[UNCUT_MAX]; /* an argument may be the old message */
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vformat_text(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	log_redact_field(msg, sizeof(msg)); /* messages reach logs, the ledger and reports */
	err->kind = kind;
	err->signal = 0;
	err->retry_after_ms = 0;
	err->key[0] = '\0';
	COPY_TEXT(err->msg, msg);
	return -1;
}

int err_about(struct err *err, const char *key)
{
	if (err)
		COPY_TEXT(err->key, key);
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char front[256], old[sizeof(err->msg)];
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vformat_text(front, sizeof(front), fmt, ap);
	va_end(ap);
	log_redact_field(front, sizeof(front));
	copy_text(old, sizeof(old), err->msg);
	size_t used = strlen(front);
	memcpy(err->msg, front, used);
	format_text(err->msg + used, sizeof(err->msg) - used, ": %s", old);
	return -1;
}

void err_clear(struct err *err)
{
	memset(err, 0, sizeof(*err));
}

static const struct {
	const char *name;
	int status; /* the process's exit status */
} kinds[] = {
	[ERR_NONE] = {"none", 0},
	[ERR_USAGE] = {"usage", 2},
	[ERR_CONFIG] = {"config", 2},
	[ERR_CREDENTIALS] = {"credentials", 3},
	[ERR_BALANCE] = {"balance", 3},
	[ERR_NO_CAPACITY] = {"no_capacity", 4},
	[ERR_REFUSED] = {"refused", 6},
	[ERR_NOT_FOUND] = {"not_found", 6},
	[ERR_RATE_LIMITED] = {"rate_limited", 6},
	[ERR_AMBIGUOUS] = {"ambiguous", 6},
	[ERR_TRANSIENT] = {"transient", 6},
	[ERR_NETWORK] = {"network", 6},
	[ERR_UNTRUSTED] = {"untrusted", 6},
	[ERR_LOCAL] = {"local", 1},
	[ERR_CAP] = {"cap", 5},
	[ERR_BUSY] = {"busy", 7},
	[ERR_JOB] = {"job", 1},
	[ERR_UNRELEASED] = {"unreleased", 9},
	[ERR_INTERRUPTED] = {"interrupted", 128 + SIGTERM},
	[ERR_BUG] = {"bug", 6},
	[ERR_NO_ACCOUNT] = {"credentials", 3},
};

const char *err_kind_name(enum err_kind kind)
{
	return kind < ARRAY_LEN(kinds) ? kinds[kind].name : "unknown";
}

bool err_is_credentials(enum err_kind kind)
{
	return kind == ERR_CREDENTIALS || kind == ERR_NO_ACCOUNT;
}

int err_exit_status(const struct err *err)
{
	if (err->kind == ERR_INTERRUPTED && err->signal)
		return 128 + err->signal;
	return err->kind < ARRAY_LEN(kinds) ? kinds[err->kind].status : 1;
}

int err_status_rank(int status)
{
	switch (status) {
	case 9: return 9;
	case 5: return 7;
	case 3: return 6;
	case 2:
	case 6: return 5;
	case 4: return 4;
	case 1: return 3;
	case 7: return 2;
	default: return status > 128 ? 8 : 0;
	}
}

/* ---- mistakes ---- */

enum { LISTED_MOST = 50 };

static bool is_noted(const struct mistakes *m, const char *msg)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->list[i].err.msg, msg))
			return true;
	return false;
}

int mistakes_note(struct mistakes *m, const char *key, struct err *err)
{
	if (!m)
		return -1;
	if (m->count >= LISTED_MOST) {
		m->more++;
	} else if (!is_noted(m, err->msg)) {
		GROW(m->list, m->count, m->cap);
		m->list[m->count++] = (struct mistake){*err, key ? xstrdup(key) : NULL};
	}
	err_clear(err);
	return 0;
}

bool mistakes_about(const struct mistakes *m, const char *key)
{
	for (size_t i = 0; m && i < m->count; i++)
		if (m->list[i].key && !strcmp(m->list[i].key, key))
			return true;
	return false;
}

bool mistakes_any(const struct mistakes *m)
{
	return m && m->count;
}

/* The line number in m's message "burst.cfg:12: ..."; 0 if `other` is of another file. */
static long line_number(const struct mistake *m, const struct mistake *other)
{
	size_t file = strcspn(m->err.msg, ":");

	if (m->err.msg[file] != ':' || strncmp(m->err.msg, other->err.msg, file + 1))
		return 0;
	return strtol(m->err.msg + file + 1, NULL, 10);
}

/* Sorts by line, since burst finds mistakes key by key, but users correct a file from top to
 * bottom. Mistakes of different files keep their order. */
static void sort_mistakes(struct mistakes *m)
{
	for (size_t i = 1; i < m->count; i++)
		for (size_t k = i; k > 0; k--) {
			struct mistake *a = &m->list[k - 1], *b = &m->list[k], swap = *a;
			if (line_number(a, b) <= line_number(b, a))
				break;
			*a = *b;
			*b = swap;
		}
}

int mistakes_end(struct mistakes *m, struct err *err)
{
	if (!mistakes_any(m))
		return 0;
	sort_mistakes(m);
	*err = m->list[0].err;
	return -1;
}

void mistakes_move(struct mistakes *m, struct mistakes *from)
{
	for (size_t i = 0; i < from->count; i++)
		mistakes_note(m, from->list[i].key, &from->list[i].err);
	m->more += from->more;
	mistakes_free(from);
}

void mistakes_free(struct mistakes *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->list[i].key);
	free(m->list);
	*m = (struct mistakes){0};
}
