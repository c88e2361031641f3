/* gather.c - fetches what the pods of an ended run left on their volumes. */
#include "runs.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "base/pattern.h"
#include "engine/caller.h"
#include "engine/engine.h"
#include "impl.h"
#include "sync/receive.h"

enum { ASK_MS = 600000, EVENTS_MAX_BYTES = 512 << 20 };

/* A finished file, as it was reported last. */
struct wanted {
	char *name, *path, sha256[SHA256_HEX];
	int64_t bytes;
	size_t index; /* of its segment */
	size_t pod;
	/* of speech */
	double seconds;
	int sample_rate, tries;
};

struct gather {
	struct run *run;
	struct gather_end *end;
	const struct segment *segments;
	size_t count;
	struct run_keys *keys;  /* the segments when the run began */
	char *dir;              /* folder for files that a provider fetches */
	bool *failed;           /* for each segment */
	struct wanted **wanted; /* in the order of their first reports */
	size_t wanted_count, wanted_cap;
	void *by_name;
	/* of a command, for each segment: the pod that reported it done, plus 1; 0: none */
	size_t *done_by;
};

/* One pod of the run, and the provider that reads its volume. */
struct source {
	const struct engine_provider *provider;
	const struct pod_row *pod;
	size_t number;
};

/* Fetches a file of a volume to dir/name; the path is untrusted. Returns the local path, which the
 * caller frees, or NULL on error. */
static char *fetch_from_volume(struct gather *g, const struct source *from, const char *path,
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

/* Adds a local file to the receive, from where that stands, and verifies its hash. */
static int copy_to_receive(struct receive *r, const char *local, struct err *err)
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

/* Verifies a file by the agent's hash, then by the job's check, and completes *result. */
static int verify_file(struct gather *g, size_t index, struct receive *r, const char *local,
		       struct segment_result *result, struct err *err)
{
	const struct engine_setup *setup = &g->run->setup;
	struct check check = {.ok = true};

	if (copy_to_receive(r, local, err) < 0 ||
	    (setup->job_ops->check &&
	     setup->job_ops->check(setup->job, index, receive_part_path(r), &check, err) < 0))
		return -1;
	if (!check.ok)
		return err_set(err, ERR_UNTRUSTED, "%s", check.reason);
	result->state = SEGMENT_SAFE;
	result->seconds = check.seconds > 0 ? check.seconds : result->seconds;
	result->sample_rate = check.sample_rate > 0 ? check.sample_rate : result->sample_rate;
	return 0;
}

/* Verifies the file and renames it into the output folder. *result gets what the check found. */
static int place_file(struct gather *g, size_t index, const char *name, const char *local,
		      struct segment_result *result, struct err *err)
{
	struct run *run = g->run;
	struct receive *r = NULL;

	int status = receive_open(&r, run->output_dir, name, result->bytes, result->sha256, err);
	if (status == 0)
		status = verify_file(g, index, r, local, result, err);
	if (status == 0)
		status = place_verified(run->setup.job_ops, run->setup.job, index, result, &r, 1,
					err);
	receive_drop(r, false);
	return status;
}

/* Records in memory and in the ledger that the segment is local. */
static int record_safe(struct gather *g, size_t index, const char *name,
		       const struct segment_result *result, struct err *err)
{
	struct segment_row row =
		reported_row(g->run->row.id, &g->segments[index], result->attempt, name, result);

	g->run->setup.results[index] = *result;
	return store_put_segments(g->run->runs->store, &row, 1, err);
}

/* ---- which files: what the pods have reported as finished ---- */

/* The index of the segment with this id; -1: the job has none. */
static int64_t find_segment(const struct gather *g, const char *id)
{
	for (size_t i = 0; i < g->count; i++)
		if (!strcmp(g->segments[i].id, id))
			return (int64_t)i;
	return -1;
}

static int compare_name(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Adds the file to fetch, or updates it: a pod has only the newest file of a name. */
static struct wanted *want_file(struct gather *g, const struct source *from, size_t index,
				const char *name, const struct reported_file *file)
{
	struct wanted *w = xcalloc(1, sizeof(*w));

	w->name = xstrdup(name);
	struct wanted **found = tsearch(w, &g->by_name, compare_name);
	if (!found)
		abort();
	if (*found != w) {
		free(w->name);
		free(w);
		w = *found;
	} else {
		GROW(g->wanted, g->wanted_count, g->wanted_cap);
		g->wanted[g->wanted_count++] = w;
	}
	free(w->path);
	w->path = xstrdup(file->path);
	COPY_TEXT(w->sha256, file->sha256);
	w->bytes = file->bytes;
	w->index = index;
	w->pod = from->number;
	return w;
}

/* Counts the segment as not fetched, and notes it once, however often a log repeats it. */
static void refuse_segment(struct gather *g, size_t index, const char *why)
{
	if (!g->failed[index])
		runs_note(g->run->runs, LOG_WARN, "%s: %s", g->segments[index].id, why);
	g->failed[index] = true;
}

/* A finished segment of speech is one file. One that was rendered again is reported again. */
static void on_speech_event(struct gather *g, const struct source *from, size_t index,
			    const json_t *event)
{
	const char *name = g->segments[index].file;
	struct reported_file file;

	if (!name || g->run->setup.results[index].state == SEGMENT_SAFE)
		return;
	if (!run_keys_fit(g->keys, &g->segments[index])) {
		refuse_segment(g, index,
			       "not fetched: the job's text or settings have changed since the run "
			       "(`burst run` renders it)");
		return;
	}
	enum report_fault fault = reported_file(event, name, SPEECH_FILE_MAX_BYTES, &file);
	if (fault != REPORT_FINE) {
		CLEANUP(str_free) struct str why = STR_INIT;
		str_add(&why, "the pod reports ");
		reported_fault_show(&why, fault, file.bytes);
		str_addf(&why, " (%s); it is not fetched", name);
		refuse_segment(g, index, str_text(&why));
		return;
	}
	struct wanted *w = want_file(g, from, index, name, &file);
	w->seconds = reported_seconds(event);
	w->sample_rate = reported_rate(event);
	w->tries = (int)jsonx_bounded(event, "try", 1, 1 << 20);
}

/* An output of a command is wanted if the job names it and the report is sound. */
static void on_output_event(struct gather *g, const struct source *from, size_t index,
			    const json_t *event)
{
	const struct job_needs *needs = g->run->setup.job_ops->needs(g->run->setup.job);
	const char *name = jsonx_text(event, "name", NULL);
	struct reported_file file;

	if (name && !jsonx_text(event, "error", NULL) && pattern_match_any(needs->outputs, name) &&
	    reported_file(event, name, INT64_MAX / 2, &file) == REPORT_FINE)
		want_file(g, from, index, name, &file)->tries = 1;
}

static void on_event(struct gather *g, const struct source *from, const json_t *event)
{
	const char *what = jsonx_text(event, "ev", "");
	int64_t index = find_segment(g, jsonx_text(event, "id", ""));
	bool finished = !strcmp(what, "segment") && jsonx_bool(event, "ok", false);

	if (index < 0)
		return;
	if (!g->done_by && finished)
		on_speech_event(g, from, (size_t)index, event);
	else if (g->done_by && finished)
		g->done_by[index] = from->number + 1;
	else if (g->done_by && !strcmp(what, "output"))
		on_output_event(g, from, (size_t)index, event);
}

/* ---- bringing them ---- */

/* Whether the file is in the output folder as it was reported. */
static bool is_file_here(const struct gather *g, const struct wanted *w)
{
	CLEANUP(fd_close) int folder = path_open_dir(g->run->output_dir);
	CLEANUP(fd_close) int parent = -1;
	CLEANUP(fd_close) int fd = -1;
	char hash[SHA256_HEX];
	const char *base;
	struct stat st;

	if (folder >= 0)
		parent = path_open_parent(folder, w->name, &base);
	if (parent >= 0)
		fd = openat(parent, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == w->bytes &&
	       sha256_fd(fd, hash, NULL) == 0 && !strcmp(hash, w->sha256);
}

/* Sets which pod of which run made the result. */
static void set_maker(const struct gather *g, const struct pod_row *pod,
		      struct segment_result *result)
{
	COPY_TEXT(result->run, g->run->row.id);
	COPY_TEXT(result->provider, pod->provider);
	COPY_TEXT(result->gpu, pod->gpu);
	COPY_TEXT(result->attempt, pod->attempt);
}

/* Fetches one file and places it. Of speech, also records its segment as done. */
static int bring_file(struct gather *g, const struct source *from, const struct wanted *w,
		      struct err *err)
{
	const struct engine_setup *setup = &g->run->setup;
	struct segment_result result = {.bytes = w->bytes,
					.seconds = w->seconds,
					.sample_rate = w->sample_rate,
					.tries = w->tries,
					.file = g->done_by ? w->name : NULL};

	if (g->done_by && !setup->job_ops->gives_way(setup->job, w->name, g->run->row.id, err))
		return -1;
	COPY_TEXT(result.sha256, w->sha256);
	set_maker(g, from->pod, &result);
	CLEANUP(free_text)
	char *local = fetch_from_volume(g, from, w->path, "file", w->bytes + 1, err);
	if (!local || place_file(g, w->index, w->name, local, &result, err) < 0)
		return -1;
	return g->done_by ? 0 : record_safe(g, w->index, w->name, &result, err);
}

/* A command that is done, all of whose outputs are here, is not run again by `burst resume`. */
static int record_done_commands(struct gather *g, const struct pod_row *pods, struct err *err)
{
	for (size_t i = 0; i < g->count; i++) {
		struct segment_result result = {.state = SEGMENT_SAFE, .tries = 1};
		const char *first = NULL;
		if (!g->done_by[i] || g->failed[i])
			continue;
		set_maker(g, &pods[g->done_by[i] - 1], &result);
		for (size_t k = 0; k < g->wanted_count && !first; k++)
			if (g->wanted[k]->index == i && g->wanted[k]->pod == g->done_by[i] - 1) {
				first = g->wanted[k]->name;
				COPY_TEXT(result.sha256, g->wanted[k]->sha256);
				result.bytes = g->wanted[k]->bytes;
			}
		if (record_safe(g, i, first, &result, err) < 0)
			return -1;
	}
	return 0;
}

/* Fetches what is wanted. -1: files cannot be stored here; other failures are counted. */
static int bring_all_files(struct gather *g, const struct pod_row *pods, struct err *err)
{
	for (size_t i = 0; i < g->wanted_count; i++) {
		const struct wanted *w = g->wanted[i];
		struct source from = {run_provider(g->run, pods[w->pod].provider), &pods[w->pod],
				      w->pod};
		struct err why = {0};
		if (g->done_by && is_file_here(g, w))
			continue;
		if (bring_file(g, &from, w, &why) == 0) {
			g->end->fetched++;
			continue;
		}
		runs_note(g->run->runs, LOG_WARN, "%s: %s",
			  g->done_by ? w->name : g->segments[w->index].id, why.msg);
		g->failed[w->index] = true;
		if (why.kind == ERR_LOCAL)
			return *err = why, -1;
	}
	return g->done_by ? record_done_commands(g, pods, err) : 0;
}

/* ---- the event logs ---- */

/* Takes in a pod's event log; a line that cannot be parsed is skipped. */
static void read_events(struct gather *g, const struct source *from, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len))) {
		if (!line[len])
			break; /* the last line was truncated when the pod died */
		CLEANUP(json_decref) json_t *event = jsonx_parse(line, len, NULL);
		if (event)
			on_event(g, from, event);
	}
}

/* Reads what the pod finished from its volume. 0, too, if it has none or nothing there. */
static int gather_pod(struct gather *g, const struct pod_row *pod, size_t number, struct err *err)
{
	struct volume volume = {0};
	CLEANUP(str_free) struct str text = STR_INIT;

	if (run_open_account(g->run, pod->provider, err) < 0)
		return -1;
	struct source from = {run_provider(g->run, pod->provider), pod, number};
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
	/* parts of a pod that was handed on are named "ATTEMPT-NN" (pooled_part_name()), but share
	 * one folder, named after the attempt of the create */
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%.*s/events.jsonl", pod->run, ATTEMPT_LEN, pod->attempt);
	CLEANUP(free_text)
	char *local = fetch_from_volume(g, &from, path, "events", EVENTS_MAX_BYTES, err);
	if (!local && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return 0; /* the pod never finished anything */
	}
	if (!local || path_read(local, EVENTS_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "pod %s", pod_row_called(pod));
	read_events(g, &from, str_text(&text));
	return 0;
}

static void wanted_free(struct gather *g)
{
	for (size_t i = 0; i < g->wanted_count; i++) {
		tdelete(g->wanted[i], &g->by_name, compare_name);
		free(g->wanted[i]->name);
		free(g->wanted[i]->path);
		free(g->wanted[i]);
	}
	free(g->wanted);
}

static int gather_pods(struct gather *g, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int status = 0;

	if (store_pods(g->run->runs->store, g->run->row.id, false, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && status == 0; i++)
		status = gather_pod(g, &pods[i], i, err);
	if (status == 0)
		status = bring_all_files(g, pods, err);
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
	if (run_keys_read(&keys, state, err) < 0 || path_mkdirs(dir, 0700, err) < 0)
		return -1;
	struct gather g = {.run = run, .end = end, .keys = keys, .dir = dir};
	g.segments = ops->segments(run->setup.job, &g.count);
	g.failed = xcalloc(g.count + 1, sizeof(*g.failed));
	if (ops->needs(run->setup.job)->command)
		g.done_by = xcalloc(g.count + 1, sizeof(*g.done_by));
	int status = gather_pods(&g, err);
	for (size_t i = 0; i < g.count; i++)
		end->failed += g.failed[i] && run->setup.results[i].state != SEGMENT_SAFE;
	free(g.failed);
	free(g.done_by);
	wanted_free(&g);
	path_remove_tree(dir, NULL);
	if (status == 0 && end->fetched)
		status = ops->finish(run->setup.job, run->setup.results, &end->notes, err);
	return status < 0 ? -1 : 0;
}
