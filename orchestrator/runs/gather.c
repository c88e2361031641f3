/* gather.c - fetches what the pods of an ended run left on their volumes. */
#include "runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "engine/caller.h"
#include "engine/place.h"
#include "engine/reported.h"
#include "impl.h"
#include "segment_keys.h"

enum { ASK_MS = 600000, EVENTS_MAX_BYTES = 512 << 20, FAILURES_MOST = 8 };

struct gather {
	struct run *run;
	struct gather_end *end;
	const struct segment *segments;
	size_t count;
	struct run_keys *keys; /* the segments when the run began */
	char *dir;             /* folder for files that a provider fetches */
	uint8_t *failures;     /* for each segment */
};

/* One pod of the run, and the provider that reads its volume. */
struct source {
	const struct engine_provider *provider;
	const struct pod_row *pod;
};

static const struct engine_provider *provider_of(const struct run *run, const char *name)
{
	for (int i = 0; i < run->setup.provider_count; i++)
		if (!strcmp(run->setup.providers[i].ops->name, name))
			return &run->setup.providers[i];
	return NULL;
}

/* Fetches a file of a volume to dir/name; the path is untrusted. Returns the local path, which the
 * caller frees, or NULL on error. */
static char *from_volume(struct gather *g, const struct source *from, const char *path,
			 const char *name, int64_t most, struct err *err)
{
	CLEANUP(free_text) char *local = path_join(g->dir, name);
	struct op_want want = {0};
	struct op_result result = {0};

	path_remove_tree(local, NULL);
	COPY_TEXT(want.file.volume.provider, from->pod->provider);
	COPY_TEXT(want.file.volume.id, from->pod->volume_id);
	COPY_TEXT(want.file.volume.name, from->pod->volume_name);
	COPY_TEXT(want.file.volume.region, from->pod->region);
	want.file.path = path;
	want.file.local = local;
	want.file.max_bytes = most;
	if (caller_perform(from->provider, OP_FETCH, &want, ASK_MS, &result, err) < 0)
		return NULL;
	op_result_free(&result);
	return TAKE(local);
}

/* ---- placing one file ---- */

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

/* Verifies a file by the agent's hash, then by the job's check. */
static int verify(struct gather *g, size_t index, struct receive *r, const char *local,
		  struct segment_result *result, struct err *err)
{
	const struct engine_setup *setup = &g->run->setup;
	struct check check = {0};

	if (copy_in(r, local, err) < 0 ||
	    setup->job_ops->check(setup->job, index, receive_part_path(r), &check, err) < 0)
		return -1;
	if (!check.ok)
		return err_set(err, ERR_UNTRUSTED, "%s", check.reason);
	result->state = SEGMENT_SAFE;
	result->seconds = check.seconds > 0 ? check.seconds : result->seconds;
	result->sample_rate = check.sample_rate > 0 ? check.sample_rate : result->sample_rate;
	return 0;
}

static int place_file(struct gather *g, size_t index, const char *local,
		      struct segment_result *result, struct err *err)
{
	struct run *run = g->run;
	const struct segment *s = &g->segments[index];
	struct receive *r = NULL;

	int status = receive_open(&r, run->output_dir, s->file, result->bytes, result->sha256, err);
	if (status == 0)
		status = verify(g, index, r, local, result, err);
	if (status == 0)
		status = place_verified(run->setup.job_ops, run->setup.job, index, result, &r, 1,
					err);
	receive_drop(r, false);
	if (status < 0)
		return -1;
	struct segment_row row = reported_row(run->row.id, s, result->attempt, s->file, result);
	return store_put_segments(run->runs->store, &row, 1, err);
}

/* ---- an event log ---- */

static int64_t find_open(const struct gather *g, const char *id)
{
	for (size_t i = 0; i < g->count; i++)
		if (!strcmp(g->segments[i].id, id) && g->segments[i].file)
			return g->failures[i] >= FAILURES_MOST ||
					       g->run->setup.results[i].state == SEGMENT_SAFE
				       ? -1
				       : (int64_t)i;
	return -1;
}

static int refuse(const struct gather *g, size_t index, enum report_fault fault, int64_t bytes,
		  struct err *err)
{
	CLEANUP(str_free) struct str what = STR_INIT;

	reported_fault_show(&what, fault, bytes);
	return err_set(err, ERR_UNTRUSTED, "the pod reports %s (%s); it is not fetched",
		       str_text(&what), g->segments[index].file);
}

static int take_file(struct gather *g, const struct source *from, size_t index, const json_t *event,
		     struct err *err)
{
	struct reported_file file;
	struct segment_result result = {.seconds = reported_seconds(event),
					.sample_rate = reported_rate(event),
					.tries = (int)jsonx_bounded(event, "try", 1, 1 << 20)};

	if (!run_keys_fit(g->keys, &g->segments[index]))
		return err_set(err, ERR_CONFIG,
			       "not fetched: the job's text or settings have changed since the "
			       "run (`burst run` renders it)");
	enum report_fault fault =
		reported_file(event, g->segments[index].file, SPEECH_FILE_MAX_BYTES, &file);
	if (fault != REPORT_FINE)
		return refuse(g, index, fault, file.bytes, err);
	result.bytes = file.bytes;
	COPY_TEXT(result.sha256, file.sha256);
	COPY_TEXT(result.provider, from->pod->provider);
	COPY_TEXT(result.gpu, from->pod->gpu);
	COPY_TEXT(result.attempt, from->pod->attempt);
	CLEANUP(free_text)
	char *local = from_volume(g, from, file.path, "file", file.bytes + 1, err);
	if (!local || place_file(g, index, local, &result, err) < 0)
		return -1;
	g->run->setup.results[index] = result;
	return 0;
}

/* Handles a reported segment. A segment that was rendered again is reported again. A log that keeps
 * reporting a bad file is not followed each time. */
static void take_event(struct gather *g, const struct source *from, const json_t *event)
{
	struct err err = {0};
	int64_t index = strcmp(jsonx_text(event, "ev", ""), "segment")
				? -1
				: find_open(g, jsonx_text(event, "id", ""));

	if (index < 0 || !jsonx_bool(event, "ok", false))
		return;
	if (take_file(g, from, (size_t)index, event, &err) == 0) {
		g->end->fetched++;
		return;
	}
	runs_note(g->run->runs, LOG_WARN, "%s: %s", g->segments[index].id, err.msg);
	g->failures[index]++;
}

static void take_events(struct gather *g, const struct source *from, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len))) {
		if (!line[len])
			break; /* the last line was truncated when the pod died */
		CLEANUP(json_decref) json_t *event = jsonx_parse(line, len, NULL);
		if (event)
			take_event(g, from, event);
	}
}

static int gather_pod(struct gather *g, const struct pod_row *pod, struct err *err)
{
	struct volume volume = {0};
	CLEANUP(str_free) struct str text = STR_INIT;

	if (run_open_account(g->run, pod->provider, err) < 0)
		return -1;
	struct source from = {provider_of(g->run, pod->provider), pod};
	COPY_TEXT(volume.id, pod->volume_id);
	COPY_TEXT(volume.region, pod->region);
	if (!pod->volume_id[0] ||
	    !provider_can_fetch(from.provider->ops, from.provider->handle, &volume)) {
		runs_note(g->run->runs, LOG_NOTE,
			  "pod %s had no volume that can be read without a pod: its files are "
			  "lost",
			  pod_row_called(pod));
		return 0;
	}
	/* parts of a pod that was handed on are named "ATTEMPT-NN" (kept_part()), but share one
	 * folder, named after the attempt of the create */
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%.*s/events.jsonl", pod->run, ATTEMPT_LEN, pod->attempt);
	CLEANUP(free_text)
	char *local = from_volume(g, &from, path, "events", EVENTS_MAX_BYTES, err);
	if (!local && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return 0; /* the pod never finished anything */
	}
	if (!local || path_read(local, EVENTS_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "pod %s", pod_row_called(pod));
	take_events(g, &from, str_text(&text));
	return 0;
}

static int gather_pods(struct gather *g, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int status = 0;

	if (store_pods(g->run->runs->store, g->run->row.id, false, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && status == 0; i++)
		status = gather_pod(g, &pods[i], err);
	free(pods);
	return status;
}

int run_gather(struct run *run, struct gather_end *end, struct err *err)
{
	const struct job_ops *ops = run->setup.job_ops;
	CLEANUP(free_text) char *state = run_path(run->runs, run->row.id, NULL);
	CLEANUP(free_text) char *dir = run_path(run->runs, run->row.id, "gather");
	CLEANUP(run_keys_free) struct run_keys *keys = NULL;

	*end = (struct gather_end){.notes = STR_INIT};
	if (ops->needs(run->setup.job)->command)
		return err_set(err, ERR_USAGE,
			       "run %s is a command: `burst resume %s` fetches its files",
			       run->row.id, run->row.id);
	if (run_keys_read(&keys, state, err) < 0 || path_mkdirs(dir, 0700, err) < 0)
		return -1;
	struct gather g = {.run = run, .end = end, .keys = keys, .dir = dir};
	g.segments = ops->segments(run->setup.job, &g.count);
	g.failures = xcalloc(g.count + 1, sizeof(*g.failures));
	int status = gather_pods(&g, err);
	for (size_t i = 0; i < g.count; i++)
		end->failed += g.failures[i] && run->setup.results[i].state != SEGMENT_SAFE;
	free(g.failures);
	path_remove_tree(dir, NULL);
	if (status == 0 && end->fetched)
		status = ops->finish(run->setup.job, run->setup.results, &end->notes, err);
	return status < 0 ? -1 : 0;
}
