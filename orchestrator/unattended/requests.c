/* requests.c - stores the requests of `burst submit` in the ledger: one transaction for each
 * change. */
#include "requests.h"

#include <stdlib.h>

#include "base/clock.h"
#include "runs/runs.h"

enum outcome requests_outcome(int exit_status, bool died, bool stopped)
{
	if (died)
		return OUTCOME_RESUME;
	switch (exit_status) {
	case 0: return OUTCOME_DONE;
	case 4:
	case 6:
	case 127: return OUTCOME_RETRY; /* 127: the program was missing, as during an update */
	case 7: return OUTCOME_AGAIN;
	}
	return exit_status > 128 && stopped ? OUTCOME_RESUME : OUTCOME_FAILED;
}

/* A run with status interrupted is resumed: if its user had ended it, the runner that saw the end
 * would have recorded that for the requests, and they would not be bound. */
enum bound_step requests_bound_step(const struct run_row *run, bool alive)
{
	if (alive)
		return BOUND_FOLLOW;
	if (!run)
		return BOUND_UNBIND;
	if (run->status == RUN_RUNNING)
		return run->detached ? BOUND_ATTACH : BOUND_RESUME;
	return run->status != RUN_INTERRUPTED ? BOUND_END : BOUND_RESUME;
}

static bool has_ended(const struct request_row *row)
{
	return row->state != REQUEST_PENDING && row->state != REQUEST_RUNNING;
}

/* ---- transactions ---- */

/* Sets row->id to one that no request has. It begins with q, unlike any run's id. */
static int draw_id(struct store *s, struct request_row *row, struct err *err)
{
	struct request_row *same = NULL;
	char drawn[NAME_LEN + 1];
	size_t count = 1;

	while (count) {
		name_draw(drawn);
		snprintf(row->id, sizeof(row->id), "q%s", drawn);
		if (store_requests_named(s, row->id, &same, &count, err) < 0)
			return -1;
		free(same);
	}
	return 0;
}

int requests_put_new(struct store *s, struct request_row *row, struct err *err)
{
	return draw_id(s, row, err) < 0 ? -1 : store_put_request(s, row, err);
}

int requests_add(struct store *s, struct request_row *row, struct err *err)
{
	row->state = REQUEST_PENDING;
	if (store_begin(s, err) < 0)
		return -1;
	return store_end(s, requests_put_new(s, row, err), err);
}

/* Called for each open request of a queue. Returns whether it changed the row. */
typedef bool change_fn(struct request_row *row, void *ctx);

/* Changes open requests of a queue, inside the caller's transaction. */
static int change_rows(struct store *s, const char *config, change_fn *change, void *ctx,
		       struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	int result = store_requests(s, config, true, &rows, &count, err);

	for (size_t i = 0; i < count && result == 0; i++)
		if (change(&rows[i], ctx))
			result = store_put_request(s, &rows[i], err);
	free(rows);
	return result;
}

/* Changes open requests of a queue, all or none. */
static int change_rows_at_once(struct store *s, const char *config, change_fn *change, void *ctx,
			       struct err *err)
{
	if (store_begin(s, err) < 0)
		return -1;
	return store_end(s, change_rows(s, config, change, ctx, err), err);
}

/* ---- binding ---- */

struct binding {
	const char *run;
	struct request_row *newest;
	int count;
};

/* A change_fn: binds a pending request. */
static bool bind_row(struct request_row *row, void *ctx)
{
	struct binding *b = ctx;

	if (row->state != REQUEST_PENDING)
		return false;
	row->state = REQUEST_RUNNING;
	COPY_TEXT(row->run, b->run);
	*b->newest = *row; /* rows are in the order of submission */
	b->count++;
	return true;
}

int requests_bind(struct store *s, const char *config, const char *run, struct request_row *newest,
		  struct err *err)
{
	struct binding b = {.run = run, .newest = newest};
	struct run_row same;

	if (store_run(s, run, &same, NULL) == 0)
		return err_set(err, ERR_BUSY, "run %s already exists", run);
	return change_rows_at_once(s, config, bind_row, &b, err) < 0 ? -1 : b.count;
}

/* ---- the end of a run ---- */

struct ending {
	const char *run, *message;
	bool had_run; /* false: all outputs were in place, or it ended before it began */
	enum outcome outcome;
	int exit_status;
	int64_t now_ms;
};

static void make_pending(struct request_row *row)
{
	row->state = REQUEST_PENDING;
	COPY_TEXT(row->run, "");
}

static void end_row(struct request_row *row, enum request_state state, int64_t now_ms)
{
	row->state = state;
	row->ended_ms = now_ms;
}

static int64_t pause_before_retry_ms(int64_t tries)
{
	int64_t ms = REQUEST_RETRY_MS;

	for (int64_t i = 1; i < tries && ms < REQUEST_RETRY_MOST_MS; i++)
		ms *= 2;
	return MIN(ms, (int64_t)REQUEST_RETRY_MOST_MS);
}

/* Makes the request pending for a later try or, once the limits are reached, failed. */
static void retry_or_fail(struct request_row *row, int64_t now_ms)
{
	row->tries++;
	if (!row->first_try_ms)
		row->first_try_ms = now_ms;
	if (row->tries >= REQUEST_TRIES || now_ms - row->first_try_ms >= REQUEST_TRIES_MS) {
		end_row(row, REQUEST_FAILED, now_ms);
		return;
	}
	make_pending(row);
	row->not_before_ms = now_ms + pause_before_retry_ms(row->tries);
}

/* A change_fn: applies the outcome to a request bound to the run. */
static bool end_bound_row(struct request_row *row, void *ctx)
{
	const struct ending *e = ctx;

	if (row->state != REQUEST_RUNNING || strcmp(row->run, e->run) != 0)
		return false;
	row->exit_status = e->exit_status;
	COPY_TEXT(row->error, e->message);
	if (!e->had_run && e->outcome != OUTCOME_RESUME)
		COPY_TEXT(row->run, "");
	switch (e->outcome) {
	case OUTCOME_DONE: end_row(row, REQUEST_DONE, e->now_ms); break;
	case OUTCOME_FAILED: end_row(row, REQUEST_FAILED, e->now_ms); break;
	case OUTCOME_RETRY: retry_or_fail(row, e->now_ms); break;
	case OUTCOME_AGAIN: make_pending(row); break;
	case OUTCOME_RESUME: break;
	}
	return true;
}

/* Removes the oldest ended requests, so that the ledger of a busy hook does not grow forever. */
static int remove_oldest_ended(struct store *s, const char *config, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0, ended = 0;
	int result = store_requests(s, config, false, &rows, &count, err);

	for (size_t i = 0; i < count; i++)
		ended += has_ended(&rows[i]);
	for (size_t i = 0; result == 0 && ended > REQUESTS_KEPT && i < count; i++) {
		if (!has_ended(&rows[i]))
			continue;
		result = store_remove_request(s, rows[i].id, err);
		ended--;
	}
	free(rows);
	return result;
}

int requests_end(struct store *s, const char *config, const char *run, enum outcome outcome,
		 int exit_status, const char *message, int64_t now_ms, struct err *err)
{
	struct run_row its;
	struct ending e = {run,     message,     store_run(s, run, &its, NULL) == 0,
			   outcome, exit_status, now_ms};

	if (store_begin(s, err) < 0)
		return -1;
	int result = change_rows(s, config, end_bound_row, &e, err);
	return store_end(s, result < 0 ? -1 : remove_oldest_ended(s, config, err), err);
}

struct death {
	const char *run;
	int64_t most;
};

/* A change_fn. */
static bool count_death(struct request_row *row, void *ctx)
{
	struct death *d = ctx;

	if (row->state != REQUEST_RUNNING || strcmp(row->run, d->run) != 0)
		return false;
	row->deaths++;
	d->most = MAX(d->most, row->deaths);
	return true;
}

int requests_count_death(struct store *s, const char *config, const char *run, struct err *err)
{
	struct death d = {.run = run};

	if (change_rows_at_once(s, config, count_death, &d, err) < 0)
		return -1;
	return d.most <= REQUEST_DEATHS;
}

/* ---- remove, leave ---- */

static int remove_named(struct store *s, const char *name, bool bound, int64_t now_ms,
			struct request_row *out, struct err *err)
{
	if (named_request(s, name, out, err) < 0)
		return -1;
	if (out->state == REQUEST_RUNNING && !bound)
		return err_set(
			err, ERR_BUSY,
			"request %s is being rendered by run %s: `burst cancel %s` ends that",
			out->id, out->run, out->run);
	if (has_ended(out))
		return err_set(err, ERR_USAGE, "request %s has already ended (%s)", out->id,
			       request_state_word(out->state));
	end_row(out, REQUEST_REMOVED, now_ms);
	return store_put_request(s, out, err);
}

int requests_remove(struct store *s, const char *name, bool bound, int64_t now_ms,
		    struct request_row *out, struct err *err)
{
	if (store_begin(s, err) < 0)
		return -1;
	return store_end(s, remove_named(s, name, bound, now_ms, out, err), err);
}

int requests_leave_if_none(struct store *s, const char *config, void (*leave)(void *ctx), void *ctx,
			   struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_begin(s, err) < 0)
		return -1;
	int result = store_requests(s, config, true, &rows, &count, err);
	free(rows);
	if (result == 0 && !count)
		leave(ctx);
	store_rollback(s);
	return result < 0 ? -1 : !count;
}

struct when_request requests_for_when(const struct request_row *row, int64_t now_ms)
{
	bool from_future = row->created_ms > now_ms;

	return (struct when_request){
		.created_ms = from_future ? now_ms - row->quiet_ms : row->created_ms,
		.quiet_ms = row->quiet_ms,
		.max_wait_ms = row->max_wait_ms,
		.by_ms = row->by_ms,
		.below_microusd_h = row->below_microusd_h,
		.min_segments = row->min_segments,
		.fills_pod = row->fills_pod,
		.not_before_ms = row->not_before_ms,
	};
}
