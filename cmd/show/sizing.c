/* sizing.c - prints what cards cost: the catalog of GPUs, calibrations. */
#include "sizing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/mem.h"
#include "output.h"
#include "plan/cost.h"
#include "report.h"

/* ---- the catalog of GPUs ---- */

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

void calibrate_show_plan(FILE *to, const struct calibrate_card *cards, size_t count,
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

void calibrate_show(FILE *to, const struct calibrate_card *cards, size_t count)
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

json_t *calibrate_to_json(const struct calibrate_card *cards, size_t count, int status)
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
