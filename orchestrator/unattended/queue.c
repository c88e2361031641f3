/* queue.c - the queue of a burst.cfg: its lock, the note in the ledger why it waits, and its
 * runner, which waits, renders the newest state once for all requests, and repeats. */
#include "queue.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "engine/kept.h"
#include "requests.h"
#include "schedule.h"
#include "store/facts.h"

enum {
	TURN_MS = 1000,  /* between two reads of the ledger while it waits */
	DUE_MS = 10000,  /* between two looks at the schedules */
	FOLLOW_MS = 500, /* between two checks of another client's run */
	FAILURES_MOST = 60,
	FAILURE_PAUSE_MS = 60000,
	BUSY_MOST_MS = 15000 /* longest pause before the next start if something of unknown duration
				blocks it */
};

char *queue_path(const char *state_dir, const char *config, const char *ending)
{
	char key[SHA256_NAME];

	sha256_name(config, key);
	return xasprintf("%s/jobs/%s.queue%s", state_dir, key, ending);
}

/* ---- the lock ---- */

/* Takes the lock and makes its folder. ERR_BUSY: another runner holds it. The process owns the lock
 * until it ends or closes *fd. */
static int take_lock(const char *state_dir, const char *config, int *fd, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");
	CLEANUP(free_text) char *dir = path_dir(path);

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	if (path_lock(path, "", fd, err) == 0)
		return 0;
	return err->kind == ERR_BUSY
		       ? err_set(err, ERR_BUSY, "%s: another process works on this queue", config)
		       : -1;
}

bool queue_has_runner(const char *state_dir, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");

	return path_is_locked(path, NULL);
}

/* ---- why it waits ---- */

/* Writes why the queue waits. */
static void explain(const struct when_answer *a, const struct when_work *work, char *to,
		    size_t room)
{
	char price[32], time[32];

	switch (a->why) {
	case WHEN_QUIET:
		snprintf(to, room, "starts at %s unless another request follows",
			 clock_local(time, sizeof(time), "%H:%M:%S", a->until_ms));
		return;
	case WHEN_RETRY:
		snprintf(to, room, "the last start failed; next try at %s",
			 clock_rfc3339(time, sizeof(time), a->until_ms));
		return;
	case WHEN_PRICE:
		snprintf(to, room, "the price is %s/h",
			 money_show(price, sizeof(price), work->price_microusd_h));
		return;
	case WHEN_NO_PRICE: snprintf(to, room, "the price is unknown now"); return;
	case WHEN_SEGMENTS:
		if (work->segments < 0)
			snprintf(to, room, "the number of segments to render is unknown now");
		else
			snprintf(to, room, "%lld segment%s to render so far",
				 (long long)work->segments, work->segments == 1 ? "" : "s");
		return;
	case WHEN_WORK:
		snprintf(to, room, "%s of work so far; it starts with %s",
			 duration_show(price, sizeof(price), work->work_ms),
			 duration_show(time, sizeof(time), when_least_work_ms(work->cold_ms)));
		return;
	case WHEN_READY:
	case WHEN_WAITED:
	case WHEN_BY:
	case WHEN_EMPTY: break;
	}
	snprintf(to, room, "%s", when_name(a->why));
}

bool queue_noted(struct store *store, const char *config, char *text, size_t room,
		 int64_t *until_ms)
{
	char key[SHA256_NAME], line[512];
	long long until;
	int used = 0;

	sha256_name(config, key);
	if (!fact_get(store, FACT_QUEUE, key, NULL, line, sizeof(line)) ||
	    sscanf(line, "%lld %n", &until, &used) != 1 || !line[used])
		return false;
	copy_text(text, room, line + used);
	*until_ms = until;
	return true;
}

/* ==== the runner ==== */

struct runner {
	const struct queue_client *client;
	const struct runs *runs;
	struct store *store;
	const char *config;
	int lock;
	struct request_row *rows; /* open requests in the order of submission */
	size_t count;
	struct when_work work; /* from the last plan */
	int64_t planned_ms;    /* time of the plan by the boot clock; 0: none yet */
	char planned_for[24];  /* newest request at that time */
	int planned_offered;   /* pods that runs offered at that time */
	bool cannot_run;       /* the plan found a mistake, which a run will report */
	int64_t busy_ms;
	int64_t due_ms; /* when it looked at the schedules, by the boot clock; 0: not yet */
	int failures;   /* consecutive failures of ledger or disk */
	char noted[160];
};

static void say(const struct runner *r, const char *fmt, ...) PRINTF(2, 3);
static void say(const struct runner *r, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(line, sizeof(line), fmt, ap);
	va_end(ap);
	r->client->say(r->client->ctx, LOG_NOTE, line);
}

static int signalled(const struct runner *r)
{
	return r->client->signal(r->client->ctx);
}

static int perform(const struct runner *r, enum queue_task task, const char *run,
		   const char *commit, struct queue_reply *out, struct err *err)
{
	struct queue_order order = {.task = task, .run = run, .commit = commit};

	*out = (struct queue_reply){0};
	return r->client->perform(r->client->ctx, &order, out, err);
}

static void pause_ms(const struct runner *r, int64_t ms)
{
	if (!signalled(r))
		poll(NULL, 0, (int)MAX(ms, 1));
}

/* ---- the note why it waits ---- */

/* text "": it does not wait. until_ms 0: unknown. */
static int note(struct runner *r, const char *text, int64_t until_ms, struct err *err)
{
	char line[sizeof(r->noted)], key[SHA256_NAME];

	snprintf(line, sizeof(line), "%lld %s", (long long)until_ms, text);
	if (!strcmp(line, r->noted))
		return 0;
	sha256_name(r->config, key);
	if (fact_put(r->store, FACT_QUEUE, key, NULL, line, err) < 0)
		return -1;
	COPY_TEXT(r->noted, line);
	if (text[0])
		say(r, "waits: %s", text);
	return 0;
}

/* ---- requests ---- */

static int read_rows(struct runner *r, struct err *err)
{
	free(r->rows);
	r->rows = NULL;
	r->count = 0;
	return store_requests(r->store, r->config, true, &r->rows, &r->count, err);
}

/* The first bound request; NULL: all are pending. */
static const struct request_row *bound_row(const struct runner *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].state == REQUEST_RUNNING)
			return &r->rows[i];
	return NULL;
}

/* ---- the plan ---- */

/* Billed time beside the rendering. A pod kept for the next run costs no boot. */
static int64_t cold_of(const struct queue_plan *p)
{
	int64_t pods = MAX(p->pods, (int64_t)1), warm = MAX(p->warm_pods, (int64_t)0);

	if (p->billed_ms < 0 || p->work_ms < 0)
		return -1;
	return MAX(p->billed_ms - p->work_ms, (int64_t)0) * (pods - MIN(warm, pods)) / pods;
}

/* Pods that runs offer now. If the number differs from the plan's, the plan is stale. */
static int offered_now(const struct runner *r)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int offered = 0;

	if (store_pods(r->store, NULL, true, &pods, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		offered += kept_is_offered(&pods[i], clock_wall_ms());
	free(pods);
	return offered;
}

static int plan_now(struct runner *r, struct err *err)
{
	const struct request_row *newest = &r->rows[r->count - 1];
	struct queue_reply reply;

	r->planned_offered = offered_now(r);
	if (perform(r, QUEUE_PLAN, NULL, newest->commit_id, &reply, err) < 0)
		return -1;
	r->work = (struct when_work){
		.segments = reply.plan.segments,
		.makespan_ms = reply.plan.makespan_ms,
		.price_microusd_h = reply.plan.price_microusd_h,
		.work_ms = reply.plan.work_ms,
		.cold_ms = cold_of(&reply.plan),
	};
	r->cannot_run = reply.exit_status == 2 || reply.exit_status == 3;
	r->planned_ms = clock_boot_ms();
	COPY_TEXT(r->planned_for, newest->id);
	return 0;
}

/* Plans again for each new request, when the number of offered pods changes, and after a while. */
static int know_work(struct runner *r, struct err *err)
{
	bool known = r->planned_ms && clock_boot_ms() - r->planned_ms < WHEN_LOOK_AGAIN_MS &&
		     !strcmp(r->planned_for, r->rows[r->count - 1].id) &&
		     r->planned_offered == offered_now(r);

	return known ? 0 : plan_now(r, err);
}

/* ---- the end of a run ---- */

static int end_run(struct runner *r, const char *run, enum outcome outcome, int exit_status,
		   const char *message, struct err *err)
{
	static const char *const words[] = {[OUTCOME_DONE] = "done",
					    [OUTCOME_FAILED] = "failed",
					    [OUTCOME_RETRY] = "will be retried later",
					    [OUTCOME_AGAIN] = "has not started",
					    [OUTCOME_RESUME] = "continues later"};

	say(r, "run %s: %s%s%s", run, words[outcome], message[0] ? ": " : "", message);
	return requests_end(r->store, r->config, run, outcome, exit_status, message,
			    clock_wall_ms(), err);
}

/* ---- runs of other clients ---- */

static int wait_while_alive(struct runner *r, const char *run, struct err *err)
{
	CLEANUP(free_text) char *text = xasprintf("run %s continues", run);

	if (note(r, text, 0, err) < 0)
		return -1;
	while (run_is_alive(r->runs, run) && !signalled(r))
		pause_ms(r, FOLLOW_MS);
	return 0;
}

/* Waits longer after each failure, until one turn succeeds. */
static void back_off(struct runner *r)
{
	r->busy_ms = MIN(MAX(r->busy_ms * 2, (int64_t)TURN_MS), (int64_t)BUSY_MOST_MS);
	pause_ms(r, r->busy_ms);
}

static int attach_to(struct runner *r, const char *run, struct err *err)
{
	struct queue_reply reply;

	say(r, "run %s: attaching to it, since its pods work on this job without a client", run);
	if (perform(r, QUEUE_ATTACH, run, "", &reply, err) < 0)
		return -1;
	if (reply.exit_status)
		back_off(r);
	return 0;
}

/* Waits for a `burst run` of the same job. Returns 1 after it, or 0 if the ledger has none. */
static int wait_for_other(struct runner *r, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	if (store_runs(r->store, r->config, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (run_is_alive(r->runs, runs[i].id))
			result = wait_while_alive(r, runs[i].id, err) < 0 ? -1 : 1;
		else if (runs[i].detached)
			result = attach_to(r, runs[i].id, err) < 0 ? -1 : 1;
	}
	free(runs);
	return result;
}

/* Waits after a run was refused because another process holds the job or its output folder, and no
 * run in the ledger shows for how long. */
static int be_patient(struct runner *r, struct err *err)
{
	if (note(r, "another process has the job or its output folder", 0, err) < 0)
		return -1;
	back_off(r);
	return 0;
}

/* ---- runs of the queue ---- */

static int judge(struct runner *r, const char *run, const struct queue_reply *reply,
		 struct err *err)
{
	enum outcome outcome = requests_judge(reply->exit_status, reply->died, signalled(r) != 0);

	/* the cap has room again once other runs have ended, or the next day */
	if (outcome == OUTCOME_FAILED && reply->refused_money)
		outcome = OUTCOME_RETRY;
	if (outcome == OUTCOME_RESUME && reply->died)
		return 0; /* the next turn finds a run without a client */
	if (end_run(r, run, outcome, reply->exit_status, reply->message, err) < 0)
		return -1;
	if (outcome == OUTCOME_AGAIN)
		return be_patient(r, err);
	r->busy_ms = 0;
	return 0;
}

static int start(struct runner *r, struct err *err)
{
	struct request_row newest;
	struct queue_reply reply;
	char run[24];

	if (run_new_id(r->runs, run, err) < 0)
		return -1;
	int bound = requests_bind(r->store, r->config, run, &newest, err);
	if (bound <= 0)
		return bound;
	if (note(r, "", 0, err) < 0)
		return -1;
	say(r, "run %s: starts for %d request%s", run, bound, bound == 1 ? "" : "s");
	if (perform(r, QUEUE_RUN, run, newest.commit_id, &reply, err) < 0)
		return -1;
	return judge(r, run, &reply, err);
}

/* Resumes a run. If an input has changed, a new run renders the changes and settles the old one. */
static int resume(struct runner *r, const struct run_row *run, struct err *err)
{
	struct queue_reply reply;

	int may = requests_died(r->store, r->config, run->id, err);
	if (may < 0)
		return -1;
	if (!may)
		return end_run(r, run->id, OUTCOME_FAILED, 1, "its client died repeatedly", err);
	if (note(r, "", 0, err) < 0)
		return -1;
	say(r, "run %s: its client exited; continuing it", run->id);
	if (perform(r, QUEUE_RESUME, run->id, "", &reply, err) < 0)
		return -1;
	if (!reply.died && reply.exit_status == 2)
		return end_run(r, run->id, OUTCOME_AGAIN, 0, "its job has changed since", err);
	return judge(r, run->id, &reply, err);
}

/* Handles a run that never began, or that found all outputs in place and whose client died before
 * it recorded that. */
static int never_began(struct runner *r, const char *run, struct err *err)
{
	int may = requests_died(r->store, r->config, run, err);

	if (may < 0)
		return -1;
	return may ? end_run(r, run, OUTCOME_AGAIN, 0, "", err)
		   : end_run(r, run, OUTCOME_FAILED, 1, "its client died repeatedly", err);
}

static int see_to_bound(struct runner *r, const char *id, struct err *err)
{
	struct run_row run;
	bool alive = run_is_alive(r->runs, id), known = store_run(r->store, id, &run, err) == 0;

	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	switch (requests_bound_step(known ? &run : NULL, alive)) {
	case BOUND_FOLLOW: return wait_while_alive(r, id, err);
	case BOUND_UNBIND: return never_began(r, id, err);
	case BOUND_ATTACH: return attach_to(r, id, err);
	case BOUND_RESUME: return resume(r, &run, err);
	case BOUND_END: break;
	}
	return end_run(r, id, requests_judge(run.exit_status, false, false), run.exit_status,
		       run.error, err);
}

/* ---- schedules ---- */

/* Submits what is due: systemd fires no timer whose service, a runner, still works. */
static int submit_due(struct runner *r, struct err *err)
{
	struct schedule_row *rows = NULL;
	size_t count = 0;
	int result = 0;

	if (r->due_ms && clock_boot_ms() - r->due_ms < DUE_MS)
		return 0;
	r->due_ms = clock_boot_ms();
	if (store_schedules(r->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (strcmp(rows[i].config, r->config) != 0)
			continue;
		result = schedule_submit(r->store, rows[i].name, false, clock_wall_ms(), err);
		if (result < 0 && err->kind == ERR_NOT_FOUND) { /* it was removed meanwhile */
			err_clear(err);
			result = 0;
		}
	}
	free(rows);
	return result;
}

/* ---- turns ---- */

static int wait_or_start(struct runner *r, struct err *err)
{
	struct when_request *requests = xcalloc(r->count, sizeof(*requests));
	static const struct when_work unknown = {-1, -1, -1, -1, -1};
	int64_t now_ms = clock_wall_ms();
	char text[120];

	for (size_t i = 0; i < r->count; i++)
		requests[i] = requests_when(&r->rows[i], now_ms);
	int result = 0;
	struct when_answer a = when_start(requests, r->count, &unknown, now_ms);
	if (a.why != WHEN_QUIET && a.why != WHEN_RETRY && when_needs_work(requests, r->count)) {
		result = know_work(r, err);
		a = when_start(requests, r->count, &r->work, now_ms);
		a.start = a.start || r->cannot_run;
	}
	free(requests);
	if (result == 0 && a.start)
		result = wait_for_other(r, err);
	if (result)
		return result < 0 ? -1 : 0;
	if (a.start)
		return start(r, err);
	explain(&a, &r->work, text, sizeof(text));
	if (note(r, text, a.why == WHEN_QUIET || a.why == WHEN_RETRY ? a.until_ms : 0, err) < 0)
		return -1;
	pause_ms(r, MIN(MAX(a.until_ms - now_ms, (int64_t)1), (int64_t)TURN_MS));
	return 0;
}

static void drop_lock(void *ctx)
{
	struct runner *r = ctx;

	close(r->lock);
	r->lock = -1;
}

/* Returns 1 once nothing is left and the lock is free. */
static int turn(struct runner *r, struct err *err)
{
	if (submit_due(r, err) < 0 || read_rows(r, err) < 0)
		return -1;
	const struct request_row *bound = bound_row(r);
	if (bound) {
		char id[sizeof(bound->run)];
		COPY_TEXT(id, bound->run);
		return see_to_bound(r, id, err);
	}
	if (r->count)
		return wait_or_start(r, err);
	if (note(r, "", 0, err) < 0)
		return -1;
	return requests_leave(r->store, r->config, drop_lock, r, err);
}

/* Fails if the ledger's requests could not be read by other commands. */
static int check_ledger(const struct runner *r, struct err *err)
{
	if (store_check(r->store, err) == 0)
		return 0;
	return err_wrap(err, "the queue of %s ends", r->config);
}

/* Retries after a locked ledger or a full disk: what was begun stays in the ledger. A removed
 * ledger does not come back, so that fails. */
static int turn_in_spite(struct runner *r, struct err *err)
{
	if (check_ledger(r, err) < 0)
		return -1;
	int result = turn(r, err);
	if (result >= 0 || err->kind != ERR_LOCAL || r->lock < 0 || ++r->failures > FAILURES_MOST) {
		r->failures = result >= 0 ? 0 : r->failures;
		return result;
	}
	if (check_ledger(r, err) < 0)
		return -1;
	CLEANUP(free_text) char *line = xasprintf("%s; retrying", err->msg);
	r->client->say(r->client->ctx, LOG_WARN, line);
	pause_ms(r, MIN((int64_t)TURN_MS << MIN(r->failures, 6), (int64_t)FAILURE_PAUSE_MS));
	err_clear(err);
	return 0;
}

static int stopped(struct runner *r, struct err *err)
{
	int number = signalled(r);

	say(r, "interrupted: the requests stay in the queue, and the next `burst submit` or "
	       "`burst queue run` continues them");
	err_set(err, ERR_INTERRUPTED, "interrupted");
	err->signal = number;
	return -1;
}

int queue_work(const struct queue_client *client, struct err *err)
{
	struct runner r = {.client = client,
			   .runs = client->runs,
			   .store = client->runs->store,
			   .config = client->config,
			   .lock = -1};
	int result = 0;

	if (take_lock(r.runs->state_dir, r.config, &r.lock, err) < 0)
		return -1;
	while (result == 0 && !signalled(&r))
		result = turn_in_spite(&r, err);
	if (result == 0)
		result = stopped(&r, err);
	if (r.lock >= 0)
		close(r.lock);
	free(r.rows);
	return result < 0 ? -1 : 0;
}
