/* wanted.c - which offers a job wants: its wishes, the order of GPUs, what is left out and why,
 * what would be better */
#include "wanted.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/show/report.h"
#include "core/core.h"
#include "engine/caller.h"
#include "engine/past.h"
#include "launch.h"
#include "plan/choose.h"

/* ---- wish ----
 * Reads what the config wishes of a run, and the deadline as an absolute time. */

/* A time of day that passed less than this ago counts as missed; otherwise the next day's counts.
 */
enum { MISSED_S = 6 * 3600 };

/* This time of day, this many days from now. */
static time_t time_of_day(time_t now, int hour, int minute, int days)
{
	struct tm tm;

	localtime_r(&now, &tm);
	tm.tm_mday += days;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return mktime(&tm);
}

/* "20m" after from_ms, or a time of day ("07:00"): the next one, or the last one if it was less
 * than six hours before. Returns false for other texts. */
static bool find_deadline(const char *text, int64_t from_ms, int64_t *at_ms)
{
	int hour, minute;
	int64_t ms;

	if (!clock_time_of_day(text, &hour, &minute)) {
		bool fine = duration_parse(text, &ms, NULL) == 0;
		*at_ms = fine ? from_ms + ms : 0;
		return fine;
	}
	time_t now = from_ms / 1000, at = time_of_day(now, hour, minute, -1);
	for (int days = 0; difftime(now, at) > MISSED_S; days++)
		at = time_of_day(now, hour, minute, days);
	*at_ms = (int64_t)at * 1000;
	return true;
}

static int read_goal(struct choice_row *row, const struct section *top, struct err *err)
{
	const char *goal = section_text(top, "goal");
	enum plan_goal found;

	row->value_of_time_microusd = section_int(top, "value_of_time");
	COPY_TEXT(row->goal, goal);
	if (!plan_goal_find(goal, &found))
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"%s\": it must be \"cost\", \"time\" or \"balanced\"",
			       section_where(top, "goal"), goal);
	if (found == PLAN_BALANCED && row->value_of_time_microusd <= 0)
		return err_set(err, ERR_CONFIG,
			       "%s: goal = \"balanced\" needs value_of_time: what an hour of "
			       "waiting costs, in dollars",
			       section_where(top, "goal"));
	return 0;
}

static int read_deadline(struct choice_row *row, const struct section *top, int64_t from_ms,
			 struct err *err)
{
	const char *deadline = section_text(top, "deadline"),
		   *where = section_where(top, "deadline");

	COPY_TEXT(row->deadline, deadline ? deadline : "");
	row->deadline_ms = 0;
	if (!row->deadline[0])
		return 0;
	if (!find_deadline(deadline, from_ms, &row->deadline_ms))
		return err_set(err, ERR_CONFIG,
			       "%s: deadline = \"%s\": it must be a duration (\"20m\") or a time "
			       "of day (\"07:00\")",
			       where, deadline);
	if (row->deadline_ms <= from_ms && !strchr(deadline, ':'))
		return err_set(err, ERR_CONFIG, "%s: deadline = \"%s\": it must be longer than 0",
			       where, deadline);
	return 0;
}

/* A missed time of day is a cap that cannot be kept, any other impossible value a mistake. */
static int wish_in_time(const struct launch *l, struct err *err)
{
	const struct choice_row *row = &l->choice.row;
	const struct section *top = config_top(l->ctx->config);
	int64_t now = clock_wall_ms();
	char ago[24];

	if (!row->deadline_ms || now < row->deadline_ms)
		return 0;
	return err_set(err, ERR_CAP,
		       "%s: deadline = \"%s\": that was %s ago; give a later time, or a duration "
		       "(\"20m\"); nothing was rented",
		       section_where(top, "deadline"), row->deadline,
		       duration_show(ago, sizeof(ago), now - row->deadline_ms));
}

void wish_name(struct choice_row *row, const struct order *o)
{
	CLEANUP(str_free) struct str gpus = STR_INIT;

	if (o->pods) {
		row->pods = (int)o->pods;
		row->pods_open = false;
		row->pods_most = 0;
	}
	if (!o->gpus)
		return;
	for (size_t i = 0; o->gpus[i]; i++)
		str_addf(&gpus, "%s%s", i ? "," : "", o->gpus[i]);
	COPY_TEXT(row->gpus, str_text(&gpus));
	row->gpus_open = false;
}

int wish_read(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	struct choice_row *row = &l->choice.row;

	if (row->decided_ms)
		return 0;
	row->pods_open = row->gpus_open = true;
	wish_name(row, &l->order);
	if (read_goal(row, top, err) < 0 || read_deadline(row, top, l->ctx->began_ms, err) < 0)
		return -1;
	row->decided_ms = clock_wall_ms();
	return 0;
}

int wish_renew(struct launch *l, bool given, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	const char *deadline = section_text(top, "deadline");

	if (!given && !strcmp(deadline ? deadline : "", l->choice.row.deadline))
		return 0;
	return read_deadline(&l->choice.row, top, l->ctx->began_ms, err) < 0 ? -1
									     : wish_in_time(l, err);
}

void wish_check(const struct section *top, struct mistakes *m)
{
	struct choice_row row = {0};
	struct err err = {0};

	if (read_goal(&row, top, &err) < 0)
		mistakes_note(m, "goal", &err);
	if (read_deadline(&row, top, clock_wall_ms(), &err) < 0)
		mistakes_note(m, "deadline", &err);
}

/* ---- estimate ----
 * Estimates for what the config wishes of a plan. */

static int planned_wishes(struct launch *l, struct plan_wish *wish, struct err *err)
{
	const struct choice_row *row = &l->choice.row;

	if (wish_read(l, err) < 0 || wish_in_time(l, err) < 0)
		return -1;
	plan_goal_find(row->goal, &wish->goal);
	wish->value_of_time_h = (double)row->value_of_time_microusd / 1e6;
	wish->budget_usd = (double)l->order.max_cost_microusd / 1e6;
	/* no pod outlives it */
	wish->within_s = (double)l->order.max_duration_ms / 1000;
	wish->staged = wish->goal == PLAN_COST && !row->deadline_ms;
	wish->pods = row->pods_open ? 0 : row->pods;
	if (row->deadline_ms) {
		double left_s = (double)(row->deadline_ms - clock_wall_ms()) / 1000;
		wish->within_s = wish->within_s > 0 ? MIN(wish->within_s, left_s) : left_s;
	}
	return 0;
}

/* A provider may have the key; most charge nothing. It need not be open. */
static bool egress_price(void *ctx, const char *provider, double *usd_gb)
{
	const struct launch *l = ctx;
	const struct provider_ops *ops = provider_find(provider);
	const struct section *conf = ops ? config_provider(l->ctx->config, provider) : NULL;
	const struct option_spec *o = conf ? ops->options : NULL;

	while (o && o->key && strcmp(o->key, "egress_price") != 0)
		o++;
	if (!o || !o->key)
		return false;
	*usd_gb = (double)section_int(conf, "egress_price") / 1e6;
	return section_has(conf, "egress_price");
}

int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err)
{
	const struct order *o = &l->order;
	struct estimate_of of = {
		.run = &l->run,
		.config = o->config,
		.job = o->job,
		.image = o->image,
		.volume = o->volume,
		.volume_gb = o->volume_gb,
		.stages = o->stages,
		.gpus_named = o->gpus != NULL,
		.egress_price = egress_price,
		.ctx = l,
	};

	*out = (struct estimate){0};
	if (planned_wishes(l, &of.wish, err) < 0)
		return -1;
	estimate_fill(out, &of, offers, count);
	return 0;
}

/* ---- order ----
 * Reads from a config what its run rents, for what, and what it may cost. */

size_t order_count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static const char **copy(const char *const *list)
{
	size_t count = order_count(list);
	const char **to = xcalloc(count + 1, sizeof(*to));

	if (count)
		memcpy(to, list, count * sizeof(*to));
	return to;
}

static const char **items(const struct section *s, const char *key)
{
	const char **list = xcalloc(section_count(s, key) + 1, sizeof(*list));

	for (size_t i = 0; i < section_count(s, key); i++)
		list[i] = section_item(s, key, i);
	return list;
}

void order_providers(struct order *o, const char *const *names)
{
	free(o->providers);
	o->providers = copy(names);
}

void order_gpus(struct order *o, const char *const *names)
{
	free(o->gpus);
	o->gpus = names && names[0] ? copy(names) : NULL;
}

void order_copy(struct order *out, const struct order *from)
{
	*out = *from;
	out->providers = copy(from->providers);
	out->gpus = from->gpus ? copy(from->gpus) : NULL;
	out->stages = from->stages ? copy(from->stages) : NULL;
}

void order_free(struct order *o)
{
	free(o->providers);
	free(o->gpus);
	free(o->stages);
	*o = (struct order){0};
}

/* A value that is no time was refused when the config was checked. */
static int64_t keep_warm_ms(const char *text)
{
	int64_t ms = 0;

	if (text && !strcmp(text, "auto"))
		return KEEP_WARM_AUTO;
	return text && duration_parse(text, &ms, NULL) == 0 ? ms : 0;
}

static void read_rest(struct order *o, const struct section *top)
{
	const struct section *caps = section_group(top, "caps"), *pod = section_group(top, "pod"),
			     *volume = section_group(top, "volume");

	o->max_cost_microusd = section_int(caps, "max_cost");
	o->max_duration_ms = section_int(caps, "max_duration");
	o->max_price_microusd_h = section_int(caps, "max_price_per_hour");
	o->volume = section_text(volume, "name");
	o->volume_gb = section_int(volume, "size_gb");
	o->volume_create = section_bool(volume, "create");
	o->code = section_text(section_group(top, "code"), "path");
	o->image = section_text(pod, "image");
	o->disk_gb = section_int(pod, "disk_gb");
	o->cpu = section_int(pod, "cpu");
	o->memory_gb = section_int(pod, "memory_gb");
	o->worker_root = section_bool(pod, "worker_root");
	o->unproven_ok = section_bool(pod, "allow_unproven_switch");
}

static const char **stage_names(const struct config *config)
{
	const struct section *job = config_job(config);
	size_t count = job ? section_count(job, "then") : 0, n = 0;
	bool delivers = section_has(config_top(config), "deliver");
	const char **list = count || delivers ? xcalloc(count + 2, sizeof(*list)) : NULL;

	for (size_t i = 0; i < count; i++) {
		const char *name = section_text(section_group_at(job, "then", i), "name");
		list[n++] = name ? name : "";
	}
	if (delivers)
		list[n++] = "deliver";
	return list;
}

void order_read(struct order *out, const struct config *config)
{
	const struct section *top = config ? config_top(config) : NULL;

	*out = (struct order){.config = "", .job = ""};
	if (!config)
		return;
	out->config = config_path(config) ? config_path(config) : "";
	if (config_job(config)) {
		out->job = config_job_name(config);
		out->output = section_text(config_job(config), "output");
	}
	out->providers = items(top, "provider");
	out->gpus = section_count(top, "gpu") ? items(top, "gpu") : NULL;
	out->pods = section_has(top, "pods") ? section_int(top, "pods") : 0;
	out->spot = section_bool(top, "spot");
	out->retry_until_up = section_bool(top, "retry_until_up");
	out->wait_ms = section_int(top, "wait");
	out->lease_ms = section_int(top, "lease");
	out->boot_limit_ms = section_int(top, "boot_limit");
	out->keep_on_failure_ms = section_int(top, "keep_on_failure");
	out->keep_warm_ms = keep_warm_ms(section_text(top, "keep_warm"));
	out->stages = stage_names(config);
	read_rest(out, top);
}

/* ---- offer list ----
 * Fetches, sorts and prints what the providers would rent now. */

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

/* ---- wanted ----
 * Narrows offers to those that a run would rent, and says what it left out. */

/* ---- what a provider narrows by itself ---- */

static bool is_its_provider(const struct section *top, const char *provider)
{
	size_t count = section_has(top, "provider") ? section_count(top, "provider") : 0;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section_item(top, "provider", i), provider))
			return true;
	return !count; /* the default is no wish */
}

static bool lists(const struct section *conf, const char *key, const char *text)
{
	for (size_t i = 0; i < section_count(conf, key); i++)
		if (!strcmp(section_item(conf, key, i), text))
			return true;
	return !section_count(conf, key);
}

/* RunPod's clouds and data centres; volumes are in its secure cloud alone. */
static bool is_its_place(const struct launch *l, const struct offer *o)
{
	const struct section *conf = config_provider(l->ctx->config, o->provider);
	const char *name = l->order.volume;
	bool community = starts_with(o->id, "COMMUNITY/");

	if (strcmp(o->provider, "runpod") != 0 || !conf)
		return true;
	if (!strcmp(section_text(conf, "cloud"), community ? "SECURE" : "COMMUNITY") ||
	    (community && name && name[0]))
		return false;
	return !o->region[0] || lists(conf, "datacenters", o->region);
}

static void find_volumes(const struct launch *l, struct wanted *w)
{
	const struct section *volume = section_group(config_top(l->ctx->config), "volume");
	const char *name = section_text(volume, "name");
	size_t count = 0;

	if (w->volumes || !name || !name[0] ||
	    store_volumes(l->ctx->store, &w->volumes, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(w->volumes[i].name, name) && w->volumes[i].region[0])
			w->volumes[w->volume_count++] = w->volumes[i];
}

/* A volume cannot leave its region. One that is not made yet, or is everywhere, ties no offer. */
static bool is_at_volume(const struct wanted *w, const struct offer *o)
{
	bool tied = false;

	for (size_t i = 0; i < w->volume_count; i++) {
		if (strcmp(w->volumes[i].provider, o->provider) != 0)
			continue;
		if (!strcmp(w->volumes[i].region, o->region))
			return true;
		tied = true;
	}
	return !tied || !o->region[0];
}

/* The first wish that the offer fulfils; -1: none. Without wishes, a pod has one card. */
static int wish_of(const char *const *wishes, const struct offer *o)
{
	char name[GPU_MAX];
	int count;

	for (int i = 0; wishes && wishes[i]; i++)
		if (gpu_parse(wishes[i], name, sizeof(name), &count) &&
		    (count == o->gpus || gpu_is_none(o->gpu)) && gpu_satisfies(name, o->gpu))
			return i;
	return (!wishes || !wishes[0]) && o->gpus <= 1 ? 0 : -1;
}

/* ---- what holds for all ---- */

static bool fails(const struct launch *l, const struct offer *o, enum not_wanted *why)
{
	int64_t most = l->order.max_price_microusd_h;

	*why = o->spot && !l->order.spot            ? NOT_SPOT
	       : !strcasecmp(o->stock, "none")      ? NOT_IN_STOCK
	       : most && o->price_microusd_h > most ? NOT_AT_PRICE
						    : NOT_WANTED_KINDS;
	return *why != NOT_WANTED_KINDS;
}

static void leave_out(struct wanted *w, enum not_wanted why, const struct offer *o)
{
	bool first = !w->left_out[why]++;

	if (why == NOT_AT_PRICE && (first || o->price_microusd_h < w->cheapest.price_microusd_h))
		w->cheapest = *o;
}

static void keep(struct offer **list, size_t *count, const struct offer *o)
{
	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	(*list)[(*count)++] = *o;
}

static void add(const struct launch *l, struct wanted *w, const struct offer *o, bool avoided)
{
	enum not_wanted why;

	if (fails(l, o, &why))
		leave_out(w, why, o);
	else if (avoided)
		keep(&w->avoided, &w->avoided_count, o);
	else
		keep(&w->list, &w->count, o);
}

static void add_all(const struct launch *l, struct wanted *w, const struct offer *from,
		    size_t count, const bool *avoided)
{
	int64_t now = clock_wall_ms();
	struct offer_past *past = past_of_offers(l->ctx->store, NULL, from, count, now);

	for (size_t i = 0; i < count; i++)
		add(l, w, &from[i], offer_avoided(&past[i], now) || (avoided && avoided[i]));
	free(past);
}

void wanted_add(const struct launch *l, struct wanted *w, const struct offer *from, size_t count)
{
	add_all(l, w, from, count, NULL);
}

void wanted_add_unasked(struct launch *l, struct wanted *w, const struct offer *from, size_t count,
			const bool *avoided)
{
	const char *const *wishes = l->order.gpus;
	const struct section *top = config_top(l->ctx->config);
	struct offer *kept = xcalloc(count + 1, sizeof(*kept));
	bool *bad = xcalloc(count + 1, sizeof(*bad));
	size_t n = 0;

	find_volumes(l, w);
	for (size_t i = 0; i < count; i++) {
		struct offer o = from[i];
		o.wish = wish_of(wishes, &o);
		if (!is_its_provider(top, o.provider)) {
			leave_out(w, NOT_ITS_PROVIDER, &o);
		} else if (!is_its_place(l, &o)) {
			leave_out(w, NOT_ITS_PLACE, &o);
		} else if (!is_at_volume(w, &o)) {
			leave_out(w, NOT_AT_VOLUME, &o);
		} else if (o.wish < 0) {
			leave_out(w, NOT_ITS_GPU, &o);
		} else {
			bad[n] = avoided && avoided[i];
			kept[n++] = o;
		}
	}
	add_all(l, w, kept, n, bad);
	free(kept);
	free(bad);
}

void wanted_end(struct wanted *w)
{
	if (w->count) {
		w->left_out[NOT_AFTER_FAILURE] = w->avoided_count;
		return;
	}
	free(w->list);
	w->list = TAKE(w->avoided);
	w->count = w->avoided_count;
	w->avoided_count = 0;
}

/* ---- words ---- */

void wanted_tell(const struct wanted *w)
{
	CLEANUP(str_free) struct str volume = STR_INIT;

	if (w->volume_count)
		str_addf(&volume, "not where volume \"%s\" is:", w->volumes[0].name);
	for (size_t i = 0; i < w->volume_count; i++)
		str_addf(&volume, "%s %s", i ? "," : "", w->volumes[i].region);
	const char *const whys[NOT_WANTED_KINDS] = {
		[NOT_ITS_PROVIDER] = "at a provider that is not in provider",
		[NOT_ITS_PLACE] = "not in the cloud or data centers of providers.runpod",
		[NOT_AT_VOLUME] = str_text(&volume),
		[NOT_ITS_GPU] = "not of a GPU, or a number of them, that gpu asks for",
		[NOT_SPOT] = "a spot pod, and spot is false (--spot)",
		[NOT_IN_STOCK] = "out of stock",
		[NOT_AT_PRICE] = "above caps.max_price_per_hour",
		[NOT_AFTER_FAILURE] = "avoided, since its last pod was bad",
	};

	for (int i = 0; i < NOT_WANTED_KINDS; i++)
		if (w->left_out[i])
			log_line(LOG_NOTE, "%zu offer%s left out: %s", w->left_out[i],
				 w->left_out[i] == 1 ? " is" : "s are", whys[i]);
}

int wanted_check_price(const struct wanted *w, struct err *err)
{
	char price[32], offer[PLAN_TEXT];

	if (w->count || !w->left_out[NOT_AT_PRICE])
		return 0;
	err_set(err, ERR_CAP,
		"every offer is above caps.max_price_per_hour: the cheapest costs %s an hour (%s); "
		"raise the cap, or choose another GPU",
		money_show(price, sizeof(price), w->cheapest.price_microusd_h),
		plan_offer(offer, &w->cheapest));
	return err_about(err, "caps.max_price_per_hour");
}

void wanted_free(struct wanted *w)
{
	free(w->list);
	free(w->avoided);
	free(w->volumes);
	*w = (struct wanted){0};
}

/* ---- better ----
 * Compares the config's fixed choices with the planner's own. */

/* Collects the offers of all other GPUs beside those of e. */
static void add_all_offers(struct launch *l, const struct estimate *e, int64_t offers_ms,
			   struct wanted *all)
{
	struct op_want want;

	wanted_add(l, all, e->offers, e->count);
	launch_want_offers(l, &want);
	want.offers.gpus = NULL;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		struct op_result result = {0};
		struct err ignored = {0};
		if (caller_perform(&l->run.setup.providers[i], OP_OFFERS, &want, offers_ms, &result,
				   &ignored) == 0)
			wanted_add(l, all, result.offers, result.offer_count);
		op_result_free(&result);
	}
	wanted_end(all);
}

static void add_plan(struct str *to, const struct plan *p, const struct offer *o, bool named)
{
	char offer[PLAN_TEXT];

	str_addf(to, "%d pod%s%s%s", p->pods, p->pods == 1 ? "" : "s", named ? " of " : "",
		 named ? plan_offer(offer, o) : "");
}

static void describe(struct better *b, const struct plan *pick, const struct offer *given)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	double longer_s = b->plan.makespan_p50_s - pick->makespan_p50_s;
	bool other_card = strcmp(b->offer.gpu, given->gpu) != 0 ||
			  strcmp(b->offer.provider, given->provider) != 0 ||
			  b->offer.spot != given->spot;
	char cost[32], time[24];

	add_plan(&line, pick, given, other_card);
	str_addf(&line, " cost%s %s; ", pick->pods == 1 ? "s" : "",
		 plan_dollars(cost, pick->cost_usd));
	add_plan(&line, &b->plan, &b->offer, other_card);
	str_addf(&line, " would cost %s and take ", plan_dollars(cost, b->plan.cost_usd));
	if (fabs(longer_s) < 0.05)
		str_add(&line, "as long");
	else
		str_addf(&line, "%s %s", plan_seconds(time, fabs(longer_s)),
			 longer_s > 0 ? "longer" : "less");
	COPY_TEXT(b->line, str_text(&line));
}

static void compare(struct better *out, const struct plan *pick, const struct offer *given,
		    const struct estimate *e)
{
	out->found = plan_better(&out->plan, pick, &e->work, e->machines, e->count, &e->wish);
	if (!out->found)
		return;
	out->offer = e->offers[out->plan.machine];
	describe(out, pick, given);
}

void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms)
{
	bool gpus_given = l->order.gpus != NULL,
	     pods_given = l->order.pods && !l->run.setup.job_ops->needs(l->run.setup.job)->command;
	const struct offer *given = &e->offers[pick->machine];
	struct err ignored = {0};
	struct estimate all;
	struct wanted others = {0};

	*out = (struct better){0};
	if (!gpus_given || !offers_ms) {
		if (gpus_given || pods_given || l->run.setup.provider_count > 1)
			compare(out, pick, given, e);
		return;
	}
	add_all_offers(l, e, offers_ms, &others);
	if (estimate_make(&all, l, others.list, others.count, &ignored) == 0)
		compare(out, pick, given, &all);
	estimate_free(&all);
	wanted_free(&others);
}
