/* calibrate.c - `burst calibrate`: rents each GPU briefly and measures how fast the job's engine is
 * on it. */
#include "cmd/launch/launch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/report.h"

/* ---- measured beside predicted ---- */

enum { BAR = 24 };

static double usd_each(const struct calibrate_card *c, double seconds, int size)
{
	return seconds * c->before.machine.price_h / 3600 / size;
}

/* Prints small amounts: a segment costs little. */
static const char *dollars(char to[32], double usd)
{
	char number[32];

	snprintf(to, 32, "%s%s", usd > 0 ? "$" : "-", usd > 0 ? number_show(number, usd, 3) : "");
	return to;
}

/* Printed before it rents. */
static void show_plan(FILE *to, const struct calibrate_card *cards, size_t count,
		      int64_t most_microusd)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32];

	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BATCHES", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "ABOUT", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct calibrate_card *c = &cards[i];
		table_cell(t, "%s", c->gpu);
		if (c->why[0]) {
			table_cell(t, "-");
			table_cell(t, "-");
			table_cell(t, "%s", c->why);
			table_cell(t, "-");
			continue;
		}
		table_cell(t, "%s", c->offer.provider);
		table_cell(t, "%s", money_show(text, sizeof(text), c->offer.price_microusd_h));
		table_cell(t, "%zu of 1 to %d", c->size_count, c->sizes[c->size_count - 1]);
		table_cell(t, "%s", dollars(text, c->about_usd));
	}
	table_print(t, to, terminal_width(to));
	fprintf(to, "one pod each, one after the other; at most %s in all\n",
		money_show(text, sizeof(text), most_microusd));
}

static void show_curve(FILE *to, const struct calibrate_card *c)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], bar[BAR + 1];
	double most = 0;

	table_column(t, "BATCH", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SECONDS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "$/SEGMENT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "", TABLE_LEFT, 1);
	for (size_t i = 0; i < c->point_count; i++)
		most = MAX(most, usd_each(c, c->points[i].seconds, c->points[i].size));
	for (size_t i = 0; i < c->point_count; i++) {
		const struct calibrate_point *p = &c->points[i];
		double each = usd_each(c, p->seconds, p->size);
		int width = most > 0 ? (int)(each / most * BAR + 0.5) : 0;
		memset(bar, '#', sizeof(bar));
		bar[MAX(MIN(width, BAR), 1)] = '\0';
		table_cell(t, "%d", p->size);
		table_cell(t, "%.3f", p->seconds);
		table_cell(t, p->predicted_s > 0 ? "%.3f" : "-", p->predicted_s);
		table_cell(t, "%s", dollars(text, each));
		table_cell(t, "%s", dollars(text, usd_each(c, p->predicted_s, p->size)));
		table_cell(t, "%s", bar);
	}
	fprintf(to, "\n%s at %s, run %s:\n", c->gpu, c->offer.provider, c->run);
	table_print(t, to, terminal_width(to));
	if (!c->after.known)
		return;
	const struct speed *s = &c->after.machine.speed;
	char once[32], longest[32], each[32];
	fprintf(to,
		"batch time: o = %s s, a = %s s x longest, c = %s s x sum of lengths; "
		"largest batch %d\n",
		number_show(once, s->once_s, 4), number_show(longest, s->longest_s, 4),
		number_show(each, s->each_s, 4), c->after.machine.batch_max);
	if (c->after.machine.batch_max > c->sizes[c->size_count - 1])
		fprintf(to,
			"the worker accepts larger batches than were measured: the next "
			"calibration goes up to %d\n",
			c->after.machine.batch_max);
}

/* Prints measured and predicted curves of each card, then compares the cards. */
static void show_measured(FILE *to, const struct calibrate_card *cards, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], seconds[24];

	for (size_t i = 0; i < count; i++)
		if (cards[i].point_count)
			show_curve(to, &cards[i]);
	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "COLD START", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BATCH MAX", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "JOB $/SEGMENT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SPENT", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct calibrate_card *c = &cards[i];
		bool measured = c->point_count && c->after.known;
		table_cell(t, "%s", c->gpu);
		table_cell(t, "%s",
			   c->offer.price_microusd_h
				   ? money_show(text, sizeof(text), c->offer.price_microusd_h)
				   : "-");
		table_cell(t, "%s",
			   c->cold_s > 0 ? duration_show(seconds, sizeof(seconds),
							 (int64_t)(c->cold_s * 1000))
					 : "-");
		table_cell(t, measured ? "%d" : "-", c->after.machine.batch_max);
		table_cell(t, "%s", dollars(text, measured ? c->after.usd_each : 0));
		table_cell(t, "%s", dollars(text, c->before.known ? c->before.usd_each : 0));
		table_cell(t, "%s", money_show(text, sizeof(text), c->cost_microusd));
	}
	fputc('\n', to);
	table_print(t, to, terminal_width(to));
	for (size_t i = 0; i < count; i++)
		if (cards[i].why[0])
			fprintf(to, "%s: not measured: %s\n", cards[i].gpu, cards[i].why);
}

/* ---- JSON ---- */

static json_t *speed_json(const struct calibrate_view *v)
{
	if (!v->known)
		return json_null();
	return json_pack("{s:f,s:f,s:f,s:i,s:s,s:f}", "once_s", v->machine.speed.once_s,
			 "longest_s", v->machine.speed.longest_s, "each_s", v->machine.speed.each_s,
			 "batch_max", v->machine.batch_max, "source",
			 plan_source_name(v->machine.speed_source), "usd_per_segment", v->usd_each);
}

static json_t *point_json(const struct calibrate_card *c, const struct calibrate_point *p)
{
	bool known = p->predicted_s > 0;

	return json_pack("{s:i,s:i,s:f,s:o,s:f,s:o}", "size", p->size, "count", p->count, "seconds",
			 p->seconds, "predicted_s", known ? json_real(p->predicted_s) : json_null(),
			 "usd_per_segment", usd_each(c, p->seconds, p->size),
			 "predicted_usd_per_segment",
			 known ? json_real(usd_each(c, p->predicted_s, p->size)) : json_null());
}

static json_t *card_json(const struct calibrate_card *c)
{
	json_t *points = json_array();

	for (size_t i = 0; i < c->point_count; i++)
		json_array_append_new(points, point_json(c, &c->points[i]));
	return json_pack(
		"{s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "gpu", report_text(c->gpu),
		"provider", c->offer.provider[0] ? report_text(c->offer.provider) : json_null(),
		"run", c->run[0] ? report_text(c->run) : json_null(), "exit_status", c->status,
		"error", c->why[0] ? report_text(c->why) : json_null(), "price_usd_hour",
		c->offer.price_microusd_h ? report_dollars(c->offer.price_microusd_h) : json_null(),
		"cost_usd", report_dollars(c->cost_microusd), "cold_start_s",
		c->cold_s > 0 ? json_real(c->cold_s) : json_null(), "predicted",
		speed_json(&c->before), "measured",
		c->point_count ? speed_json(&c->after) : json_null(), "batches", points);
}

/* New reference; tests/schema/calibrate.json. */
static json_t *measured_json(const struct calibrate_card *cards, size_t count, int status)
{
	json_t *list = json_array();
	int64_t cost = 0;

	for (size_t i = 0; i < count; i++) {
		cost += cards[i].cost_microusd;
		json_array_append_new(list, card_json(&cards[i]));
	}
	return json_pack("{s:i,s:i,s:o,s:o}", "schema", 1, "exit_status", status, "cost_usd",
			 report_dollars(cost), "gpus", list);
}

/* ---- the command ---- */

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
		show_plan(stderr, cards, count, most);
		if (!cmd_confirm(ctx, "Rent and measure?"))
			status = err_set(err, ERR_USAGE,
					 "nothing was rented: answer y on a terminal, or give -y");
	}
	if (status == 0) {
		status = calibrate_measure(l, cards, count, most, err);
		if (status >= 0 && ctx->json)
			output_json(measured_json(cards, count, status));
		else if (status >= 0)
			show_measured(stdout, cards, count);
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
