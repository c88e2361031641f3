/* podlink.c - makes, watches and ends the connection to each agent. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/mem.h"
#include "impl.h"

/* ---- quiet ----
 * Decides when a connected pod has been silent for too long. */

enum {
	ANSWER_MOST_S = 180, /* also while it syncs a large file on a slow volume */
	ANSWER_LEAST_S = 20,
	MARGIN_MOST_S = 60, /* for the way here, and for a worker that is slow to die */
	MARGIN_LEAST_S = 5,
	LOADING_S = 300,       /* without any message */
	LOADING_MOST_S = 1800, /* with messages */
	INSTALLING_S = 120,    /* the start script may install packages first */
	FRUITLESS = 10,        /* this many times the limit while lines arrive */
};

/* Reports of the agent itself, or of the pod: not of its work. */
static bool is_of_agent(const char *what)
{
	static const char *const words[] = {"",      "lease", "usage", "switch",
					    "error", "mode",  "hello"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(what, words[i]))
			return true;
	return false;
}

/* Its hello came: counts from here on. What it was sent before stays known. */
static void quiet_hello(struct quiet *q)
{
	*q = (struct quiet){.est_ms = q->est_ms};
}

/* At its hello it held a batch already. Of several, the estimates add up. */
static void quiet_found(struct quiet *q, int64_t est_ms)
{
	q->est_ms += est_ms;
}

void quiet_asked(struct quiet *q)
{
	q->answer_due = true;
}

void quiet_event(struct quiet *q, const char *what, bool fruitful)
{
	q->answer_due = false;
	q->unanswered_s = 0;
	if (!is_of_agent(what))
		q->unheard_s = 0;
	if (fruitful)
		q->fruitless_s = 0;
}

void quiet_sent(struct quiet *q, int64_t est_ms, bool alone)
{
	q->est_ms = alone ? est_ms : MAX(q->est_ms, est_ms);
	if (alone)
		q->unheard_s = q->fruitless_s = 0;
}

static int bounded(int64_t value, int least, int most)
{
	return (int)MIN(MAX(value, (int64_t)least), (int64_t)most);
}

/* Seconds without a line, without progress, and in all; 0: no limit. */
struct limits {
	int unheard, fruitless, all;
};

/* How long the pod's present task may take in each of these ways. Its agent keeps most of these
 * limits itself; a margin on top lets the agent report first. */
static struct limits limits_of(const struct quiet *q, const struct quiet_now *now)
{
	int margin = bounded(now->lease_ms / 4000, MARGIN_LEAST_S, MARGIN_MOST_S);
	int hang = bounded(MAX(now->hang_ms, 10 * q->est_ms) / 1000 + margin, 1,
			   INT32_MAX / (2 * FRUITLESS));

	switch (now->task) {
	case QUIET_SETUP: return (struct limits){.all = QUIET_SETUP_S + INSTALLING_S + margin};
	case QUIET_INSTALL: return (struct limits){.all = QUIET_INSTALL_S + INSTALLING_S + margin};
	case QUIET_START:
		return (struct limits){.unheard = LOADING_S + margin,
				       .all = LOADING_MOST_S + INSTALLING_S + margin};
	case QUIET_BATCH:
		return (struct limits){.unheard =
					       now->loading ? MAX(hang, LOADING_S + margin) : hang,
				       .fruitless = FRUITLESS * hang + LOADING_MOST_S};
	case QUIET_NONE: break;
	}
	return (struct limits){0};
}

static bool is_over(int s, int limit, const char *what, char *why, size_t room)
{
	char time[24];

	if (!limit || s <= limit)
		return false;
	format_text(why, room, "%s for %s", what,
		    duration_show(time, sizeof(time), (int64_t)s * 1000));
	return true;
}

bool quiet_tick(struct quiet *q, const struct quiet_now *now, char *why, size_t room)
{
	if (now->task != q->task) {
		q->task = now->task;
		q->task_s = q->unheard_s = q->fruitless_s = 0;
	}
	struct limits most = limits_of(q, now);
	q->unanswered_s += q->answer_due;
	q->unheard_s++;
	q->fruitless_s++;
	q->task_s++;
	return !is_over(q->unanswered_s,
			bounded(now->lease_ms / 3000, ANSWER_LEAST_S, ANSWER_MOST_S),
			"its agent has not answered", why, room) &&
	       !is_over(q->unheard_s, most.unheard, "no sign of its work", why, room) &&
	       !is_over(q->fruitless_s, most.fruitless, "its work has not advanced", why, room) &&
	       !is_over(q->task_s, most.all, "its preparation has not finished", why, room);
}

/* ---- podlink ---- */

enum {
	LINK_DEADLINE_MS = 60 * 1000,
	POD_CLOCK_OFF_MS = 60 * 1000,
	FILE_SILENT_MS = 60 * 1000, /* a quarter of the lease if that is shorter */
	FINISH_DEADLINE_MS = 20 * 1000,
};

#define CLOCK_MOST_S INT64_C(1000000000000)

/* ---- the connection ---- */

static void drop_link(struct engine *e, int pod)
{
	struct podlink *c = &e->pods[pod].conn;

	prepare_drop(e, pod);
	bring_drop(e, pod);
	struct fetcher *fetcher = TAKE(c->fetcher); /* first, so that this is not called again */
	fetcher_close(fetcher);
	c->link = NULL;
	c->state = PODLINK_NONE;
	json_decref(TAKE(c->running));
}

static void stop_link(struct engine *e, int pod)
{
	struct link *link = e->pods[pod].conn.link;

	drop_link(e, pod);
	link_close(link);
}

static void pod_down(struct engine *e, int pod, const struct err *err)
{
	bool was_up = e->pods[pod].conn.state == PODLINK_UP;

	stop_link(e, pod);
	post_pod(e, was_up ? EV_LOST : EV_CONNECT_FAILED, pod, err);
}

/* Returns true if the pod reported what no agent of ours would, and the connection is gone. */
static bool drop_distrusted(struct engine *e, int pod)
{
	struct err why;

	if (!pod_distrusted(e, pod, &why))
		return false;
	pod_down(e, pod, &why);
	return true;
}

static void distrust(struct engine *e, int pod, const char *what)
{
	pod_distrust(e, pod, what);
	drop_distrusted(e, pod);
}

static void report_running(struct engine *e, int pod)
{
	const struct podlink *c = &e->pods[pod].conn;

	for (size_t i = 0; e->work.needs && i < json_array_size(c->running); i++) {
		const char *id = json_string_value(json_array_get(c->running, i));
		int64_t segment = id ? segment_by_id(e, id) : -1;
		struct event ev = {.type = EV_RUNNING,
				   .pod = pod,
				   .segment = (uint32_t)segment,
				   .t = c->running_t};
		if (segment < 0)
			continue;
		double est_s = MIN(MAX(e->work.segments[segment].est_seconds, 0), 1e6);
		quiet_found(&e->pods[pod].quiet, (int64_t)(est_s * 1000));
		post(e, &ev, NULL);
	}
}

static void greet_when_caught_up(struct engine *e, int pod)
{
	struct podlink *c = &e->pods[pod].conn;

	if (c->state != PODLINK_CATCHING_UP || e->pods[pod].reports.last_event < c->caught_up_at)
		return;
	report_running(e, pod);
	post(e, &c->greeting, NULL);
	c->state = PODLINK_UP;
}

int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms)
{
	int64_t began_s = jsonx_bounded(hello, "began_s", 0, CLOCK_MOST_S);

	return began_s ? began_s * 1000 + jsonx_bounded(hello, "t", 0, CLOCK_MOST_S * 1000) -
				 wall_ms
		       : 0;
}

/* The pod compares its hard end, an epoch, with its own clock. */
static void compare_clocks(struct engine *e, int pod, const json_t *hello)
{
	int64_t off_ms = podlink_clock_off(hello, clock_wall_ms());
	char off[48];

	if (e->pods[pod].conn.clock_logged ||
	    (off_ms >= -POD_CLOCK_OFF_MS && off_ms <= POD_CLOCK_OFF_MS))
		return;
	e->pods[pod].conn.clock_logged = true;
	engine_log(e, LOG_WARN,
		   "pod %s: its clock is %s this machine's: if this client dies, it ends itself "
		   "that much too %s",
		   pod_called(e, pod), clock_offset_show(off, sizeof(off), off_ms),
		   off_ms < 0 ? "late" : "early");
}

static void on_stuck(void *ctx, const char *why)
{
	struct at *at = ctx;
	CLEANUP(free_text)
	char *what = xasprintf("its files cannot be fetched: %s, repeatedly", why);

	distrust(at->e, at->pod, what);
}

/* If workers run as the agent's user, they can read what the pod keeps for itself: the key of its
 * switch, if it has one. */
static void log_worker_user(struct engine *e, int pod, const json_t *hello)
{
	if (e->setup->worker_root)
		engine_log(e, LOG_NOTE,
			   "pod %s: its workers are root in the pod (pod.worker_root), and can "
			   "read the pod's own key",
			   pod_called(e, pod));
	else if (!jsonx_bool(hello, "separate", true))
		engine_log(e, LOG_INFO,
			   "pod %s: its agent cannot run workers as another user: they can read "
			   "the pod's own files",
			   pod_called(e, pod));
}

static void on_up(void *ctx, const json_t *hello, int64_t reached_ms)
{
	struct at *at = ctx;
	struct engine *e = at->e;
	struct podlink *c = &e->pods[at->pod].conn;
	const char *how = jsonx_text(hello, "switch", "bad nothing was said");
	const json_t *gpus = json_object_get(hello, "gpus");
	int64_t workers = jsonx_bounded(hello, "workers", 0, 1000);

	c->state = PODLINK_CATCHING_UP;
	quiet_hello(&e->pods[at->pod].quiet);
	compare_clocks(e, at->pod, hello);
	log_worker_user(e, at->pod, hello);
	c->zstd = jsonx_bool(hello, "zstd", false);
	known_image_seen(e, at->pod, hello);
	c->fetcher = fetcher_new(link_ssh(c->link), e->loop, e->pool, &e->fetch_share,
				 MIN((int64_t)FILE_SILENT_MS, e->setup->conf.lease_ms / 4),
				 on_stuck, at);
	checkpoint_connected(e, at->pod);
	workers_note_gpu(e, at->pod, jsonx_text(json_array_get(gpus, 0), "name", ""));
	if (workers > 0) {
		workers_found(e, at->pod, (int)workers);
		prepare_found(e, at->pod);
	}
	struct event ev = {.type = EV_CONNECTED,
			   .pod = at->pod,
			   .switch_ok = pod_switch_works(e, at->pod, how),
			   .gpus = (int)json_array_size(gpus),
			   .t = reached_ms,
			   .number = (int)workers,
			   .workers_alive = workers > 0};
	/* Events from the time without a client come first: only then is the remaining work known.
	 */
	c->greeting = ev;
	c->caught_up_at = jsonx_bounded(hello, "next", 1, INT64_MAX) - 1;
	c->running = json_incref(json_object_get(hello, "running"));
	c->running_t = jsonx_bounded(hello, "t", 0, INT64_MAX);
	greet_when_caught_up(e, at->pod);
}

static void on_line(void *ctx, const json_t *event)
{
	struct at *at = ctx;

	const char *what = jsonx_text(event, "ev", "");

	quiet_event(&at->e->pods[at->pod].quiet, what,
		    pod_event_advances(at->e, at->pod, what, event));
	pod_event_take(at->e, at->pod, event);
	if (!drop_distrusted(at->e, at->pod))
		greet_when_caught_up(at->e, at->pod);
}

static enum quiet_task task_of(const struct engine *e, int pod)
{
	const struct core_pod *c = core_pod_at(e->core, pod);
	const struct epod *p = &e->pods[pod];

	if (c->phase == POD_WORKING)
		return c->workload.batches && !e->work.needs->command
			       ? QUIET_BATCH
			       : QUIET_NONE; /* a command may be silent without limit */
	switch (p->prep.step) {
	case PREP_SETUP: return QUIET_SETUP;
	case PREP_INSTALL: return QUIET_INSTALL;
	case PREP_START:
		return p->prep.early && e->work.needs->install ? QUIET_INSTALL : QUIET_START;
	case PREP_NONE:
	case PREP_TREES: /* upsync.c */
	case PREP_DONE: break;
	}
	return QUIET_NONE;
}

void podlink_watch(struct engine *e)
{
	char why[100];

	for (int i = 0; i < e->pod_count; i++) {
		struct epod *p = &e->pods[i];
		struct quiet_now task = {.task = task_of(e, i),
					 .hang_ms = e->work.needs->hang_ms,
					 .lease_ms = e->setup->conf.lease_ms,
					 .loading = p->workers.ready + p->workers.failed <
						    e->work.needs->workers};
		if (p->conn.state >= PODLINK_CATCHING_UP &&
		    !quiet_tick(&p->quiet, &task, why, sizeof(why)))
			distrust(e, i, why);
	}
}

static void on_placed(void *ctx)
{
	struct at *at = ctx;

	prepare_early(at->e, at->pod);
}

static void on_down(void *ctx, const struct err *err)
{
	struct at *at = ctx;

	pod_down(at->e, at->pod, err);
}

static const struct link_ops link_ops = {
	.placed = on_placed, .up = on_up, .line = on_line, .down = on_down};

/* Opens a connection that must have its agent's hello within limit_ms. NULL: the provider cannot
 * name a way to this pod, and *err is set. */
static struct link *open_to(struct engine *e, int pod, int64_t limit_ms, const struct link_ops *ops,
			    struct err *err)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	const struct engine_provider *v = &e->setup->providers[p->rental.provider];
	struct call dial = {.kind = CALL_CHILD};
	bool dials = p->rental.view.reach == REACH_DIAL;

	if (dials && provider_dial(v->ops, v->handle, &p->rental.view, &dial, err) < 0)
		return NULL;
	struct link_setup setup = {
		.dial = dials ? &dial : NULL,
		.host = p->rental.view.host,
		.port = p->rental.view.port,
		.user = p->rental.view.user[0] ? p->rental.view.user : "root",
		.host_key = e->pods[pod].keys.host_public,
		.private_key = e->pods[pod].keys.client.private_pem,
		.kit = e->setup->kit,
		.from_event = e->pods[pod].reports.last_event,
		.run = e->setup->run->id,
		.limit_ms = limit_ms,
	};
	struct link *link = link_open(e->loop, e->http, &setup, ops, e->pods[pod].at);
	call_free(&dial);
	return link;
}

void podlink_connect(struct engine *e, int pod)
{
	struct link *link = NULL;
	struct err err = {0};

	stop_link(e, pod);
	if (!pooled_withdraw(e, pod))
		return;
	if (keys_load(e, pod, &err) < 0)
		err_set(&err, ERR_REFUSED, "its keys are no longer on this machine");
	else
		link = open_to(e, pod, LINK_DEADLINE_MS, &link_ops, &err);
	if (!link) {
		post_pod(e, EV_CONNECT_FAILED, pod, &err);
		return;
	}
	e->pods[pod].conn.link = link;
	e->pods[pod].conn.state = PODLINK_CONNECTING;
}

/* ---- a pod that is to end itself, as its provider does not end it ---- */

static void spare_up(void *ctx, const json_t *hello, int64_t reached_ms)
{
	struct at *at = ctx;

	(void)hello, (void)reached_ms;
	engine_log(at->e, LOG_INFO, "pod %s: its agent answers and was asked to end the pod",
		   pod_called(at->e, at->pod));
}

static void spare_down(void *ctx, const struct err *err)
{
	struct at *at = ctx;

	engine_log(at->e, LOG_DEBUG,
		   "pod %s: lost the connection kept until its release is accepted: %s",
		   pod_called(at->e, at->pod), err->msg);
	link_close(TAKE(at->e->pods[at->pod].conn.spare));
}

static const struct link_ops spare_ops = {.up = spare_up, .down = spare_down};

/* Its connection may be needed until its release is accepted. */
static void keep_spare(struct engine *e, int pod)
{
	struct podlink *c = &e->pods[pod].conn;
	struct link *link = c->link;

	if (!link)
		return;
	drop_link(e, pod);
	link_close(c->spare);
	link_hand(link, &spare_ops, e->pods[pod].at);
	c->spare = link;
}

void podlink_finish(struct engine *e, int pod, bool standing_only)
{
	struct podlink *c = &e->pods[pod].conn;
	struct err err;

	if (!c->spare && !standing_only && keys_load(e, pod, &err) == 0)
		c->spare = open_to(e, pod, FINISH_DEADLINE_MS, &spare_ops, &err);
	if (!c->spare)
		return;
	CLEANUP(json_decref)
	json_t *line = json_pack("{s:s,s:s}", "op", "end", "reason", "its release is refused");
	link_send(c->spare, line);
}

void podlink_close(struct engine *e, int pod)
{
	enum pod_phase phase = core_pod_at(e->core, pod)->phase;

	if (phase == POD_RELEASING && !e->client.over) {
		keep_spare(e, pod);
		return;
	}
	stop_link(e, pod);
	link_close(TAKE(e->pods[pod].conn.spare));
	if (phase == POD_GONE)
		keys_drop(e, pod);
}
