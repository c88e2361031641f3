/* volume_gc.c - removes from a volume what no run needs. */
#include "volume_gc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "engine/caller.h"
#include "store/facts.h"

enum { ASK_MS = 3600000, LIST_MS = 60000 };
#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct gc {
	const struct runs *rs;
	const struct engine_provider *p;
	const struct volume_row *v;
	const struct gc_want *want;
	int64_t now_ms, folders, bytes;
	int pods_live; /* -1: not checked yet */
};

/* Carries out one operation on the volume. Free *result. */
static int perform_op(const struct gc *gc, enum op_kind kind, const char *path,
		      struct op_result *result, struct err *err)
{
	struct op_want want = {.file.path = path};

	COPY_TEXT(want.file.volume.provider, gc->v->provider);
	COPY_TEXT(want.file.volume.id, gc->v->id);
	COPY_TEXT(want.file.volume.name, gc->v->name);
	COPY_TEXT(want.file.volume.region, gc->v->region);
	if (caller_perform(gc->p, kind, &want, ASK_MS, result, err) < 0)
		return err_wrap(err, "%s", gc->v->provider);
	return 0;
}

/* Lists a folder. A missing folder is empty. */
static int list_folder(const struct gc *gc, const char *path, struct op_result *result,
		       struct err *err)
{
	if (perform_op(gc, OP_VOLUME_LS, path, result, err) == 0)
		return 0;
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	*result = (struct op_result){0};
	return 0;
}

PRINTF(2, 3) static void tell_line(const struct gc *gc, const char *fmt, ...)
{
	va_list args;
	char *line;

	va_start(args, fmt);
	int len = vasprintf(&line, fmt, args);
	va_end(args);
	if (len < 0)
		abort();
	gc->want->tell(gc->want->ctx, line);
	free(line);
}

static void tell_kept(const struct gc *gc, const char *path, const char *why)
{
	tell_line(gc, "%s: %s stays: %s", gc->v->name, path, why);
}

/* Measures a folder if the vendor does not report its size with the list. */
static int measure_folder(const struct gc *gc, const char *path, struct volume_entry *e,
			  struct err *err)
{
	struct op_result result = {0};

	if (e->bytes >= 0 || !e->folder)
		return 0;
	if (perform_op(gc, OP_VOLUME_SIZE, path, &result, err) < 0)
		return -1;
	if (result.entry_count) {
		e->bytes = result.entries[0].bytes;
		e->files = result.entries[0].files;
		e->changed_s = result.entries[0].changed_s;
	}
	op_result_free(&result);
	return 0;
}

/* 1: a pod may be at work, 0: none, -1: *err. If files keep an archive's dates, age proves nothing,
 * so any burst pod on this account may use the volume. */
static int may_be_at_work(struct gc *gc, struct err *err)
{
	struct op_result result = {0};

	if (gc->pods_live >= 0)
		return gc->pods_live;
	if (caller_perform(gc->p, OP_LIST, NULL, LIST_MS, &result, err) < 0)
		return err_wrap(err, "%s", gc->v->provider);
	gc->pods_live = 0;
	for (size_t i = 0; i < result.pod_count; i++)
		gc->pods_live |= result.pods[i].state != POD_STATE_GONE;
	op_result_free(&result);
	return gc->pods_live;
}

/* 1: nothing in it changed for this long and no pod is at work there; 0: not so; -1: *err. */
static int is_unused(struct gc *gc, const char *path, struct volume_entry *e, int64_t age_ms,
		     struct err *err)
{
	bool mtimes_unreliable = e->folder && e->bytes < 0;

	if (measure_folder(gc, path, e, err) < 0)
		return -1;
	/* without a date it may be new */
	if (e->changed_s <= 0 || e->changed_s * 1000 > gc->now_ms - age_ms)
		return 0;
	int working = mtimes_unreliable ? may_be_at_work(gc, err) : 0;
	if (working > 0)
		tell_kept(gc, path, "an active pod may be working there (see `burst ps`)");
	return working < 0 ? -1 : !working;
}

/* Removes the folder or, in a dry run, measures it; tells and counts that. */
static int remove_entry(struct gc *gc, const char *path, struct volume_entry *e, const char *why,
			struct err *err)
{
	struct op_result result = {0};
	char size[32];

	if (gc->want->dry_run && measure_folder(gc, path, e, err) < 0)
		return -1;
	if (!gc->want->dry_run && perform_op(gc, OP_VOLUME_DELETE, path, &result, err) < 0)
		return -1;
	int64_t bytes = e->bytes >= 0 ? e->bytes : result.bytes;
	op_result_free(&result);
	tell_line(gc, "%s: %s %s (%s): %s", gc->v->name, path,
		  gc->want->dry_run ? "would be removed" : "removed",
		  bytes_show(size, sizeof(size), bytes), why);
	gc->folders++;
	gc->bytes += bytes;
	return 0;
}

/* ---- runs ---- */

/* Counts outputs that may exist only on the volume. A failed segment left none. */
static int count_not_local(const struct gc *gc, const struct run_row *run, int64_t *open,
			   struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0;
	int64_t settled = run->cached;

	*open = 0;
	if (run->status == RUN_DONE)
		return 0;
	if (store_segments(gc->rs->store, run->id, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		settled += rows[i].state == SEGMENT_ROW_SAFE || rows[i].state == SEGMENT_ROW_FAILED;
	free(rows);
	*open = MAX(run->total - settled, 0);
	return 0;
}

static int has_pods(const struct gc *gc, const char *run, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(gc->rs->store, run, true, &pods, &count, err) < 0)
		return -1;
	free(pods);
	return count > 0;
}

/* Locks a run that is over, so that no command resumes it meanwhile. Returns false if another holds
 * it. *fd is -1 if its local folder is gone. */
static bool lock_ended_run(const struct gc *gc, const char *run, int *fd)
{
	CLEANUP(free_text) char *path = run_path(gc->rs, run, "lock");

	char note[64];

	*fd = -1;
	if (!path_exists(path))
		return true;
	snprintf(note, sizeof(note), "volume gc, process %ld\n", (long)getpid());
	return path_lock(path, note, fd, NULL) == 0;
}

static void volume_key(char key[SHA256_NAME], const char *provider, const char *volume_id)
{
	CLEANUP(free_text) char *volume = xasprintf("%s\n%s", provider, volume_id);

	sha256_name(volume, key);
}

bool volume_gc_is_noted(struct store *store, const char *run, const char *provider,
			const char *volume_id)
{
	char key[SHA256_NAME], when[32];

	volume_key(key, provider, volume_id);
	return fact_get(store, FACT_VOLUME_TAKEN, run, key, when, sizeof(when));
}

int volume_gc_note(struct store *store, const char *run, const char *provider,
		   const char *volume_id, struct err *err)
{
	char key[SHA256_NAME], when[32];

	volume_key(key, provider, volume_id);
	return fact_put(store, FACT_VOLUME_TAKEN, run, key,
			clock_rfc3339(when, sizeof(when), clock_wall_ms()), err);
}

/* Removes the folder of a run of this ledger if the run is over, old enough and fetched. */
static int tidy_known_run(struct gc *gc, const char *path, struct volume_entry *e, struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	struct run_row run;
	char why[160], when[32];
	int64_t open = 0;

	if (!lock_ended_run(gc, e->name, &lock)) {
		tell_kept(gc, path, "the run is active");
		return 0;
	}
	/* read under the lock, so the result cannot change */
	int pods = has_pods(gc, e->name, err);
	if (pods < 0 || store_run(gc->rs->store, e->name, &run, err) < 0 ||
	    count_not_local(gc, &run, &open, err) < 0)
		return -1;
	if (pods || run.status == RUN_RUNNING || run.ended_ms <= 0) {
		tell_kept(gc, path,
			  pods ? "its pods may still be active (see `burst ps`)"
			       : "the run has not ended (`burst resume` or `burst reap`)");
		return 0;
	}
	if (run.ended_ms > gc->now_ms - gc->want->age_ms)
		return 0;
	clock_rfc3339(when, sizeof(when), run.ended_ms);
	if (open && !gc->want->force) {
		snprintf(why, sizeof(why),
			 "%lld of %lld outputs are not fetched (`burst fetch %s`; --force "
			 "removes them)",
			 (long long)open, (long long)run.total, run.id);
		tell_kept(gc, path, why);
		return 0;
	}
	if (open)
		snprintf(why, sizeof(why), "%s, ended %.10s, %lld outputs never fetched",
			 run_status_word(run.status), when, (long long)open);
	else
		snprintf(why, sizeof(why), "%s, ended %.10s, all outputs fetched",
			 run_status_word(run.status), when);
	/* record it before the removal: a partial folder is useless too */
	if (!gc->want->dry_run &&
	    volume_gc_note(gc->rs->store, run.id, gc->v->provider, gc->v->id, err) < 0)
		return -1;
	return remove_entry(gc, path, e, why, err);
}

/* Removes the folder of another ledger's run if it is old enough and the user forces it. */
static int tidy_unknown_run(struct gc *gc, const char *path, struct volume_entry *e,
			    struct err *err)
{
	char why[100], when[32];

	/* a run of another user or machine may be at work there, whatever the requested age */
	int left = is_unused(gc, path, e, MAX(gc->want->age_ms, DAY_MS), err);
	if (left <= 0)
		return left;
	clock_rfc3339(when, sizeof(when), e->changed_s * 1000);
	snprintf(why, sizeof(why), "not in this ledger, last changed %.10s", when);
	if (gc->want->force)
		return remove_entry(gc, path, e, why, err);
	strncat(why, " (--force removes it)", sizeof(why) - strlen(why) - 1);
	tell_kept(gc, path, why);
	return 0;
}

static int tidy_run(struct gc *gc, struct volume_entry *e, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("runs/%s", e->name);
	struct run_row run;
	struct err why = {0};

	/* the name comes from pods */
	if (!path_is_safe(path) || strchr(e->name, '/'))
		return 0;
	/* only whole names: the ledger also finds a run by the start of its id */
	if (store_run(gc->rs->store, e->name, &run, &why) == 0)
		return !strcmp(run.id, e->name) ? tidy_known_run(gc, path, e, err)
						: tidy_unknown_run(gc, path, e, err);
	if (why.kind != ERR_NOT_FOUND && why.kind != ERR_USAGE) {
		*err = why;
		return -1;
	}
	return tidy_unknown_run(gc, path, e, err);
}

static int tidy_all_runs(struct gc *gc, struct err *err)
{
	struct op_result seen = {0};
	int status = list_folder(gc, "runs", &seen, err);

	for (size_t i = 0; i < seen.entry_count && status == 0; i++)
		status = tidy_run(gc, &seen.entries[i], err);
	op_result_free(&seen);
	return status;
}

/* ---- partial builds ---- */

/* Trees and environments are built under names that begin with a dot, agents under HASH.PROCESS.
 * Code that was staged for a pod that never came is staged/TREE.PART. */
static bool is_half_built(const char *dir, const char *name)
{
	const char *dot = strchr(name, '.');

	if (strcmp(dir, "agent") != 0 && strcmp(dir, "staged") != 0)
		return dot == name;
	return dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0';
}

static int tidy_half_builds(struct gc *gc, const char *dir, struct err *err)
{
	struct op_result seen = {0};
	int status = list_folder(gc, dir, &seen, err);

	for (size_t i = 0; i < seen.entry_count && status == 0; i++) {
		struct volume_entry *e = &seen.entries[i];
		CLEANUP(free_text) char *path = xasprintf("%s/%s", dir, e->name);
		if (!is_half_built(dir, e->name) || !path_is_safe(path))
			continue;
		int left = is_unused(gc, path, e, DAY_MS, err);
		status = left > 0 ? remove_entry(gc, path, e, "an unfinished build", err) : left;
	}
	op_result_free(&seen);
	return status;
}

int volume_gc(const struct runs *rs, const struct engine_provider *p, const struct volume_row *v,
	      const struct gc_want *want, struct err *err)
{
	static const char *const built[] = {"code", "kit", "env", "debs", "agent", "staged"};
	struct gc gc = {
		.rs = rs, .p = p, .v = v, .want = want, .now_ms = clock_wall_ms(), .pods_live = -1};
	char size[32];

	if (!p->ops->can_tidy) /* one that lacks keys says so itself */
		return err_set(err, ERR_USAGE, "volume %s: %s cannot remove files without a pod",
			       v->name, v->provider);
	int status = tidy_all_runs(&gc, err);
	for (size_t i = 0; i < ARRAY_LEN(built) && status == 0; i++)
		status = tidy_half_builds(&gc, built[i], err);
	if (status < 0)
		return err_wrap(err, "volume %s", v->name);
	tell_line(&gc, "%s: %lld folder%s, %s %s", v->name, (long long)gc.folders,
		  gc.folders == 1 ? "" : "s", bytes_show(size, sizeof(size), gc.bytes),
		  want->dry_run ? "would be removed" : "freed");
	return 0;
}
