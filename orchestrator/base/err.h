/* err.h - how a failure travels up: a kind for code, a sentence for people. Only main prints it. */
#ifndef BURST_BASE_ERR_H
#define BURST_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

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

struct err { /* on the caller's stack; nothing to free */
	enum err_kind kind;
	/* ERR_INTERRUPTED: which; ERR_UNRELEASED: the one that would not wait any longer */
	int signal;
	int64_t retry_after_ms; /* 0: the other side did not say */
	char msg[512];
	/* key of burst.cfg that caused the failure ("pod.cpu"); config/ adds file and line. "":
	 * none */
	char key[40];
};

/* Sets kind and message; always returns -1. err may be NULL. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);
/* Puts "fmt: " in front of the message; always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Names the key of burst.cfg that caused an error, after err_set(). Always returns -1. */
int err_about(struct err *err, const char *key);
void err_clear(struct err *err);

/* "no capacity", "rate limited" ...: the words of the JSON output's error.code. Static. */
const char *err_kind_name(enum err_kind kind);
/* No key, or one that is not taken. */
bool err_is_credentials(enum err_kind kind);
/* The process's exit status for a failure of this kind (0 for ERR_NONE). */
int err_exit_status(const struct err *err);
/* Of several exit statuses, the one with the highest rank is the whole's: 9, signals, 5, 3, 6 and
 * 2, 4, 1, 7. */
int err_status_rank(int status);

#endif
