/* calibrate.c - `burst calibrate`: rents each GPU briefly and measures how fast the job's engine is
 * on it. */
#include "cmd/launch/launch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/output.h"

#define MOST_USD "0.50"

static int read_most(struct cmd_context *ctx, int64_t *out, struct err *err)
{
	const char *text = opt_has(ctx, "max-cost") ? opt_text(ctx, "max-cost") : MOST_USD;
	int64_t cap = section_int(section_group(config_top(ctx->config), "caps"), "max_cost");

	if (money_parse(text, out, NULL) < 0 || *out <= 0)
		return err_set(err, ERR_USAGE,
			       "--max-cost: \"%s\" is not an amount in dollars, "
			       "like 1.50",
			       text);
	if (cap > 0)
		*out = MIN(*out, cap);
	return 0;
}

static int calibrate(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct calibrate_card *cards = xcalloc(CALIBRATE_CARDS_MOST, sizeof(*cards));
	size_t count = 0;
	int64_t most = 0;
	int status = launch_read_job(l, err);

	if (status == 0 && l->run.setup.job_ops->needs(l->run.setup.job)->command)
		status =
			err_set(err, ERR_CONFIG,
				"job \"%s\" is a command: only engines that render segments can be "
				"calibrated",
				config_job_name(ctx->config));
	if (status == 0 && (status = read_most(ctx, &most, err)) == 0 &&
	    (status = launch_open_providers(&l->order, &l->run, err)) == 0)
		status = calibrate_choose_cards(l, cards, &count, err);
	if (status == 0) {
		calibrate_show_plan(stderr, cards, count, most);
		if (!cmd_confirm(ctx, "Rent and measure?"))
			status = err_set(err, ERR_USAGE,
					 "nothing was rented: answer y on a terminal, or give -y");
	}
	if (status == 0) {
		status = calibrate_measure(l, cards, count, most, err);
		if (status >= 0 && ctx->json)
			output_json(calibrate_to_json(cards, count, status));
		else if (status >= 0)
			calibrate_show(stdout, cards, count);
	}
	free(cards);
	return status < 0 || cmd_flush(err) < 0 ? -1 : status;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = calibrate(&l, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "rent from these providers", "provider", false},
	{0, "gpu", "GPU",
	 "GPUs to measure, in order (default: the config's, else the three cheapest that fit)",
	 "gpu", false},
	{0, "engine", "ENGINE", "what speaks", "job.engine", false},
	{0, "max-cost", "USD", "cap on the total cost (default " MOST_USD ")", NULL, false},
	{0, "spot", NULL, "rent spot pods", "spot", false},
	{0, "allow-path", "DIR", "let the project read this folder, too", "allow_paths", false},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own",
	 "volumes", false},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size",
	 "max_volume_gb", false},
	{0},
};

const struct cmd cmd_calibrate = {
	.name = "calibrate",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "measure the job's engine on each GPU, briefly",
	.details = "Shows the maximum cost, asks, and rents one pod of each GPU, one after the "
		   "other, as a run does. Each pod renders batches of 1, 2, 4 and so on, up to "
		   "the largest that its worker accepts, from the job's own texts; burst "
		   "discards the files. If the job's volume lacks its setup, a pod without a "
		   "GPU fills it first. Cold starts and batch times go to the ledger, where "
		   "plans find them. Prints the time and the cost of each batch size beside the "
		   "prediction.\n\nAn unavailable GPU is skipped. Exit status 0: all GPUs "
		   "measured; 4: one was unavailable; 5: --max-cost or another cap was reached; "
		   "otherwise as for `burst run`.",
	.opts = opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
