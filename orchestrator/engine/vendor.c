/* vendor.c - the core's actions that are operations of a provider: sends them, and turns the
 * answers into events. */
#include "vendor.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "handed.h"
#include "impl.h"
#include "ssh_keys.h"
#include "past.h"
#include "pod_image.h"
#include "post.h"
#include "request.h"

struct vendors {
	int bills_open;
	struct {
		bool list_refused; /* it refuses its list; that is logged */
		bool remarked;     /* its note on the offers is logged */
		/* the list that is under way and not urgent yet; NULL: none */
		struct request *list;
	} of[CORE_PROVIDERS_MAX];
};

struct vendors *vendors_new(void)
{
	return xcalloc(1, sizeof(struct vendors));
}

void vendors_free(struct vendors *v)
{
	free(v);
}

int vendor_bills_open(const struct engine *e)
{
	return e->vendors->bills_open;
}

/* ---- offers ---- */

/* Once: offers are requested again and again. */
static void log_remarks(struct engine *e, int provider, const char *text)
{
	const char *line;
	size_t len;

	if (!*text || e->vendors->of[provider].remarked)
		return;
	e->vendors->of[provider].remarked = true;
	while ((line = str_next_line(&text, &len)))
		engine_log(e, LOG_WARN, "%s: %.*s", e->setup->providers[provider].ops->name,
			   (int)len, line);
}

/* A provider may list spot pods though none were wanted; a run rents them on request only. */
static void drop_unwanted_spot(const struct request *a, struct op_result *result)
{
	size_t kept = 0;

	for (size_t i = 0; i < result->offer_count; i++)
		if (!result->offers[i].spot || a->want.offers.spot)
			result->offers[kept++] = result->offers[i];
	result->offer_count = kept;
}

static void offers_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_OFFERS, .provider = a->provider};
	struct offer_past *past = NULL;
	const struct job_needs *needs = a->e->work.needs;
	const struct past_image of = {a->e->setup->image, needs ? needs->setup : NULL,
				      needs && needs->bf16};
	const struct provider_ops *ops = a->e->setup->providers[a->provider].ops;
	struct err off = {0};

	if (result && caller_check_clock(a->e->caller, ops, &off) < 0) {
		err = &off;
	} else if (result) {
		log_remarks(a->e, a->provider, str_text(&result->text));
		drop_unwanted_spot(a, result);
		ev.offers = result->offers;
		ev.count = result->offer_count;
		ev.floor_microusd_h = result->floor_microusd_h;
		ev.past = past = past_of_offers(a->e->setup->store, &of, ev.offers, ev.count,
						clock_wall_ms());
	}
	post(a->e, &ev, err);
	free(past);
	request_free(a);
}

void vendor_offers(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);

	a->want.offers.gpus = e->setup->gpus;
	a->want.offers.spot = e->setup->conf.reap ? false : e->setup->want_spot;
	a->want.offers.vram_gb = e->work.needs ? e->work.needs->vram_gb : 0;
	a->want.offers.cpu = e->setup->cpu;
	a->want.offers.memory_gb = e->setup->memory_gb;
	a->want.offers.disk_gb = e->setup->disk_gb;
	a->want.offers.image = e->setup->image;
	a->want.offers.volume = e->volumes[provider]; /* looked for first if the job has one */
	if (e->setup->volume_name && e->setup->volume_create && !e->volumes[provider].id[0])
		COPY_TEXT(a->want.offers.volume.name, e->setup->volume_name);
	request_begin(a, OP_OFFERS, offers_done);
}

/* ---- looking ---- */

static void list_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {
		.type = EV_LISTED, .provider = a->provider, .requested_at = a->requested_at};

	a->e->vendors->of[a->provider].list = NULL;
	ev.ahead_ms = clock_wall_ms() -
		      caller_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	ev.clock_known =
		caller_knows_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	if (result) {
		ev.views = result->pods;
		ev.count = handed_drop(a->e, result->pods, result->pod_count);
		ev.partial = result->partial;
		if (result->partial && !a->e->vendors->of[a->provider].list_refused)
			engine_log(a->e, LOG_WARN, "%s", str_text(&result->text));
		a->e->vendors->of[a->provider].list_refused = result->partial;
	}
	post(a->e, &ev, err);
	request_free(a);
}

/* The list's answer will find a pod or prove one gone. Before a release is answered there is
 * nothing to prove. */
static bool ends_pods(const struct engine *e, int provider)
{
	bool ends = e->setup->conf.reap;

	for (int i = 0; i < e->pod_count && !ends; i++) {
		const struct core_pod *p = core_pod_at(e->core, i);
		ends = p->rental.provider == provider &&
		       (p->phase == POD_AMBIGUOUS || p->phase == POD_CONFIRMING);
	}
	return ends;
}

void vendor_list(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);

	a->want.ids = a->ids = core_pod_ids(e->core, provider);
	a->op = request_begin(a, OP_LIST, list_done);
	e->vendors->of[provider].list = a;
	vendor_prioritize(e);
}

void vendor_prioritize(struct engine *e)
{
	for (int i = 0; i < e->setup->provider_count; i++) {
		struct request *a = e->vendors->of[i].list;
		if (!a || !ends_pods(e, i))
			continue;
		e->vendors->of[i].list = NULL;
		if (caller_prioritize(a->op))
			a->requested_at = clock_boot_ms(); /* none of it is older */
	}
}

static void inspected(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_INSPECTED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .requested_at = a->requested_at};
	struct err none;

	if (result && result->pod_count) {
		ev.views = result->pods;
		ev.count = 1;
	} else if (!err) {
		err_set(&none, ERR_TRANSIENT, "it reports nothing about the pod");
		err = &none;
	}
	post(a->e, &ev, err);
	request_free(a);
}

void vendor_inspect(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	request_begin(a, OP_INSPECT, inspected);
}

/* ---- renting ---- */

static void add_env(struct request *a, const char *name, char *value, bool secret)
{
	if (a->env_count < ARRAY_LEN(a->env))
		a->env[a->env_count++] = (struct env_pair){xstrdup(name), value, secret};
	else
		free(value);
}

/* The start script's contract: jobs/agent/CONTROL.md, part 1. */
static void start_env(struct request *a, const struct core_pod *p, int64_t ahead_s)
{
	struct engine *e = a->e;
	CLEANUP(str_free) struct str host_key = STR_INIT;

	const char *host_private = keys_host_private(e, a->pod);
	base64_add(&host_key, host_private, strlen(host_private));
	log_secret(str_text(&host_key));
	if (!e->setup->providers[a->provider].ops->shares_machine)
		add_env(a, "BURST_CONTAINER", xstrdup("1"), false);
	add_env(a, "BURST_RUN", xstrdup(e->setup->run->id), false);
	add_env(a, "BURST_ATTEMPT", xstrdup(p->rental.attempt), false);
	add_env(a, "BURST_MACHINE", xstrdup(e->setup->conf.machine), false);
	add_env(a, "BURST_HARD_END", xasprintf("%lld", (long long)(p->rental.hard_end_s - ahead_s)),
		false);
	add_env(a, "BURST_FIRST_LEASE_END",
		xasprintf("%lld", (long long)(p->rental.first_lease_end_s - ahead_s)), false);
	add_env(a, "BURST_LATE_START_S",
		xasprintf("%lld", (long long)(core_late_start_ms(&e->setup->conf) / 1000)), false);
	add_env(a, "BURST_LEASE_S", xasprintf("%lld", (long long)(e->setup->conf.lease_ms / 1000)),
		false);
	add_env(a, "BURST_HOST_KEY_B64", str_detach(&host_key), true);
	add_env(a, "BURST_AUTHORIZED_KEY", xstrdup(keys_client_public(e, a->pod)), false);
	add_env(a, "BURST_VOLUME", xstrdup("/workspace"), false);
}

static void rent_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {
		.type = err ? EV_RENT_FAILED : EV_RENTED, .pod = a->pod, .provider = a->provider};

	if (result) {
		ev.views = result->pods;
		ev.count = 1;
		pod_image_keep(a->e, a->provider, result->image);
	}
	/* the host's private key is needed for the create alone */
	keys_forget_host(a->e, a->pod);
	post(a->e, &ev, err);
	request_free(a);
}

void vendor_rent(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct err err = {0};

	if (e->pods[pod].saving.failed) {
		err_set(&err, ERR_LOCAL, "cannot write the ledger: nothing is rented without it");
		post_pod(e, EV_RENT_FAILED, pod, &err);
		return;
	}
	if (caller_check_clock(e->caller, e->setup->providers[p->rental.provider].ops, &err) < 0) {
		post_pod(e, EV_RENT_FAILED, pod, &err); /* of providers whose offers need no call */
		return;
	}
	if (keys_make(e, pod, &err) < 0) {
		err.kind = ERR_LOCAL;
		post_pod(e, EV_RENT_FAILED, pod, &err);
		return;
	}
	struct request *a = request_new(e, p->rental.provider, pod);
	struct rent_request *r = &a->want.rent;
	/* The pod ends itself by a clock that goes with its vendor's: its hard end must not be
	 * later than by ours. */
	int64_t ahead_s =
		(caller_clock_ahead_ms(e->caller, e->setup->providers[p->rental.provider].ops) +
		 999) /
		1000;
	r->offer = p->rental.offer;
	snprintf(r->name, sizeof(r->name), "burst-%s", p->rental.attempt);
	COPY_TEXT(r->marker.machine, e->setup->conf.machine);
	COPY_TEXT(r->marker.run, e->setup->run->id);
	COPY_TEXT(r->marker.attempt, p->rental.attempt);
	r->marker.hard_end_s = p->rental.hard_end_s - ahead_s;
	r->volume = p->rental.volume;
	r->mount = "/workspace";
	r->disk_gb = e->setup->disk_gb;
	r->cpu = e->setup->cpu;
	r->memory_gb = e->setup->memory_gb;
	pod_image_recipe(e, a->provider, r);
	pod_image_hand(a);
	r->start_script = a->start_script = provider_start_script(
		e->setup->providers[a->provider].ops, e->setup->kit->start_script);
	start_env(a, p, ahead_s);
	r->env = a->env;
	r->env_count = a->env_count;
	r->fetches_packages = e->work.needs && e->work.needs->setup_is_ours && !known_env(e, pod);
	request_begin(a, OP_RENT, rent_done);
}

/* ---- what it billed ---- */

static void billing_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct billing *b = &a->e->pods[a->pod].billing;

	if (!err) {
		b->bill = result->billing;
		b->bill.hours = NULL;
		b->bill.hour_count = 0;
	}
	if (!err || err->kind == ERR_NOT_FOUND)
		b->answered_ms = clock_wall_ms();
	a->e->vendors->bills_open--;
	request_free(a);
}

void vendor_billing(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	a->want.since_s = (clock_wall_ms() - (clock_boot_ms() - p->rental.create_at)) / 1000;
	a->want.bill.price_microusd_h = p->rental.price_microusd_h;
	a->want.bill.list_microusd_h = p->rental.offer.price_microusd_h;
	COPY_TEXT(a->want.bill.gpu, p->rental.offer.gpu);
	e->vendors->bills_open++;
	request_begin(a, OP_BILLING, billing_done);
}
