/* find_run.c - finds the run that an id or the current folder means. */
#include "find_run.h"

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
	int found = runs_newest_of(&ctx->runs, here ? config : named, out, err);
	if (found == 0)
		return runs_none_of(&ctx->runs, config, err);
	return found < 0 ? -1 : 0;
}

int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(&ctx->runs, run);
	size_t len = strlen(err->msg), more = strlen(place) + sizeof(" ()") - 1;

	if (!strstr(err->msg, place) && len + more < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", place);
	return -1;
}
