/* command_pod.c - commands on a pod, step by step, as an agent runs, saves and halts them. */
#include "command.h"

static struct client *client_of(struct sim *s, const struct machine *m)
{
	return &s->clients[m->client];
}

static int number_of(const struct sim *s, const struct machine *m)
{
	return (int)(m - s->machines);
}

static struct folder *folder_of(struct machine *m, const struct work *k)
{
	return &m->folders[k->segments[0]];
}

static struct happening *on_worker(struct sim *s, struct machine *m, int worker, int64_t delay,
				   enum what what)
{
	struct happening *h = later(s, delay, what);

	h->machine = number_of(s, m);
	h->conn = m->epoch;
	h->x = worker;
	h->y = m->worker_work[worker];
	return h;
}

/* The work that this was about; NULL: another one has its worker by now. */
static struct work *work_of(struct machine *m, const struct happening *h)
{
	return h->conn == m->epoch && !m->is_over && m->worker_work[h->x] == h->y ? &m->works[h->y]
										  : NULL;
}

static void next_step(struct sim *s, struct machine *m, int worker)
{
	const struct work *k = &m->works[m->worker_work[worker]];
	const struct client *cl = client_of(s, m);
	double ms = client_ms_of(cl, m->vendor, m->offer, cl->job->segments[k->segments[0]].weight);

	on_worker(s, m, worker, 1 + (int64_t)(ms / cl->job->steps), W_WORK);
}

/* The folder of an earlier attempt here is kept, unless another snapshot is given. */
void command_begins(struct sim *s, struct machine *m, int worker)
{
	struct work *k = &m->works[m->worker_work[worker]];
	const struct job_plan *job = client_of(s, m)->job;
	struct folder *f = folder_of(m, k);
	int seed = k->from.machine * 256 + k->from.steps;

	if (k->from.steps && (!f->steps || (k->from.machine != number_of(s, m) && f->seed != seed)))
		*f = (struct folder){.steps = k->from.steps, .saved = k->from.steps, .seed = seed};
	if (f->steps < k->from.least)
		broke(s, "segment %u begins at step %d, and %d are safe", k->segments[0], f->steps,
		      k->from.least);
	k->told = f->steps;
	k->began = k->safe_from = s->now;
	next_step(s, m, worker);
	if (job->save_every_ms)
		on_worker(s, m, worker, job->save_every_ms, W_SAVE);
}

static struct entry *log_of(struct sim *s, struct machine *m, const struct work *k,
			    enum event_type type)
{
	struct entry *e = pod_note(s, m, type);

	e->life = k->life;
	e->batch = k->batch;
	e->segment = k->segments[0];
	return e;
}

static void tell_outputs(struct sim *s, struct machine *m, struct work *k)
{
	while (k->told < folder_of(m, k)->steps)
		log_of(s, m, k, EV_FILES)->number = k->told++;
}

bool command_step(struct sim *s, struct machine *m, const struct happening *h)
{
	struct work *k = work_of(m, h);
	const struct job_plan *job = client_of(s, m)->job;

	if (!k || k->halted)
		return false;
	struct folder *f = folder_of(m, k);
	f->steps = MIN(f->steps + 1, job->steps);
	if (job->stream || f->steps == job->steps)
		tell_outputs(s, m, k);
	if (f->steps < job->steps) {
		next_step(s, m, (int)h->x);
		return false;
	}
	*f = (struct folder){0};
	return true;
}

static void tell_save(struct sim *s, struct machine *m, struct work *k, int steps)
{
	struct entry *e = log_of(s, m, k, EV_CHECKPOINT);

	e->number = steps;
	e->elapsed_ms = client_of(s, m)->job->save_ms;
	folder_of(m, k)->saved = steps;
}

/* A save begins, or, with its steps in h->segment, is complete. */
void command_save(struct sim *s, const struct happening *h)
{
	struct machine *m = &s->machines[h->machine];
	struct work *k = work_of(m, h);
	const struct job_plan *job = client_of(s, m)->job;

	if (!k || k->halted || !job->save_every_ms)
		return;
	struct folder *f = folder_of(m, k);
	if (!h->segment && f->steps > f->saved) {
		on_worker(s, m, (int)h->x, job->save_ms, W_SAVE)->segment = (uint32_t)f->steps;
		return;
	}
	if (h->segment)
		tell_save(s, m, k, (int)h->segment);
	on_worker(s, m, (int)h->x, job->save_every_ms, W_SAVE);
}

/* It gets SIGTERM, and ends within the grace; then what it has done since the last save is saved.
 */
void command_halt(struct sim *s, struct machine *m, int64_t grace_ms)
{
	const struct job_plan *job = client_of(s, m)->job;

	for (int w = 0; job->steps && w < SLOTS_MAX; w++) {
		struct work *k = m->worker_work[w] < 0 ? NULL : &m->works[m->worker_work[w]];
		if (!k || k->halted)
			continue;
		k->halted = true;
		on_worker(s, m, w, pick(s, 0, MIN(grace_ms, INT64_C(3000))) + job->save_ms,
			  W_HALTED);
	}
}

static void cut(struct sim *s, struct machine *m, const struct work *k)
{
	m->cut_ms += s->now - k->safe_from;
}

void commands_cut(struct sim *s, struct machine *m)
{
	for (int w = 0; w < SLOTS_MAX; w++)
		if (m->worker_work[w] >= 0)
			cut(s, m, &m->works[m->worker_work[w]]);
}

void command_halted(struct sim *s, const struct happening *h)
{
	struct machine *m = &s->machines[h->machine];
	struct work *k = work_of(m, h);

	if (!k)
		return;
	struct folder *f = folder_of(m, k);
	cut(s, m, k);
	if (client_of(s, m)->job->save_every_ms && f->steps > f->saved)
		tell_save(s, m, k, f->steps);
	tell_outputs(s, m, k);
	log_of(s, m, k, EV_REVOKED);
	k->over = true;
	m->worker_work[h->x] = -1;
	pod_worker_free(s, m);
}
