/* wire_request.c - what a client asks of vendors that are spoken to through their real translators,
 * and what it makes of the answers, as engine/vendor.c does. */
#include "wire_life.h"

#include <stdlib.h>

#include "engine/caller.h"

static const char *const wishes[] = {"L40S", "L4", NULL};

enum { LOG_FRESH_MS = 5000 }; /* as in vendor.c */

static void offers_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct client *cl = a->cl;
	struct event ev = {.type = EV_OFFERS, .provider = a->provider};
	struct offer_past *past = NULL;
	struct err off = {0};

	if (result && wire_check_clock(cl, a->provider, &off) < 0) {
		err = &off;
	} else if (result) {
		const struct vendor_plan *v = &cl->sim->plan->vendors[a->provider];
		ev.offers = result->offers;
		ev.count = result->offer_count;
		ev.past = past = xcalloc(ev.count + 1, sizeof(*past));
		for (size_t i = 0; i < ev.count; i++) {
			past[i].boot_ms = cl->sim->plan->knows_boots ? v->boot_ms : 0;
			for (int k = 0; k < BAD_MAX; k++) {
				const struct bad_offer *b =
					&wire_ledger_of(cl, a->provider)->bad[k];
				if (!b->at || strcmp(b->id, ev.offers[i].id))
					continue;
				past[i].bad_at_ms = b->at;
				past[i].bad_until_ms = b->at + 1800000;
			}
		}
	}
	client_told(a->cl, &ev, err);
	free(past);
}

static void request_offers(struct client *cl, int provider)
{
	struct asked *a = wire_request_new(cl, provider, -1);

	a->want.offers.gpus = wishes;
	a->want.offers.spot = !cl->reaping && cl->sim->plan->vendors[provider].spot;
	a->want.offers.cpu = a->want.offers.memory_gb = 1;
	a->want.offers.volume = wire_life_of(cl)->volumes[provider];
	if (!a->want.offers.volume.id[0] && cl->core->conf.want_volume)
		COPY_TEXT(a->want.offers.volume.name, "cache");
	wire_begin(a, OP_OFFERS, offers_done);
}

void wire_tell_volume(struct client *cl, int provider)
{
	struct event ev = {.type = EV_VOLUME,
			   .provider = provider,
			   .volume = &wire_life_of(cl)->volumes[provider]};

	client_told(cl, &ev, NULL);
}

static void volume_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct volume *v = &a->life->volumes[a->provider];
	struct event ev = {.type = EV_VOLUME, .provider = a->provider, .volume = v};
	struct err none = {0};

	if (err) {
		client_told(a->cl, &ev, err);
		return;
	}
	if (!result->volume_count) {
		err_set(&none, ERR_TRANSIENT, "it named no volume");
		client_told(a->cl, &ev, &none);
		return;
	}
	*v = result->volumes[0];
	v->apart = provider_can_fetch(rules_ops(a->cl->sim, a->provider),
				      a->life->line.handles[a->provider], v);
	if (!wire_stage_begin(a->cl, a->provider, v))
		wire_tell_volume(a->cl, a->provider);
}

static void add_regions(struct asked *a)
{
	const char *names[ARRAY_LEN(wire_datacenters)];
	size_t count = core_offer_regions(a->cl->core, a->provider, names, ARRAY_LEN(names)),
	       kept = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_LEN(wire_datacenters); k++)
			if (!strcmp(names[i], wire_datacenters[k]))
				a->regions[kept++] = wire_datacenters[k];
	a->want.regions = kept ? a->regions : NULL;
}

static void request_volume_id(struct client *cl, int provider, bool create)
{
	struct asked *a = wire_request_new(cl, provider, -1);

	a->want.volume.name = "cache";
	a->want.volume.size_gb = 50;
	a->want.volume.create = create;
	if (create)
		add_regions(a);
	a->want.volume.gpus = wishes;
	wire_begin(a, OP_VOLUME, volume_done);
}

static void list_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {
		.type = EV_LISTED, .provider = a->provider, .requested_at = a->requested_at};

	a->life->lists[a->provider] = NULL;
	a->cl->list_failed[a->provider] = err ? boot_now(a->cl) : 0;
	ev.ahead_ms = wall_now(a->cl) - wire_time_there(a->cl, a->provider);
	ev.clock_known =
		caller_knows_time_there(a->life->caller, rules_ops(a->cl->sim, a->provider));
	if (result) {
		plant_views(result->pods, result->pod_count);
		ev.views = result->pods;
		ev.count = result->pod_count;
		ev.partial = result->partial;
	}
	client_told(a->cl, &ev, err);
}

static void list_pods(struct client *cl, int provider)
{
	struct asked *a = wire_request_new(cl, provider, -1);

	client_check_list(cl, provider);
	a->want.ids = a->ids = core_pod_ids(cl->core, provider);
	a->op = wire_begin(a, OP_LIST, list_done);
	wire_life_of(cl)->lists[provider] = a;
}

static bool has_to_prove(const struct client *cl, int provider)
{
	bool has = cl->reaping;

	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		has = has || (p->rental.provider == provider &&
			      (p->phase == POD_AMBIGUOUS || p->phase == POD_CONFIRMING));
	}
	return has;
}

void wire_prioritize(struct client *cl)
{
	struct wire_life *l = cl->sim->wire && cl->up ? wire_life_of(cl) : NULL;

	for (int i = 0; l && cl->up && i < VENDORS_MAX; i++) {
		struct asked *a = l->lists[i];
		if (!a || !has_to_prove(cl, i))
			continue;
		l->lists[i] = NULL;
		struct client *was = wire_enter(l);
		if (caller_prioritize(a->op))
			a->requested_at = boot_now(cl);
		wire_leave(l, was);
	}
}

static void add_recipe(struct asked *a)
{
	struct rent_request *r = &a->want.rent;
	static const char *const packages[] = {"espeak-ng", NULL};

	r->packages = packages;
	r->agent = "the agent";
	r->agent_len = 9;
	r->agent_path = "/usr/local/bin/burst-agent";
	COPY_TEXT(a->image, wire_ledger_of(a->cl, a->provider)->image);
	r->known_image = a->image[0] ? a->image : NULL;
}

static void keep_image(struct client *cl, int provider, const char *image)
{
	if (image[0])
		COPY_TEXT(wire_ledger_of(cl, provider)->image, image);
}

static void image_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_IMAGE, .provider = a->provider};

	if (result)
		keep_image(a->cl, a->provider, result->image);
	client_told(a->cl, &ev, err);
}

static void request_image(struct client *cl, int provider)
{
	struct asked *a = wire_request_new(cl, provider, -1);

	add_recipe(a);
	wire_begin(a, OP_IMAGE, image_done);
}

static void rent_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {
		.type = err ? EV_RENT_FAILED : EV_RENTED, .pod = a->pod, .provider = a->provider};

	if (result) {
		plant_views(result->pods, result->pod_count);
		ev.views = result->pods;
		ev.count = 1;
		keep_image(a->cl, a->provider, result->image);
		if (!wire_find(a->cl->sim, a->provider, result->pods[0].id))
			broke(a->cl->sim, "rented pod \"%s\", which nobody made",
			      result->pods[0].id);
	}
	client_told(a->cl, &ev, err);
}

static void add_env(struct asked *a, const char *name, char *value)
{
	a->env[a->env_count++] = (struct env_pair){xstrdup(name), value, false};
}

bool wire_rent(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct err err = {0};

	if (!wire_is(cl->sim, p->rental.provider))
		return false;
	if (wire_check_clock(cl, p->rental.provider, &err) < 0) {
		struct happening *h = client_later(cl, 1, W_CREATED);
		h->pod = pod;
		h->provider = p->rental.provider;
		h->kind = err.kind;
		return true;
	}
	if (cl->heard_off_ms[p->rental.provider] > CALLER_CLOCK_OFF_MS)
		broke(cl->sim, "a create by a clock that is off by %lld s and more",
		      (long long)cl->heard_off_ms[p->rental.provider] / 1000);
	struct asked *a = wire_request_new(cl, p->rental.provider, pod);
	struct rent_request *r = &a->want.rent;
	r->offer = p->rental.offer;
	snprintf(r->name, sizeof(r->name), "burst-%s", p->rental.attempt);
	COPY_TEXT(r->marker.machine, cl->job->conf.machine);
	COPY_TEXT(r->marker.run, cl->job->conf.run);
	COPY_TEXT(r->marker.attempt, p->rental.attempt);
	/* as in vendor.c: the pod ends itself by its vendor's clock */
	struct client *was = line_enter(cl);
	int64_t ahead_s = (caller_clock_ahead_ms(wire_life_of(cl)->caller,
						 rules_ops(cl->sim, p->rental.provider)) +
			   999) /
			  1000;
	line_leave(was);
	r->marker.hard_end_s = p->rental.hard_end_s - ahead_s;
	r->volume = p->rental.volume;
	r->mount = "/workspace";
	r->cpu = r->memory_gb = 1;
	add_recipe(a);
	r->start_script = "exec burst\n";
	if (!rules_ops(cl->sim, p->rental.provider)->shares_machine)
		add_env(a, "BURST_CONTAINER", xstrdup("1"));
	add_env(a, "BURST_RUN", xstrdup(cl->job->conf.run));
	add_env(a, "BURST_ATTEMPT", xstrdup(p->rental.attempt));
	add_env(a, "BURST_MACHINE", xstrdup(cl->job->conf.machine));
	add_env(a, "BURST_HARD_END",
		xasprintf("%lld", (long long)(p->rental.hard_end_s - ahead_s)));
	add_env(a, "BURST_FIRST_LEASE_END",
		xasprintf("%lld", (long long)(p->rental.first_lease_end_s - ahead_s)));
	add_env(a, "BURST_LATE_START_S",
		xasprintf("%lld", (long long)(core_late_start_ms(&cl->job->conf) / 1000)));
	add_env(a, "BURST_AUTHORIZED_KEY", xstrdup("ssh-ed25519 AAAA burst"));
	r->env = a->env;
	r->env_count = a->env_count;
	wire_begin(a, OP_RENT, rent_done);
	return true;
}

static struct pod_log *log_of(struct client *cl, int pod)
{
	struct wire_life *l = wire_life_of(cl);

	if ((size_t)pod >= l->log_count) {
		size_t count = (size_t)pod + 8;
		l->logs = xrealloc(l->logs, count * sizeof(*l->logs));
		memset(l->logs + l->log_count, 0, (count - l->log_count) * sizeof(*l->logs));
		l->log_count = count;
	}
	return &l->logs[pod];
}

/* vendor.c: is_new_line() */
static bool is_new_line(struct pod_log *p, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < p->count; i++)
		if (p->lines[i] == hash)
			return false;
	GROW(p->lines, p->count, p->cap);
	p->lines[p->count++] = hash;
	return true;
}

static void log_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_LOG, .pod = a->pod, .provider = a->provider};
	struct pod_log *p = log_of(a->cl, a->pod);

	if (!err) {
		p->read_at = boot_now(a->cl);
		for (const char *line = str_text(&result->text); *line;) {
			size_t len = strcspn(line, "\n");
			if (len && !starts_with(line, "container: "))
				ev.number += is_new_line(p, line, len);
			line += len + (line[len] == '\n');
		}
	}
	client_told(a->cl, &ev, err);
}

static struct asked *about_pod(struct client *cl, int pod, enum op_kind kind,
			       void (*done)(struct asked *a, struct op_result *result,
					    const struct err *err))
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct asked *a = wire_request_new(cl, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	a->op = wire_begin(a, kind, done);
	return a;
}

static void release_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_RELEASED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .number = err ? RELEASE_TAKEN : (int)result->release};

	client_told(a->cl, &ev, err);
}

static void inspected(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_INSPECTED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .requested_at = a->requested_at};

	ev.views = result ? result->pods : NULL;
	ev.count = result ? 1 : 0;
	client_told(a->cl, &ev, err);
}

static void inspect(struct client *cl, int pod)
{
	if (cl->sim->plan->vendors[core_pod_at(cl->core, pod)->rental.provider].wire == WIRE_RUNPOD)
		about_pod(cl, pod, OP_INSPECT, inspected);
}

static void last_log_done(struct asked *a, struct op_result *result, const struct err *err)
{
	(void)result, (void)err;
	if (!a->released)
		about_pod(a->cl, a->pod, OP_RELEASE, release_done);
}

static void last_log_over(void *ctx)
{
	struct asked *a = ctx;
	struct client *cl = a->cl;
	int pod = a->pod;

	a->timer = NULL;
	a->released = true;
	if (cl->up) /* calls that waited behind it are sent, and the client may die of that */
		about_pod(cl, pod, OP_RELEASE, release_done);
}

static void release(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct pod_log *log = log_of(cl, pod);
	struct machine *m = wire_find(cl->sim, p->rental.provider, p->rental.id);

	if (m)
		m->let_go = true;
	else
		broke(cl->sim, "a release of \"%s\", which nobody made", p->rental.id);
	bool asks = !log->asked && core_reads_log_first(p, boot_now(cl));
	log->asked = log->asked || asks;
	if (!asks || (log->read_at && boot_now(cl) - log->read_at < LOG_FRESH_MS)) {
		about_pod(cl, pod, OP_RELEASE, release_done);
		return;
	}
	int life = cl->life;
	bool outlives = wire_ops(cl->sim, p->rental.provider)->logs_outlive;
	if (outlives)
		about_pod(cl, pod, OP_RELEASE, release_done);
	if (!cl->up || cl->life != life) /* it died of that */
		return;
	struct asked *a = wire_request_new(cl, core_pod_at(cl->core, pod)->rental.provider, pod);
	COPY_TEXT(a->want.id, core_pod_at(cl->core, pod)->rental.id);
	a->released = outlives;
	if (!outlives)
		a->timer = loop_timer(&wire_life_of(cl)->line.loop, CORE_LOG_READ_MS, last_log_over,
				      a);
	a->op = wire_begin(a, OP_LOGS, last_log_done);
}

bool wire_avoid_host(struct client *cl, int pod, int64_t at)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);

	if (!wire_is(cl->sim, p->rental.provider))
		return false;
	struct bad_offer *bad = wire_ledger_of(cl, p->rental.provider)->bad, *to = &bad[0];
	for (int i = BAD_MAX - 1; i >= 0; i--)
		if (!bad[i].at || !strcmp(bad[i].id, p->rental.offer.id))
			to = &bad[i];
	COPY_TEXT(to->id, p->rental.offer.id);
	to->at = at;
	return true;
}

bool wire_act(struct client *cl, const struct action *a)
{
	bool of_pod = a->type == ACT_LOG || a->type == ACT_RELEASE || a->type == ACT_INSPECT;
	int provider = of_pod ? core_pod_at(cl->core, a->pod)->rental.provider : a->provider;

	if (!cl->sim->wire || !wire_is(cl->sim, provider))
		return false;
	switch ((int)a->type) {
	case ACT_OFFERS: request_offers(cl, provider); return true;
	case ACT_VOLUME: request_volume_id(cl, provider, a->flag); return true;
	case ACT_IMAGE: request_image(cl, provider); return true;
	case ACT_LIST: list_pods(cl, provider); return true;
	case ACT_INSPECT: inspect(cl, a->pod); return true;
	case ACT_LOG: about_pod(cl, a->pod, OP_LOGS, log_done); return true;
	case ACT_RELEASE: release(cl, a->pod); return true;
	default: return false;
	}
}
