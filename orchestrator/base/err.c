/* err.c - errors: a kind for code, a sentence for people. */
#include "err.h"

#include <stdarg.h>

#include "log.h"

/* log_redact() could not recognize a secret that was cut at the end of a message. */
enum { WHOLE_MAX = 4096 };

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	char msg[WHOLE_MAX]; /* an argument may be the old message */
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

const char *err_kind_name(enum err_kind kind)
{
	switch (kind) {
	case ERR_NONE: return "none";
	case ERR_USAGE: return "usage";
	case ERR_CONFIG: return "config";
	case ERR_CREDENTIALS:
	case ERR_NO_ACCOUNT: return "credentials";
	case ERR_BALANCE: return "balance";
	case ERR_NO_CAPACITY: return "no_capacity";
	case ERR_REFUSED: return "refused";
	case ERR_NOT_FOUND: return "not_found";
	case ERR_RATE_LIMITED: return "rate_limited";
	case ERR_AMBIGUOUS: return "ambiguous";
	case ERR_TRANSIENT: return "transient";
	case ERR_NETWORK: return "network";
	case ERR_UNTRUSTED: return "untrusted";
	case ERR_LOCAL: return "local";
	case ERR_CAP: return "cap";
	case ERR_BUSY: return "busy";
	case ERR_JOB: return "job";
	case ERR_UNRELEASED: return "unreleased";
	case ERR_INTERRUPTED: return "interrupted";
	case ERR_BUG: return "bug";
	}
	return "unknown";
}

bool err_is_credentials(enum err_kind kind)
{
	return kind == ERR_CREDENTIALS || kind == ERR_NO_ACCOUNT;
}

int err_exit_status(const struct err *err)
{
	switch (err->kind) {
	case ERR_NONE: return 0;
	case ERR_USAGE:
	case ERR_CONFIG: return 2;
	case ERR_CREDENTIALS:
	case ERR_NO_ACCOUNT:
	case ERR_BALANCE: return 3;
	case ERR_NO_CAPACITY: return 4;
	case ERR_CAP: return 5;
	case ERR_REFUSED:
	case ERR_NOT_FOUND:
	case ERR_RATE_LIMITED:
	case ERR_AMBIGUOUS:
	case ERR_TRANSIENT:
	case ERR_NETWORK:
	case ERR_UNTRUSTED:
	case ERR_BUG: return 6;
	case ERR_BUSY: return 7;
	case ERR_LOCAL:
	case ERR_JOB: return 1;
	case ERR_UNRELEASED: return 9;
	case ERR_INTERRUPTED: return 128 + (err->signal ? err->signal : 15);
	}
	return 1;
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
