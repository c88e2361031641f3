/* offer_list.c - fetches, sorts and prints what the providers would rent now. */
#include "offer_list.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/show/report.h"
#include "cmd/show/output.h"
#include "engine/caller.h"
#include "engine/past.h"
#include "launch.h"

static int by_number(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

/* In the order in which a run would take them. */
static int by_turn(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = by_number(x->avoided, y->avoided);

	way = way ? way : by_number(x->provider, y->provider);
	way = way ? way : by_number(x->offer.wish, y->offer.wish);
	way = way ? way : by_number(x->offer.price_microusd_h, y->offer.price_microusd_h);
	way = way ? way : strcmp(x->offer.region, y->offer.region);
	return way ? way : strcmp(x->offer.id, y->offer.id);
}

/* Compares offers of all vendors. */
static int by_price(const void *a, const void *b)
{
	const struct known_offer *x = a, *y = b;
	int way = by_number(x->avoided, y->avoided);

	way = way ? way : by_number(x->offer.price_microusd_h, y->offer.price_microusd_h);
	return way ? way : by_turn(a, b);
}

static void add_offers(struct launch *l, int provider, const struct op_result *from,
		       struct known_offer **out, size_t *count)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past =
		past_of_offers(l->ctx->store, NULL, from->offers, from->offer_count, now);

	*out = xrealloc(*out, (*count + from->offer_count + 1) * sizeof(**out));
	for (size_t i = 0; i < from->offer_count; i++)
		(*out)[(*count)++] = (struct known_offer){from->offers[i], past[i], provider,
							  offer_avoided(&past[i], now)};
	free(past);
}

static void tell_remarks(const char *provider, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len)))
		log_line(LOG_WARN, "%s: %.*s", provider, (int)len, line);
}

/* Finds the run's volume, which ties its pods to a place; without it the run cannot rent there. */
static int find_volume(struct launch *l, const struct engine_provider *p, struct volume *out,
		       struct err *err)
{
	struct op_want want = {.volume.name = l->order.volume};
	struct op_result result = {0};

	if (!want.volume.name || !want.volume.name[0])
		return 0;
	if (caller_perform(p, OP_VOLUME, &want, LAUNCH_ASK_MS, &result, err) == 0) {
		if (result.volume_count)
			*out = result.volumes[0];
		op_result_free(&result);
		return 0;
	}
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	if (!l->order.volume_create) {
		err->kind = ERR_CONFIG;
		return -1;
	}
	err_clear(err);
	COPY_TEXT(out->name, want.volume.name);
	log_line(LOG_NOTE,
		 "%s: a run would create volume \"%s\", and then rent only where that "
		 "is",
		 p->ops->name, want.volume.name);
	return 0;
}

void launch_want_offers(struct launch *l, struct op_want *want)
{
	const struct order *o = &l->order;

	*want = (struct op_want){.offers = {.gpus = o->gpus,
					    .spot = o->spot,
					    .cpu = o->cpu,
					    .memory_gb = o->memory_gb,
					    .disk_gb = o->disk_gb,
					    .image = o->image}};
	if (l->run.setup.job)
		want->offers.vram_gb = l->run.setup.job_ops->needs(l->run.setup.job)->vram_gb;
}

int launch_fetch_offers(struct launch *l, int provider, bool as_run, int64_t most_ms,
			struct op_result *out, struct err *err)
{
	const struct engine_provider *p = &l->run.setup.providers[provider];
	struct op_want want;

	launch_want_offers(l, &want);
	if (as_run && find_volume(l, p, &want.offers.volume, err) < 0)
		return -1;
	return caller_perform(p, OP_OFFERS, &want, most_ms, out, err);
}

int offer_list_fetch(struct launch *l, bool as_run, struct known_offer **out, size_t *count,
		     struct err *err)
{
	enum err_kind why = ERR_NONE;
	int failed = 0;

	*out = NULL;
	*count = 0;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const char *name = l->run.setup.providers[i].ops->name;
		struct op_result result = {0};
		if (launch_fetch_offers(l, i, as_run, LAUNCH_ASK_MS, &result, err) < 0) {
			if (l->run.setup.provider_count == 1 && err->kind != ERR_NO_CAPACITY)
				return err_wrap(err, "%s", name);
			log_line(LOG_WARN, "%s: %s", name, err->msg);
			failed += err->kind != ERR_NO_CAPACITY;
			why = err->kind;
			err_clear(err);
			continue;
		}
		tell_remarks(name, str_text(&result.text));
		add_offers(l, i, &result, out, count);
		op_result_free(&result);
	}
	if (failed && failed == l->run.setup.provider_count)
		return err_set(err, why, "none of the %d providers is ready to rent from", failed);
	if (*count)
		qsort(*out, *count, sizeof(**out), as_run ? by_turn : by_price);
	return 0;
}

void offer_list_print(FILE *to, const struct known_offer *offers, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], why[160];
	bool any_avoided = count && offers[count - 1].avoided;

	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "VRAM", TABLE_RIGHT, 1);
	table_column(t, "REGION", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "KIND", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "STOCK", TABLE_LEFT, 2);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "WITH", TABLE_LEFT, 3);
	if (any_avoided)
		table_column(t, "AVOIDED", TABLE_LEFT, TABLE_SHRINKS);
	for (size_t i = 0; i < count; i++) {
		const struct offer *o = &offers[i].offer;
		table_cell(t, "%s", o->provider);
		table_cell(t, o->gpus > 1 ? "%s x%d" : "%s", o->gpu, o->gpus);
		table_cell(t, o->vram_gb ? "%d GB" : "-", o->vram_gb);
		table_cell(t, "%s", o->region);
		table_cell(t, "%s", o->spot ? "spot" : "on demand");
		table_cell(t, "%s", o->stock[0] ? o->stock : "-");
		table_cell(t, "%s", money_show(text, sizeof(text), o->price_microusd_h));
		table_cell(t, "%s", o->with[0] ? o->with : "-");
		if (any_avoided)
			table_cell(t, "%s",
				   offer_past_show(why, sizeof(why), &offers[i].past,
						   clock_wall_ms()));
	}
	table_print(t, to, terminal_width(to));
}

static json_t *avoided_json(const struct known_offer *k)
{
	char at[32], until[32];

	if (!k->avoided)
		return json_null();
	return json_pack("{s:s,s:s,s:o}", "given_up_at",
			 clock_rfc3339(at, sizeof(at), k->past.bad_at_ms), "until",
			 clock_rfc3339(until, sizeof(until), k->past.bad_until_ms), "reason",
			 report_text(k->past.bad_why));
}

json_t *offer_list_json(const struct known_offer *k)
{
	const struct offer *o = &k->offer;

	return json_pack("{s:o,s:o,s:o,s:i,s:i,s:o,s:b,s:o,s:o,s:o,s:o}", "provider",
			 report_text(o->provider), "id", report_text(o->id), "gpu",
			 report_text(o->gpu), "gpus", o->gpus, "vram_gb", o->vram_gb, "region",
			 report_text(o->region), "spot", o->spot, "stock", report_text(o->stock),
			 "price_usd_hour", report_dollars(o->price_microusd_h), "with",
			 o->with[0] ? report_text(o->with) : json_null(), "avoided",
			 avoided_json(k));
}
