/* volume.c - `burst volume`: lists, makes, warms, cleans and removes volumes. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "engine/caller.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "cmd/volumes/volume_files.h"
#include "cmd/volumes/volume_gc.h"
#include "cmd/volumes/volume_make.h"
#include "cmd/launch/volume_trust.h"
#include "cmd/launch/volume_warm.h"

enum { ASK_MS = 60000 };
#define KEEP_MS (INT64_C(14) * 24 * 3600 * 1000)

static struct engine_provider *provider_named(struct launch *l, const char *name)
{
	for (int i = 0; i < l->run.setup.provider_count; i++)
		if (!strcmp(l->run.setup.providers[i].ops->name, name))
			return &l->run.setup.providers[i];
	return NULL;
}

static int ask(const struct engine_provider *p, enum op_kind kind, const struct op_want *want,
	       struct op_result *result, struct err *err)
{
	return caller_ask(p, kind, want, ASK_MS, result, err) < 0
		       ? err_wrap(err, "%s", p->ops->name)
		       : 0;
}

/* What the providers say replaces what we remember of them. */
static int look(struct launch *l, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const struct engine_provider *p = &l->run.setup.providers[i];
		struct op_result result = {0};
		if (ask(p, OP_VOLUMES, NULL, &result, err) < 0) {
			free(rows);
			return -1;
		}
		for (size_t k = 0; k < count; k++)
			if (!strcmp(rows[k].provider, p->ops->name))
				store_remove_volume(l->ctx->store, rows[k].provider, rows[k].id,
						    NULL);
		for (size_t k = 0; k < result.volume_count; k++)
			volume_remember(l->ctx, p->ops->name, &result.volumes[k], NULL);
		op_result_free(&result);
	}
	free(rows);
	return 0;
}

static int list(struct launch *l, struct err *err)
{
	int count = look(l, err) < 0 ? -1 : report_volumes(l->ctx->store, stdout, NULL, err);

	if (!count)
		log_line(LOG_NOTE, "no volume");
	return count < 0 ? -1 : 0;
}

static int find(struct launch *l, const char *name, struct volume_row *out, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0, hits = 0;

	if (look(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (provider_named(l, rows[i].provider) &&
		    (!strcmp(rows[i].id, name) || !strcmp(rows[i].name, name))) {
			*out = rows[i];
			hits++;
		}
	free(rows);
	if (hits == 1)
		return 0;
	return err_set(err, ERR_USAGE,
		       hits ? "%s: several providers have a volume of that name; choose one "
			      "with -p"
			    : "%s: no such volume (see `burst volume ls`)",
		       name);
}

static int make(struct launch *l, const char *name, struct err *err)
{
	struct volume_row row;
	char price[32];

	if (volume_trust_size(l, name, err) < 0)
		return -1;
	int made = volume_make(l, &l->run.setup.providers[0], name, launch_gpus(l), &row, err);
	if (made < 0)
		return -1;
	output_line(stdout, "volume %s of %s: %lld GB, %s a month", row.name, row.provider,
		    (long long)row.size_gb,
		    money_show(price, sizeof(price), row.price_microusd_month));
	/* an existing volume may belong to another project: a run asks */
	return made ? volume_trust_note(l, row.provider, name, err) : 0;
}

static int in_use(struct launch *l, const struct volume_row *v, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int used = 0;

	if (store_pods(l->ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		used += !strcmp(pods[i].volume_id, v->id);
	free(pods);
	return used ? err_set(err, ERR_USAGE, "volume %s: a pod uses it now (see `burst ps`)",
			      v->name)
		    : 0;
}

static int drop(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	struct op_want want = {0};
	struct op_result result = {0};

	if (find(l, name, &v, err) < 0 || in_use(l, &v, err) < 0)
		return -1;
	if (!cmd_confirm(l->ctx, "remove volume %s of %s and all that is on it?", v.name,
			 v.provider))
		return err_set(err, ERR_USAGE, "volume %s is kept (-y removes it without asking)",
			       v.name);
	COPY_TEXT(want.id, v.id);
	if (ask(provider_named(l, v.provider), OP_VOLUME_REMOVE, &want, &result, err) < 0)
		return -1;
	op_result_free(&result);
	store_remove_volume(l->ctx->store, v.provider, v.id, NULL);
	volume_trust_forget(l, v.provider, v.name, NULL);
	output_line(stdout, "volume %s of %s: removed", v.name, v.provider);
	return 0;
}

/* The volumes that can be tidied; one that is named must be. */
static int tidy_all(struct launch *l, const struct gc_want *want, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;
	int status = 0;

	if (look(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct engine_provider *p = provider_named(l, rows[i].provider);
		struct err why = {0};
		struct volume v = {0};
		COPY_TEXT(v.id, rows[i].id);
		COPY_TEXT(v.region, rows[i].region);
		if (p && !provider_can_tidy(p->ops, p->handle, &v))
			log_line(LOG_NOTE,
				 "volume %s: %s cannot remove files %s without a pod%s: not "
				 "changed",
				 rows[i].name, rows[i].provider,
				 rows[i].region[0] ? rows[i].region : "there",
				 p->ops->can_tidy
					 ? " unless it has keys for that (see `burst doctor`)"
					 : "");
		else if (p && volume_gc(l->ctx, p, &rows[i], want, &why) < 0 && status == 0) {
			/* the others are tidied all the same */
			*err = why;
			status = -1;
		} else if (why.kind) {
			log_line(LOG_WARN, "%s", why.msg);
		}
	}
	free(rows);
	return status;
}

static int tidy(struct launch *l, const char *name, struct err *err)
{
	struct gc_want want = {.age_ms = KEEP_MS,
			       .force = opt_has(l->ctx, "force"),
			       .dry_run = opt_has(l->ctx, "dry-run")};
	struct volume_row v;

	if (opt_duration(l->ctx, "older-than", &want.age_ms, err) < 0)
		return -1;
	if (want.force && !want.dry_run &&
	    !cmd_confirm(l->ctx,
			 "also remove what other machines left there, and outputs that are not "
			 "fetched?"))
		return err_set(err, ERR_USAGE,
			       "nothing was removed (-y with --force removes without asking; -n "
			       "shows what)");
	if (!name)
		return tidy_all(l, &want, err);
	return find(l, name, &v, err) < 0
		       ? -1
		       : volume_gc(l->ctx, provider_named(l, v.provider), &v, &want, err);
}

static int fill(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	int64_t memory_gb = 0;

	if (opt_int(l->ctx, "memory", 1, 65536, &memory_gb, err) < 0)
		return -1;
	if (find(l, name, &v, err) < 0 || volume_trust_note(l, v.provider, v.name, err) < 0)
		return -1;
	return volume_warm(l, &v, memory_gb, stdout, err);
}

/* The volume that "NAME:PATH" names; without NAME the one of the config. */
static int find_place(struct launch *l, const char *text, struct volume_row *v, const char **path,
		      struct err *err)
{
	CLEANUP(free_text) char *name = NULL;
	const char *own = section_text(section_group(config_top(l->ctx->config), "volume"), "name");

	if (volume_split(text, &name, path, err) < 0)
		return -1;
	if (!name && !own)
		return err_set(err, ERR_USAGE,
			       "volume: no burst.cfg here names a volume: write VOLUME:PATH");
	return find(l, name ? name : own, v, err);
}

static int list_folder(struct launch *l, const char *place, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (find_place(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path) /* no provider lists a whole volume */
		return err_set(err, ERR_USAGE,
			       "volume ls: name a folder, as in %s:runs (burst keeps env, code, "
			       "agent and runs there)",
			       v.name);
	return volume_list_folder(provider_named(l, v.provider), &v, path, err);
}

static int get_file(struct launch *l, const char *place, const char *file, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (find_place(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path)
		return err_set(err, ERR_USAGE, "volume get: %s names no file", place);
	return volume_get_file(provider_named(l, v.provider), &v, path,
			       file ? file : path_base(path), err);
}

/* Into a folder ("env/") under its own name. */
static int put_file(struct launch *l, const char *file, const char *place, struct err *err)
{
	bool folder = !place || ends_with(place, ":") || ends_with(place, "/");
	CLEANUP(free_text)
	char *whole =
		folder ? xasprintf("%s%s", place ? place : "", path_base(file)) : xstrdup(place);
	struct volume_row v;
	const char *path;

	if (find_place(l, whole, &v, &path, err) < 0)
		return -1;
	return volume_put_file(provider_named(l, v.provider), &v, file, path, err);
}

/* Flags that only one of them has. */
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
		status = list(&l, err);
	else if (!strcmp(what, "ls") && !third)
		status = list_folder(&l, name, err);
	else if (!strcmp(what, "get") && name)
		status = get_file(&l, name, third, err);
	else if (!strcmp(what, "put") && name)
		status = put_file(&l, name, third, err);
	else if (third)
		status = err_set(err, ERR_USAGE, "volume %s: \"%.60s\" is one argument too many",
				 what, third);
	else if (!strcmp(what, "create") && name)
		status = make(&l, name, err);
	else if (!strcmp(what, "rm") && name)
		status = drop(&l, name, err);
	else if (!strcmp(what, "gc"))
		status = tidy(&l, name, err);
	else if (!strcmp(what, "warm") && name)
		status = fill(&l, name, err);
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
