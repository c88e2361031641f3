/* query.c - finds runs, pods and stages by id, name or config, and reads their state */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "base/str.h"
#include "runs.h"
#include "store/facts.h"
#include "store/pod_cost.h"

/* ---- names: finds the row for an id, or for a part of one ---- */

enum { LISTED_MOST = 5 };

/* How well a row's ids match the text. */
enum fit { FIT_NONE, FIT_PART, FIT_BEGINNING, FIT_WHOLE };

static enum fit fit_one(const char *id, const char *text)
{
	if (!strcmp(id, text))
		return FIT_WHOLE;
	if (starts_with(id, text))
		return FIT_BEGINNING;
	return strstr(id, text) ? FIT_PART : FIT_NONE;
}

/* A row of one kind: how well it fits, and how a message lists it. */
struct kind {
	size_t row_size;
	enum fit (*fit)(const void *row, const char *text);
	void (*list)(const void *row, struct str *to);
};

static enum fit fit_run(const void *row, const char *text)
{
	return fit_one(((const struct run_row *)row)->id, text);
}

static void list_run(const void *row, struct str *to)
{
	const struct run_row *run = row;

	str_addf(to, "run %s (%s)", run->id, run->job);
}

static enum fit fit_pod(const void *row, const char *text)
{
	const struct pod_row *pod = row;

	return MAX(fit_one(pod->attempt, text),
		   MAX(fit_one(pod->id, text), fit_one(pod->name, text)));
}

static void list_pod(const void *row, struct str *to)
{
	const struct pod_row *pod = row;

	str_addf(to, "pod %s (of run %s)", pod_row_called(pod), pod->run);
}

static enum fit fit_request(const void *row, const char *text)
{
	return fit_one(((const struct request_row *)row)->id, text);
}

static void list_request(const void *row, struct str *to)
{
	const struct request_row *request = row;

	str_addf(to, "request %s (%s)", request->id, request_state_word(request->state));
}

static const struct kind of_runs = {sizeof(struct run_row), fit_run, list_run},
			 of_pods = {sizeof(struct pod_row), fit_pod, list_pod},
			 of_requests = {sizeof(struct request_row), fit_request, list_request};

/* Sets ERR_USAGE with a list of the rows that fit equally well. Returns -1. */
static int refuse_ambiguous(const struct kind *k, const char *rows, size_t count, const char *text,
			    enum fit best, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	size_t hits = 0;

	for (size_t i = 0; i < count; i++) {
		const char *row = rows + i * k->row_size;
		if (k->fit(row, text) != best || hits++ >= LISTED_MOST)
			continue;
		str_add(&all, hits > 1 ? ", " : "");
		k->list(row, &all);
	}
	if (hits > LISTED_MOST)
		str_addf(&all, " and %zu more", hits - LISTED_MOST);
	return err_set(err, ERR_USAGE, "\"%.24s\" may be %s: give more of the id", text,
		       str_text(&all));
}

/* Frees the rows. Returns 1 with *out set, 0 if none matches, -1 with *err set. A vendor may reuse
 * an id: of several rows with the same whole id, the newest counts. */
static int choose_row(const struct kind *k, void *rows, size_t count, const char *text, void *out,
		      struct err *err)
{
	enum fit best = FIT_NONE;
	size_t hits = 0, at = 0;

	for (size_t i = 0; i < count; i++) {
		enum fit fit = k->fit((const char *)rows + i * k->row_size, text);
		if (fit == FIT_NONE || fit < best)
			continue;
		hits = fit > best ? 1 : hits + 1;
		best = fit;
		at = i;
	}
	int result = hits > 0;
	if (hits > 1 && best != FIT_WHOLE)
		result = refuse_ambiguous(k, rows, count, text, best, err);
	else if (hits)
		memcpy(out, (const char *)rows + at * k->row_size, k->row_size);
	free(rows);
	return result;
}

static int find_run(struct store *s, const char *text, struct run_row *out, struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (store_runs_named(s, text, &rows, &count, err) < 0)
		return -1;
	return choose_row(&of_runs, rows, count, text, out, err);
}

int name_find_pod(struct store *s, const char *text, struct pod_row *out, struct err *err)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(s, NULL, true, &rows, &count, err) < 0)
		return -1;
	int found = choose_row(&of_pods, rows, count, text, out, err);
	if (found)
		return found;
	if (store_pods_named(s, text, &rows, &count, err) < 0)
		return -1;
	return choose_row(&of_pods, rows, count, text, out, err);
}

static int find_request(struct store *s, const char *text, struct request_row *out, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests_named(s, text, &rows, &count, err) < 0)
		return -1;
	return choose_row(&of_requests, rows, count, text, out, err);
}

/* The only pod of the run that may bill. ERR_USAGE if it has none or several. */
static int only_pod_of(struct store *s, const struct run_row *run, struct pod_row *out,
		       struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(s, run->id, true, &rows, &count, err) < 0)
		return -1;
	if (count)
		*out = rows[0];
	for (size_t i = 0; i < MIN(count, (size_t)LISTED_MOST); i++)
		str_addf(&all, "%spod %s (%s)", i ? ", " : "", pod_row_called(&rows[i]),
			 rows[i].gpu);
	free(rows);
	if (count == 1)
		return 0;
	return count ? err_set(err, ERR_USAGE, "run %s has %zu pods: name one of %s", run->id,
			       count, str_text(&all))
		     : err_set(err, ERR_USAGE, "run %s has no pod now", run->id);
}

int named_pod(struct store *s, const char *text, struct pod_row *out, struct err *err)
{
	struct run_row run;
	int found = name_find_pod(s, text, out, err);

	if (found == 0 && (found = find_run(s, text, &run, err)) > 0)
		return only_pod_of(s, &run, out, err);
	if (found == 0)
		return err_set(err, ERR_USAGE,
			       "no pod \"%.60s\" in this ledger; `burst ps` lists them", text);
	return found < 0 ? -1 : 0;
}

int named_request(struct store *s, const char *text, struct request_row *out, struct err *err)
{
	int found = find_request(s, text, out, err);

	if (found)
		return found < 0 ? -1 : 0;
	return err_set(err, ERR_USAGE, "no request \"%s\"; `burst queue ls` lists them", text);
}

/* ---- names that lead to a run ---- */

/* The run with this id. of: names what has no run yet, for the message. */
static int run_of(struct store *s, const char *id, const char *of, struct run_row *out,
		  struct err *err)
{
	if (store_run(s, id, out, err) == 0)
		return 0;
	return err->kind == ERR_NOT_FOUND
		       ? err_set(err, ERR_USAGE, "%s has no run yet (see `burst queue ls`)", of)
		       : -1;
}

int named_run(struct store *s, const char *text, struct run_row *out, struct err *err)
{
	struct request_row request;
	struct pod_row pod;
	int found = find_run(s, text, out, err);

	if (found)
		return found < 0 ? -1 : 0;
	if ((found = name_find_pod(s, text, &pod, err)) > 0)
		return store_run(s, pod.run, out, err);
	if (found == 0 && (found = find_request(s, text, &request, err)) > 0) {
		CLEANUP(free_text) char *of = xasprintf("request %s", request.id);
		return run_of(s, request.run, of, out, err);
	}
	return found < 0 ? -1
			 : err_set(err, ERR_USAGE, "no run \"%.24s\"; `burst ledger` lists them",
				   text);
}

/* ---- new ids ---- */

/* No vowels, so that no word results; no q, as in requests; no characters that look alike. */
void name_draw(char id[NAME_LEN + 1])
{
	static const char letters[] = "bcdfghjkmnprstvwxz23456789";
	unsigned char bytes[NAME_LEN];

	for (int i = 0; i < NAME_LEN; i++) {
		do
			random_bytes(&bytes[i], 1);
		while (bytes[i] >= 256 / (sizeof(letters) - 1) * (sizeof(letters) - 1));
		id[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	}
	id[NAME_LEN] = '\0';
}

/* ---- query ----
 * Reads a run's state from the ledger and the locks: its files, its client, pods that may bill,
 * how it ended. */

/* as in core/, for a pod that has ended itself */
enum { PAST_END_MS = 5 * 60 * 1000, SELF_END_MS = 10 * 1000 };

char *run_path(const struct runs *rs, const char *run, const char *name)
{
	return xasprintf("%s/runs/%s%s%s", rs->state_dir, run, name ? "/" : "", name ? name : "");
}

void runs_machine(const struct runs *rs, char machine[20])
{
	if (fact_get(rs->store, FACT_MACHINE, NULL, NULL, machine, 20))
		return;
	random_hex(machine, 8);
	fact_put(rs->store, FACT_MACHINE, NULL, NULL, machine, NULL);
}

int run_new_id(const struct runs *rs, char id[24], struct err *err)
{
	struct run_row same;
	char drawn[NAME_LEN + 1];

	do
		name_draw(drawn);
	while (store_run(rs->store, drawn, &same, err) == 0);
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	copy_text(id, 24, drawn);
	return 0;
}

bool run_is_alive(const struct runs *rs, const char *run)
{
	CLEANUP(free_text) char *path = run_path(rs, run, "lock");

	return path_is_locked(path, NULL);
}

/* An unreadable note may be a client's. */
bool run_has_client(const struct runs *rs, const char *run)
{
	CLEANUP(free_text) char *path = run_path(rs, run, "lock");
	CLEANUP(str_free) struct str note = STR_INIT;

	return path_is_locked(path, &note) &&
	       (!note.len || starts_with(str_text(&note), RUN_CLIENT " "));
}

struct run_pod_now run_pod_now(const struct runs *rs, const struct pod_row *pod, int64_t now)
{
	int64_t end = pod->hard_end_s * 1000;

	if (run_is_alive(rs, pod->run))
		return (struct run_pod_now){POD_NOW_AS_ROW, pod->state, now};
	if (end && now > end + PAST_END_MS)
		return (struct run_pod_now){POD_NOW_OVER, pod->state,
					    MAX(end + SELF_END_MS, pod->create_ms)};
	return (struct run_pod_now){pod->state == POD_ROW_LIVE ? POD_NOW_UNWATCHED : POD_NOW_AS_ROW,
				    pod->state, now};
}

const char *run_pod_now_word(struct run_pod_now now)
{
	switch (now.is) {
	case POD_NOW_AS_ROW: break;
	case POD_NOW_UNWATCHED: return "unwatched";
	case POD_NOW_OVER: return "over";
	}
	return pod_row_state_word(now.row);
}

int run_open_pods(const struct runs *rs, const char *run, size_t *count, struct err *err)
{
	struct pod_row *pods = NULL;

	if (store_pods(rs->store, run, true, &pods, count, err) < 0)
		return -1;
	free(pods);
	return 0;
}

char **run_pod_ids(const struct runs *rs, const char *provider)
{
	struct pod_row *pods = NULL;
	size_t count = 0, n = 0;

	if (rs->no_ledger || store_pods(rs->store, NULL, true, &pods, &count, NULL) < 0)
		return NULL;
	char **ids = xcalloc(count + 1, sizeof(*ids));
	for (size_t i = 0; i < count; i++)
		if (pods[i].id[0] && !strcmp(pods[i].provider, provider))
			ids[n++] = xstrdup(pods[i].id);
	free(pods);
	return ids;
}

/* Sets the status, and with it the exit status that a command such as `attach && publish` returns
 * for an ended run: that of its client. */
void run_set_ended(struct run_row *run, enum run_status status)
{
	static const struct {
		enum run_status status;
		int exit_status;
	} ends[] = {{RUN_DONE, 0},
		    {RUN_PARTIAL, 1},
		    {RUN_INTERRUPTED, 128 + SIGTERM},
		    {RUN_UNRELEASED, 9}};

	run->status = status;
	run->exit_status = 1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i].status == status)
			run->exit_status = ends[i].exit_status;
	run->detached = false;
	run->ended_ms = run->ended_ms ? run->ended_ms : clock_wall_ms();
}

/* ---- sums of a run ---- */

static int count_segments(const struct runs *rs, struct run_row *run, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0;

	if (store_segments(rs->store, run->id, &rows, &count, err) < 0)
		return -1;
	run->rendered = run->failed = 0;
	for (size_t i = 0; i < count; i++) {
		run->rendered += rows[i].state == SEGMENT_ROW_SAFE;
		run->failed += rows[i].state == SEGMENT_ROW_FAILED;
	}
	free(rows);
	return 0;
}

void run_clear_sums(struct run_row *run)
{
	run->billed_ms = run->compute_ms = run->wasted_ms = 0;
	run->cost_microusd = run->counted_microusd = run->cost_vendor_microusd = 0;
	run->unpriced_ms = 0;
}

void run_add_pod(struct run_row *run, const struct pod_row *pod, int64_t now_ms)
{
	run->billed_ms += pod_row_billed_ms(pod, now_ms);
	run->compute_ms += pod->compute_ms;
	run->wasted_ms += pod->wasted_ms;
	run->cost_microusd += pod_row_cost(pod, now_ms);
	run->counted_microusd += pod_row_counted(pod, now_ms);
	run->cost_vendor_microusd += pod_row_vendor(pod);
	run->unpriced_ms += pod_row_unpriced_ms(pod, now_ms);
}

int run_sum(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(rs->store, run->id, false, &pods, &count, err) < 0)
		return -1;
	run_clear_sums(run);
	for (size_t i = 0; i < count; i++)
		run_add_pod(run, &pods[i], now_ms);
	free(pods);
	return 0;
}

int run_sum_ended(const struct runs *rs, const char *id, struct err *err)
{
	struct run_row run;

	if (store_run(rs->store, id, &run, NULL) < 0 || run.status == RUN_RUNNING)
		return 0;
	return run_sum(rs, &run, clock_wall_ms(), err) < 0 ? -1
							   : store_put_run(rs->store, &run, err);
}

int run_sum_so_far(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	bool running = run->status == RUN_RUNNING;

	if (!running && run->status != RUN_UNRELEASED)
		return 0;
	return running && count_segments(rs, run, err) < 0 ? -1 : run_sum(rs, run, now_ms, err);
}

void run_job_key(const char *config, const char *job, char key[RUN_JOB_KEY])
{
	CLEANUP(free_text) char *identity = xasprintf("%s\n%s", config, job);

	sha256_name(identity, key);
}

/* ---- stages: finds the runs that are stages of another one, and sums them up ---- */

void stage_job_name(char to[STAGE_JOB], const char *job, const char *stage)
{
	int room = STAGE_JOB - 2 - (int)strlen(stage);

	snprintf(to, STAGE_JOB, "%.*s-%s", utf8_fit(job, MAX(room, 0)), job, stage);
}

int stage_newest(const struct runs *rs, const char *config, const char *job, const char *stage,
		 bool done, struct run_row *out, struct err *err)
{
	struct run_row *rows = NULL;
	char name[STAGE_JOB];
	size_t count = 0;
	bool found = false;

	stage_job_name(name, job, stage);
	if (store_stages(rs->store, config, &rows, &count, err) < 0)
		return -1;
	for (size_t i = count; i-- > 0 && !found;) {
		found = !strcmp(rows[i].stage, stage) && !strcmp(rows[i].job, name) &&
			(!done || rows[i].stage_done);
		if (found)
			*out = rows[i];
	}
	free(rows);
	return found;
}

int stages_of(const struct runs *rs, const struct run_row *run, struct run_row **out, size_t *count,
	      struct err *err)
{
	struct run_row *rows = NULL;
	size_t n = 0, kept = 0;

	if (store_stages(rs->store, run->config, &rows, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n && run->id[0]; i++)
		if (!strcmp(rows[i].part_of, run->id))
			rows[kept++] = rows[i];
	*out = rows;
	*count = kept;
	return 0;
}

int stage_newest_of(const struct runs *rs, const struct run_row *run, struct run_row *out,
		    struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (stages_of(rs, run, &rows, &count, err) < 0)
		return -1;
	if (count)
		*out = rows[count - 1];
	free(rows);
	return count > 0;
}

bool stage_find_whole(const struct runs *rs, const struct run_row *run, struct run_row *out)
{
	return run->part_of[0] && store_run(rs->store, run->part_of, out, NULL) == 0;
}

void stage_add_costs(struct run_row *run, const struct run_row *stage)
{
	run->billed_ms += stage->billed_ms;
	run->compute_ms += stage->compute_ms;
	run->wasted_ms += stage->wasted_ms;
	run->cost_microusd += stage->cost_microusd;
	run->counted_microusd += stage->counted_microusd;
	run->cost_vendor_microusd += stage->cost_vendor_microusd;
	run->unpriced_ms += stage->unpriced_ms;
}

int stages_add_costs(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;
	int result = stages_of(rs, run, &rows, &count, err);

	for (size_t i = 0; i < count && result == 0; i++) {
		result = run_sum_so_far(rs, &rows[i], now_ms, err);
		stage_add_costs(run, &rows[i]);
	}
	free(rows);
	return result < 0 ? -1 : (int)count;
}

/* ---- find: finds the run that a config's path means, and says where a run's job is ---- */

enum {
	ELSEWHERE_MOST = 3,
	NEWEST_MOST = 100, /* runs of a config that are looked through for the newest */
};

/* The next three set *out to the newest such run of the config: 1; 0: none; -1: *err is set. */
static int newest_running(const struct runs *rs, const char *config, struct run_row *out,
			  struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0, at = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	while (at < count && strcmp(runs[at].config, config))
		at++;
	bool found = at < count;
	if (found)
		*out = runs[at];
	free(runs);
	return found;
}

static int newest_with_pods(const struct runs *rs, const char *config, struct run_row *out,
			    struct err *err)
{
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;
	bool found = false;

	if (store_pods(rs->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (store_run(rs->store, pods[i].run, &run, NULL) < 0 ||
		    (found && run.started_ms <= out->started_ms) || strcmp(run.config, config))
			continue;
		*out = run;
		found = true;
	}
	free(pods);
	return found;
}

static bool is_among(const char *type, const char *const *types)
{
	while (*types && strcmp(*types, type) != 0)
		types++;
	return *types;
}

static int newest_of_any_state(const struct runs *rs, const char *config, const char *const *except,
			       struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL, stage;
	size_t count = 0, at = 0;

	if (store_runs(rs->store, config, false, NEWEST_MOST, &runs, &count, err) < 0)
		return -1;
	while (at < count && is_among(runs[at].type, except))
		at++;
	if (at == count) /* only such runs: better one of them than none */
		at = 0;
	if (count)
		*out = runs[at];
	free(runs);
	if (!count)
		return 0;
	int found = stage_newest_of(rs, out, &stage, err);
	if (found > 0)
		*out = stage;
	return found < 0 ? -1 : 1;
}

int runs_newest_of(const struct runs *rs, const char *config, const char *const *except,
		   struct run_row *out, struct err *err)
{
	int found = newest_running(rs, config, out, err);

	if (found == 0)
		found = newest_with_pods(rs, config, out, err);
	return found ? found : newest_of_any_state(rs, config, except, out, err);
}

char *run_place(const struct run_row *run)
{
	CLEANUP(free_text) char *folder = path_dir(run->config[0] ? run->config : run->output);

	return xasprintf("job \"%s\" in %s", run->job, folder);
}

int runs_refuse_none(const struct runs *rs, const char *config, struct err *err)
{
	CLEANUP(str_free) struct str elsewhere = STR_INIT;
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && i < ELSEWHERE_MOST; i++) {
		CLEANUP(free_text) char *place = run_place(&runs[i]);
		str_addf(&elsewhere, "%s run %s (%s)", i ? "," : "; running elsewhere:", runs[i].id,
			 place);
	}
	free(runs);
	if (count > ELSEWHERE_MOST)
		str_addf(&elsewhere, " and %zu more", count - ELSEWHERE_MOST);
	if (config)
		return err_set(
			err, ERR_USAGE,
			"%s was never run by this user; name a run (`burst ledger` lists them)%s",
			config, str_text(&elsewhere));
	return err_set(err, ERR_USAGE,
		       "no burst.cfg in this folder: name a run (`burst ledger` lists them)%s",
		       str_text(&elsewhere));
}
