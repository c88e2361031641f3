/* caller_bed.h - a provider that sends one call for each operation. */
#ifndef BURST_TESTS_CALLER_BED_H
#define BURST_TESTS_CALLER_BED_H

#include "provider.h"

struct provider {
	int port;
	bool unlimited, may_repeat;
	enum call_class class;
	/* of pods */
	int rents, releases;
	int64_t failed_at, released_at;
};

struct op {
	struct provider *p;
	enum op_kind kind;
	bool waited;
};

struct op *begin_op(struct provider *p, enum op_kind kind, const struct op_want *want);
void free_op(struct op *op);
const char *account_of(const struct provider *p);
enum op_next step_once(struct op *op, const struct reply *reply, struct call *call,
		       int64_t *wait_ms, struct op_result *result, struct err *err);
extern const struct provider_ops one_call;

#endif
