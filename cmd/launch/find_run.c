/* find_run.c - finds the run that an id or a config means, and names its job's place. */
#include "find_run.h"

#include <stdlib.h>

#include "base/path.h"

enum { ELSEWHERE_MOST = 3 };

/* Whether the run is of the job in this file, or delivers its outputs. */
static bool is_of(struct cmd_context *ctx, const struct run_row *run, const char *config)
{
	return !strcmp(run->config, config) || delivery_is_of(&ctx->runs, run, config);
}

static int newest_running(struct cmd_context *ctx, const char *config, struct run_row *out,
			  struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0, at = 0;

	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	while (at < count && !is_of(ctx, &runs[at], config))
		at++;
	bool found = at < count;
	if (found)
		*out = runs[at];
	free(runs);
	return found;
}

/* Finds the newest one with pods that may bill. */
static int newest_with_pods(struct cmd_context *ctx, const char *config, struct run_row *out,
			    struct err *err)
{
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;
	bool found = false;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (store_run(ctx->store, pods[i].run, &run, NULL) < 0 ||
		    (found && run.started_ms <= out->started_ms) || !is_of(ctx, &run, config))
			continue;
		*out = run;
		found = true;
	}
	free(pods);
	return found;
}

static int newest(struct cmd_context *ctx, const char *config, struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL, delivery;
	size_t count = 0;

	if (store_runs(ctx->store, config, false, 1, &runs, &count, err) < 0)
		return -1;
	if (count)
		*out = runs[0];
	free(runs);
	if (!count)
		return 0;
	int found = delivery_of(&ctx->runs, out, &delivery, err);
	if (found > 0)
		*out = delivery;
	return found < 0 ? -1 : 1;
}

/* No run was started here, so lists those elsewhere by id. */
static int none_here(struct cmd_context *ctx, const char *config, struct err *err)
{
	CLEANUP(str_free) struct str elsewhere = STR_INIT;
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && i < ELSEWHERE_MOST; i++) {
		CLEANUP(free_text) char *place = run_place(ctx, &runs[i]);
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

int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (name)
		return named_run(ctx->store, name, out, err);
	int here = config_here(&config, err);
	if (here < 0)
		return -1;
	CLEANUP(free_text)
	char *named = config_named(NULL); /* a run without a burst.cfg has this path too */
	int found = newest_running(ctx, here ? config : named, out, err);
	if (found == 0)
		found = newest_with_pods(ctx, here ? config : named, out, err);
	if (found == 0)
		found = newest(ctx, here ? config : named, out, err);
	if (found == 0)
		return none_here(ctx, config, err);
	return found < 0 ? -1 : 0;
}

char *run_place(struct cmd_context *ctx, const struct run_row *run)
{
	struct run_row render;
	const char *config =
		delivery_render(&ctx->runs, run, &render) ? render.config : run->config;
	CLEANUP(free_text) char *folder = path_dir(config[0] ? config : run->output);

	return xasprintf("job \"%s\" in %s", run->job, folder);
}

int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(ctx, run);
	size_t len = strlen(err->msg), more = strlen(place) + sizeof(" ()") - 1;

	if (!strstr(err->msg, place) && len + more < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", place);
	return -1;
}
