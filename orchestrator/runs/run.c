/* run.c - one life of a run: opens its accounts, takes its lock and its pods, and frees all of it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "impl.h"

void run_init(struct run *run, const struct runs *rs)
{
	*run = (struct run){.runs = rs, .lock = -1, .job_lock = -1, .output_lock = -1};
	run->setup.kit = rs->kit;
	run->setup.run = &run->row;
	run->setup.verbose = rs->verbose;
	run->setup.store = rs->store;
	if (rs->store)
		runs_machine(rs, run->machine);
	COPY_TEXT(run->setup.conf.machine, run->machine);
}

void run_free(struct run *run)
{
	for (int i = 0; i < run->setup.provider_count; i++)
		run->setup.providers[i].ops->close(run->setup.providers[i].handle);
	if (run->setup.job)
		run->setup.job_ops->free(run->setup.job);
	free(run->setup.results);
	free(run->dir);
	free(run->output_dir);
	free(run->adopted);
	free(run->unsaved);
	fd_close(run->lock);
	fd_close(run->job_lock);
	if (run->output_lock >= 0 && !run->output_lent) {
		fd_close(run->output_lock);
		path_hold_dir(NULL, -1);
	}
}

int run_open_account(struct run *run, const char *provider, struct err *err)
{
	const struct runs *rs = run->runs;
	struct engine_setup *s = &run->setup;
	struct engine_provider account = {.store = rs->store};

	for (int i = 0; i < s->provider_count; i++)
		if (!strcmp(s->providers[i].ops->name, provider))
			return 0;
	if (s->provider_count == CORE_PROVIDERS_MAX)
		return err_set(err, ERR_CONFIG, "more than %d providers", CORE_PROVIDERS_MAX);
	if (engine_ready(err) < 0 || rs->open_account(rs->ctx, provider, &account, err) < 0)
		return -1;
	s->providers[s->provider_count++] = account;
	return 0;
}

int run_take(struct run *run, const char *who, struct err *err)
{
	CLEANUP(free_text) char *lock = run_path(run->runs, run->row.id, "lock");
	char note[64];

	run->dir = run_path(run->runs, run->row.id, NULL);
	if (path_mkdirs(run->dir, 0700, err) < 0)
		return -1;
	snprintf(note, sizeof(note), "%s %ld\n", who, (long)getpid());
	if (path_lock(lock, note, &run->lock, err) < 0) {
		if (err->kind == ERR_BUSY && !strncmp(err->msg, RUN_CLIENT " ", sizeof(RUN_CLIENT)))
			err_set(err, ERR_BUSY,
				"run %s already has a client (see `burst attach %s`)", run->row.id,
				run->row.id);
		else if (err->kind == ERR_BUSY)
			err_wrap(err, "run %s: its lock is held; try again in a moment",
				 run->row.id);
		return -1;
	}
	run->setup.run_dir = run->dir;
	COPY_TEXT(run->setup.conf.run, run->row.id);
	return 0;
}

struct pod_row *run_pods(const struct run *run, size_t *count)
{
	struct pod_row *pods = NULL;
	size_t n = 0, at;

	if (!run->row.id[0] ||
	    store_pods(run->runs->store, run->row.id, false, &pods, &n, NULL) < 0)
		pods = NULL, n = 0;
	pods = xrealloc(pods, (n + run->unsaved_count + 1) * sizeof(*pods));
	for (size_t i = 0; i < run->unsaved_count; i++) {
		for (at = 0; at < n && strcmp(pods[at].attempt, run->unsaved[i].attempt); at++)
			;
		pods[at] = run->unsaved[i];
		n += at == n;
	}
	*count = n;
	return pods;
}
