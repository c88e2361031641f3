/* fetch.c - `burst fetch`: copies the outputs of an ended run from its volume. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "engine/caller.h"
#include "launch.h"
#include "output.h"
#include "runs/keys.h"
#include "find_run.h"
#include "sync/receive.h"

enum { ASK_MS = 600000, EVENTS_MAX_BYTES = 512 << 20, FILE_MAX_BYTES = 256 << 20 };

struct gather {
	struct launch *l;
	const struct run_row *run;
	const struct segment *segments;
	size_t count, home, lost;
	struct run_keys *keys; /* what the segments were when the run began */
	char *dir;             /* where a provider puts what it fetched */
};

/* One file of a volume, to dir/name; the path is foreign. The local path, to be freed; NULL on
 * error. */
static char *from_volume(struct gather *g, const struct engine_provider *p,
			 const struct pod_row *pod, const char *path, const char *name,
			 int64_t most, struct err *err)
{
	CLEANUP(free_text) char *local = path_join(g->dir, name);
	struct op_want want = {0};
	struct op_result result = {0};

	if (!path_is_safe(path)) {
		err_set(err, ERR_UNTRUSTED, "the pod named an unsafe path");
		return NULL;
	}
	path_remove_tree(local, NULL);
	COPY_TEXT(want.file.volume.provider, pod->provider);
	COPY_TEXT(want.file.volume.id, pod->volume_id);
	COPY_TEXT(want.file.volume.name, pod->volume_name);
	COPY_TEXT(want.file.volume.region, pod->region);
	want.file.path = path;
	want.file.local = local;
	want.file.max_bytes = most;
	if (caller_ask(p, OP_FETCH, &want, ASK_MS, &result, err) < 0)
		return NULL;
	op_result_free(&result);
	return TAKE(local);
}

static int copy_in(struct receive *r, const char *local, struct err *err)
{
	CLEANUP(fd_close) int fd = open(local, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char buf[65536];
	off_t at = receive_offset(r);

	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", local, strerror(errno));
	for (ssize_t n; (n = pread(fd, buf, sizeof(buf), at)) != 0; at += n) {
		if (n < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", local, strerror(errno));
		if (receive_add(r, buf, (size_t)n, err) < 0)
			return -1;
	}
	return receive_finish(r, err);
}

static int remember(struct gather *g, const struct segment *s, const struct segment_result *result,
		    struct err *err)
{
	struct segment_row row = {.state = SEGMENT_ROW_SAFE,
				  .bytes = result->bytes,
				  .seconds = result->seconds,
				  .sample_rate = result->sample_rate,
				  .tries = result->tries};

	COPY_TEXT(row.run, g->run->id);
	COPY_TEXT(row.id, s->id);
	COPY_TEXT(row.key, s->key);
	COPY_TEXT(row.attempt, result->attempt);
	COPY_TEXT(row.file, s->file);
	COPY_TEXT(row.sha256, result->sha256);
	return store_put_segments(g->l->ctx->store, &row, 1, err);
}

/* Verified by the hash that the agent wrote down, looked at by the job, recorded, renamed into
 * place. */
static int keep(struct gather *g, size_t index, const char *local, struct segment_result *result,
		struct err *err)
{
	struct engine_setup *setup = &g->l->run.setup;
	const struct segment *s = &g->segments[index];
	struct receive *r = NULL;
	struct check check = {0};

	int status =
		receive_open(&r, g->l->run.output_dir, s->file, result->bytes, result->sha256, err);
	if (status == 0)
		status = copy_in(r, local, err);
	if (status == 0)
		status =
			setup->job_ops->check(setup->job, index, receive_part_path(r), &check, err);
	if (status == 0 && !check.ok)
		status = err_set(err, ERR_UNTRUSTED, "%s", check.reason);
	if (status == 0) {
		result->state = SEGMENT_SAFE;
		result->seconds = check.seconds > 0 ? check.seconds : result->seconds;
		result->sample_rate =
			check.sample_rate > 0 ? check.sample_rate : result->sample_rate;
		status = setup->job_ops->record(setup->job, index, result, 1, err);
	}
	if (status == 0)
		status = receive_keep(r, err);
	receive_drop(r, false);
	if (status == 0 && setup->job_ops->kept)
		setup->job_ops->kept(setup->job, index, result);
	return status < 0 ? -1 : remember(g, s, result, err);
}

static int64_t find_open(const struct gather *g, const char *id)
{
	for (size_t i = 0; i < g->count; i++)
		if (!strcmp(g->segments[i].id, id) && g->segments[i].file)
			return g->l->run.setup.results[i].state == SEGMENT_SAFE ? -1 : (int64_t)i;
	return -1;
}

static void take_segment(struct gather *g, const struct engine_provider *p,
			 const struct pod_row *pod, const json_t *event)
{
	int64_t index = find_open(g, jsonx_text(event, "id", ""));
	struct segment_result result = {.bytes = jsonx_int(event, "bytes", -1),
					.seconds = jsonx_number(event, "seconds", 0),
					.sample_rate = (int)jsonx_int(event, "rate", 0),
					.tries = (int)jsonx_int(event, "try", 1)};
	struct err err = {0};

	if (index < 0 || !jsonx_bool(event, "ok", false) || result.bytes < 0 ||
	    result.bytes > FILE_MAX_BYTES)
		return;
	if (!run_keys_fit(g->keys, &g->segments[index])) {
		log_line(LOG_WARN,
			 "%s: not fetched: the job's text or settings have changed since the "
			 "run (`burst run` renders it)",
			 g->segments[index].id);
		g->lost++;
		return;
	}
	COPY_TEXT(result.sha256, jsonx_text(event, "sha256", ""));
	COPY_TEXT(result.provider, pod->provider);
	COPY_TEXT(result.gpu, pod->gpu);
	COPY_TEXT(result.attempt, pod->attempt);
	CLEANUP(free_text)
	char *local = from_volume(g, p, pod, jsonx_text(event, "path", ""), "file",
				  result.bytes + 1, &err);
	if (!local || keep(g, (size_t)index, local, &result, &err) < 0) {
		log_line(LOG_WARN, "%s: %s", g->segments[index].id, err.msg);
		g->lost++;
		return;
	}
	g->l->run.setup.results[index] = result;
	g->home++;
}

static void take_events(struct gather *g, const struct engine_provider *p,
			const struct pod_row *pod, const char *text)
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		if (!line[len])
			break; /* the last line was cut when the pod died */
		CLEANUP(json_decref) json_t *event = jsonx_parse(line, len, NULL);
		if (event && !strcmp(jsonx_text(event, "ev", ""), "segment"))
			take_segment(g, p, pod, event);
		line += len + 1;
	}
}

static int gather_pod(struct gather *g, const struct pod_row *pod, struct err *err)
{
	struct engine_setup *setup = &g->l->run.setup;
	const struct engine_provider *p = NULL;
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%s/events.jsonl", pod->run, pod->attempt);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (run_open_account(&g->l->run, pod->provider, err) < 0)
		return -1;
	for (int i = 0; i < setup->provider_count; i++)
		if (!strcmp(setup->providers[i].ops->name, pod->provider))
			p = &setup->providers[i];
	struct volume volume = {0};

	COPY_TEXT(volume.id, pod->volume_id);
	COPY_TEXT(volume.region, pod->region);
	if (!pod->volume_id[0] || !provider_can_fetch(p->ops, p->handle, &volume)) {
		log_line(LOG_NOTE,
			 "pod %s had no volume that can be read without a pod: its files are "
			 "lost",
			 pod_row_called(pod));
		return 0;
	}
	CLEANUP(free_text)
	char *local = from_volume(g, p, pod, path, "events", EVENTS_MAX_BYTES, err);
	if (!local && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return 0; /* it never came so far as to finish anything */
	}
	if (!local || path_read(local, EVENTS_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "pod %s", pod_row_called(pod));
	take_events(g, p, pod, str_text(&text));
	return 0;
}

static int gather_all(struct gather *g, struct err *err)
{
	struct launch *l = g->l;
	CLEANUP(str_free) struct str notes = STR_INIT;
	struct pod_row *pods = NULL;
	size_t pod_count = 0, open;
	int status = 0;

	if (l->run.setup.job_ops->needs(l->run.setup.job)->command)
		return err_set(err, ERR_USAGE,
			       "run %s is a command: `burst resume %s` fetches its files",
			       g->run->id, g->run->id);
	CLEANUP(free_text) char *run_dir = run_path(&l->ctx->runs, g->run->id, NULL);
	if (run_keys_read(&g->keys, run_dir, err) < 0)
		return -1;
	g->dir = run_path(&l->ctx->runs, g->run->id, "gather");
	g->segments = l->run.setup.job_ops->segments(l->run.setup.job, &g->count);
	if (path_mkdirs(g->dir, 0700, err) < 0 ||
	    store_pods(l->ctx->store, g->run->id, false, &pods, &pod_count, err) < 0)
		return -1;
	for (size_t i = 0; i < pod_count && status == 0; i++)
		status = gather_pod(g, &pods[i], err);
	free(pods);
	path_remove_tree(g->dir, NULL);
	if (status < 0)
		return -1;
	if (g->home &&
	    l->run.setup.job_ops->finish(l->run.setup.job, l->run.setup.results, &notes, err) < 0)
		return -1;
	open = run_open_segments(&l->run);
	output_lines(stderr, str_text(&notes));
	output_line(
		stderr, "run %s: %zu file%s fetched, %zu of %zu segments still open; files in %s",
		g->run->id, g->home, g->home == 1 ? "" : "s", open, g->count, l->run.output_dir);
	return g->lost ? 1 : 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct run_row row;

	if (run_find(ctx, ctx->args[0], &row, err) < 0)
		return -1;
	if (run_is_alive(&ctx->runs, row.id))
		return err_set(err, ERR_BUSY,
			       "run %s is active and fetches its files itself (see `burst "
			       "attach %s`)",
			       row.id, row.id);
	if (launch_its_config(ctx, &row, err) < 0)
		return -1;
	launch_init(&l, ctx);
	struct gather g = {.l = &l, .run = &row};
	int status = launch_load_job(&l, err);
	if (status == 0)
		status = gather_all(&g, err);
	free(g.dir);
	run_keys_free(g.keys);
	launch_free(&l);
	return status;
}

const struct cmd cmd_fetch = {
	.name = "fetch",
	.args = "RUN",
	.min_args = 1,
	.max_args = 1,
	.summary = "fetch what a run's pods left on their volume",
	.details = "Rents and renders nothing. Files are verified as in a run; those whose text "
		   "has changed since are skipped. Exit status 1: a finished file was not "
		   "fetched.",
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
