/* gpu_list.c - the catalog of GPUs in the requested order, as a table and as JSON. */
#include "gpu_list.h"

#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "plan/cost.h"
#include "table.h"

const char *const gpu_order_names[GPU_ORDERS] = {"name",
						 "vram",
						 "bandwidth",
						 "compute",
						 "price",
						 "bandwidth-per-dollar",
						 "compute-per-dollar"};

static void find_price(struct gpu_row *row, enum market wanted)
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

static double rank_of(const struct gpu_row *r, enum gpu_order order)
{
	switch (order) {
	case GPUS_BY_VRAM: return r->gpu->vram_gb;
	case GPUS_BY_BANDWIDTH: return r->gpu->bandwidth_gb_s;
	case GPUS_BY_COMPUTE: return r->gpu->tflops;
	case GPUS_BY_PRICE: return r->price_h > 0 ? -r->price_h : -INFINITY;
	case GPUS_BY_BANDWIDTH_PER_DOLLAR: return per_dollar(r->gpu->bandwidth_gb_s, r->price_h);
	case GPUS_BY_COMPUTE_PER_DOLLAR: return per_dollar(r->gpu->tflops, r->price_h);
	case GPUS_BY_NAME:
	case GPU_ORDERS: break;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct gpu_row *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->gpu->name, y->gpu->name);
}

static void cell_number(struct table *t, double value, int digits)
{
	if (value > 0)
		table_cell(t, "%.*f", digits, value);
	else
		table_cell(t, "-");
}

void gpu_list_print(const struct gpu_row *rows, size_t count, double need_gib)
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
		const struct gpu_row *r = &rows[i];
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

static json_t *row_json(const struct gpu_row *r, double need_gib)
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

struct gpu_row *gpu_list_ranked(enum market wanted, enum gpu_order order, size_t *count)
{
	const struct gpu *catalog = gpu_catalog(count);
	struct gpu_row *rows = xcalloc(*count, sizeof(*rows));

	for (size_t i = 0; i < *count; i++) {
		rows[i].gpu = &catalog[i];
		find_price(&rows[i], wanted);
		rows[i].rank = rank_of(&rows[i], order);
	}
	qsort(rows, *count, sizeof(*rows), by_rank);
	return rows;
}

json_t *gpu_list_json(const struct gpu_row *rows, size_t count, double need_gib)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, row_json(&rows[i], need_gib));
	return list;
}
