/* requests_bed.h - a ledger's requests. */
#ifndef BURST_TESTS_REQUESTS_BED_H
#define BURST_TESTS_REQUESTS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "unattended/requests.h"

#define CONFIG "/home/me/quiz/burst.cfg"

#define T0 INT64_C(1700000000000)

static inline void ok(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err->msg);
}

#endif
