/* caller_perform.c - runs one operation for a command that has nothing else to do meanwhile. */
#include "caller.h"

#include "base/clock.h"

struct answer {
	bool have;
	struct op_result *result;
	struct err err;
	void (*said)(void *ctx, const char *lines); /* NULL: progress lines are dropped */
	void *ctx;
};

static void on_line_shown(void *ctx, const char *lines)
{
	struct answer *a = ctx;

	a->said(a->ctx, lines);
}

static void on_answer(void *ctx, struct op_result *result, const struct err *err)
{
	struct answer *a = ctx;

	a->have = true;
	if (err)
		a->err = *err;
	else
		*a->result = *result, memset(result, 0, sizeof(*result));
}

/* The limit may be shut for an hour: waiting for the command's time is useless. */
static int rate_limited(int64_t shut_ms, struct err *err)
{
	char wait[24];

	err_set(err, ERR_RATE_LIMITED,
		"rate limit: the account's requests are used up; the next one may be sent in %s",
		duration_show(wait, sizeof(wait), shut_ms));
	err->retry_after_ms = shut_ms;
	return -1;
}

static int perform_op(const struct engine_provider *provider, enum op_kind kind, bool urgent,
		      const struct op_want *want, int64_t most_ms, struct answer *a,
		      int64_t *there_ms, struct err *err)
{
	if (http_ready(err) < 0)
		return -1;
	CLEANUP(loop_free) struct loop *loop = loop_new();
	CLEANUP(http_free) struct http *http = http_new(loop, "burst/" BURST_VERSION);
	CLEANUP(caller_free) struct caller *caller = caller_new(loop, http);
	struct op_result *result = a->result;
	struct err clock;
	int64_t until = clock_boot_ms() + most_ms;

	struct caller_op *op = caller_begin(caller, provider, kind, want, on_answer, a);
	if (urgent)
		caller_prioritize(op);
	if (a->said)
		caller_listen(op, on_line_shown);
	while (!a->have && clock_boot_ms() < until) {
		int64_t shut_ms = caller_op_shut_ms(op);
		if (clock_boot_ms() + shut_ms > until)
			return rate_limited(shut_ms, err);
		loop_turn(loop, until - clock_boot_ms());
	}
	if (!a->have)
		return err_set(err, ERR_NETWORK, "no answer in time");
	*there_ms = caller_time_there(caller, provider->ops); /* a refusal also has a date */
	if (a->err.kind) {
		*err = a->err;
		return -1;
	}
	bool by_ids = want && want->ids;
	/* a command must not take a missing pod for one that is gone */
	if (kind == OP_LIST && result->partial && !by_ids) {
		err_set(err, ERR_REFUSED, "%s", str_text(&result->text));
		op_result_free(result);
		*result = (struct op_result){0};
		return -1;
	}
	if (kind == OP_CHECK && caller_check_clock(caller, provider->ops, &clock) < 0) {
		CLEANUP(str_free) struct str said = result->text;
		result->text = (struct str)STR_INIT;
		str_addf(&result->text, "bad: %s\n%s", clock.msg, str_text(&said));
	}
	return 0;
}

int caller_perform(const struct engine_provider *provider, enum op_kind kind,
		   const struct op_want *want, int64_t most_ms, struct op_result *result,
		   struct err *err)
{
	return caller_perform_shown(provider, kind, want, most_ms, NULL, NULL, result, err);
}

int caller_perform_shown(const struct engine_provider *provider, enum op_kind kind,
			 const struct op_want *want, int64_t most_ms,
			 void (*said)(void *ctx, const char *lines), void *ctx,
			 struct op_result *result, struct err *err)
{
	struct answer a = {.result = result, .said = said, .ctx = ctx};
	int64_t there_ms;

	return perform_op(provider, kind, kind == OP_INSPECT, want, most_ms, &a, &there_ms, err);
}

int caller_list(const struct engine_provider *provider, char *const *ids, int64_t most_ms,
		struct op_result *result, int64_t *now_ms, struct err *err)
{
	struct op_want want = {.ids = ids};
	struct answer a = {.result = result};

	return perform_op(provider, OP_LIST, true, &want, most_ms, &a, now_ms, err);
}
