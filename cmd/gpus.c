/* gpus.c - burst gpus: the catalog of GPUs, what fits on them, and what their bandwidth and compute
 * cost. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/gpus.h"
#include "cmd.h"
#include "cmd/show/output.h"
#include "plan/vram.h"
#include "plan/prior.h"
#include "cmd/show/table.h"

enum order {
	BY_NAME,
	BY_VRAM,
	BY_BANDWIDTH,
	BY_COMPUTE,
	BY_PRICE,
	BY_BANDWIDTH_PER_DOLLAR,
	BY_COMPUTE_PER_DOLLAR,
	ORDERS
};
static const char *const order_names[ORDERS] = {"name",
						"vram",
						"bandwidth",
						"compute",
						"price",
						"bandwidth-per-dollar",
						"compute-per-dollar"};

struct row {
	const struct gpu *gpu;
	double price_h; /* 0: not known */
	enum market market;
	double rank; /* higher first */
};

static void find_price(struct row *row, enum market wanted)
{
	for (int m = MARKET_SECURE; m < MARKETS; m++) {
		double price = prior_list_price(row->gpu->name, (enum market)m, NULL);
		if (price <= 0 || (wanted != MARKET_CHEAPEST && (enum market)m != wanted) ||
		    (row->price_h > 0 && row->price_h <= price))
			continue;
		row->price_h = price;
		row->market = (enum market)m;
	}
}

static double per_dollar(double amount, double price_h)
{
	return price_h > 0 ? amount / price_h : 0;
}

static double rank_of(const struct row *r, enum order order)
{
	switch (order) {
	case BY_VRAM: return r->gpu->vram_gb;
	case BY_BANDWIDTH: return r->gpu->bandwidth_gb_s;
	case BY_COMPUTE: return r->gpu->tflops;
	case BY_PRICE: return r->price_h > 0 ? -r->price_h : -INFINITY;
	case BY_BANDWIDTH_PER_DOLLAR: return per_dollar(r->gpu->bandwidth_gb_s, r->price_h);
	case BY_COMPUTE_PER_DOLLAR: return per_dollar(r->gpu->tflops, r->price_h);
	case BY_NAME:
	case ORDERS: break;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->gpu->name, y->gpu->name);
}

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

/* "7B:fp16", "350M", "13b:int4": parameters and precision (fp16 when left out). */
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

static void cell_number(struct table *t, double value, int digits)
{
	if (value > 0)
		table_cell(t, "%.*f", digits, value);
	else
		table_cell(t, "-");
}

static void print_rows(const struct row *rows, size_t count, double need_gib)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "GPU", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "VRAM", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "GB/S", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "TFLOPS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BF16", TABLE_LEFT, 3);
	table_column(t, "NVENC", TABLE_LEFT, 4);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "LISTED AT", TABLE_LEFT, 5);
	table_column(t, "GB/S PER $/H", TABLE_RIGHT, 1);
	table_column(t, "TFLOPS PER $/H", TABLE_RIGHT, 6);
	if (need_gib > 0)
		table_column(t, "FITS", TABLE_LEFT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		table_cell(t, "%s", r->gpu->name);
		table_cell(t, "%d", r->gpu->vram_gb);
		table_cell(t, "%d", r->gpu->bandwidth_gb_s);
		table_cell(t, "%.4g", r->gpu->tflops);
		table_cell(t, "%s", r->gpu->bf16 ? "yes" : "no");
		table_cell(t, "%s", r->gpu->nvenc ? "yes" : "no");
		cell_number(t, r->price_h, 2);
		table_cell(t, "%s", r->price_h > 0 ? market_names[r->market] : "-");
		cell_number(t, per_dollar(r->gpu->bandwidth_gb_s, r->price_h), 0);
		cell_number(t, per_dollar(r->gpu->tflops, r->price_h), 0);
		if (need_gib > 0)
			table_cell(t, "%s", vram_fits(need_gib, r->gpu->vram_gb) ? "yes" : "no");
	}
	table_print(t, stdout, terminal_width(stdout));
}

static json_t *row_json(const struct row *r, double need_gib)
{
	json_t *o = json_pack("{s:s,s:i,s:i,s:f,s:b,s:b,s:o}", "gpu", r->gpu->name, "vram_gb",
			      r->gpu->vram_gb, "bandwidth_gb_s", r->gpu->bandwidth_gb_s, "tflops",
			      r->gpu->tflops, "bf16", r->gpu->bf16, "nvenc", r->gpu->nvenc,
			      "list_price_usd_hour",
			      r->price_h > 0 ? json_real(r->price_h) : json_null());

	json_object_set_new(o, "listed_at",
			    r->price_h > 0 ? json_string(market_names[r->market]) : json_null());
	if (need_gib > 0)
		json_object_set_new(o, "fits", json_boolean(vram_fits(need_gib, r->gpu->vram_gb)));
	return o;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const char *by = opt_text(ctx, "by"), *from = opt_text(ctx, "market"),
		   *fits = opt_text(ctx, "fits");
	int order = by ? word_of(by, order_names, ORDERS, "by", err) : BY_BANDWIDTH;
	int market = order < 0 ? -1
		     : from    ? word_of(from, market_names, MARKETS, "market", err)
			       : MARKET_CHEAPEST;
	double need_gib = 0;
	size_t count = 0;

	if (order < 0 || market < 0 || (fits && read_model(fits, &need_gib, err) < 0))
		return -1;
	const struct gpu *catalog = gpu_catalog(&count);
	struct row *rows = xcalloc(count, sizeof(*rows));
	for (size_t i = 0; i < count; i++) {
		rows[i].gpu = &catalog[i];
		find_price(&rows[i], (enum market)market);
		rows[i].rank = rank_of(&rows[i], (enum order)order);
	}
	qsort(rows, count, sizeof(*rows), by_rank);
	if (ctx->json) {
		json_t *list = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, row_json(&rows[i], need_gib));
		output_json(list);
	} else {
		if (need_gib > 0)
			printf("%s needs about %.5g GiB (parameters x bytes / 2^30, and 30%% for "
			       "activations); a card can use 93%% of its label, less 1 GiB\n\n",
			       fits, need_gib);
		print_rows(rows, count, need_gib);
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
