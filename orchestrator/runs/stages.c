/* stages.c - finds the runs that are stages of another one, and sums them up. */
#include <stdlib.h>

#include "runs.h"

void stage_job(char to[STAGE_JOB], const char *job, const char *stage)
{
	int room = STAGE_JOB - 2 - (int)strlen(stage);

	snprintf(to, STAGE_JOB, "%.*s-%s", utf8_fit(job, MAX(room, 0)), job, stage);
}

int stage_newest(const struct runs *rs, const char *config, const char *job, const char *stage,
		 bool done, struct run_row *out, struct err *err)
{
	struct run_row *rows = NULL;
	char name[STAGE_JOB];
	size_t count = 0, at = 0;

	stage_job(name, job, stage);
	if (store_stages(rs->store, config, &rows, &count, err) < 0)
		return -1;
	while (at < count && (strcmp(rows[at].stage, stage) || strcmp(rows[at].job, name) ||
			      (done && !rows[at].stage_done)))
		at++;
	bool found = at < count;
	if (found)
		*out = rows[at];
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
	for (size_t i = 0; i < kept / 2; i++) { /* the ledger has the newest first */
		struct run_row other = rows[i];
		rows[i] = rows[kept - 1 - i];
		rows[kept - 1 - i] = other;
	}
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

bool stage_whole(const struct runs *rs, const struct run_row *run, struct run_row *out)
{
	return run->part_of[0] && store_run(rs->store, run->part_of, out, NULL) == 0;
}

void stage_add(struct run_row *run, const struct run_row *stage)
{
	run->billed_ms += stage->billed_ms;
	run->compute_ms += stage->compute_ms;
	run->wasted_ms += stage->wasted_ms;
	run->cost_microusd += stage->cost_microusd;
	run->counted_microusd += stage->counted_microusd;
	run->cost_vendor_microusd += stage->cost_vendor_microusd;
}

int stages_add(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;
	int result = stages_of(rs, run, &rows, &count, err);

	for (size_t i = 0; i < count && result == 0; i++) {
		result = run_so_far(rs, &rows[i], now_ms, err);
		stage_add(run, &rows[i]);
	}
	free(rows);
	return result < 0 ? -1 : (int)count;
}
