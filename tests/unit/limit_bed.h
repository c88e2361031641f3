/* limit_bed.h - limits that a minute or an answer sets. */
#ifndef BURST_TESTS_LIMIT_BED_H
#define BURST_TESTS_LIMIT_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "engine/limit.h"
#include "scratch.h"

#define NOW INT64_C(1700000000000)

static inline struct limits a_minute(int64_t quota, int64_t left)
{
	return (struct limits){.windows = {{"minute", quota, 60000, left, NOW + 40000}},
			       .count = 1};
}

static inline struct reply answer(int status, const char *head, int64_t retry_after_ms)
{
	struct reply r = {.status = status, .retry_after_ms = retry_after_ms};

	str_add(&r.head, head);
	return r;
}

static inline void learn(struct limits *l, int status, const char *head, int64_t retry_after_ms)
{
	struct reply r = answer(status, head, retry_after_ms);

	limits_learn(l, &r, &(struct limit_call){NOW, NOW, 0, CALL_POLL});
	reply_free(&r);
}

static inline int go_through(struct limits *l, enum call_class class, int64_t now)
{
	int n = 0;

	while (n < 1000 && limits_take(l, class, now) == 0)
		n++;
	return n;
}

#endif
