/* volume.c - `burst volume`: lists, makes, warms, cleans and removes volumes, and copies single
 * files. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/pattern.h"
#include "base/path.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/volume.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/caller.h"
#include "runs/volume_gc.h"

/* ---- files of a volume ---- */

/* limits for a provider's reply: with a file or a folder, or about volumes */
enum { ASK_MS = 3600 * 1000, FIND_ASK_MS = 60000 };
#define FILE_MOST (INT64_C(1) << 40) /* bytes of a fetched file */

/* Splits "tts-cache:env/x": *name is the part before the colon, which the caller frees, or NULL;
 * *path points to the rest, without leading "/". ERR_USAGE: the path cannot be on a volume. */
static int split_volume_path(const char *text, char **name, const char **path, struct err *err)
{
	const char *colon = strchr(text, ':');
	const char *rest = colon ? colon + 1 : text;

	rest += strspn(rest, "/");
	if (*rest && !path_is_safe(rest))
		return err_set(err, ERR_USAGE, "volume: \"%.60s\" is not a path on a volume", text);
	*name = colon && colon > text ? xstrndup(text, (size_t)(colon - text)) : NULL;
	*path = rest;
	return 0;
}

/* A provider's operation on this file or folder of the volume; borrows path. */
static struct op_want file_want(const struct volume_row *v, const char *path)
{
	struct op_want want = {.file.path = path};

	COPY_TEXT(want.file.volume.provider, v->provider);
	COPY_TEXT(want.file.volume.id, v->id);
	COPY_TEXT(want.file.volume.name, v->name);
	COPY_TEXT(want.file.volume.region, v->region);
	return want;
}

/* Returns -1 with ERR_USAGE. what: "list". */
static int cannot_without_pod(const struct volume_row *v, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "volume %s: %s cannot %s files there without a pod, or has no keys for that "
		       "(see `burst doctor`)",
		       v->name, v->provider, what);
}

static int compare_name(const void *a, const void *b)
{
	return natural_order(((const struct volume_entry *)a)->name,
			     ((const struct volume_entry *)b)->name);
}

static void print_entries(struct volume_entry *list, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char when[32];

	if (count)
		qsort(list, count, sizeof(*list), compare_name);
	table_column(t, "NAME", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "BYTES", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "CHANGED (UTC)", TABLE_LEFT, 1);
	for (size_t i = 0; i < count; i++) {
		clock_rfc3339(when, sizeof(when), list[i].changed_s * 1000);
		table_cell(t, "%s%s", list[i].name, list[i].folder ? "/" : "");
		if (list[i].bytes < 0)
			table_cell(t, "-");
		else
			table_cell(t, "%lld", (long long)list[i].bytes);
		table_cell(t, "%s", list[i].changed_s > 0 ? when : "-");
	}
	table_print(t, stdout, terminal_width(stdout));
}

/* Prints the contents of a folder. */
static int list_folder(const struct engine_provider *p, const struct volume_row *v,
		       const char *path, struct err *err)
{
	struct op_want want = file_want(v, path);
	struct op_result result = {0};

	if (!provider_can_tidy(p->ops, p->handle, &want.file.volume))
		return cannot_without_pod(v, "list", err);
	if (caller_perform(p, OP_VOLUME_LS, &want, ASK_MS, &result, err) < 0)
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_USAGE, "volume %s has no folder \"%s\"", v->name,
					 path)
			       : err_wrap(err, "%s", v->provider);
	print_entries(result.entries, result.entry_count);
	op_result_free(&result);
	return 0;
}

/* Copies a file of the volume to a new local file. ERR_USAGE if that exists. */
static int fetch_file(const struct engine_provider *p, const struct volume_row *v, const char *path,
		      const char *file, struct err *err)
{
	CLEANUP(free_text) char *part = xasprintf("%s%s", file, PATH_PART);
	struct op_want want = file_want(v, path);
	struct op_result result = {0};

	if (!provider_can_fetch(p->ops, p->handle, &want.file.volume))
		return cannot_without_pod(v, "read", err);
	if (path_exists(file))
		return err_set(err, ERR_USAGE, "%s already exists; nothing was changed", file);
	want.file.local = part;
	want.file.max_bytes = FILE_MOST;
	unlink(part);
	if (caller_perform(p, OP_FETCH, &want, ASK_MS, &result, err) < 0) {
		unlink(part);
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_USAGE, "volume %s has no file \"%s\"", v->name,
					 path)
			       : err_wrap(err, "%s", v->provider);
	}
	op_result_free(&result);
	if (rename(part, file) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", file, strerror(errno));
	output_line(stderr, "%s: from volume %s", file, v->name);
	return 0;
}

/* Copies a local file to the volume, over a file of this name. */
static int store_file(const struct engine_provider *p, const struct volume_row *v, const char *file,
		      const char *path, struct err *err)
{
	struct op_want want = file_want(v, path);
	struct op_result result = {0};
	struct stat st;

	if (!provider_can_stage(p->ops, p->handle, &want.file.volume))
		return cannot_without_pod(v, "write", err);
	if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: %s", file,
			       errno == ENOENT ? strerror(errno) : "is not a regular file");
	want.file.local = file;
	want.file.max_bytes = st.st_size;
	if (p->ops->stage_block_bytes &&
	    blocks_of_file(&want.file.blocks, file, p->ops->stage_block_bytes, err) < 0)
		return -1;
	int status = caller_perform(p, OP_STAGE, &want, ASK_MS, &result, err);
	blocks_free(&want.file.blocks);
	if (status < 0)
		return err_wrap(err, "%s", v->provider);
	op_result_free(&result);
	output_line(stderr, "%s: on volume %s as %s", file, v->name, path);
	return 0;
}

/* ---- find: a volume by name, as the providers list it now ---- */

/* Performs one operation that takes no file at a provider. Free *result with op_result_free() on
 * success. */
static int perform_at(const struct engine_provider *p, enum op_kind kind,
		      const struct op_want *want, struct op_result *result, struct err *err)
{
	return caller_perform(p, kind, want, FIND_ASK_MS, result, err) < 0
		       ? err_wrap(err, "%s", p->ops->name)
		       : 0;
}

/* Replaces the ledger's volumes by what the providers list. */
static int refresh_volumes(struct launch *l, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const struct engine_provider *p = &l->run.setup.providers[i];
		struct op_result result = {0};
		if (perform_at(p, OP_VOLUMES, NULL, &result, err) < 0) {
			free(rows);
			return -1;
		}
		for (size_t k = 0; k < count; k++)
			if (!strcmp(rows[k].provider, p->ops->name))
				store_remove_volume(l->ctx->store, rows[k].provider, rows[k].id,
						    NULL);
		for (size_t k = 0; k < result.volume_count; k++)
			volume_remember(l->ctx->store, p->ops->name, &result.volumes[k], NULL);
		op_result_free(&result);
	}
	free(rows);
	return 0;
}

/* Finds a volume by id or name, as the providers list it now. ERR_USAGE: there is none, or several
 * providers have one. */
static int find_volume(struct launch *l, const char *name, struct volume_row *out, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0, hits = 0;

	if (refresh_volumes(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (launch_provider(&l->run, rows[i].provider) &&
		    (!strcmp(rows[i].id, name) || !strcmp(rows[i].name, name))) {
			*out = rows[i];
			hits++;
		}
	free(rows);
	if (hits == 1)
		return 0;
	return err_set(err, ERR_USAGE,
		       hits ? "%s: several providers have a volume of that name; choose one with -p"
			    : "%s: no such volume (see `burst volume ls`)",
		       name);
}

/* Finds the volume of "NAME:PATH", or the config's for "PATH"; *path points into text. */
static int find_volume_path(struct launch *l, const char *text, struct volume_row *v,
			    const char **path, struct err *err)
{
	CLEANUP(free_text) char *name = NULL;
	const char *own = section_text(section_group(config_top(l->ctx->config), "volume"), "name");

	if (split_volume_path(text, &name, path, err) < 0)
		return -1;
	if (!name && !own)
		return err_set(err, ERR_USAGE,
			       "volume: no burst.cfg here names a volume: write VOLUME:PATH");
	return find_volume(l, name ? name : own, v, err);
}

/* ---- ls, get, put VOLUME:PATH ---- */

static int list_path(struct launch *l, const char *place, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (find_volume_path(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path) /* no provider can list a whole volume */
		return err_set(err, ERR_USAGE,
			       "volume ls: name a folder, as in %s:runs (burst keeps env, code, "
			       "agent and runs there)",
			       v.name);
	return list_folder(launch_provider(&l->run, v.provider), &v, path, err);
}

/* place: "NAME:PATH". file NULL: the name that it has on the volume, in the current folder. */
static int get_file(struct launch *l, const char *place, const char *file, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (find_volume_path(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path)
		return err_set(err, ERR_USAGE, "volume get: %s names no file", place);
	return fetch_file(launch_provider(&l->run, v.provider), &v, path,
			  file ? file : path_base(path), err);
}

/* place: "NAME:PATH"; a folder ("NAME:", "x/") or NULL (the config's volume) keeps file's name. */
static int put_file(struct launch *l, const char *file, const char *place, struct err *err)
{
	bool folder = !place || ends_with(place, ":") || ends_with(place, "/");
	CLEANUP(free_text)
	char *whole =
		folder ? xasprintf("%s%s", place ? place : "", path_base(file)) : xstrdup(place);
	struct volume_row v;
	const char *path;

	if (find_volume_path(l, whole, &v, &path, err) < 0)
		return -1;
	return store_file(launch_provider(&l->run, v.provider), &v, file, path, err);
}

/* ---- gc: one volume or all ---- */

#define KEEP_MS (INT64_C(14) * 24 * 3600 * 1000) /* default of --older-than */

/* Collects garbage on all volumes where that needs no pod; goes on after a failure. Returns -1 with
 * the first one. */
static int collect_garbage_everywhere(struct launch *l, const struct gc_want *want, struct err *err)
{
	struct volume_row *rows = NULL;
	size_t count = 0;
	int status = 0;

	if (refresh_volumes(l, err) < 0 || store_volumes(l->ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct engine_provider *p = launch_provider(&l->run, rows[i].provider);
		struct volume there = {0};
		struct err why = {0};
		COPY_TEXT(there.id, rows[i].id);
		COPY_TEXT(there.region, rows[i].region);
		if (p && !provider_can_tidy(p->ops, p->handle, &there))
			log_line(LOG_NOTE,
				 "volume %s: %s cannot remove files there without a pod, unless it "
				 "has keys for that (see `burst doctor`): not changed",
				 rows[i].name, rows[i].provider);
		else if (!p || volume_gc(&l->ctx->runs, p, &rows[i], want, &why) == 0)
			continue;
		else if (status < 0)
			log_line(LOG_WARN, "%s", why.msg);
		else { /* continue with the others */
			*err = why;
			status = -1;
		}
	}
	free(rows);
	return status;
}

static void print_line(void *ctx, const char *line)
{
	(void)ctx;
	output_line(stdout, "%s", line);
}

static int collect_garbage(struct launch *l, const char *name, struct err *err)
{
	struct gc_want want = {.age_ms = KEEP_MS,
			       .force = opt_has(l->ctx, "force"),
			       .dry_run = opt_has(l->ctx, "dry-run"),
			       .tell = print_line};
	struct volume_row v;

	if (opt_duration(l->ctx, "older-than", &want.age_ms, err) < 0)
		return -1;
	if (want.force && !want.dry_run &&
	    !cmd_confirm(l->ctx, "also remove what other machines left there, and outputs that are "
				 "not fetched?"))
		return err_set(err, ERR_USAGE,
			       "nothing was removed (-y with --force removes without asking; -n "
			       "shows what)");
	if (!name)
		return collect_garbage_everywhere(l, &want, err);
	return find_volume(l, name, &v, err) < 0
		       ? -1
		       : volume_gc(&l->ctx->runs, launch_provider(&l->run, v.provider), &v, &want,
				   err);
}

/* ---- ls, create, rm, warm: whole volumes ---- */

static int list_volumes(struct launch *l, struct err *err)
{
	int count =
		refresh_volumes(l, err) < 0 ? -1 : report_volumes(l->ctx->store, stdout, NULL, err);

	if (!count)
		log_line(LOG_NOTE, "no volume");
	return count < 0 ? -1 : 0;
}

/* Makes the volume at the first provider, or finds it there, and prints its price. */
static int create_volume(struct launch *l, const char *name, struct err *err)
{
	struct volume_row row;
	char price[32];

	if (volume_trust_size(l->ctx, l->run.setup.providers[0].ops->name, name, l->order.volume_gb,
			      err) < 0)
		return -1;
	int made = volume_make(l->ctx, &l->run.setup.providers[0], name, l->order.volume_gb,
			       l->order.gpus, &row, err);
	if (made < 0)
		return -1;
	bool priced = price_is_given(row.provider, row.price_microusd_month);
	output_line(stdout, "volume %s of %s: %lld GB, %s%s", row.name, row.provider,
		    (long long)row.size_gb,
		    priced ? money_show(price, sizeof(price), row.price_microusd_month)
			   : "no price given",
		    priced ? " a month" : "");
	/* 1: it is new, and the project may use it from now on. 0: it existed. It may belong to
	 * another project, so a run will ask whether to use it. */
	return made ? volume_trust_note(l->ctx, row.provider, name, err) : 0;
}

/* ERR_USAGE: a pod in the ledger uses the volume now. */
static int check_unused(struct launch *l, const struct volume_row *v, struct err *err)
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

static int remove_volume(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	struct op_want want = {0};
	struct op_result result = {0};

	if (find_volume(l, name, &v, err) < 0 || check_unused(l, &v, err) < 0)
		return -1;
	if (!cmd_confirm(l->ctx, "remove volume %s of %s and all that is on it?", v.name,
			 v.provider))
		return err_set(err, ERR_USAGE, "volume %s is kept (-y removes it without asking)",
			       v.name);
	COPY_TEXT(want.id, v.id);
	if (perform_at(launch_provider(&l->run, v.provider), OP_VOLUME_REMOVE, &want, &result,
		       err) < 0)
		return -1;
	op_result_free(&result);
	store_remove_volume(l->ctx->store, v.provider, v.id, NULL);
	volume_intent_drop(l->ctx->store, launch_provider(&l->run, v.provider), v.name);
	volume_trust_forget(l->ctx, v.provider, v.name, NULL);
	output_line(stdout, "volume %s of %s: removed", v.name, v.provider);
	return 0;
}

/* Rents a pod that stores on the volume what the job needs before it can start. */
static int warm_volume(struct launch *l, const char *name, struct err *err)
{
	struct volume_row v;
	int64_t memory_gb = 0;

	if (opt_int(l->ctx, "memory", 1, 65536, &memory_gb, err) < 0)
		return -1;
	if (find_volume(l, name, &v, err) < 0 ||
	    volume_trust_note(l->ctx, v.provider, v.name, err) < 0)
		return -1;
	return volume_warm(l, &v, memory_gb, err);
}

/* ---- the command ---- */

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
	int status =
		check_flags(ctx, what, err) < 0 ? -1 : launch_open_providers(&l.order, &l.run, err);
	if (status < 0)
		;
	else if (!strcmp(what, "ls") && !name)
		status = list_volumes(&l, err);
	else if (!strcmp(what, "ls") && !third)
		status = list_path(&l, name, err);
	else if (!strcmp(what, "get") && name)
		status = get_file(&l, name, third, err);
	else if (!strcmp(what, "put") && name)
		status = put_file(&l, name, third, err);
	else if (third)
		status = err_set(err, ERR_USAGE, "volume %s: \"%.60s\" is one argument too many",
				 what, third);
	else if (!strcmp(what, "create") && name)
		status = create_volume(&l, name, err);
	else if (!strcmp(what, "rm") && name)
		status = remove_volume(&l, name, err);
	else if (!strcmp(what, "gc"))
		status = collect_garbage(&l, name, err);
	else if (!strcmp(what, "warm") && name)
		status = warm_volume(&l, name, err);
	else
		status = err_set(err, ERR_USAGE,
				 "volume: expected ls [PATH], get PATH, put FILE, create NAME, rm "
				 "NAME, gc [NAME] or warm NAME (see `burst help volume`)");
	launch_free(&l);
	return status ? status : cmd_flush(err);
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "only at this provider", "provider"},
	{0, "older-than", "AGE", "gc: only runs that ended at least this long ago (default 14d)"},
	{'n', "dry-run", NULL, "gc: show what would be removed, and exit"},
	{0, "config", "FILE", "the project's file or folder (default: this folder)"},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths"},
	{0, "max-volume-gb", "GB", "create: let the project's file choose a size up to this",
	 "max_volume_gb"},
	{0, "memory", "GB", "warm: memory of the pod, when its setup needs more than 4 GB"},
	{0, "max-cost", "USD", "warm: stop before it has cost this much", "caps.max_cost"},
	{0, "engine", "ENGINE", "warm: for a job with this engine", "job.engine"},
	{0, "force", NULL,
	 "gc: also old runs unknown to this ledger, and outputs that are not fetched"},
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
		   "gc [NAME]` removes, from one volume or from all, the folders of runs that "
		   "ended 14 days ago and whose outputs are all fetched, and what an interrupted "
		   "build left. Active runs are never touched; code, environments and weights "
		   "stay.\n\n`burst volume warm NAME` rents the cheapest pod without a GPU beside "
		   "the volume, shows the maximum cost first, and stores what the job needs before "
		   "it can start: worker files, code, packages, the result of its setup. A later "
		   "run finds all that and waits for no download.",
	.opts = opts,
	.needs = NEED_LEDGER | NEED_CONFIG,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
