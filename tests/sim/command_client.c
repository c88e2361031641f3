/* command_client.c - the outputs and checkpoints of commands, as engine/outfiles.c and
 * engine/checkpoint.c deal with them, and what must hold of them. */
#include <stdlib.h>

#include "client.h"
#include "command.h"

struct out { /* one output of one segment */
	enum { OUT_NONE, OUT_OPEN, OUT_HERE, OUT_LOST } state;
	int pod;
	bool flies;
	unsigned turn;
};

struct safe { /* the newest save that the next attempt may have */
	int steps, machine, provider;
	bool here, on_volume;
};

struct coming {                  /* a newer one, complete on its pod */
	int steps, pod, machine; /* steps 0: there is none */
	int64_t t;
	bool flies;
};

struct commands {
	struct out *outs;
	struct safe *safe;
	struct coming *coming;
	int *wanted;      /* by segment: the pod of ACT_FETCH, plus 1 */
	int *placed_from; /* by segment: the machine whose result is here, plus 1 */
	unsigned turns;
};

static struct out *out_of(const struct client *cl, uint32_t segment, int step)
{
	return &cl->commands->outs[segment * STEPS_MAX + (uint32_t)step];
}

void command_new(struct client *cl)
{
	size_t n = cl->job->count;
	struct commands *k = xcalloc(1, sizeof(*k));

	k->outs = xcalloc(n * STEPS_MAX, sizeof(*k->outs));
	k->safe = xcalloc(n, sizeof(*k->safe));
	k->coming = xcalloc(n, sizeof(*k->coming));
	k->wanted = xcalloc(n, sizeof(*k->wanted));
	k->placed_from = xcalloc(n, sizeof(*k->placed_from));
	cl->commands = k;
}

void command_free(struct client *cl)
{
	struct commands *k = cl->commands;

	if (!k)
		return;
	free(k->outs);
	free(k->safe);
	free(k->coming);
	free(k->wanted);
	free(k->placed_from);
	free(k);
}

void command_life(struct client *cl)
{
	struct commands *k = cl->commands;
	size_t n = cl->job->count;

	memset(k->coming, 0, n * sizeof(*k->coming));
	memset(k->wanted, 0, n * sizeof(*k->wanted));
	for (size_t i = 0; i < n * STEPS_MAX; i++)
		if (k->outs[i].state != OUT_HERE)
			k->outs[i] = (struct out){.turn = k->turns};
		else
			k->outs[i].pod = -1;
}

/* ---- outputs ---- */

static int files_open(const struct client *cl, int pod)
{
	int n = 0;

	for (size_t i = 0; i < cl->job->count * STEPS_MAX; i++)
		n += cl->commands->outs[i].state == OUT_OPEN && cl->commands->outs[i].pod == pod;
	return n;
}

static int saves_coming(const struct client *cl, int pod)
{
	int n = 0;

	for (size_t i = 0; i < cl->job->count; i++)
		n += cl->commands->coming[i].steps && cl->commands->coming[i].pod == pod;
	return n;
}

/* When that begins or ends to be none. */
static void tell_files(struct client *cl, int pod)
{
	int n = files_open(cl, pod);
	struct event ev = {.type = EV_FILES, .pod = pod, .number = n};

	if ((n > 0) == (core_pod_at(cl->core, pod)->workload.files > 0))
		return;
	if (plant(PLANT_FILES_UNHEARD) && n)
		return;
	client_told(cl, &ev, NULL);
}

/* In the middle of a step: once it is over. */
static void tell_files_soon(struct client *cl, int pod)
{
	client_later(cl, 0, W_FILES)->pod = pod;
}

static void fly(struct client *cl, uint32_t segment, int step)
{
	struct out *o = out_of(cl, segment, step);
	const struct core_pod *p = core_pod_at(cl->core, o->pod);
	const struct machine *m = client_machine_of(cl, o->pod);
	bool from_volume = pod_files_on_volume(p);

	if (o->state != OUT_OPEN || o->flies || !m || (!from_volume && !m->connected))
		return;
	const struct fault *slow = strikes(cl->sim, F_FETCH_SLOW);
	int64_t ms = (from_volume ? cl->sim->plan->vendors[m->vendor].latency_ms
				  : cl->sim->plan->rtt_ms) +
		     cl->job->file_ms + (slow ? slow->ms % 60000 : 0);
	o->flies = true;
	o->turn = ++cl->commands->turns;
	struct happening *h = client_later(cl, ms, W_OUTPUT);
	h->pod = o->pod;
	h->segment = segment;
	h->x = step;
	h->y = from_volume;
	h->batch = o->turn;
	h->conn = m->conn;
	h->machine = (int)(m - cl->sim->machines);
}

/* ACT_FETCH is answered once no output of the segment is on its way. */
static void announce(struct client *cl, uint32_t segment)
{
	bool lost = false;

	if (!cl->commands->wanted[segment])
		return;
	for (int i = 0; i < cl->job->steps; i++) {
		if (out_of(cl, segment, i)->state == OUT_OPEN)
			return;
		lost = lost || out_of(cl, segment, i)->state == OUT_LOST;
	}
	int pod = cl->commands->wanted[segment] - 1;
	const struct machine *m = client_machine_of(cl, pod);
	cl->commands->wanted[segment] = 0;
	if (!m)
		return;
	struct happening *h = client_later(cl, 0, W_FETCHED);
	h->pod = pod;
	h->segment = segment;
	h->kind = lost ? ERR_JOB : ERR_NONE;
	h->y = true;
	h->machine = (int)(m - cl->sim->machines);
}

static bool is_stale(const struct client *cl, int pod, uint32_t segment)
{
	enum core_seg_state state = core_seg_state(cl->core, segment);
	int holder = core_seg_holder(cl->core, segment);

	return !seg_is_unrendered(state) || (holder >= 0 && holder != pod);
}

static void take_output(struct client *cl, int pod, uint32_t segment, int step)
{
	struct out *o = out_of(cl, segment, step);
	int before = o->state == OUT_OPEN ? o->pod : -1;

	if (is_stale(cl, pod, segment) || (o->state != OUT_NONE && o->pod == pod) ||
	    (plant(PLANT_OUTPUT_DROPPED) && !step))
		return;
	if (o->state == OUT_HERE && o->pod < 0) { /* the file of an earlier client */
		o->pod = pod;
		return;
	}
	*o = (struct out){.state = OUT_OPEN, .pod = pod, .turn = ++cl->commands->turns};
	fly(cl, segment, step);
	int life = cl->life;
	tell_files(cl, pod);
	if (before >= 0 && cl->up && cl->life == life)
		tell_files(cl, before);
}

static void output_came(struct client *cl, const struct happening *h)
{
	struct out *o = out_of(cl, h->segment, (int)h->x);

	if (o->turn != h->batch || o->state != OUT_OPEN)
		return;
	o->flies = false;
	if (!h->y && h->conn != cl->sim->machines[h->machine].conn) {
		fly(cl, h->segment, (int)h->x); /* from its volume, or when it is back */
		return;
	}
	o->state = OUT_HERE;
	announce(cl, h->segment);
	tell_files(cl, o->pod);
}

void command_fetch(struct client *cl, int pod, uint32_t segment)
{
	cl->commands->wanted[segment] = pod + 1;
	for (int i = 0; i < cl->job->steps; i++)
		fly(cl, segment, i);
	announce(cl, segment);
}

void command_files(struct client *cl, int pod, bool lost)
{
	for (uint32_t i = 0; i < cl->job->count * STEPS_MAX; i++) {
		struct out *o = &cl->commands->outs[i];
		if (o->state != OUT_OPEN || o->pod != pod)
			continue;
		if (lost)
			o->state = OUT_LOST;
		else
			fly(cl, i / STEPS_MAX, (int)(i % STEPS_MAX));
		announce(cl, i / STEPS_MAX);
	}
	tell_files_soon(cl, pod);
}

/* ---- checkpoints ---- */

static void tell_save(struct client *cl, uint32_t segment, const struct coming *s, bool ok)
{
	struct event ev = {.type = EV_CHECKPOINT,
			   .pod = s->pod,
			   .segment = segment,
			   .t = s->t,
			   .ok = ok,
			   .number = plant(PLANT_SAVES_UNHEARD) ? 0 : saves_coming(cl, s->pod)};

	client_told(cl, &ev, NULL);
}

static void save_flies(struct client *cl, uint32_t segment)
{
	struct coming *s = &cl->commands->coming[segment];
	const struct machine *m = s->steps ? client_machine_of(cl, s->pod) : NULL;

	if (!m || s->flies || !m->connected)
		return;
	s->flies = true;
	struct happening *h =
		client_later(cl, cl->sim->plan->rtt_ms + cl->job->file_ms / 4, W_SNAPSHOT);
	h->segment = segment;
	h->x = s->steps;
	h->y = s->t;
	h->conn = m->conn;
	h->machine = s->machine;
	h->pod = s->pod;
}

static void becomes_safe(struct client *cl, uint32_t segment, const struct coming *s, bool here)
{
	struct machine *m = &cl->sim->machines[s->machine];

	cl->commands->safe[segment] = (struct safe){.steps = s->steps,
						    .machine = s->machine,
						    .provider = m->vendor,
						    .here = here,
						    .on_volume = !here};
	for (size_t i = m->work_count; i-- > 0;)
		if (m->works[i].segments[0] == segment && m->works[i].begun) {
			m->works[i].safe_from = MAX(m->works[i].safe_from, m->created + s->t);
			break;
		}
}

static void take_save(struct client *cl, int machine, int pod, const struct entry *e)
{
	const struct safe *safe = &cl->commands->safe[e->segment];
	struct coming s = {
		.steps = e->number, .pod = pod, .machine = machine, .t = e->t - e->elapsed_ms};

	if (is_stale(cl, pod, e->segment) || (safe->steps >= e->number && safe->machine == machine))
		return;
	if (core_pod_at(cl->core, pod)->rental.volume.id[0]) {
		becomes_safe(cl, e->segment, &s, false);
		tell_save(cl, e->segment, &s, true);
		return;
	}
	s.flies = cl->commands->coming[e->segment].flies;
	cl->commands->coming[e->segment] = s;
	save_flies(cl, e->segment);
	tell_save(cl, e->segment, &s, false);
}

static void save_came(struct client *cl, const struct happening *h)
{
	struct coming *next = &cl->commands->coming[h->segment],
		      s = {.steps = (int)h->x, .pod = h->pod, .machine = h->machine, .t = h->y};
	bool newest = next->steps == s.steps && next->machine == s.machine,
	     cut = h->conn != cl->sim->machines[h->machine].conn,
	     ok = !cut && seg_is_unrendered(core_seg_state(cl->core, h->segment));

	next->flies = false;
	if (ok)
		becomes_safe(cl, h->segment, &s, true);
	if (newest && !cut)
		*next = (struct coming){0};
	save_flies(cl, h->segment);
	tell_save(cl, h->segment, &s, ok);
}

/* Its pod is kept for outputs alone then. */
static void save_is_moot(struct client *cl, uint32_t segment)
{
	struct coming s = cl->commands->coming[segment];

	cl->commands->coming[segment] = (struct coming){0};
	if (s.steps)
		tell_save(cl, segment, &s, false);
}

void command_connected(struct client *cl, int pod)
{
	for (uint32_t i = 0; i < cl->job->count; i++)
		if (cl->commands->coming[i].pod == pod)
			save_flies(cl, i);
}

void command_placed(struct client *cl, int pod, uint32_t segment)
{
	cl->commands->safe[segment] = (struct safe){0};
	cl->commands->placed_from[segment] =
		(int)(client_machine_of(cl, pod) - cl->sim->machines) + 1;
	for (int i = 0; cl->job->stream && !cl->ever_crashed && i < cl->job->steps; i++)
		if (out_of(cl, segment, i)->state != OUT_HERE)
			broke(cl->sim, "segment %u is done, and its output %d is not here", segment,
			      i);
}

int64_t command_given(struct client *cl, int pod, uint32_t segment, struct happening *to)
{
	struct safe *s = &cl->commands->safe[segment];
	const struct core_pod *p = core_pod_at(cl->core, pod);
	const struct machine *m = client_machine_of(cl, pod);
	const struct vendor_plan *v = &cl->sim->plan->vendors[s->provider];
	bool own = m - cl->sim->machines == s->machine,
	     shared = s->on_volume && p->rental.provider == s->provider && p->rental.volume.id[0];
	int64_t ms = own || shared ? 0 : cl->job->file_ms + (s->here ? 0 : 2 * v->latency_ms);

	if (!s->steps || !(own || shared || s->here || v->apart))
		return 0;
	s->here = s->here || ms > 0;
	to->from = (struct given){.steps = plant(PLANT_SAVE_UNGIVEN) ? 0 : s->steps,
				  .machine = s->machine,
				  .least = s->steps};
	return ms;
}

/* ---- what the client hears ---- */

bool command_entry(struct client *cl, int machine, int pod, const struct entry *e)
{
	int life = cl->life;

	if (!cl->job->steps)
		return false;
	if (e->type == EV_FILES)
		take_output(cl, pod, e->segment, e->number);
	else if (e->type == EV_CHECKPOINT)
		take_save(cl, machine, pod, e);
	else if (e->type == EV_RENDERED && !is_stale(cl, pod, e->segment))
		save_is_moot(cl, e->segment);
	return e->type == EV_FILES || e->type == EV_CHECKPOINT || !cl->up || cl->life != life;
}

void command_hears(struct client *cl, const struct happening *h)
{
	if (h->what == W_FILES)
		tell_files(cl, h->pod);
	else if (h->what == W_OUTPUT)
		output_came(cl, h);
	else
		save_came(cl, h);
}

/* ---- what must hold ---- */

/* What a pod has finished comes here before its release, unless there is a reason not to wait. */
void command_check_release(struct client *cl, int pod, const struct machine *m)
{
	const struct core *c = cl->core;
	const struct core_pod *p = core_pod_at(c, pod);
	int64_t until = core_is_stopping(c) ? c->grace_until
			: p->fetch_until    ? p->fetch_until
					    : INT64_MAX;
	int64_t end = p->rental.hard_end_ms - budget_pod_margin(p);
	bool halts = false;

	if (!cl->job->steps || cl->reaping || !m->connected || m->release_requested >= 0 ||
	    c->signals > 1 || p->fault == ERR_UNTRUSTED || p->leave == LEAVE_ENDED ||
	    c->now >= MIN(until, end) || pod_files_on_volume(p) || p->inspect_until)
		return;
	for (size_t i = 0; i < m->work_count; i++)
		halts = halts || (m->works[i].halted && !m->works[i].over);
	if (files_open(cl, pod) || saves_coming(cl, pod))
		broke(cl->sim,
		      "pod %s is released, and %d outputs and %d saves of it are on their way",
		      m->id, files_open(cl, pod), saves_coming(cl, pod));
	else if (halts)
		broke(cl->sim, "pod %s is released before its commands have ended", m->id);
}

/* Its result is not the one that is here. */
static bool is_lost(const struct client *cl, const struct machine *m, size_t work)
{
	uint32_t segment = m->works[work].segments[0];

	for (size_t k = work + 1; k < m->work_count; k++)
		if (m->works[k].took_ms && m->works[k].segments[0] == segment)
			return true;
	return cl->commands->placed_from[segment] != m - cl->sim->machines + 1;
}

/* What was saved, or is here, is not wasted. */
void command_check_end(struct client *cl)
{
	/* a discarded result may be taken again from a volume */
	bool exact = cl->job->steps && !cl->ever_crashed && !cl->spoilt;

	for (int i = 0; exact && i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		const struct machine *m = p->rental.id[0] ? client_machine_of(cl, i) : NULL;
		int64_t lost = m ? m->cut_ms + 2 * cl->sim->plan->rtt_ms + 1500 : 0;
		/* pods that ended while the machine slept count until it woke */
		if (!m || !m->is_over || p->rental.reused || cl->laptop->woke_at >= 0)
			continue;
		for (size_t k = 0; k < m->work_count; k++)
			lost += is_lost(cl, m, k) ? m->works[k].took_ms : 0;
		if (p->workload.wasted_ms > lost)
			broke(cl->sim, "pod %s books %lld ms as wasted, and %lld were lost", m->id,
			      (long long)p->workload.wasted_ms, (long long)lost);
	}
}
