/* plan.c - `burst plan`: fetches offers and shows what a run would rent and cost. */
#include "cmd/launch/launch.h"
#include "cmd/launch/decide.h"
#include "cmd/show/output.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	struct plan_words words = {.explain = opt_has(ctx, "explain"),
				   .what_if = opt_has(ctx, "what-if")};
	struct launch l;

	if (quick_tell(ctx, err) < 0)
		return -1;
	launch_init(&l, ctx);
	int status = launch_peek_job(&l, err);
	if (status == 0)
		status = launch_foresee(&l, err);
	if (status == 0)
		status = travel_check(&l, true, err);
	if (status == 0 && opt_has(ctx, "offers") && opt_has(ctx, "list-prices"))
		status = err_set(err, ERR_USAGE, "give --offers or --list-prices, not both");
	if (status == 0 && opt_has(ctx, "list-prices"))
		status = plan_from_lists(&l, &words, err);
	else if (status == 0 && opt_has(ctx, "offers"))
		status = plan_from_file(&l, opt_text(ctx, "offers"), &words, err);
	else if (status == 0 && (status = launch_open_providers(&l.order, &l.run, err)) == 0)
		status = launch_plan(&l, &words, err);
	launch_free(&l);
	return status;
}

/* Prints the object of a plan that failed. */
static void plan_failed(struct cmd_context *ctx, const struct err *err)
{
	output_json(plan_failure_json(&ctx->mistakes, err));
	cmd_flush(NULL);
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "ask these providers", "provider", false},
	{0, "gpu", "GPU", "only these GPUs, in order of preference; auto: any", "gpu", false},
	{0, "pods", "N|auto", "plan for at most this many pods; auto: burst chooses", "pods",
	 false},
	{0, "spot", NULL, "plan with spot offers too", "spot", false},
	{0, "goal", "GOAL", "what to minimize: cost, time or balanced", "goal", false},
	{0, "deadline", "WHEN", "deadline: 20m from the start, or a time of day (07:00)",
	 "deadline", false},
	{0, "max-cost", "USD", "the most that the run may cost", "caps.max_cost", false},
	{0, "budget", "USD", "the same", "caps.max_cost", false},
	{0, "value-of-time", "USD", "what an hour of waiting costs, for --goal balanced",
	 "value_of_time", false},
	{0, "offers", "FILE",
	 "plan with what a run would rent of offers saved by `burst offers --json`", NULL, false},
	{0, "list-prices", NULL,
	 "plan with RunPod's and Modal's list prices (-p, gpu and spot hold as in a run)", NULL,
	 false},
	{0, "engine", "ENGINE", "what speaks", "job.engine", false},
	{0, "voice", "VOICE", "voice of the lines that name none", "job.voice", false},
	{0, "save", "FILE",
	 "without a burst.cfg: write the one that does the same (default burst.cfg)", NULL, true},
	{0, "commit", "COMMIT", "plan for this git commit instead of the current files", NULL,
	 false},
	{0, "explain", NULL, "show every input of the plan and where it comes from", NULL, false},
	{0, "what-if", NULL, "show plans for twice and ten times as many segments", NULL, false},
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_plan = {
	.name = "plan",
	.args = "[CONFIG|TEXT] [-- COMMAND...]",
	.max_args = 1,
	.takes_command = true,
	.summary = "show what a run would rent, do and cost",
	.details = "Rents nothing. TEXT and COMMAND stand for a burst.cfg, as in `burst help run`. "
		   "Chooses the offer, the number of pods and the batch size for "
		   "the goal, the deadline and the cost cap, and "
		   "shows what limits the run. Batch times and cold starts are measured by earlier "
		   "runs, carried over from another GPU, or a prior; "
		   "the plan says which. TIME is the median; nine runs in ten stay within 90%.",
	.opts = opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG | CHECKS_ALL,
	.group = CMD_GROUP_RENDER,
	.run = run,
	.failed = plan_failed,
};
