/* err.h - how a failure travels up, how the mistakes of a file are collected, how messages reach
 * the user */
#ifndef BURST_BASE_ERR_H
#define BURST_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"
#include "str.h"

/* ---- err ----
 * How a failure travels up: a kind for code, a sentence for people. Only main prints it. */

/* What went wrong, as far as code must care. The exit status and the core's next step follow from
 * it, never from msg. */
enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE,        /* the command line */
	ERR_CONFIG,       /* burst.cfg, or the job's input; the message names file:line and key */
	ERR_CREDENTIALS,  /* the vendor does not accept our credentials */
	ERR_BALANCE,      /* the account cannot pay */
	ERR_NO_CAPACITY,  /* this offer is sold out now: try the next, or wait */
	ERR_REFUSED,      /* the vendor refuses this very request; a retry is useless */
	ERR_NOT_FOUND,    /* what we name does not exist (any more) */
	ERR_RATE_LIMITED, /* wait retry_after_ms, then retry */
	ERR_AMBIGUOUS,    /* the request may have been carried out: list before a retry */
	/* the vendor or the network hiccupped; asking again can help and costs nothing twice */
	ERR_TRANSIENT,
	ERR_NETWORK, /* no connection, or lost; asking again can help */
	/* the other side is not what it must be (host key, sizes, paths) */
	ERR_UNTRUSTED,
	ERR_LOCAL,       /* this machine: disk full, no permission, missing program */
	ERR_CAP,         /* a cap on cost or duration was reached */
	ERR_BUSY,        /* the same job is running already */
	ERR_JOB,         /* the work itself failed: worker, segment, command */
	ERR_UNRELEASED,  /* a pod could not be confirmed gone */
	ERR_INTERRUPTED, /* a signal; see err.signal */
	ERR_BUG,         /* we or the vendor broke the protocol */
	/* no key for this vendor is set anywhere, so the vendor has refused nothing */
	ERR_NO_ACCOUNT,
};

/* No message is longer; what keeps one has as much room, so that none is cut. */
enum { ERR_TEXT = 512 };

struct err { /* on the caller's stack; nothing to free */
	enum err_kind kind;
	/* ERR_INTERRUPTED: which; ERR_UNRELEASED: the one that would not wait any longer */
	int signal;
	int64_t retry_after_ms; /* 0: the other side did not say */
	char msg[ERR_TEXT];
	/* key of burst.cfg that caused the failure ("pod.cpu"); config/ adds file and line. "":
	 * none */
	char key[40];
};

/* These three always return -1, and accept err == NULL. The first sets kind and message, without
 * secrets (log_secret()), and clears the rest. The second puts "fmt: " in front of the message. The
 * third, after err_set(), names the key of burst.cfg that caused the error. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);
int err_about(struct err *err, const char *key);
void err_clear(struct err *err);

/* The word of the JSON output's error.code: "no_capacity", "rate_limited", ... Static. */
const char *err_kind_name(enum err_kind kind);
/* Whether a key is missing (ERR_NO_ACCOUNT) or refused (ERR_CREDENTIALS). */
bool err_is_credentials(enum err_kind kind);
/* The process's exit status for this error (0 for ERR_NONE). */
int err_exit_status(const struct err *err);
/* If several parts end with exit statuses, the process ends with the one of the highest rank. From
 * the highest: 9, signals, 5, 3, 6 and 2, 4, 1, 7. */
int err_status_rank(int status);

/* ---- log ----
 * Carries messages to the user. Nothing here prints: main installs a sink that gets each finished
 * line.
 *
 * Call log_secret() as soon as a secret is read. From then on no line and no trace shows it. */

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG, LOG_TRACE };

typedef void log_sink(void *ctx, enum log_level level, const char *line);

/* Drops lines above `most`. NOTE is the default; INFO needs -v, DEBUG -vv, TRACE --trace. */
void log_setup(enum log_level most, log_sink *sink, void *ctx);
/* Whether lines of this level reach a sink. */
bool log_wants(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
/* From now on these bytes appear as "[secret]". Ignores NULL and texts shorter than 6 bytes.
 * Copied. Thread-safe, as are the two below. */
void log_secret(const char *text);
/* Replaces every secret of log_secret() in the text. */
void log_redact(struct str *text);
/* The same in a field of fixed size; cuts the text if it becomes too long. */
void log_redact_field(char *field, size_t room);

/* ---- mistakes ----
 * Collects every mistake of a file in one reading: a reader notes a mistake and continues. */

struct mistakes {
	struct mistake {
		struct err err;
		/* what the mistake is about ("job.input"); NULL: nothing that has a name */
		char *key;
	} * list;
	size_t count, cap;
	size_t more; /* left out: the list is bounded */
};

/* Moves *err into the list, unless the list has that message already, and returns 0, so that the
 * caller continues. If m is NULL, keeps *err and returns -1, so that the first mistake ends the
 * reading. key is copied; NULL: the mistake is about nothing that has a name. */
int mistakes_note(struct mistakes *m, const char *key, struct err *err);
/* Whether a mistake about this key was noted, so that its consequences need no message. m may be
 * NULL. */
bool mistakes_about(const struct mistakes *m, const char *key);
bool mistakes_any(const struct mistakes *m); /* m may be NULL */
/* Sorts the mistakes by line. Returns -1 with the first in *err; 0: there is none, or m is NULL. */
int mistakes_end(struct mistakes *m, struct err *err);
/* Moves all mistakes of `from` into m. */
void mistakes_move(struct mistakes *m, struct mistakes *from);
void mistakes_free(struct mistakes *m);

#endif
