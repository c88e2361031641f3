/* journal.c - writes to the ledger what a run does. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "impl.h"
#include "past.h"
#include "pooled.h"
#include "store/pod_cost.h"

/* ---- pod rows ---- */

/* Rows have wall clock times, the core boot clock times; both are of this machine. */
static int64_t to_wall(int64_t boot_ms)
{
	return boot_ms ? boot_ms - clock_boot_ms() + clock_wall_ms() : 0;
}

static int64_t to_boot(int64_t wall_ms)
{
	return wall_ms ? wall_ms - clock_wall_ms() + clock_boot_ms() : 0;
}

/* As to_boot(); a past event must not lie in the future, even if the clock was set back since. */
static int64_t past_boot(int64_t wall_ms)
{
	return MIN(to_boot(wall_ms), clock_boot_ms());
}

static enum pod_row_state row_state(const struct core_pod *p)
{
	switch (p->phase) {
	case POD_RENTING: return POD_ROW_INTENT;
	case POD_AMBIGUOUS: return POD_ROW_AMBIGUOUS;
	case POD_BOOTING:
	case POD_CONNECTING:
	case POD_PREPARING:
	case POD_AWAITING_VOLUME:
	case POD_LOADING:
	case POD_WORKING: return POD_ROW_LIVE;
	case POD_RELEASING:
	case POD_CONFIRMING: return POD_ROW_RELEASING;
	case POD_GONE: return POD_ROW_GONE;
	case POD_NEVER: return POD_ROW_FAILED;
	}
	return POD_ROW_LIVE;
}

/* Fills in what a run that takes the pod over must know. */
static void put_pooled(const struct epod *own, const struct core_pod *p, struct pod_row *row)
{
	const struct pooled *q = &own->pooled;

	row->kept_ms = q->kept_ms;
	row->kept_until_ms = q->kept_until_ms;
	COPY_TEXT(row->pool, p->rental.exit == EXIT_TAKEN ? "" : q->pool);
	COPY_TEXT(row->handed_from, q->from_run);
	COPY_TEXT(row->handed_to, q->to_run);
	row->holds = q->holds;
	row->cold_ms = core_cold_ms(p);
	const struct pod_env *env = &own->env;
	if (env->tree[0])
		snprintf(row->env, sizeof(row->env), "%s %s %s", env->name, env->tree, env->python);
}

static void put_rental(const struct core_pod *p, struct pod_row *row)
{
	const struct rental *r = &p->rental;

	snprintf(row->name, sizeof(row->name), "burst-%s", r->attempt);
	COPY_TEXT(row->id, r->id);
	COPY_TEXT(row->gpu, r->view.gpu[0] ? r->view.gpu : r->offer.gpu);
	COPY_TEXT(row->gpu_offered, r->offer.gpu);
	COPY_TEXT(row->region, r->view.region[0] ? r->view.region : r->offer.region);
	row->spot = r->offer.spot;
	row->preempted = r->view.preempted;
	COPY_TEXT(row->volume_id, r->volume.id);
	COPY_TEXT(row->volume_name, r->volume.name);
	row->price_microusd_h = r->price_microusd_h;
	row->price_list_microusd_h = r->offer.price_microusd_h;
	row->hard_end_s = r->hard_end_s;
	row->run_ms = r->run_ms;
	row->start_ms = to_wall(r->start_at);
	row->queued_ms = r->place == PLACE_NEVER ? to_wall(r->released_at) : to_wall(r->queued_at);
	row->reach = r->view.reach;
	COPY_TEXT(row->host, r->view.host);
	row->port = r->view.port;
	COPY_TEXT(row->user, r->view.user);
	row->vendor_started_ms = r->vendor_started_s * 1000;
}

static void put_times(const struct core_pod *p, struct pod_row *row)
{
	row->create_ms = to_wall(p->rental.create_at);
	row->rented_ms = to_wall(p->rental.rented_at);
	row->running_ms = to_wall(p->presence.running_at);
	row->reached_ms = to_wall(p->presence.reached_at);
	row->connected_ms = to_wall(p->presence.connected_at);
	row->synced_ms = to_wall(p->presence.synced_at);
	row->ready_ms = to_wall(p->presence.ready_at);
	row->worked_ms = to_wall(p->workload.worked_at);
	row->safe_ms = to_wall(p->workload.local_at);
	row->release_ms = to_wall(p->rental.release_at);
	row->released_ms = to_wall(p->rental.released_at);
	row->gone_ms = to_wall(p->rental.gone_at);
	row->accepted_ms = to_wall(p->rental.accepted_at);
	row->outlived_ms = to_wall(p->rental.outlived_at);
	row->compute_ms = core_compute_ms(p);
	row->wasted_ms = p->workload.wasted_ms;
	row->billed_ms = core_billed_ms(p, clock_boot_ms());
	row->cost_microusd = core_counted(p, clock_boot_ms());
}

/* Fills in what the engine knows of the pod beside the core. */
static void put_engine_part(const struct epod *own, const struct core_pod *p, struct pod_row *row)
{
	if (p->rental.exit == EXIT_TAKEN)
		pooled_part_name(p->rental.attempt, own->pooled.holds, row->attempt);
	if (own->origin.account[0])
		COPY_TEXT(row->account, own->origin.account);
	if (own->workers.gpu[0])
		COPY_TEXT(row->gpu, own->workers.gpu);
	row->billed_vendor_ms = own->billing.bill.billed_ms;
	row->cost_vendor_microusd = own->billing.bill.cost_microusd;
	row->cost_beside_microusd = own->billing.bill.beside_microusd;
	row->vendor_reported = own->billing.bill.reported;
	row->vendor_asked_ms = own->billing.answered_ms;
	row->event = own->reports.last_event;
	batches_put_use(&own->use, row);
	COPY_TEXT(row->image, own->origin.image);
	COPY_TEXT(row->setup, own->origin.setup);
	row->setup_ms = own->prep.setup_ms;
	row->synced_bytes = own->prep.synced_bytes;
	pod_row_set_load(row, own->workers.load_ms);
	row->unpack_bytes = own->workers.unpack_bytes;
	put_pooled(own, p, row);
}

struct pod_row engine_pod_row(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	const struct engine_provider *v = &e->setup->providers[p->rental.provider];
	struct pod_row row = {.synced_bytes = SYNCED_UNKNOWN};

	COPY_TEXT(row.attempt, p->rental.attempt);
	COPY_TEXT(row.run, e->setup->run->id);
	COPY_TEXT(row.provider, v->ops->name);
	COPY_TEXT(row.account, v->ops->account(v->handle));
	row.state = row_state(p);
	row.volume_safe = p->presence.durable;
	put_rental(p, &row);
	row.unpriced = !row.price_microusd_h && !provider_pods_are_free(v->ops, v->handle);
	put_times(p, &row);
	if (pod < e->pod_count)
		put_engine_part(&e->pods[pod], p, &row);
	if (p->fault != ERR_NONE || p->phase == POD_NEVER)
		COPY_TEXT(row.error, p->reason);
	return row;
}

void engine_add_sums(const struct engine *e, const struct core_summary *s, struct run_row *row)
{
	row->billed_ms += s->billed_ms;
	row->compute_ms += s->compute_ms;
	row->wasted_ms += s->wasted_ms;
	row->cost_microusd += s->cost_microusd;
	row->counted_microusd += s->counted_microusd;
	row->cost_vendor_microusd += s->vendor_microusd;
	for (int i = 0; i < core_pod_count(e->core); i++) {
		struct pod_row pod = engine_pod_row(e, i);
		row->unpriced_ms += pod_row_unpriced_ms(&pod, clock_wall_ms());
	}
}

/* Whether the pod is of another account than the present key, which may have been replaced. */
static bool is_of_other_account(const struct engine *e, int provider, const struct pod_row *row)
{
	const struct engine_provider *v = &e->setup->providers[provider];

	return row->account[0] && strcmp(row->account, v->ops->account(v->handle)) != 0;
}

static int provider_of(const struct engine *e, const char *name)
{
	int found = -1;

	for (int i = 0; i < e->setup->provider_count; i++)
		if (!strcmp(e->setup->providers[i].ops->name, name))
			found = i;
	return found;
}

static void read_place(const struct engine *e, const struct pod_row *row, struct rental *r)
{
	COPY_TEXT(r->attempt, row->attempt);
	COPY_TEXT(r->id, row->id);
	COPY_TEXT(r->offer.provider, row->provider);
	COPY_TEXT(r->offer.gpu, row->gpu_offered[0] ? row->gpu_offered : row->gpu);
	COPY_TEXT(r->offer.region, row->region);
	r->offer.spot = row->spot;
	r->view.preempted = row->preempted;
	COPY_TEXT(r->volume.id, row->volume_id);
	COPY_TEXT(r->volume.name, row->volume_name);
	COPY_TEXT(r->volume.provider, row->provider);
	COPY_TEXT(r->volume.region, row->region);
	if (r->provider >= 0)
		r->volume.apart =
			provider_can_fetch(e->setup->providers[r->provider].ops,
					   e->setup->providers[r->provider].handle, &r->volume);
}

/* Reads times, price and address. has_id: the row has the pod's id. */
static void read_rental(const struct engine *e, const struct pod_row *row, bool has_id,
			struct rental *r)
{
	int64_t rented_ms = row->rented_ms ? row->rented_ms : row->create_ms;

	r->price_microusd_h = row->price_microusd_h;
	r->offer.price_microusd_h =
		row->price_list_microusd_h ? row->price_list_microusd_h : row->price_microusd_h;
	r->vendor_started_s = row->vendor_started_ms / 1000;
	r->hard_end_s = row->hard_end_s;
	r->hard_end_ms = to_boot(row->hard_end_s * 1000);
	r->run_ms = row->run_ms;
	r->first_lease_end_s = row->hard_end_s;
	r->key =
		r->provider >= 0 && is_of_other_account(e, r->provider, row) ? KEY_OTHER : KEY_OURS;
	r->accepted_at = past_boot(row->accepted_ms);
	r->outlived_at = past_boot(row->outlived_ms);
	/* if it outlives its release, it has billed until now */
	bool released = row->released_ms > 0 && !pod_row_outlives(row);
	r->released_at = released ? past_boot(row->released_ms) : 0;
	/* whatever the clock shows now, the cost in the row stands */
	int64_t least = (released ? r->released_at : clock_boot_ms()) - row->billed_ms;
	r->create_at = MIN(past_boot(row->create_ms), least);
	r->start_at = row->start_ms ? MIN(past_boot(row->start_ms), least) : 0;
	r->queued_at = past_boot(row->queued_ms);
	if (r->run_ms && !r->start_at)
		r->wait_ms = r->hard_end_ms - r->run_ms - r->create_at;
	/* to tell its agent to end it, whatever a list reports */
	r->view.reach = row->reach;
	COPY_TEXT(r->view.host, row->host);
	r->view.port = row->port;
	COPY_TEXT(r->view.user, row->user);
	r->rented_at = has_id ? past_boot(rented_ms) : clock_boot_ms();
	/* a listing reported that it runs, unless the create's reply did */
	r->listing = has_id && row->running_ms > rented_ms ? LISTING_SHOWS : LISTING_NEVER;
	r->release_at = past_boot(row->release_ms);
	r->reused = row->handed_from[0] != '\0';
	r->cold_ms = row->cold_ms;
	if (e->setup->sweeps) {
		r->listing = LISTING_SHOWS;
		r->seen_at = clock_boot_ms();
	}
}

void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *p)
{
	bool has_id = row->id[0] != '\0';

	memset(p, 0, sizeof(*p));
	p->rental.provider = provider_of(e, row->provider);
	p->phase = has_id ? POD_BOOTING : POD_AMBIGUOUS;
	read_place(e, row, &p->rental);
	p->presence.durable = row->volume_safe;
	if (row->state == POD_ROW_GONE) {
		p->phase = POD_GONE; /* only the files on its volume are needed */
		return;
	}
	read_rental(e, row, has_id, &p->rental);
	p->presence.lease = has_id && e->setup->handed_over ? LEASE_AGENT : LEASE_CLIENT;
	/* the release may not have arrived: send it again */
	p->leave = has_id && row->state == POD_ROW_RELEASING ? LEAVE_NOW : LEAVE_NOT;
	p->presence.running_at = past_boot(row->running_ms);
	p->presence.reached_at = past_boot(row->reached_ms);
	p->presence.connected_at = past_boot(row->connected_ms);
	p->presence.synced_at = past_boot(row->synced_ms);
	p->presence.ready_at = past_boot(row->ready_ms);
	p->workload.compute_ms = row->compute_ms;
	p->workload.wasted_ms = row->wasted_ms;
	COPY_TEXT(p->reason, row->error);
}

/* ---- pooled ---- */

/* Another run has had the pod since then: notes and logs it, once. EV_TAKEN follows. */
static void post_taken(struct engine *e, int pod, int64_t since_ms)
{
	struct pooled *q = &e->pods[pod].pooled;
	struct event ev = {.type = EV_TAKEN, .pod = pod, .t = past_boot(since_ms)};
	struct pod_row row = {0};
	struct run_row run = {0};
	char until[32];

	if (q->state == POOLED_TAKEN)
		return;
	q->state = POOLED_TAKEN;
	if (store_pod(e->setup->store, core_pod_at(e->core, pod)->rental.attempt, &row, NULL) == 0)
		COPY_TEXT(q->to_run, row.run);
	if (store_run(e->setup->store, row.run, &run, NULL) == 0 && !strcmp(run.type, KEEP_RUN))
		engine_log(e, LOG_NOTE,
			   "pod %s: kept for the next run until %s, and bills: `burst cancel %s` "
			   "releases it now",
			   pod_called(e, pod),
			   clock_rfc3339(until, sizeof(until), row.kept_until_ms), run.id);
	else
		engine_log(e, LOG_NOTE, "pod %s: handed to run %s", pod_called(e, pod), row.run);
	post(e, &ev, NULL);
}

/* Writes the pod's row; *result as of store_put_pod(). Returns true if another run has the pod: the
 * row is not written, and EV_TAKEN follows or has been posted. */
static bool put_unless_taken(struct engine *e, int pod, const struct pod_row *row, struct err *err,
			     int *result)
{
	struct pooled *q = &e->pods[pod].pooled;
	int64_t taken_ms;

	/* this run must not write the pod's row before the core has had EV_TAKEN */
	if (q->state == POOLED_TAKEN && core_pod_at(e->core, pod)->rental.exit != EXIT_TAKEN)
		return true;
	if (q->state != POOLED_OFFERED) {
		*result = store_put_pod(e->setup->store, row, err);
		return false;
	}
	*result = pooled_put_row(e->setup->store, row, &taken_ms, err);
	if (*result == 0 && taken_ms)
		post_taken(e, pod, taken_ms);
	return *result == 0 && taken_ms;
}

/* If the ledger cannot be written, no run can take the pod either: it counts as withdrawn. */
bool pooled_withdraw(struct engine *e, int pod)
{
	struct pooled *q = &e->pods[pod].pooled;

	if (q->state != POOLED_OFFERED)
		return q->state != POOLED_TAKEN;
	q->pool[0] = '\0';
	struct pod_row row = engine_pod_row(e, pod);
	struct err err = {0};
	int put = 0;
	if (put_unless_taken(e, pod, &row, &err, &put))
		return false;
	if (put < 0)
		engine_log(e, LOG_WARN, "pod %s: the ledger could not be written: %s",
			   pod_called(e, pod), err.msg);
	else
		q->state = POOLED_OURS;
	return true;
}

void pooled_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct pooled *q = &e->pods[pod].pooled;

	q->kept_ms = row->kept_ms;
	q->kept_until_ms = row->kept_until_ms;
	COPY_TEXT(q->pool, row->pool);
	COPY_TEXT(q->from_run, row->handed_from);
	q->holds = row->holds;
	q->state = row->pool[0] ? POOLED_OFFERED : POOLED_OURS;
}

void pooled_watch(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		const struct pooled *q = &e->pods[i].pooled;
		if (q->state != POOLED_OFFERED)
			continue;
		int64_t since_ms =
			pooled_taken_ms(e->setup->store, core_pod_at(e->core, i)->rental.attempt,
					e->setup->run->id);
		if (since_ms)
			post_taken(e, i, since_ms);
	}
}

/* Whether the core has a pod with this marker. */
static bool is_of_core(const struct engine *e, const struct pod_view *view)
{
	for (int i = 0; i < e->pod_count; i++)
		if (!strcmp(core_pod_at(e->core, i)->rental.attempt, view->marker.attempt))
			return true;
	return false;
}

/* Whether another run took this very pod. Of two pods of one create, this run still releases the
 * one that no run took. */
static bool was_taken(const struct engine *e, const struct pod_view *view)
{
	struct pod_row row;

	return store_pod(e->setup->store, view->marker.attempt, &row, NULL) == 0 &&
	       !strcmp(row.id, view->id) &&
	       pooled_taken_ms(e->setup->store, view->marker.attempt, e->setup->run->id);
}

size_t pooled_drop_taken(struct engine *e, struct pod_view *views, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		bool ours = !strcmp(views[i].marker.run, e->setup->run->id);
		if (!ours || is_of_core(e, &views[i]) || !was_taken(e, &views[i]))
			views[n++] = views[i];
	}
	return n;
}

/* ---- journal ---- */

struct journal {
	bool unwritten; /* the last write failed, and that is logged */
	int replans;    /* of this client, as the ledger has it */
	/* files in place that the ledger does not have yet, and their segments */
	struct segment_row *rows;
	uint32_t *segments;
	size_t count, row_cap, segment_cap;
};

struct journal *journal_new(void)
{
	return xcalloc(1, sizeof(struct journal));
}

void journal_free(struct journal *j)
{
	free(j->rows);
	free(j->segments);
	free(j);
}

/* Logs why the ledger could not be written, as an error only once. EV_FAULT follows: the run cannot
 * continue without a ledger. */
static void report_unwritten(struct engine *e, struct err *err)
{
	struct event ev = {.type = EV_FAULT};

	engine_log(e, e->journal->unwritten ? LOG_DEBUG : LOG_ERROR, "cannot write the ledger: %s",
		   err->msg);
	e->journal->unwritten = true;
	err->kind = ERR_LOCAL;
	post(e, &ev, err);
}

/* Logs that the ledger lacks a pod's row: once by the pod's name, and once by its id. */
static void log_unsaved(struct engine *e, int pod, const struct pod_row *row)
{
	struct saving *s = &e->pods[pod].saving;

	if (!strcmp(s->logged_name, pod_called(e, pod)))
		return;
	COPY_TEXT(s->logged_name, pod_called(e, pod));
	engine_log(e, LOG_ERROR,
		   "pod %s of %s continues without the ledger, in this client's "
		   "memory only",
		   s->logged_name, row->provider);
}

void journal_pod(struct engine *e, int pod)
{
	struct pod_row row = engine_pod_row(e, pod);
	struct err err = {0};

	int put = 0;

	if (e->setup->sweeps) /* the rows belong to other runs */
		return;
	if (put_unless_taken(e, pod, &row, &err, &put))
		return;
	e->pods[pod].saving.failed = put < 0;
	if (!e->pods[pod].saving.failed) {
		e->journal->unwritten = false;
		return;
	}
	report_unwritten(e, &err);
	if (!pod_row_over(&row))
		log_unsaved(e, pod, &row);
}

bool pooled_offer(struct engine *e, int pod, int64_t until_ms)
{
	struct pooled *q = &e->pods[pod].pooled;

	q->kept_until_ms = until_ms;
	COPY_TEXT(q->pool, e->setup->pool);
	journal_pod(e, pod);
	bool written = !e->pods[pod].saving.failed;
	if (q->state == POOLED_TAKEN)
		return written; /* found while the row was to be written */
	q->state = written ? POOLED_OFFERED : POOLED_OURS;
	if (written)
		return true;
	q->kept_until_ms = 0;
	q->pool[0] = '\0';
	return false;
}

size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out)
{
	struct pod_row *rows = xcalloc((size_t)e->pod_count + 1, sizeof(*rows));
	size_t count = 0;

	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].saving.failed)
			rows[count++] = engine_pod_row(e, i);
	*out = rows;
	return count;
}

void journal_run(struct engine *e)
{
	struct err err = {0};

	if (store_put_run(e->setup->store, e->setup->run, &err) < 0)
		engine_log(e, e->journal->unwritten ? LOG_DEBUG : LOG_ERROR,
			   "cannot write the ledger: %s", err.msg);
}

void journal_replans(struct engine *e)
{
	struct run_row *run = e->setup->run;

	if (e->journal->replans == core_replans(e->core))
		return;
	while (e->journal->replans < core_replans(e->core)) {
		size_t at = strlen(run->replanned);
		snprintf(run->replanned + at, sizeof(run->replanned) - at, "%s%s", at ? "\n" : "",
			 core_replan_text(e->core, e->journal->replans++));
		run->replans++;
	}
	journal_run(e);
}

/* Best effort: a run does not depend on this row. An adopted pod has no offer any more. */
void journal_bad_host(struct engine *e, int pod, const char *why)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct err err = {0};

	if (p->rental.offer.id[0] &&
	    past_bad_pod(e->setup->store, &p->rental.offer, p->rental.view.host, why,
			 to_wall(p->rental.create_at), clock_wall_ms(), &err) < 0)
		engine_log(e, LOG_WARN,
			   "pod %s: not recorded in the ledger that it was given "
			   "up: %s",
			   pod_called(e, pod), err.msg);
}

void journal_good_host(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (p->rental.offer.id[0])
		past_clear(e->setup->store, &p->rental.offer, NULL);
}

void journal_safe(struct engine *e, uint32_t segment, bool suspect)
{
	const struct outputs *s = &e->outfiles.of[segment];
	const struct segment_result *result = &e->setup->results[segment];

	GROW(e->journal->rows, e->journal->count, e->journal->row_cap);
	GROW(e->journal->segments, e->journal->count, e->journal->segment_cap);
	struct segment_row *row = &e->journal->rows[e->journal->count];
	*row = reported_row(e->setup->run->id, &e->work.segments[segment], result->attempt,
			    s->count ? s->files[0].name : NULL, result);
	row->suspect = suspect;
	e->journal->segments[e->journal->count++] = segment;
}

void journal_flush(struct engine *e)
{
	struct err err = {0};

	if (!e->journal->count)
		return;
	if (store_put_segments(e->setup->store, e->journal->rows, e->journal->count, &err) < 0) {
		/* the files are in place and in the manifest: a later run finds them there */
		report_unwritten(e, &err);
	}
	for (size_t i = 0; i < e->journal->count; i++) {
		struct event ev = {.type = EV_LOCAL,
				   .segment = e->journal->segments[i],
				   .pod = e->outfiles.of[e->journal->segments[i]].pod};
		post(e, &ev, NULL);
	}
	e->journal->count = 0;
}
