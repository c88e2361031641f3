/* offers.c - `burst offers`: shows what the providers would rent now. */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/err.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/decide.h"
#include "cmd/show/output.h"

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

static int run_offers(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct known_offer *offers = NULL;
	size_t count = 0;

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
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_offers = {
	.name = "offers",
	.summary = "show what the providers would rent now",
	.details = "All providers' offers that are large enough for the job, cheapest first, at "
		   "the price of a pod with the requested cores and memory. `burst plan` shows "
		   "them in the order in which a run tries them.",
	.opts = opts,
	.json = true,
	.needs = NEED_CONFIG | NEED_LEDGER,
	.group = CMD_GROUP_RENDER,
	.run = run_offers,
};
