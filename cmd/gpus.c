/* gpus.c - `burst gpus`: lists GPUs, what fits on them, and the price of their bandwidth and
 * compute. */
#include "cmd.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "cmd/show/sizing.h"
#include "cmd/show/output.h"
#include "plan/cost.h"

static int word_of(const char *text, const char *const *names, int count, const char *flag,
		   struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;

	for (int i = 0; i < count; i++) {
		if (!strcmp(text, names[i]))
			return i;
		str_addf(&all, "%s%s", i ? ", " : "", names[i]);
	}
	return err_set(err, ERR_USAGE, "--%s: \"%.40s\" must be one of %s", flag, text,
		       str_text(&all));
}

/* "7B:fp16", "350M", "13b:int4": parameters and precision (fp16 if left out). */
static int read_model(const char *text, double *need_gib, struct err *err)
{
	char *end;
	double count = strtod(text, &end);
	double factor = toupper((unsigned char)*end) == 'B'   ? 1
			: toupper((unsigned char)*end) == 'M' ? 1e-3
							      : 0;
	const char *precision = factor > 0 && end[1] == ':' ? end + 2 : "fp16";

	if (factor == 0 || !(count > 0 && count < 1e6) || (end[1] && end[1] != ':') ||
	    vram_precision_bytes(precision) == 0)
		return err_set(err, ERR_USAGE,
			       "--fits: \"%.40s\" must be a number of parameters with B or M, and "
			       "a precision: 7B:fp16, 350M:int8, 13B:int4, 1B:fp32",
			       text);
	*need_gib = vram_model_gib(count * factor, vram_precision_bytes(precision));
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *by = opt_text(ctx, "by"), *from = opt_text(ctx, "market"),
		   *fits = opt_text(ctx, "fits");
	int order = by ? word_of(by, gpu_order_names, GPU_ORDERS, "by", err) : GPUS_BY_BANDWIDTH;
	int market = order < 0 ? -1
		     : from    ? word_of(from, market_names, MARKETS, "market", err)
			       : MARKET_CHEAPEST;
	double need_gib = 0;
	size_t count = 0;

	if (order < 0 || market < 0 || (fits && read_model(fits, &need_gib, err) < 0))
		return -1;
	struct gpu_row *rows = gpu_list_ranked((enum market)market, (enum gpu_order)order, &count);
	if (ctx->json) {
		output_json(gpu_list_json(rows, count, need_gib));
	} else {
		if (need_gib > 0)
			printf("%s needs about %.5g GiB (parameters x bytes / 2^30, and 30%% for "
			       "activations); a card can use 93%% of its label, less 1 GiB\n\n",
			       fits, need_gib);
		gpu_list_print(rows, count, need_gib);
		printf("\nprices: as listed, " PRIOR_PRICES_SEEN
		       "; a run goes by live offers (`burst offers`)\n");
	}
	free(rows);
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "fits", "MODEL", "show which cards hold a model: 7B:fp16, 350M:int8, 13B:int4", NULL,
	 false},
	{0, "by", "ORDER",
	 "name, vram, bandwidth, compute, price, bandwidth-per-dollar or compute-per-dollar", NULL,
	 false},
	{0, "market", "MARKET", "whose list prices: cheapest, runpod, runpod-community or modal",
	 NULL, false},
	{0},
};

const struct cmd cmd_gpus = {
	.name = "gpus",
	.summary = "list GPUs: memory, bandwidth, compute, list prices",
	.details = "Needs no account. Small speech models are bound by memory bandwidth: there a "
		   "card's bandwidth per dollar counts. A data-center "
		   "card pays off when batches are large enough to fill it. TFLOPS are dense FP16 "
		   "with sums in FP32. Cards without NVENC cannot encode video.",
	.opts = opts,
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
