/* gpus.c - `burst gpus`: lists GPUs, what fits on them and their list prices. */
#include "cmd.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "cmd/show/columns.h"
#include "plan/cost.h"

/* ---- the catalog, ranked ---- */

struct card {
	struct gpu gpu;
	double price_h;     /* NAN: unknown, as what follows */
	const char *market; /* whose price; NULL: unknown */
	double bandwidth_per_usd, compute_per_usd;
	bool fits;
	double rank; /* higher first */
};

static void tflops_text(char *to, size_t room, const void *of)
{
	snprintf(to, room, "%.4g", ((const struct card *)of)->gpu.tflops);
}

enum { TABLE = 1, OBJECT = 2, FITS = 4, BOTH = TABLE | OBJECT };
#define AT(field) offsetof(struct card, field)
static const struct shown_column card_columns[] = {
	{BOTH, "gpu", "GPU", UNIT_WORD, AT(gpu.name)},
	{BOTH, "vram_gb", "VRAM", UNIT_INT, AT(gpu.vram_gb)},
	{BOTH, "bandwidth_gb_s", "GB/S", UNIT_INT, AT(gpu.bandwidth_gb_s)},
	{BOTH, "tflops", "TFLOPS", UNIT_REAL, AT(gpu.tflops), .text = tflops_text},
	{BOTH, "bf16", "BF16", UNIT_FLAG, AT(gpu.bf16), 3},
	{BOTH, "nvenc", "NVENC", UNIT_FLAG, AT(gpu.nvenc), 4},
	{BOTH, "list_price_usd_hour", "$/H", UNIT_REAL, AT(price_h), .digits = 2},
	{BOTH, "listed_at", "LISTED AT", UNIT_WORD, AT(market), 5},
	{TABLE, NULL, "GB/S PER $/H", UNIT_REAL, AT(bandwidth_per_usd), 1},
	{TABLE, NULL, "TFLOPS PER $/H", UNIT_REAL, AT(compute_per_usd), 6},
	{FITS, "fits", "FITS", UNIT_FLAG, AT(fits)},
};
#undef AT

static const struct columns of_cards = {card_columns, ARRAY_LEN(card_columns)};

enum order {
	BY_NAME,
	BY_VRAM,
	BY_BANDWIDTH,
	BY_COMPUTE,
	BY_PRICE,
	BY_BANDWIDTH_PER_USD,
	BY_COMPUTE_PER_USD,
	ORDERS
};

static const char *const order_names[ORDERS] = {"name",
						"vram",
						"bandwidth",
						"compute",
						"price",
						"bandwidth-per-dollar",
						"compute-per-dollar"};

/* Sets the card's price and market to its lowest list price in the wanted market, or in all of them
 * if that is MARKET_CHEAPEST. No such price: the card is unchanged. */
static void find_price(struct card *card, enum market wanted)
{
	for (int m = MARKET_SECURE; m < MARKETS; m++) {
		double price = prior_list_price(card->gpu.name, (enum market)m, NULL);
		if (price <= 0 || (wanted != MARKET_CHEAPEST && (enum market)m != wanted) ||
		    card->price_h <= price) /* false for an unknown one */
			continue;
		card->price_h = price;
		card->market = market_names[m];
	}
}

/* The GPU with its price, its rank in this order, and whether need_gib fits on it. */
static struct card ranked_card(const struct gpu *gpu, enum market wanted, enum order order,
			       double need_gib)
{
	struct card c = {.gpu = *gpu, .price_h = NAN};

	find_price(&c, wanted);
	c.bandwidth_per_usd = gpu->bandwidth_gb_s / c.price_h;
	c.compute_per_usd = gpu->tflops / c.price_h;
	c.fits = vram_fits(need_gib, gpu->vram_gb);
	const double ranks[ORDERS] = {[BY_VRAM] = gpu->vram_gb,
				      [BY_BANDWIDTH] = gpu->bandwidth_gb_s,
				      [BY_COMPUTE] = gpu->tflops,
				      [BY_PRICE] = -c.price_h,
				      [BY_BANDWIDTH_PER_USD] = c.bandwidth_per_usd,
				      [BY_COMPUTE_PER_USD] = c.compute_per_usd};
	c.rank = isnan(ranks[order]) ? -INFINITY : ranks[order];
	return c;
}

static int by_rank(const void *a, const void *b)
{
	const struct card *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->gpu.name, y->gpu.name);
}

static void print_cards(bool json, enum market wanted, enum order order, double need_gib)
{
	size_t count;
	const struct gpu *catalog = gpu_catalog(&count);
	struct card *cards = xcalloc(count, sizeof(*cards));
	unsigned fits = need_gib > 0 ? FITS : 0;
	struct rows rows = rows_begin(json, &of_cards, TABLE | fits, OBJECT | fits);

	for (size_t i = 0; i < count; i++)
		cards[i] = ranked_card(&catalog[i], wanted, order, need_gib);
	qsort(cards, count, sizeof(*cards), by_rank);
	for (size_t i = 0; i < count; i++)
		rows_add(&rows, &cards[i]);
	rows_end(&rows);
	free(cards);
}

/* ---- the command ---- */

/* Returns the index of the flag's value in names, or -1 with ERR_USAGE. */
static int parse_word(const char *text, const char *const *names, int count, const char *flag,
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

/* "7B:fp16", "350M", "13b:int4": parameters and precision (fp16 if left out). *need_gib: the memory
 * that such a model needs. */
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
	int order = by ? parse_word(by, order_names, ORDERS, "by", err) : BY_BANDWIDTH;
	int market = order < 0 ? -1
		     : from    ? parse_word(from, market_names, MARKETS, "market", err)
			       : MARKET_CHEAPEST;
	double need_gib = 0;

	if (order < 0 || market < 0 || (fits && read_model(fits, &need_gib, err) < 0))
		return -1;
	if (need_gib > 0 && !ctx->json)
		printf("%s needs about %.5g GiB (parameters x bytes / 2^30, and 30%% for "
		       "activations); a card can use 93%% of its label, less 1 GiB\n\n",
		       fits, need_gib);
	print_cards(ctx->json, (enum market)market, (enum order)order, need_gib);
	if (!ctx->json)
		printf("\nprices: as listed, " PRIOR_PRICES_SEEN
		       "; a run goes by live offers (`burst offers`)\n");
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "fits", "MODEL", "show which cards hold a model: 7B:fp16, 350M:int8, 13B:int4"},
	{0, "by", "ORDER",
	 "name, vram, bandwidth, compute, price, bandwidth-per-dollar or compute-per-dollar"},
	{0, "market", "MARKET", "whose list prices: cheapest, runpod, runpod-community or modal"},
	{0},
};

const struct cmd cmd_gpus = {
	.name = "gpus",
	.summary = "list GPUs: memory, bandwidth, compute, list prices",
	.details = "Needs no account. Small speech models are bound by memory bandwidth: there a "
		   "card's bandwidth per dollar counts. A data-center card pays off when batches "
		   "are large enough to fill it. TFLOPS are dense FP16 with sums in FP32. Cards "
		   "without NVENC cannot encode video.",
	.opts = opts,
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
