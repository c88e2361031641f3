/* offers.c - `burst offers`: shows what the providers would rent now. */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/err.h"
#include "base/clock.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/decide.h"
#include "cmd/show/output.h"
#include "engine/prices.h"

/* Loads the job, so that only offers that fit it are shown. Without a readable job, all are. */
static void read_job_needs(struct launch *l)
{
	struct err err = {0};

	if (config_job(l->ctx->config) && launch_read_job(l, &err) < 0)
		log_line(LOG_NOTE, "the job's needs are unknown, so all offers are shown: %s",
			 err.msg);
	mistakes_free(&l->ctx->mistakes); /* `burst offers` does not report the job's mistakes */
}

/* Prints the caution of each provider that offers a GPU, once. */
static void print_cautions(const struct launch *l, const struct known_offer *offers, size_t count)
{
	bool said[CORE_PROVIDERS_MAX] = {false};

	for (size_t i = 0; i < count; i++) {
		int k = offers[i].provider;
		const char *caution = l->run.setup.providers[k].ops->caution;
		if (gpu_is_none(offers[i].offer.gpu))
			continue;
		if (caution && !said[k])
			log_line(LOG_NOTE, "%s", caution);
		said[k] = true;
	}
}

/* ---- history ---- */

static void add_history_row(struct table *t, struct store *store, const struct offer *o)
{
	size_t count;
	struct forecast_price *looks = prices_read(store, o, &count);
	struct forecast_cheaper cheaper;
	int64_t low = count ? looks[0].microusd_h : 0, high = low;
	char text[32];

	for (size_t i = 0; i < count; i++) {
		low = MIN(low, looks[i].microusd_h);
		high = MAX(high, looks[i].microusd_h);
	}
	table_cell(t, "%s", o->provider);
	table_cell(t, o->gpus > 1 ? "%s x%d" : "%s", o->gpu, o->gpus);
	table_cell(t, "%s", o->region);
	table_cell(t, "%s", o->spot ? "spot" : "on demand");
	table_cell(t, "%s", money_show(text, sizeof(text), o->price_microusd_h));
	table_cell(t, "%s", money_show(text, sizeof(text), low));
	table_cell(t, "%s", money_show(text, sizeof(text), high));
	table_cell(t, "%zu", count);
	if (forecast_cheaper(&cheaper, looks, count, o->price_microusd_h))
		table_cell(t, "%02d:00 to %02d:00, %.0f%% (%d of %d days)", cheaper.from_hour,
			   cheaper.to_hour, 100 * cheaper.saving, cheaper.cheaper, cheaper.days);
	else
		table_cell(t, "-");
	free(looks);
}

/* A row for each kind of offer that has a price. */
static void print_history(struct store *store, const struct known_offer *offers, size_t count)
{
	static const char *const numbers[] = {"$/H", "LOWEST", "HIGHEST", "LOOKS"};
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "REGION", TABLE_LEFT, 1);
	table_column(t, "KIND", TABLE_LEFT, TABLE_WHOLE);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		table_column(t, numbers[i], TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "USUALLY CHEAPER", TABLE_LEFT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct offer *o = &offers[i].offer;
		bool seen = o->price_microusd_h <= 0;
		for (size_t k = 0; k < i && !seen; k++)
			seen = prices_is_same_kind(&offers[k].offer, o);
		if (!seen)
			add_history_row(t, store, o);
	}
	table_print(t, stdout, terminal_width(stdout));
}

static int run_offers(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct known_offer *offers = NULL;
	size_t count = 0;

	if (ctx->json && opt_has(ctx, "history"))
		return err_set(err, ERR_USAGE, "offers: give --history or --json, not both");
	launch_init(&l, ctx);
	read_job_needs(&l);
	int status = launch_open_providers(&l.order, &l.run, err);
	if (status == 0)
		status = offer_list_fetch(&l.order, &l.run, OFFERS_ANYWHERE, &offers, &count, err);
	if (status == 0)
		offer_list_keep_fitting(&l.order, offers, &count);
	if (status == 0 && ctx->json) {
		json_t *list = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, known_offer_json(&offers[i]));
		output_json(list);
	} else if (status == 0 && opt_has(ctx, "history")) {
		print_history(ctx->store, offers, count);
	} else if (status == 0) {
		offer_list_print(stdout, offers, count);
	}
	if (status == 0)
		print_cautions(&l, offers, count);
	free(offers);
	launch_free(&l);
	return status < 0 ? -1 : cmd_flush(err);
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "ask these providers", "provider"},
	{0, "gpu", "GPU", "only these GPUs, in order of preference; auto: any", "gpu"},
	{0, "pods", "N|auto", "pods at most; auto: burst chooses", "pods"},
	{0, "spot", NULL, "show spot offers too", "spot"},
	{0, "history", NULL, "show what earlier looks of this machine found"},
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_offers = {
	.name = "offers",
	.summary = "show what the providers would rent now",
	.details =
		"All providers' offers that are large enough for the job, cheapest first, at "
		"the price of a pod with the requested cores and memory. `burst plan` shows "
		"them in the order in which a run tries them.\n\n"
		"Each look notes the prices in the ledger, for 35 days. --history shows the lowest "
		"and the highest, and hours that are usually cheaper: at least 5% below the same "
		"day's other hours, on seven days or more, most of them by a 90% interval.",
	.opts = opts,
	.json = true,
	.needs = NEED_CONFIG | NEED_LEDGER,
	.group = CMD_GROUP_RENDER,
	.run = run_offers,
};
