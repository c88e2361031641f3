/* wire.c - a client's side of vendors that are spoken to through their real translators: the real
 * engine/caller.c carries their operations (over line.c). wire_request.c hands what comes of them
 * to the core as engine/vendor.c hands it on. */
#include "wire_life.h"

#include <stdlib.h>

#include "engine/caller.h"
#include "providers/modal/modal.h"
#include "providers/runpod/runpod.h"

const struct wire_gpu wire_gpus[2] = {{"NVIDIA L40S", "L40S", "L40S", 48},
				      {"NVIDIA L4", "L4", "L4", 24}};
const char *const wire_datacenters[2] = {"EU-RO-1", "US-KS-2"};

/* ---- small things ---- */

bool wire_is(const struct sim *s, int vendor)
{
	return s->plan->vendors[vendor].wire != WIRE_NONE;
}

const struct wire_tally *wire_tallies(const struct sim *s)
{
	return s->wire ? s->wire->tally : NULL;
}

struct wire_tally *wire_tally_of(struct sim *s, int vendor)
{
	return &s->wire->tally[s->plan->vendors[vendor].wire];
}

const struct provider_ops *wire_ops(const struct sim *s, int vendor)
{
	return s->plan->vendors[vendor].wire == WIRE_RUNPOD ? &provider_runpod : &provider_modal;
}

struct wire_life *wire_life_of(struct client *cl)
{
	return cl->sim->wire->lives[cl->number];
}

struct http *wire_line(struct client *cl)
{
	return &wire_life_of(cl)->line;
}

struct asked *wire_request_first(struct client *cl)
{
	return wire_life_of(cl)->asked;
}

int64_t wire_time_there(struct client *cl, int provider)
{
	struct wire_life *l = wire_life_of(cl);
	struct client *was = line_enter(cl);
	int64_t now_ms = caller_time_there(l->caller, rules_ops(cl->sim, provider));

	line_leave(was);
	return now_ms;
}

struct stage *wire_stage(struct client *cl, int provider)
{
	return &wire_life_of(cl)->stages[provider];
}

const json_t *wire_staged(struct sim *s, int vendor, const char *path)
{
	return json_object_get(s->wire->servers[vendor].files, path);
}

struct ledger *wire_ledger_of(struct client *cl, int vendor)
{
	return &cl->sim->wire->ledgers[cl->laptop - cl->sim->laptops][vendor];
}

const char *call_header_of(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 2;
	return "";
}

void answer_free(struct answer *a)
{
	str_free(&a->head);
	str_free(&a->body);
	*a = (struct answer){0};
}

struct wired *wire_of(struct sim *s, const struct machine *m)
{
	struct wire *w = s->wire;
	size_t number = (size_t)(m - s->machines);

	if (number >= w->machine_count) {
		size_t count = MAX(2 * w->machine_count, number + 8);
		w->machines = xrealloc(w->machines, count * sizeof(*w->machines));
		memset(w->machines + w->machine_count, 0,
		       (count - w->machine_count) * sizeof(*w->machines));
		w->machine_count = count;
	}
	return &w->machines[number];
}

struct machine *wire_find(struct sim *s, int vendor, const char *id)
{
	for (size_t i = 0; i < s->machine_count; i++)
		if (s->machines[i].vendor == vendor && !strcmp(s->machines[i].id, id))
			return &s->machines[i];
	return NULL;
}

void wire_serve(struct sim *s, int vendor, int client, const struct call *call, struct answer *a)
{
	struct server *v = &s->wire->servers[vendor];

	v->asked_by = client;
	(s->plan->vendors[vendor].wire == WIRE_RUNPOD ? runpod_serve : modal_serve)(s, v, call, a);
}

/* ---- beginning and end of a schedule, and of a client's life ---- */

static struct section *conf_of(const struct vendor_plan *v)
{
	struct section *conf = section_new(v->wire == WIRE_RUNPOD ? provider_runpod.options
								  : provider_modal.options,
					   "burst.cfg:1");

	if (v->wire == WIRE_MODAL) {
		section_set_text(conf, "token_id", "ak-test1", "sim");
		section_set_text(conf, "token_secret", "as-test2", "sim");
		return conf;
	}
	section_set_text(conf, "api_key", "rpa_key123", "sim");
	section_set_text(conf, "cloud", v->community ? "ANY" : "SECURE", "sim");
	if (v->apart) {
		section_set_text(conf, "s3_access_key", "user_1", "sim");
		section_set_text(conf, "s3_secret_key", "rps_1", "sim");
		section_set_text(conf, "s3_url", "https://s3.example.org", "sim");
	}
	return conf;
}

void wire_open(struct sim *s)
{
	struct wire *w = NULL;

	for (int i = 0; i < VENDORS_MAX; i++) {
		if (!wire_is(s, i))
			continue;
		if (!w)
			s->wire = w = xcalloc(1, sizeof(*w));
		w->conf[i] = conf_of(&s->plan->vendors[i]);
		w->servers[i] = (struct server){.vendor = i,
						.images = json_object(),
						.secrets = json_object(),
						.files = json_object(),
						.blocks = json_object()};
		w->servers[i].volumes = s->plan->vendors[i].has_volume;
		w->tally[s->plan->vendors[i].wire].runs = 1;
	}
	if (!w)
		return;
	line_open(s);
}

void wire_check_volumes(struct sim *s)
{
	for (int i = 0; i < VENDORS_MAX; i++)
		if (s->plan->vendors[i].wire == WIRE_RUNPOD)
			runpod_check_twin(s, &s->wire->servers[i]);
}

static void wire_request_free(struct asked *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	for (size_t i = 0; i < a->env_count; i++) {
		free(a->env[i].name);
		free(a->env[i].value);
	}
	loop_untimer(a->timer);
	free(a->path);
	core_ids_free(a->ids);
	str_free(&a->got);
	free(a);
}

static void bury(struct wire_life *l)
{
	struct client *was = line_enter(l->cl);

	caller_free(l->caller);
	line_leave(was);
	while (l->asked)
		wire_request_free(l->asked);
	for (int i = 0; i < VENDORS_MAX; i++)
		if (l->line.handles[i])
			wire_ops(l->cl->sim, i)->close(l->line.handles[i]);
	for (size_t i = 0; i < l->log_count; i++)
		free(l->logs[i].lines);
	free(l->logs);
	free(l);
}

struct client *wire_enter(struct wire_life *l)
{
	l->inside++;
	return line_enter(l->cl);
}

void wire_leave(struct wire_life *l, struct client *was)
{
	line_leave(was);
	if (!--l->inside && l->line.loop.cut)
		bury(l);
}

/* It may die while caller.c works: that work is finished, but has no effect. */
void wire_end_life(struct client *cl)
{
	struct wire_life *l = cl->sim->wire ? wire_life_of(cl) : NULL;

	if (!l)
		return;
	cl->sim->wire->lives[cl->number] = NULL;
	l->line.loop.cut = true;
	if (!l->inside)
		bury(l);
}

void wire_free(struct sim *s)
{
	struct wire *w = s->wire;

	if (!w)
		return;
	for (int i = 0; i < CLIENTS_ALL; i++)
		if (s->clients[i].sim)
			wire_end_life(&s->clients[i]);
	line_close(s);
	for (size_t i = 0; i < w->machine_count; i++) {
		json_decref(w->machines[i].env);
		json_decref(w->machines[i].tags);
		free(w->machines[i].text);
	}
	for (int i = 0; i < VENDORS_MAX; i++) {
		json_decref(w->servers[i].images);
		json_decref(w->servers[i].secrets);
		json_decref(w->servers[i].files);
		json_decref(w->servers[i].blocks);
		section_free(w->conf[i]);
	}
	free(w->machines);
	free(w);
	s->wire = NULL;
}

void wire_begin_life(struct client *cl)
{
	struct wire *w = cl->sim->wire;
	struct err err = {0};

	if (!w)
		return;
	struct wire_life *l = w->lives[cl->number] = xcalloc(1, sizeof(*l));
	l->cl = l->line.loop.cl = cl;
	l->caller = caller_new(&l->line.loop, &l->line);
	for (int i = 0; i < VENDORS_MAX; i++) {
		cl->heard_off_ms[i] = 0;
		if (wire_is(cl->sim, i) &&
		    wire_ops(cl->sim, i)->open(&l->line.handles[i], w->conf[i], "/", &err) < 0)
			broke(cl->sim, "the provider cannot be opened: %s", err.msg);
	}
}

/* A reply is back, or a timer is over. */
void wire_hears(struct client *cl, const struct happening *h)
{
	struct wire_life *l = wire_life_of(cl);
	struct client *was = wire_enter(l);

	if (h->what == W_WIRE_REPLY)
		line_hears(cl->sim, h);
	else
		line_fires(h);
	wire_leave(l, was);
}

struct asked *wire_request_new(struct client *cl, int provider, int pod)
{
	struct wire_life *l = wire_life_of(cl);
	struct asked *a = xcalloc(1, sizeof(*a));

	*a = (struct asked){.cl = cl,
			    .life = l,
			    .provider = provider,
			    .pod = pod,
			    .requested_at = boot_now(cl),
			    .next = l->asked,
			    .link = &l->asked};
	if (a->next)
		a->next->link = &a->next;
	return l->asked = a;
}

static void over(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;

	if (!a->life->line.loop.cut)
		a->done(a, result, err);
	wire_request_free(a);
}

struct caller_op *wire_begin(struct asked *a, enum op_kind kind,
			     void (*done)(struct asked *a, struct op_result *result,
					  const struct err *err))
{
	struct wire_life *l = wire_life_of(a->cl);
	struct engine_provider vendor = {rules_ops(a->cl->sim, a->provider),
					 l->line.handles[a->provider], a->cl->laptop->facts};
	struct client *was = wire_enter(l);

	a->done = done;
	struct caller_op *op = caller_begin(l->caller, &vendor, kind, &a->want, over, a);
	wire_leave(l, was);
	return op;
}

void wire_cancel(struct asked *a, struct caller_op *op)
{
	struct wire_life *l = a->life;
	struct client *was = wire_enter(l);

	caller_cancel(op);
	wire_request_free(a);
	wire_leave(l, was);
}

int wire_check_clock(struct client *cl, int provider, struct err *err)
{
	struct wire_life *l = wire_life_of(cl);
	struct client *was = wire_enter(l);
	int rc = caller_check_clock(l->caller, rules_ops(cl->sim, provider), err);

	wire_leave(l, was);
	return rc;
}

/* ---- waiting for a GPU, at Modal ---- */

void wire_freed(struct sim *s, int vendor, int offer)
{
	int runs = 0;

	if (s->plan->vendors[vendor].full[offer])
		return;
	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		runs += m->vendor == vendor && m->offer == offer && !m->is_over && !m->queued;
	}
	for (size_t i = 0; i < s->machine_count && runs < s->plan->vendors[vendor].capacity[offer];
	     i++) {
		struct machine *m = &s->machines[i];
		if (m->vendor != vendor || m->offer != offer || m->is_over || !m->queued)
			continue;
		m->queued = m->never_runs = false;
		/* its wait is metered now, and the client had reckoned with it */
		if (m->created < s->clients[m->client].life_began)
			s->clients[m->client].metered += meter(s, m);
		m->runs_at = s->now + s->plan->vendors[vendor].boot_ms;
		later(s, s->plan->vendors[vendor].boot_ms, W_CONTAINER)->machine = (int)i;
		runs++;
	}
}
