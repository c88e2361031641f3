/* caller_bed.c - a provider that sends one call for each operation. */
#include "caller_bed.h"
#include "net_test.h"

struct op *begin_op(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	(void)want;
	*op = (struct op){.p = p, .kind = kind};
	return op;
}

void free_op(struct op *op)
{
	free(op);
}

const char *account_of(const struct provider *p)
{
	(void)p;
	return "tester";
}

enum op_next step_once(struct op *op, const struct reply *reply, struct call *call,
		       int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)wait_ms, (void)result;
	if (!reply) {
		*call = (struct call){.kind = CALL_HTTP,
				      .method = "GET",
				      .timeout_ms = PATIENCE_MS,
				      .unlimited = op->p->unlimited,
				      .may_repeat = op->p->may_repeat,
				      .class =
					      op->kind == OP_RELEASE ? CALL_RELEASE : op->p->class};
		call->url = xasprintf("http://127.0.0.1:%d/", op->p->port);
		return OP_CALL;
	}
	err_set(err, ERR_RATE_LIMITED, "HTTP %d", reply->status);
	return OP_FAILED;
}

const struct provider_ops one_call = {.abi = PROVIDER_ABI,
				      .name = "stored",
				      .account = account_of,
				      .begin = begin_op,
				      .next = step_once,
				      .op_free = free_op};
