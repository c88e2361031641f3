/* reconcile.c - `burst ledger --reconcile`: fetches the vendors' bills and records them beside our
 * count. */
#include "reconcile.h"

#include "base/err.h"
#include "cmd/show/ledger.h"
#include "cmd/show/output.h"
#include "runs/reconcile.h"

static void say_which(const struct reconciliation *r)
{
	size_t runs = reconcile_count_runs(r);

	if (r->count)
		log_line(LOG_NOTE, "asking for the bills of %zu pod%s of %zu run%s", r->count,
			 r->count == 1 ? "" : "s", runs, runs == 1 ? "" : "s");
	else
		log_line(LOG_NOTE, "no pod awaits its vendor's final record");
	if (r->alive)
		log_line(LOG_NOTE, "%zu pod%s not released yet: see `burst ps`", r->alive,
			 r->alive == 1 ? " is" : "s are");
	if (r->old)
		log_line(LOG_NOTE,
			 "%zu pod%s without a final record ended more than %d days ago: name the "
			 "run to ask for %s",
			 r->old, r->old == 1 ? "" : "s", RECONCILE_AGE_DAYS,
			 r->old == 1 ? "it" : "them");
}

/* Opens the user's own accounts. Does not read a project's file, which may be missing. */
static int open_accounts(struct cmd_context *ctx, struct err *err)
{
	struct config_source ask = {
		.user_only = true, .providers = provider_registry, .jobs = job_registry};

	return config_open(&ctx->config, &ask, err) < 0 ? -1 : config_check(ctx->config, err);
}

static int verdict(const struct reconciliation *r, struct err *err)
{
	int excess = 0;

	if (cmd_flush(err) < 0)
		return -1;
	if (r->failure.kind) {
		*err = r->failure;
		return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		excess += r->pods[i].verdict.state == BILL_EXCESS;
	return excess > 0;
}

int reconcile(struct cmd_context *ctx, const char *run, struct err *err)
{
	struct reconciliation r;

	if (open_accounts(ctx, err) < 0)
		return -1;
	int status = reconcile_find(&r, &ctx->runs, run, err);
	if (status == 0) {
		say_which(&r);
		status = reconcile_fetch_bills(&r, err);
		if (ctx->json)
			bills_print_json(&r);
		else
			bills_print(&r);
	}
	if (status == 0)
		status = verdict(&r, err);
	reconcile_free(&r);
	return status;
}
