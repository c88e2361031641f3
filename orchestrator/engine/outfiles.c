/* outfiles.c - fetches, verifies and checks the outputs of pods. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "impl.h"

/* ---- reported ----
 * Checks what a pod reports of a finished file. */

enum report_fault reported_file(const json_t *event, const char *name, int64_t most_bytes,
				struct reported_file *out)
{
	out->path = jsonx_text(event, "path", "");
	out->sha256 = jsonx_text(event, "sha256", "");
	out->bytes = jsonx_int(event, "bytes", -1);
	if (name && out->bytes > most_bytes)
		return REPORT_TOO_LARGE;
	if (!name || !path_may_be_output(name) || !path_is_safe(out->path) ||
	    !sha256_is_hex(out->sha256) || out->bytes < 0)
		return REPORT_INVALID;
	return REPORT_FINE;
}

void reported_fault_show(struct str *to, enum report_fault fault, int64_t bytes)
{
	if (fault == REPORT_TOO_LARGE)
		str_addf(to, "a file of %lld bytes, more than it can have", (long long)bytes);
	else
		str_add(to, "an invalid file");
}

double reported_seconds(const json_t *event)
{
	const double most = 1e7; /* four months of sound: sums of them stay numbers */

	return MIN(MAX(jsonx_number(event, "seconds", 0), 0), most);
}

int reported_rate(const json_t *event)
{
	return (int)jsonx_bounded(event, "rate", 0, 1 << 24);
}

struct segment_row reported_row(const char *run, const struct segment *segment, const char *attempt,
				const char *file, const struct segment_result *result)
{
	struct segment_row row = {.state = SEGMENT_ROW_SAFE,
				  .bytes = result->bytes,
				  .seconds = result->seconds,
				  .sample_rate = result->sample_rate,
				  .tries = result->tries,
				  .suspect = result->suspect};

	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, segment->id);
	COPY_TEXT(row.key, segment->key);
	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.file, file ? file : "");
	COPY_TEXT(row.sha256, result->sha256);
	COPY_TEXT(row.reason, result->reason);
	return row;
}

/* ---- outfiles ----
 * A file of speech is placed when the core says so. An output of a command is a result by itself:
 * it is placed as soon as it is verified, and stays whatever becomes of the command. */

enum {
	FAILED_LOGGED = 10, /* outputs of one segment that cannot be kept or fetched */
	READY_MOST = 256,   /* fetched outputs of a segment that wait for others */
	TOGETHER_MS = 1000,
};

struct getting { /* one file under way: the context of its fetch */
	struct engine *e;
	uint32_t segment;
	size_t file;
	int pod;
	unsigned turn;      /* number of this fetch; an older one that ends late is ignored */
	struct check check; /* a worker thread's until done */
	bool checked;
};

static bool of_commands(const struct engine *e)
{
	return e->work.needs && e->work.needs->command;
}

static void post_files(struct engine *e, int pod)
{
	struct event ev = {.type = EV_FILES,
			   .pod = pod,
			   .number = (int)MIN(e->pods[pod].files_open, (size_t)INT_MAX)};

	post(e, &ev, NULL);
}

static bool is_open(enum outfile_fate fate)
{
	return fate == FATE_OPEN || fate == FATE_PLACING;
}

/* An open file of a command begins or ends to be one of this pod's. */
static void count_open(struct engine *e, struct outputs *s, int pod, bool more)
{
	size_t *of_pod = &e->pods[pod].files_open;
	bool tells = more ? !*of_pod : *of_pod == 1;

	*of_pod += more ? 1 : (size_t)-1;
	s->open += more ? 1 : (size_t)-1;
	e->outfiles.open += more ? 1 : (size_t)-1;
	if (tells)
		post_files(e, pod);
}

static void set_fate(struct engine *e, struct outputs *s, struct outfile *f, enum outfile_fate fate)
{
	bool was = is_open(f->fate);

	f->fate = fate;
	if (was != is_open(fate))
		count_open(e, s, f->pod, !was);
}

void outfiles_disclaim(struct engine *e, int pod)
{
	for (uint32_t i = 0; of_commands(e) && i < e->work.count; i++) {
		struct outputs *s = &e->outfiles.of[i];
		for (size_t k = 0; k < s->count; k++) {
			struct outfile *f = &s->files[k];
			if (f->pod != pod || f->fate == FATE_HERE || f->fate == FATE_PLACING)
				continue;
			claims_drop(e, i, f->name);
			set_fate(e, s, f, FATE_FALSE);
		}
	}
}

/* No volume on sale holds a larger file of a command. If the vendor reports the size of its volume,
 * that is the limit. */
#define COMMAND_OUTPUT_MAX_BYTES (INT64_C(4) << 40)

int64_t outfiles_most_bytes(const struct engine *e, int pod)
{
	const struct volume *v = &core_pod_at(e->core, pod)->rental.volume;

	if (!e->work.needs->command)
		return SPEECH_FILE_MAX_BYTES;
	/* the vendor does not sell it by its size, so its size is no limit */
	return v->size_gb && v->price_microusd_month ? v->size_gb << 30 : COMMAND_OUTPUT_MAX_BYTES;
}

static void count_names(struct engine *e, const struct outfile *f, int sign)
{
	e->pods[f->pod].named_bytes +=
		sign * (int64_t)(sizeof(*f) + strlen(f->name) + strlen(f->path));
}

/* A running command may replace or extend a file that it has reported, and a later attempt makes
 * files of the same names. What ending.c has under way becomes a final file all the same. */
static void supersede(struct engine *e, struct outputs *s, struct outfile *f, int pod,
		      const char *path, int64_t bytes, const char *sha256)
{
	if (f->bytes == bytes && !strcmp(f->sha256, sha256) && !strcmp(f->path, path) &&
	    f->pod == pod && f->fate != FATE_LOST && f->fate != FATE_FALSE)
		return;
	if (f->r) {
		receive_drop(TAKE(f->r), false);
		*(of_commands(e) ? &s->ready : &s->home) -= 1;
	}
	if (f->fetch != FETCH_NONE) /* it has its part until it ends */
		f->fetch = FETCH_OUTDATED;
	f->turn = ++e->outfiles.turns;
	f->retries = 0;
	count_names(e, f, -1);
	free(f->path);
	f->path = xstrdup(path);
	f->bytes = bytes;
	COPY_TEXT(f->sha256, sha256);
	if (f->pod != pod && is_open(f->fate)) {
		count_open(e, s, pod, true);
		count_open(e, s, f->pod, false);
	}
	f->pod = pod;
	count_names(e, f, 1);
	if (of_commands(e) && f->fate != FATE_PLACING)
		set_fate(e, s, f, FATE_OPEN);
}

struct outfile *outfiles_add(struct engine *e, int pod, uint32_t segment, const char *name,
			     const char *path, int64_t bytes, const char *sha256, bool is_new)
{
	struct outputs *s = &e->outfiles.of[segment];
	size_t *noted = of_commands(e) ? claims_file(e, segment, name) : NULL;
	size_t at = noted ? *noted : 0;

	if (at < s->count && !strcmp(s->files[at].name, name)) {
		if (is_new && s->state == OUTPUTS_OPEN)
			supersede(e, s, &s->files[at], pod, path, bytes, sha256);
		return &s->files[at]; /* without this, an event log that is read again would count
					 it twice */
	}
	if (noted)
		*noted = s->count;
	GROW(s->files, s->count, s->cap);
	struct outfile *f = &s->files[s->count++];
	*f = (struct outfile){
		.name = xstrdup(name), .path = xstrdup(path), .bytes = bytes, .pod = pod};
	COPY_TEXT(f->sha256, sha256);
	count_names(e, f, 1);
	if (of_commands(e))
		count_open(e, s, pod, true);
	return f;
}

static bool is_of(const void *ctx, const void *segment)
{
	const struct getting *g = ctx;

	return g->segment == *(const uint32_t *)segment;
}

static void reset(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];
	bool under_way = false;

	for (size_t i = 0; i < s->count; i++) {
		under_way = under_way || s->files[i].fetch != FETCH_NONE;
		receive_drop(s->files[i].r, false);
		count_names(e, &s->files[i], -1);
		if (e->work.needs->command)
			claims_drop(e, segment, s->files[i].name);
		free(s->files[i].name);
		free(s->files[i].path);
	}
	free(s->files);
	s->files = NULL;
	s->count = s->cap = s->home = 0;
	s->state = OUTPUTS_OPEN;
	/* They would block the files of the next attempt. What a provider still brings from the
	 * volume is dropped: it is not current. */
	if (under_way && s->pod >= 0 && !pod_files_on_volume(core_pod_at(e->core, s->pod)) &&
	    e->pods[s->pod].conn.fetcher)
		fetcher_cancel(e->pods[s->pod].conn.fetcher, is_of, &segment);
}

void outfiles_new(struct engine *e, void (*place)(struct engine *e, uint32_t segment))
{
	e->outfiles.place = place;
	e->outfiles.of = xcalloc(e->work.count, sizeof(*e->outfiles.of));
	for (uint32_t i = 0; i < e->work.count; i++)
		e->outfiles.of[i].pod = -1;
}

void outfiles_free(struct engine *e)
{
	for (uint32_t i = 0; i < e->work.count; i++)
		reset(e, i);
	free(e->outfiles.of);
}

void outfiles_discard(struct engine *e, uint32_t segment)
{
	reset(e, segment);
}

static void new_attempt(struct engine *e, uint32_t segment, int pod)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (!of_commands(e))
		reset(e, segment);
	s->pod = pod;
	s->state = OUTPUTS_OPEN;
}

void outfiles_expect(struct engine *e, uint32_t segment, const char *batch)
{
	struct outputs *s = &e->outfiles.of[segment];

	new_attempt(e, segment, -1);
	s->refused = false;
	s->unkept = 0;
	COPY_TEXT(s->batch, batch);
}

void outfiles_from(struct engine *e, uint32_t segment, int pod)
{
	new_attempt(e, segment, pod);
}

void outfiles_refuse(struct engine *e, uint32_t segment)
{
	e->outfiles.of[segment].refused = true;
}

void outfiles_reported(struct engine *e, uint32_t segment, const json_t *event)
{
	struct outputs *s = &e->outfiles.of[segment];

	s->state = OUTPUTS_REPORTED;
	pod_shown(s->batch, sizeof(s->batch), jsonx_text(event, "batch", ""));
	s->seconds = reported_seconds(event);
	s->rate = reported_rate(event);
}

/* In a worker thread. */
static void inspect(void *ctx, const char *part_path)
{
	struct getting *g = ctx;
	const struct engine_setup *setup = g->e->setup;
	struct err err = {0};

	g->check = (struct check){.ok = true};
	g->checked = true;
	if (setup->job_ops->check &&
	    setup->job_ops->check(setup->job, g->segment, part_path, &g->check, &err) < 0) {
		g->check.ok = false;
		COPY_TEXT(g->check.reason, err.msg);
	}
}

/* The first output that keeps the command from being done; NULL: none. */
static const struct outfile *first_lost(const struct outputs *s, size_t *count)
{
	const struct outfile *first = NULL;

	*count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct outfile *f = &s->files[i];
		if (f->fate != FATE_LOST)
			continue;
		++*count;
		if (!first || (first->why.kind != ERR_JOB && f->why.kind == ERR_JOB))
			first = f;
	}
	return first;
}

/* One of a command's finished outputs is not here: the command has not done its work. */
static bool announce_lost(struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	size_t lost;
	const struct outfile *f = first_lost(s, &lost);
	struct err err;
	char more[32] = "";

	if (!f && !s->unkept)
		return false;
	size_t others = lost + s->unkept - 1;
	if (others)
		snprintf(more, sizeof(more), " (and %zu more)", others);
	if (s->unkept)
		err_set(&err, ERR_JOB, "%s%s", s->unkept_why, more);
	else
		err_set(&err, f->why.kind, "%s%s", f->why.msg, more);
	if (err.kind == ERR_JOB)
		COPY_TEXT(e->setup->results[segment].reason, err.msg);
	struct event ev = {.type = EV_FETCH_FAILED, .pod = s->pod, .segment = segment};
	post(e, &ev, &err);
	return true;
}

static void announce_fetched(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (s->state != OUTPUTS_REPORTED || (of_commands(e) ? s->open > 0 : s->home < s->count))
		return;
	s->state = OUTPUTS_ANNOUNCED;
	if (of_commands(e) && announce_lost(e, segment))
		return;
	struct event ev = {.type = EV_FETCHED,
			   .pod = s->pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = of_commands(e) || s->check.ok || !s->count};
	if (!ev.check_ok)
		engine_log(e, LOG_INFO, "%s: %s", e->work.segments[segment].id, s->check.reason);
	post(e, &ev, NULL);
}

void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why)
{
	if (why->kind == ERR_JOB)
		COPY_TEXT(e->setup->results[segment].reason, why->msg);
	engine_log(e, why->kind == ERR_JOB ? LOG_WARN : LOG_INFO, "%s: %s",
		   e->work.segments[segment].id, why->msg);
}

void outfiles_unkept(struct engine *e, uint32_t segment, const char *why)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (s->unkept++ == 0)
		COPY_TEXT(s->unkept_why, why);
	if (s->unkept <= FAILED_LOGGED)
		engine_log(e, LOG_WARN, "%s: %s", e->work.segments[segment].id, why);
}

/* Finds the file of a fetch. NULL: the segment went to another pod meanwhile. A command keeps the
 * files of its earlier attempts. */
static struct outfile *file_of(const struct getting *g)
{
	struct outputs *s = &g->e->outfiles.of[g->segment];

	return (of_commands(g->e) || s->pod == g->pod) && g->file < s->count ? &s->files[g->file]
									     : NULL;
}

/* Returns false if the segment went to another pod, or there is a newer file of that name. */
static bool is_current(const struct getting *g)
{
	const struct outfile *f = file_of(g);

	return f && f->fetch != FETCH_NONE && f->turn == g->turn;
}

static void fetch_file(struct engine *e, uint32_t segment, size_t file);

static void fetch_files(struct engine *e, int pod, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];

	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod == pod)
			fetch_file(e, segment, i);
}

/* The fetch was of an older file of that name: fetches the present one. */
static void fetch_again(const struct getting *g)
{
	struct outfile *f = file_of(g);

	if (!f || f->fetch != FETCH_OUTDATED)
		return;
	f->fetch = FETCH_NONE;
	fetch_file(g->e, g->segment, g->file);
}

/* Returns true if the failure is not the file's own, and it is fetched again. */
static bool tries_again(const struct getting *g, struct outfile *f, const struct err *err)
{
	struct engine *e = g->e;

	if (err->kind == ERR_INTERRUPTED && e->client.over)
		return true; /* no segment needs it any more */
	if (err->kind != ERR_NETWORK)
		return false;
	if (!e->pods[g->pod].conn.fetcher) {
		/* the connection is gone: its files are fetched when it is back, or from the volume
		 */
		if (!e->client.over)
			fetch_files(e, g->pod, g->segment);
		return true;
	}
	if (f->retries++ >= 3)
		return false;
	fetch_file(e, g->segment, g->file); /* only the channel broke */
	return true;
}

static void file_failed(const struct getting *g, const struct err *err)
{
	struct event ev = {.type = EV_FETCH_FAILED, .pod = g->pod, .segment = g->segment};
	struct err why = *err;

	if (why.kind == ERR_BUSY)
		why.kind = ERR_TRANSIENT; /* our own doing: the older fetch that has the part is
					     about to end */
	outfiles_failed(g->e, g->segment, &why);
	post(g->e, &ev, &why);
}

static void file_came(const struct getting *g, struct outfile *f, struct receive *r)
{
	struct outputs *s = &g->e->outfiles.of[g->segment];

	f->r = r;
	s->home++;
	if (g->checked && (g->file == 0 || !g->check.ok))
		s->check = g->check;
	announce_fetched(g->e, g->segment);
}

/* ---- a command's outputs, each by itself ---- */

/* It costs this output alone. It is tried once more when the command has ended. */
static void output_lost(struct engine *e, uint32_t segment, struct outfile *f,
			const struct err *why)
{
	struct outputs *s = &e->outfiles.of[segment];

	f->why = *why;
	engine_log(e, ++s->failed <= FAILED_LOGGED ? LOG_WARN : LOG_INFO, "%s: %s",
		   e->work.segments[segment].id, why->msg);
	set_fate(e, s, f, FATE_LOST);
	checkpoint_output_settled(e, segment);
	announce_fetched(e, segment);
}

void outfiles_place(struct engine *e)
{
	loop_untimer(TAKE(e->outfiles.due));
	for (uint32_t i = 0; e->outfiles.open && i < e->work.count; i++)
		e->outfiles.place(e, i);
}

static void on_due(void *ctx)
{
	struct engine *e = ctx;

	e->outfiles.due = NULL;
	outfiles_place(e);
}

/* Several are placed with one sync of the manifest and of their folder. */
static void output_came(const struct getting *g, struct outfile *f, struct receive *r)
{
	struct engine *e = g->e;
	struct outputs *s = &e->outfiles.of[g->segment];

	if (f->fate != FATE_OPEN) {
		receive_drop(r, false);
		return;
	}
	f->r = r;
	s->ready++;
	bool last = s->state == OUTPUTS_REPORTED && !s->under_way;
	if (last || s->ready >= READY_MOST)
		e->outfiles.place(e, g->segment);
	else if (!e->outfiles.due)
		e->outfiles.due = loop_timer(e->loop, TOGETHER_MS, on_due, e);
}

void outfiles_placed(struct engine *e, uint32_t segment, size_t file, unsigned turn,
		     const struct err *why)
{
	struct outputs *s = &e->outfiles.of[segment];
	struct outfile *f = &s->files[file];

	if (f->turn != turn) { /* there is a newer file of that name */
		set_fate(e, s, f, FATE_OPEN);
		fetch_file(e, segment, file);
	} else if (why->kind) {
		output_lost(e, segment, f, why);
	} else {
		set_fate(e, s, f, FATE_HERE);
		checkpoint_output_settled(e, segment);
		announce_fetched(e, segment);
	}
}

void outfiles_placing(struct engine *e, uint32_t segment, bool begins)
{
	e->outfiles.of[segment].placing = begins;
}

void outfiles_again(struct engine *e, int pod, bool lost)
{
	for (uint32_t i = 0; i < e->work.count; i++) {
		struct outputs *s = &e->outfiles.of[i];
		for (size_t k = 0; lost && k < s->count; k++) {
			struct outfile *f = &s->files[k];
			struct err why;
			if (f->pod != pod || f->fate != FATE_OPEN || f->r)
				continue;
			err_set(&why, ERR_JOB, "%s was finished, and lost with pod %s", f->name,
				pod_called(e, pod));
			f->turn = ++e->outfiles.turns;
			output_lost(e, i, f, &why);
		}
		if (!lost)
			fetch_files(e, pod, i);
	}
}

void outfiles_retry(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	for (size_t i = 0; of_commands(e) && i < s->count; i++) {
		struct outfile *f = &s->files[i];
		if (f->fate != FATE_LOST || f->why.kind == ERR_JOB)
			continue;
		f->retries = 0;
		set_fate(e, s, f, FATE_OPEN);
		fetch_file(e, segment, i);
	}
}

size_t outfiles_open(const struct engine *e)
{
	return e->outfiles.open;
}

/* ---- a fetch ---- */

static void arrived(void *ctx, struct receive *r, const struct err *err)
{
	struct getting *g = ctx;
	struct outfile *f = file_of(g);

	g->e->outfiles.of[g->segment].under_way--;
	if (!is_current(g)) {
		receive_drop(r, false);
		fetch_again(g);
	} else {
		f->fetch = FETCH_NONE;
		if (!err && of_commands(g->e))
			output_came(g, f, r);
		else if (!err)
			file_came(g, f, r);
		else if (tries_again(g, f, err))
			;
		else if (of_commands(g->e))
			output_lost(g->e, g->segment, f, err);
		else
			file_failed(g, err);
	}
	free(g);
}

static struct fetch_want want_of(struct getting *g)
{
	const struct outfile *f = file_of(g);

	return (struct fetch_want){
		.output_dir = g->e->setup->output_dir,
		.name = f->name,
		.path = f->path,
		.bytes = f->bytes,
		.max_bytes = outfiles_most_bytes(g->e, f->pod),
		.sha256 = f->sha256,
		.inspect = inspect,
		.done = arrived,
		.ctx = g,
	};
}

static void came_from_volume(void *ctx, const char *local, const struct err *err)
{
	struct getting *g = ctx;
	struct segment_result *r = &g->e->setup->results[g->segment];
	struct err why = err ? *err : (struct err){.kind = ERR_INTERRUPTED};

	if (!err && is_current(g)) {
		struct fetch_want want = want_of(g);
		fetch_local(g->e->pool, &want, local);
		return;
	}
	if (local)
		unlink(local);
	if (why.kind == ERR_NETWORK) /* the caller has already tried again */
		why.kind = ERR_TRANSIENT;
	if (why.kind != ERR_INTERRUPTED && is_current(g))
		format_text(r->reason, sizeof(r->reason),
			    "finished, but not fetched from the volume (`burst fetch %s` retries): "
			    "%s",
			    g->e->setup->run->id, err->msg);
	arrived(g, NULL, &why);
}

/* From the pod, over SSH, or without it from its volume. Returns false if no file can come from
 * there now; nothing was begun. */
static bool begin_fetch(struct getting *g)
{
	struct engine *e = g->e;
	const struct core_pod *p = core_pod_at(e->core, g->pod);
	struct fetcher *fetcher = e->pods[g->pod].conn.fetcher;
	struct fetch_want want = want_of(g);

	if (pod_files_on_volume(p)) {
		CLEANUP(free_text)
		char *name = xasprintf("%s-%u-%zu", p->rental.attempt, g->segment, g->file);
		volume_files_get(e, g->pod, want.path, name, want.bytes + 1, came_from_volume, g);
		return true;
	}
	if (fetcher)
		fetcher_get(fetcher, &want);
	return fetcher;
}

static void fetch_file(struct engine *e, uint32_t segment, size_t file)
{
	struct outfile *f = &e->outfiles.of[segment].files[file];

	if (f->fetch != FETCH_NONE || f->r || f->fate != FATE_OPEN)
		return;
	struct getting *g = xcalloc(1, sizeof(*g));
	*g = (struct getting){.e = e,
			      .segment = segment,
			      .file = file,
			      .pod = f->pod,
			      .turn = ++e->outfiles.turns};
	f->turn = g->turn;
	f->fetch = FETCH_UNDER_WAY;
	e->outfiles.of[segment].under_way++;
	if (begin_fetch(g))
		return;
	e->outfiles.of[segment].under_way--;
	f->fetch = FETCH_NONE;
	free(g);
}

void outfiles_stream(struct engine *e, uint32_t segment, const struct outfile *f)
{
	fetch_file(e, segment, (size_t)(f - e->outfiles.of[segment].files));
}

/* What a pod said of this segment is not believed any more. */
static bool is_disclaimed(const struct outputs *s, int pod)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod == pod && s->files[i].fate == FATE_FALSE)
			return true;
	return false;
}

void outfiles_fetch(struct engine *e, int pod, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	/* the pod has no such file (any more) */
	if (s->pod != pod || (!s->count && s->state == OUTPUTS_OPEN) || is_disclaimed(s, pod)) {
		struct err err;
		err_set(&err, ERR_NOT_FOUND, "%s: not reported by pod %s",
			e->work.segments[segment].id, pod_called(e, pod));
		struct event ev = {.type = EV_FETCH_FAILED, .pod = pod, .segment = segment};
		post(e, &ev, &err);
		return;
	}
	if (of_commands(e) && s->state == OUTPUTS_ANNOUNCED)
		s->state = OUTPUTS_REPORTED; /* what was lost is tried again */
	outfiles_retry(e, segment);
	fetch_files(e, pod, segment);
	announce_fetched(e, segment); /* nothing to fetch, or all is fetched already */
}

int64_t outfiles_left(const struct engine *e, int pod)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < e->work.count; i++) {
		const struct outputs *s = &e->outfiles.of[i];
		bool waits = of_commands(e) || core_seg_state(e->core, i) == SEG_RENDERED;
		for (size_t k = 0; waits && k < s->count; k++) {
			const struct outfile *f = &s->files[k];
			if (f->pod == pod && f->fate == FATE_OPEN && !f->r)
				bytes += f->bytes;
		}
	}
	return bytes;
}

struct receive *outfiles_take(struct engine *e, uint32_t segment, size_t file)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (of_commands(e)) {
		set_fate(e, s, &s->files[file], FATE_PLACING);
		s->ready--;
	}
	return TAKE(s->files[file].r);
}

/* ---- the end ---- */

/* Finished, not here, and perhaps on a volume. */
static bool is_left(const struct outfile *f)
{
	return f->fate == FATE_OPEN || f->fate == FATE_PLACING ||
	       (f->fate == FATE_LOST && f->why.kind != ERR_JOB);
}

void outfiles_note_left(struct engine *e)
{
	for (int pod = 0; of_commands(e) && pod < e->pod_count; pod++) {
		const struct core_pod *p = core_pod_at(e->core, pod);
		const struct outfile *first = NULL;
		size_t count = 0;
		for (uint32_t i = 0; i < e->work.count; i++)
			for (size_t k = 0; k < e->outfiles.of[i].count; k++) {
				const struct outfile *f = &e->outfiles.of[i].files[k];
				if (f->pod != pod || !is_left(f))
					continue;
				first = first ? first : f;
				count++;
			}
		if (!count)
			continue;
		if (p->rental.volume.id[0] && p->rental.volume.apart)
			engine_log(e, LOG_WARN,
				   "%zu finished file%s (%s%s) %s only on volume %s: `burst fetch "
				   "%s` brings %s",
				   count, count == 1 ? "" : "s", first->name,
				   count == 1 ? "" : ", ...", count == 1 ? "is" : "are",
				   e->setup->volume_name, e->setup->run->id,
				   count == 1 ? "it" : "them");
		else
			engine_log(e, LOG_WARN, "%zu finished file%s (%s%s) %s lost with pod %s",
				   count, count == 1 ? "" : "s", first->name,
				   count == 1 ? "" : ", ...", count == 1 ? "was" : "were",
				   pod_called(e, pod));
	}
}
