/* test_requests_worlds.c - the queue in random worlds. */
#include "requests_bed.h"

/* ---- a world ----
 * Each submit adds a segment. A run reads them when its client starts, writes its row, and renders
 * them one by one; what is home stays. Anybody may die between any two steps. The runner goes
 * through the same steps as cmd/unattended/runner.c, on the same functions. */

enum { SEGMENTS_MOST = 64, STEPS = 120 };

struct client { /* of a run: `burst run` or `burst resume` */
	bool alive, reads, resumed;
	int until; /* it read segments 0..until-1 */
	char run[24];
};

struct world {
	struct store *s;
	uint32_t seed;
	int64_t now_ms;
	int segments, rendered[SEGMENTS_MOST];
	bool home[SEGMENTS_MOST];
	char asked[SEGMENTS_MOST][24]; /* the request that came with the segment */
	struct client client;
	bool runner;     /* lives, and has the lock */
	char own[24];    /* run that this runner started and waits for; "": none */
	int exit_status; /* of the client that ended last; -1: it died */
	int serial, removed;
	struct {
		char id[24];
		int until;
	} reads[4096]; /* what each run had read */
	int read_count;
};

static uint32_t chance(struct world *w, uint32_t of)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (w->seed >> 8) % of;
}

static void submit(struct world *w)
{
	if (w->segments == SEGMENTS_MOST)
		return;
	struct request_row row = {
		.created_ms = w->now_ms, .quiet_ms = chance(w, 3000), .max_wait_ms = 60000};
	struct err err = {0};

	int segment = w->segments++; /* the file is written first */
	COPY_TEXT(row.config, CONFIG);
	if (chance(w, 10) == 0)
		return; /* it died before its request was written */
	ok(requests_add(w->s, &row, &err), &err);
	COPY_TEXT(w->asked[segment], row.id);
	if (chance(w, 10) && !w->runner) { /* else it died before it started one */
		w->runner = true;
		w->own[0] = '\0';
	}
}

static void start_client(struct world *w, const char *run, bool resumed)
{
	assert_false(w->client.alive); /* the lock of the job */
	w->client = (struct client){.alive = true, .reads = true, .resumed = resumed};
	COPY_TEXT(w->client.run, run);
}

static void put_run(struct world *w, const char *id, const char *status, int exit_status)
{
	struct run_row row = {.started_ms = w->now_ms, .exit_status = exit_status};
	struct err err = {0};

	COPY_TEXT(row.id, id);
	row.status = (enum run_status)state_read(&run_status_words, status);
	COPY_TEXT(row.config, CONFIG);
	ok(store_put_run(w->s, &row, &err), &err);
}

static void end_client(struct world *w, int exit_status, const char *status)
{
	if (status)
		put_run(w, w->client.run, status, exit_status);
	w->client.alive = false;
	w->exit_status = exit_status;
}

static bool all_home(const struct world *w, int until)
{
	for (int i = 0; i < until; i++)
		if (!w->home[i])
			return false;
	return true;
}

/* One step of the run: it reads, or renders a segment, or ends. */
static void client_step(struct world *w)
{
	struct client *c = &w->client;

	if (c->reads) {
		c->reads = false;
		c->until = w->segments;
		COPY_TEXT(w->reads[w->read_count].id, c->run);
		w->reads[w->read_count++].until = c->until;
		if (chance(w, 12) == 0)
			end_client(w, 2, NULL); /* a mistake in the input; of a resumed run: it has
						   changed */
		else if (!c->resumed && all_home(w, c->until))
			end_client(w, 0, NULL);
		else if (!c->resumed && chance(w, 8) == 0)
			end_client(w, chance(w, 2) ? 4 : 6, NULL);
		else
			put_run(w, c->run, "running", 0);
		return;
	}
	for (int i = 0; i < c->until; i++)
		if (!w->home[i]) {
			w->home[i] = true;
			w->rendered[i]++;
			return;
		}
	end_client(w, chance(w, 10) ? 0 : 6, "done");
	if (w->exit_status)
		put_run(w, c->run, "failed", w->exit_status);
}

static void leave(void *ctx)
{
	((struct world *)ctx)->runner = false;
}

static void judge_client(struct world *w, const char *run, int exit_status)
{
	enum outcome outcome = requests_outcome(exit_status, false, false);
	struct err err = {0};

	if (w->client.resumed && exit_status == 2)
		outcome = OUTCOME_AGAIN;
	ok(requests_end(w->s, CONFIG, run, outcome, exit_status, exit_status ? "why" : "",
			w->now_ms, &err),
	   &err);
}

static void see_to(struct world *w, const char *id)
{
	struct run_row run;
	struct err err = {0};
	bool alive = w->client.alive && !strcmp(w->client.run, id);
	bool known = store_run(w->s, id, &run, NULL) == 0;

	/* between the start of a client and its row nobody sees it live: then the lock of the job
	 * stops the next one (exit 7) */
	switch (requests_bound_step(known ? &run : NULL, alive && known)) {
	case BOUND_FOLLOW: return;
	case BOUND_UNBIND:
	case BOUND_RESUME:
		if (!known || requests_count_death(w->s, CONFIG, id, &err) == 0) {
			ok(requests_end(w->s, CONFIG, id, known ? OUTCOME_FAILED : OUTCOME_AGAIN, 1,
					"died", w->now_ms, &err),
			   &err);
			return;
		}
		if (!w->client.alive) {
			start_client(w, id, true);
			COPY_TEXT(w->own, id);
		}
		return;
	case BOUND_ATTACH: fail_msg("nothing is detached here"); return;
	case BOUND_END: break;
	}
	ok(requests_end(w->s, CONFIG, id, requests_outcome(run.exit_status, false, false),
			run.exit_status, "", w->now_ms, &err),
	   &err);
}

static void start_run(struct world *w)
{
	struct request_row newest;
	struct err err = {0};
	char id[24];

	snprintf(id, sizeof(id), "r%d", ++w->serial);
	ok(requests_bind(w->s, CONFIG, id, &newest, &err), &err);
	if (chance(w, 15) == 0) { /* the runner dies before it starts the client */
		w->runner = false;
		return;
	}
	if (w->client.alive) { /* exit 7 */
		ok(requests_end(w->s, CONFIG, id, requests_outcome(7, false, false), 7, "",
				w->now_ms, &err),
		   &err);
		return;
	}
	start_client(w, id, false);
	COPY_TEXT(w->own, id);
}

static void runner_step(struct world *w)
{
	struct when_request requests[SEGMENTS_MOST];
	struct request_row *rows = NULL;
	struct err err = {0};
	size_t count = 0;

	if (w->own[0] && w->client.alive)
		return;
	if (w->own[0]) {
		char id[24];
		COPY_TEXT(id, w->own);
		w->own[0] = '\0';
		if (w->exit_status >= 0)
			judge_client(w, id, w->exit_status);
		return;
	}
	ok(store_requests(w->s, CONFIG, true, &rows, &count, &err), &err);
	const char *bound = NULL;
	for (size_t i = 0; i < count; i++) {
		requests[i] = requests_for_when(&rows[i], w->now_ms);
		bound = !bound && rows[i].state == REQUEST_RUNNING ? rows[i].run : bound;
	}
	if (bound)
		see_to(w, bound);
	else if (!count)
		ok(requests_leave_if_none(w->s, CONFIG, leave, w, &err), &err);
	else if (when_start(requests, count, &(struct when_work){-1, -1, -1}, w->now_ms).start)
		start_run(w);
	free(rows);
}

static void kill_somebody(struct world *w)
{
	switch (chance(w, 3)) {
	case 0: w->runner = false; break;
	case 1:
		w->client.alive = false;
		w->exit_status = -1;
		break;
	case 2:
		w->client.alive = w->runner = false;
		w->exit_status = -1;
		break;
	}
}

static void remove_somewhere(struct world *w)
{
	struct request_row row;
	int segment = w->segments ? (int)chance(w, (uint32_t)w->segments) : 0;

	if (w->segments && w->asked[segment][0])
		w->removed +=
			requests_remove(w->s, w->asked[segment], false, w->now_ms, &row, NULL) == 0;
}

static void step(struct world *w, bool calm)
{
	uint32_t what = chance(w, 100);

	w->now_ms += chance(w, 1000);
	if (what < 10 && !calm)
		submit(w);
	else if (what < 14 && !calm)
		kill_somebody(w);
	else if (what < 15 && !calm)
		remove_somewhere(w);
	else if (what < 60 && w->client.alive)
		client_step(w);
	else if (w->runner)
		runner_step(w);
	else if (calm && !w->client.alive)
		w->runner = true; /* `burst queue run` */
}

static bool is_drained(struct world *w)
{
	struct request_row *rows = NULL;
	struct err err = {0};
	size_t count = 0;

	ok(store_requests(w->s, CONFIG, true, &rows, &count, &err), &err);
	free(rows);
	return !count && !w->client.alive;
}

/* A done request is bound to a run that succeeded and had read what came with it, or to none where
 * all was home. */
static void check_request(struct world *w, const struct request_row *row, int segment)
{
	struct run_row run;
	int until = -1;

	if (row->state == REQUEST_REMOVED || row->state == REQUEST_FAILED)
		return;
	assert_int_equal(row->state, REQUEST_DONE);
	assert_true(w->home[segment]);
	if (!row->run[0])
		return;
	assert_int_equal(store_run(w->s, row->run, &run, NULL), 0);
	assert_int_equal(run.status, RUN_DONE);
	for (int i = 0; i < w->read_count; i++)
		if (!strcmp(w->reads[i].id, row->run))
			until = w->reads[i].until;
	assert_true(until > segment);
}

static void check(struct world *w)
{
	for (int i = 0; i < w->segments; i++) {
		struct request_row *rows = NULL;
		struct err err = {0};
		size_t count = 0;
		assert_true(w->rendered[i] <= 1);
		if (!w->asked[i][0])
			continue;
		ok(store_requests_named(w->s, w->asked[i], &rows, &count, &err), &err);
		assert_int_equal(count, 1);
		check_request(w, rows, i);
		free(rows);
	}
}

static void random_worlds(void **state)
{
	int done = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= 1500; seed++) {
		struct world w = {.s = store_memory(), .seed = seed, .now_ms = T0};
		int turns = 0;
		for (int i = 0; i < STEPS; i++)
			step(&w, false);
		for (; !is_drained(&w); turns++) {
			if (turns == 200000)
				fail_msg("seed %u: the queue is never empty", seed);
			step(&w, true);
		}
		check(&w);
		done += w.segments;
		store_close(w.s);
	}
	assert_true(done > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
