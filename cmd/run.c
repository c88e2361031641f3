/* run.c - `burst run`: renders a job. */
#include "cmd.h"

#include "cmd/launch/launch.h"
#include "cmd/unattended/unattended.h"

static const struct opt opts[] = {
	{'n', "dry-run", NULL, "show what would be rented, rendered and paid, and exit"},
	{'d', "detach", NULL,
	 "return when the pods have the queue and no longer need this machine; print the run's id"},
	{0, "no-wait", NULL, "with -d: return before anything is rented"},
	{'p', "provider", "PROVIDER", "rent from these providers, in this order", "provider"},
	{0, "gpu", "GPU", "acceptable GPUs, in order of preference; auto: burst chooses", "gpu"},
	{0, "pods", "N|auto", "pods at most; auto: burst chooses", "pods"},
	{0, "spot", NULL, "take pods that the provider may reclaim, for less money", "spot"},
	{0, "max-cost", "USD", "stop before the run has cost this much", "caps.max_cost"},
	{0, "max-duration", "TIME", "no pod lives longer than this", "caps.max_duration"},
	{0, "goal", "GOAL", "what to minimize: cost, time or balanced", "goal"},
	{0, "deadline", "WHEN", "deadline: 20m from now, or a time of day (07:00)", "deadline"},
	{0, "value-of-time", "USD", "what an hour of waiting costs, for --goal balanced",
	 "value_of_time"},
	{0, "retry-until-up", NULL, "wait for capacity without limit", "retry_until_up"},
	{0, "commit", "COMMIT",
	 "render this git commit instead of the current files; outputs go to the working tree"},
	{0, "engine", "ENGINE", "what speaks", "job.engine"},
	{0, "voice", "VOICE", "voice of the lines that name none", "job.voice"},
	{'o', "output", "DIR", "output folder", "job.output"},
	{0, "save", "FILE",
	 "without a burst.cfg: write the one that does the same (default burst.cfg)", NULL, true},
	ALLOW_OPTS,
	{0, "force", NULL, "overwrite files in the output folder that burst did not make"},
	{0, "anew", NULL,
	 "render all segments, reusing neither the output folder nor the render cache"},
	{0, "prune", NULL, "once all is rendered, remove old outputs without a segment"},
	{0, "keep-on-failure", "TIME",
	 "keep pods on which the job failed for this long (they bill), to look at them; not with "
	 "-d",
	 "keep_on_failure"},
	{0},
};

/* Rejects flags that exclude each other. Also prints the burst.cfg that a TEXT or COMMAND stands
 * for, except in a detached client: its starter has printed that. */
static int check_flags_and_tell_config(struct cmd_context *ctx, struct err *err)
{
	if (opt_has(ctx, "dry-run") && ctx->json)
		return err_set(err, ERR_USAGE,
			       "run: -n cannot be used with --json (`burst offers --json` has the "
			       "offers)");
	if (opt_has(ctx, "no-wait") && !opt_has(ctx, "detach"))
		return err_set(err, ERR_USAGE, "run: --no-wait needs -d");
	return detach_starter_fd() < 0 ? quick_show_or_save(ctx, err) : 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	bool dry_run = opt_has(ctx, "dry-run"), detached = opt_has(ctx, "detach");
	char queue_id[24];
	struct launch l;

	if (check_flags_and_tell_config(ctx, err) < 0)
		return -1;
	if (detached && !dry_run && detach_starter_fd() < 0)
		return detach_run(ctx, err);
	ctx->overwrite = ctx->overwrite || opt_has(ctx, "force");
	ctx->anew = opt_has(ctx, "anew");
	ctx->prune = opt_has(ctx, "prune");
	launch_init(&l, ctx);
	queue_take_run_id(queue_id);
	COPY_TEXT(l.id, queue_id);
	int status = dry_run ? plan_dry_run(&l, err) : launch_render(&l, detached, err);
	launch_free(&l);
	/* a reboot may have ended the runner of the job's queue; 128: a signal ended the run */
	if (status >= 0 && status < 128 && !dry_run && !queue_id[0] && config_path(ctx->config))
		queue_wake(ctx, config_path(ctx->config));
	return status;
}

const struct cmd cmd_run = {
	.name = "run",
	.args = "[CONFIG|TEXT] [-- COMMAND...]",
	.max_args = 1,
	.takes_command = true,
	.summary = "render a job on rented pods",
	.details = "Reads burst.cfg. Without one, TEXT (.txt, .md, .html, .epub, .srt, .vtt, .csv, "
		   ".tsv, .jsonl, a folder of .txt and .md, or - for standard input) is spoken "
		   "by espeak into TEXT-audio, and COMMAND runs in a copy of the current folder; "
		   "what it makes or changes comes to out. burst then prints the burst.cfg that "
		   "does the same, and --save writes it.\n\n"
		   "Rents pods, renders what is neither in the output folder nor in the render "
		   "cache (`burst cache`), fetches each file while the next ones render, releases "
		   "the pods and proves that they are gone. Runs whose client died are settled "
		   "first. With -d it returns once the pods have the queue, finish it and end "
		   "themselves without this machine: exit 0, the run's id alone on stdout. Where a "
		   "pod's files cannot be fetched without it (no volume), a client in the "
		   "background stays until they are. A run that ends before that, or that a signal "
		   "ends, gives its own exit status. `burst attach` fetches the files.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG | CHECKS_ALL | NOTIFIES_FAILURE,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
	.failed = launch_failed,
};
