/* status.c - `burst status`: one line on the last success, current runs, billing pods and today's
 * dollars. */
#include "cmd.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "jobs/calibrate/calibrate.h"

static int read_ledger(const struct cmd_context *ctx, struct store *store, struct status_line *s,
		       struct err *err)
{
	struct runs rs = ctx->runs;

	rs.store = store;
	if (queue_count_open(store, ctx->state_dir, &s->queued, err) < 0)
		return -1;
	return glance_read(&s->glance, &rs, CALIBRATE, err);
}

/* Hides errors from a prompt that will pass, or that only mean that no run exists yet. */
static int read_all(const struct cmd_context *ctx, struct status_line *s, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
	struct store *store = NULL;

	if (store_open_to_read(&store, path, err) == 0) {
		int result = read_ledger(ctx, store, s, err);
		store_close(store);
		return result;
	}
	if (err->kind != ERR_NOT_FOUND && err->kind != ERR_BUSY)
		return -1;
	s->ledger = err->kind == ERR_BUSY ? "locked" : "none";
	*err = (struct err){0};
	return 0;
}

/* Ignores mistakes of the file, which must not hide the status: commands that rent report them. */
static struct config_cap read_cap(struct cmd_context *ctx)
{
	struct mistakes mistakes = {0};
	struct config_source ask = {.user_only = true,
				    .mistakes = &mistakes,
				    .providers = provider_registry,
				    .jobs = job_registry};
	struct config *config = NULL;
	struct config_cap cap = {0};
	struct err ignored = {0};

	log_setup(LOG_ERROR, NULL, NULL);
	if (config_open(&config, &ask, &ignored) == 0)
		cap = config_cap(config, "per_day", false);
	cap.where = NULL; /* owned by the config */
	config_free(config);
	mistakes_free(&mistakes);
	output_setup(ctx);
	return cap;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct status_line s = {
		.ledger = "read", .glance.now_ms = clock_wall_ms(), .per_day = read_cap(ctx)};
	int result = read_all(ctx, &s, err);

	if (result == 0 && ctx->json)
		status_line_print_json(&s);
	else if (result == 0)
		status_line_print(&s);
	glance_free(&s.glance);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "print a one-line status for a prompt or a status bar",
	.details = "The last failure of a job that has not succeeded since (for a day; of a "
		   "run without a burst.cfg, for ten minutes), the last success and its "
		   "age, active runs, what is billing, and the dollars of today (since "
		   "midnight here; with caps.per_day of your own file, where it is set). It "
		   "reads the ledger of this machine, changes nothing and asks no provider. "
		   "Pods of a run without a client come first: they bill until `burst reap` "
		   "or their hard end. A missing or locked ledger is not an error.",
	.json = true,
	.needs = NEED_STATE,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
