/* delivery.c - finds which run a delivery, itself a run, belongs to, and whether it succeeded. */
#include <stdlib.h>

#include "base/path.h"
#include "runs.h"
#include "store/facts.h"

enum { KEY_LEN = 24 };

/* ---- its record in the ledger, by key ---- */

static bool is_key(const char *text, size_t len)
{
	return len == KEY_LEN && starts_with_hex(text, len);
}

static char *jobs_folder(const struct runs *rs)
{
	CLEANUP(free_text) char *state = realpath(rs->state_dir, NULL);

	return xasprintf("%s/jobs/", state ? state : rs->state_dir);
}

char *delivery_config(const struct runs *rs, const char *key)
{
	CLEANUP(free_text) char *below = jobs_folder(rs);

	return xasprintf("%s%s.cfg", below, key);
}

char *delivery_key(const struct runs *rs, const char *config)
{
	CLEANUP(free_text) char *below = jobs_folder(rs);
	size_t len = strlen(config), before = strlen(below);

	if (strncmp(config, below, before) || len < before + 5 ||
	    strcmp(config + len - 4, ".cfg") || !is_key(config + before, len - before - 4))
		return NULL;
	return xasprintf("%.*s", (int)(len - before - 4), config + before);
}

bool delivery_is(const struct runs *rs, const char *config)
{
	CLEANUP(free_text) char *key = delivery_key(rs, config);

	return key != NULL;
}

int delivery_begins(const struct runs *rs, const char *key, const char *parent, const char *state,
		    struct err *err)
{
	if (parent[0] && fact_put(rs->store, FACT_DELIVERS, key, NULL, parent, err) < 0)
		return -1;
	return fact_put(rs->store, FACT_DELIVERING, key, NULL, state, err);
}

bool delivery_went_well(const struct runs *rs, const char *key, const char *state)
{
	char known[SHA256_HEX];

	return fact_get(rs->store, FACT_DELIVERED, key, NULL, known, sizeof(known)) &&
	       !strcmp(known, state);
}

/* ---- its render ---- */

bool delivery_render(const struct runs *rs, const struct run_row *run, struct run_row *out)
{
	CLEANUP(free_text) char *key = delivery_key(rs, run->config);
	char parent[sizeof(out->id)];

	return key && fact_get(rs->store, FACT_DELIVERS, key, NULL, parent, sizeof(parent)) &&
	       store_run(rs->store, parent, out, NULL) == 0;
}

/* A delivery that began while all outputs were cached has no parent, only the name of its job. */
bool delivery_is_of(const struct runs *rs, const struct run_row *run, const char *config)
{
	CLEANUP(free_text) char *key = delivery_key(rs, run->config);
	char own[RUN_JOB_KEY];
	struct run_row parent;

	if (!key)
		return false;
	if (delivery_render(rs, run, &parent))
		return !strcmp(parent.config, config);
	if (!ends_with(run->job, DELIVER_JOB_ENDING))
		return false;
	CLEANUP(free_text)
	char *job =
		xasprintf("%.*s", (int)(strlen(run->job) - strlen(DELIVER_JOB_ENDING)), run->job);
	run_job_key(config, job, own);
	return !strcmp(own, key);
}

int delivery_newest(const struct runs *rs, const char *key, struct run_row *out, struct err *err)
{
	CLEANUP(free_text) char *state = realpath(rs->state_dir, NULL);
	CLEANUP(free_text)
	char *config = xasprintf("%s/jobs/%s.cfg", state ? state : rs->state_dir, key);
	struct run_row *newest = NULL;
	size_t count = 0;

	if (store_runs(rs->store, config, false, 1, &newest, &count, err) < 0)
		return -1;
	if (count)
		*out = *newest;
	free(newest);
	return count > 0;
}

int delivery_of(const struct runs *rs, const struct run_row *run, struct run_row *out,
		struct err *err)
{
	struct run_row parent;
	char key[RUN_JOB_KEY];

	run_job_key(run->config, run->job, key);
	int found = delivery_newest(rs, key, out, err);
	return found > 0 ? delivery_render(rs, out, &parent) && !strcmp(parent.id, run->id) : found;
}

/* When the next run of the same job began: later deliveries belong to that one. */
static int64_t next_began_ms(const struct run_row *rows, size_t count, const struct run_row *run)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].job, run->job) && rows[i].started_ms > run->started_ms)
			next = MIN(next, rows[i].started_ms);
	return next;
}

static int add_delivery(const struct runs *rs, struct run_row *run, int64_t now_ms,
			struct delivery_total *to, struct err *err)
{
	if (run_so_far(rs, run, now_ms, err) < 0)
		return -1;
	if (!to->deliveries++)
		COPY_TEXT(to->newest, run->id);
	to->billed_ms += run->billed_ms;
	to->compute_ms += run->compute_ms;
	to->cost_microusd += run->cost_microusd;
	to->counted_microusd += run->counted_microusd;
	return 0;
}

int delivery_total(const struct runs *rs, const struct run_row *run, int64_t now_ms,
		   struct delivery_total *out, struct err *err)
{
	CLEANUP(free_text) char *state = realpath(rs->state_dir, NULL);
	struct run_row *rows = NULL;
	char key[RUN_JOB_KEY];
	size_t count = 0;
	int result = 0;

	*out = (struct delivery_total){.billed_ms = run->billed_ms,
				       .compute_ms = run->compute_ms,
				       .cost_microusd = run->cost_microusd,
				       .counted_microusd = run->counted_microusd};
	if (store_runs(rs->store, run->config, false, 0, &rows, &count, err) < 0)
		return -1;
	int64_t next = next_began_ms(rows, count, run);
	free(rows);
	run_job_key(run->config, run->job, key);
	CLEANUP(free_text)
	char *config = xasprintf("%s/jobs/%s.cfg", state ? state : rs->state_dir, key);
	if (store_runs(rs->store, config, false, 0, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++)
		if (rows[i].started_ms >= run->started_ms && rows[i].started_ms < next)
			result = add_delivery(rs, &rows[i], now_ms, out, err);
	free(rows);
	return result;
}
