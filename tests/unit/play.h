/* play.h - plays a vendor with an HTTP API to its translator: literal answers go in, calls and
 * results come out. With BURST_REQUESTS_TO=FILE every request that a test provokes is appended
 * there, one JSON object a line, for the tests against the vendors' published definitions
 * (tests/e2e/runpod_schema.sh, vast_schema.sh). */
#ifndef BURST_TESTS_PLAY_H
#define BURST_TESTS_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "provider.h"

enum { CALLS_MAX = 20 };

/* One answer of the other side, as a test writes it. */
struct answer {
	/* 0: the reply is lost after the request was sent; -1: nothing could be sent; -2: this is a
	 * wait */
	int status;
	const char *body, *head;
};

struct played {
	enum op_next last;
	int calls, waits;
	int64_t waited_ms;
	struct call call[CALLS_MAX];
	struct op_result result;
	struct err err;
};

/* Carries an operation through these answers; more calls than answers fail the test. */
struct played play(const struct provider_ops *ops, const struct section *conf, enum op_kind kind,
		   const struct op_want *want, const struct answer *answers, int count);
void played_free(struct played *p);
void check_failed(const char *what, struct played *p, enum err_kind kind);
void check_done(const char *what, const struct played *p);
void check_call(const struct played *p, int i, const char *method, const char *url);
json_t *body_of(const struct call *call);

#endif
