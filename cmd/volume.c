/* volume.c - `burst volume`: lists, makes, warms, cleans and removes volumes. */
#include "cmd/launch/launch.h"
#include "cmd/volumes/volumes.h"

/* Checks flags that only one subcommand has. */
static int check_flags(const struct cmd_context *ctx, const char *what, struct err *err)
{
	static const struct {
		const char *flag, *of;
	} flags[] = {{"older-than", "gc"}, {"dry-run", "gc"},    {"force", "gc"},
		     {"memory", "warm"},   {"max-cost", "warm"}, {"engine", "warm"}};

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (strcmp(what, flags[i].of) && opt_has(ctx, flags[i].flag))
			return err_set(err, ERR_USAGE, "--%s is a flag of `burst volume %s`",
				       flags[i].flag, flags[i].of);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	const char *what = ctx->args[0], *name = ctx->arg_count > 1 ? ctx->args[1] : NULL;
	const char *third = ctx->arg_count > 2 ? ctx->args[2] : NULL;

	launch_init(&l, ctx);
	int status = check_flags(ctx, what, err) < 0 ? -1 : launch_open_providers(&l, err);
	if (status < 0)
		;
	else if (!strcmp(what, "ls") && !name)
		status = volume_whole_list(&l, err);
	else if (!strcmp(what, "ls") && !third)
		status = volume_place_list(&l, name, err);
	else if (!strcmp(what, "get") && name)
		status = volume_place_get(&l, name, third, err);
	else if (!strcmp(what, "put") && name)
		status = volume_place_put(&l, name, third, err);
	else if (third)
		status = err_set(err, ERR_USAGE, "volume %s: \"%.60s\" is one argument too many",
				 what, third);
	else if (!strcmp(what, "create") && name)
		status = volume_whole_create(&l, name, err);
	else if (!strcmp(what, "rm") && name)
		status = volume_whole_remove(&l, name, err);
	else if (!strcmp(what, "gc"))
		status = volume_tidy(&l, name, err);
	else if (!strcmp(what, "warm") && name)
		status = volume_whole_warm(&l, name, err);
	else
		status = err_set(err, ERR_USAGE,
				 "volume: expected ls [PATH], get PATH, put FILE, create NAME, rm "
				 "NAME, gc [NAME] or warm "
				 "NAME (see `burst help volume`)");
	launch_free(&l);
	return status ? status : cmd_flush(err);
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "only at this provider", "provider", false},
	{0, "older-than", "AGE", "gc: only runs that ended at least this long ago (default 14d)",
	 NULL, false},
	{'n', "dry-run", NULL, "gc: show what would be removed, and exit", NULL, false},
	{0, "config", "FILE", "the project's file or folder (default: this folder)", NULL, false},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths", false},
	{0, "max-volume-gb", "GB", "create: let the project's file choose a size up to this",
	 "max_volume_gb", false},
	{0, "memory", "GB", "warm: memory of the pod, when its setup needs more than 4 GB", NULL,
	 false},
	{0, "max-cost", "USD", "warm: stop before it has cost this much", "caps.max_cost", false},
	{0, "engine", "ENGINE", "warm: for a job with this engine", "job.engine", false},
	{0, "force", NULL,
	 "gc: also old runs unknown to this ledger, and outputs that are not fetched", NULL, false},
	{0},
};

const struct cmd cmd_volume = {
	.name = "volume",
	.args = "ls|get|put|create|rm|gc|warm [NAME] [PATH]",
	.min_args = 1,
	.max_args = 3,
	.summary = "list, create, remove, clean up or fill volumes (they bill until removed)",
	.details = "`burst volume ls VOLUME:PATH` lists a folder, `burst volume get VOLUME:PATH "
		   "[FILE]` fetches a file, and `burst volume put FILE [VOLUME:PATH]` stores one, "
		   "all without a pod. Without VOLUME: the volume of burst.cfg.\n\n`burst volume "
		   "gc [NAME]` removes, from one volume or from all, the folders "
		   "of runs that ended 14 days ago and whose outputs are all fetched, and what "
		   "an interrupted build left. Active runs are never touched; code, "
		   "environments and weights stay.\n\n`burst volume warm NAME` rents the "
		   "cheapest pod without a GPU beside the volume, shows the maximum cost first, "
		   "and stores what the job needs before it can start: worker files, code, "
		   "packages, the result of its setup. A later run finds all that and waits for "
		   "no download.",
	.opts = opts,
	.needs = NEED_LEDGER | NEED_CONFIG,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
