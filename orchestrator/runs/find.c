/* find.c - finds the run that a config's path means, and says where a run's job is. */
#include "runs.h"

#include <stdlib.h>

#include "base/path.h"

enum { ELSEWHERE_MOST = 3 };

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

/* Finds the newest one with pods that may bill. */
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

static int newest(const struct runs *rs, const char *config, struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL, stage;
	size_t count = 0;

	if (store_runs(rs->store, config, false, 1, &runs, &count, err) < 0)
		return -1;
	if (count)
		*out = runs[0];
	free(runs);
	if (!count)
		return 0;
	int found = stage_newest_of(rs, out, &stage, err);
	if (found > 0)
		*out = stage;
	return found < 0 ? -1 : 1;
}

int runs_newest_of(const struct runs *rs, const char *config, struct run_row *out, struct err *err)
{
	int found = newest_running(rs, config, out, err);

	if (found == 0)
		found = newest_with_pods(rs, config, out, err);
	return found ? found : newest(rs, config, out, err);
}

char *run_place(const struct runs *rs, const struct run_row *run)
{
	(void)rs;
	CLEANUP(free_text) char *folder = path_dir(run->config[0] ? run->config : run->output);

	return xasprintf("job \"%s\" in %s", run->job, folder);
}

int runs_none_of(const struct runs *rs, const char *config, struct err *err)
{
	CLEANUP(str_free) struct str elsewhere = STR_INIT;
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && i < ELSEWHERE_MOST; i++) {
		CLEANUP(free_text) char *place = run_place(rs, &runs[i]);
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
