/* local_bed.h - the local provider, opened with some keys. */
#ifndef BURST_TESTS_LOCAL_BED_H
#define BURST_TESTS_LOCAL_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "providers/local/local.h"

static inline struct provider *open_with(void (*set)(struct section *s), struct section **kept,
					 struct err *err)
{
	struct provider *p = NULL;

	*kept = section_new(provider_local.options, "burst.cfg:1");
	if (set)
		set(*kept);
	return provider_local.open(&p, *kept, "/state", err) < 0 ? NULL : p;
}

#endif
