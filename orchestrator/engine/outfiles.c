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

static bool are_of_command(const struct engine *e)
{
	return e->work.needs && e->work.needs->command;
}

static void post_open_files(struct engine *e, int pod)
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

/* One more open file of a command (by 1), or one less (-1), is this pod's. */
static void change_open_count(struct engine *e, struct outputs *s, int pod, int by)
{
	size_t *of_pod = &e->pods[pod].files_open;
	bool first_or_last = by > 0 ? !*of_pod : *of_pod == 1;

	*of_pod += (size_t)by;
	s->open += (size_t)by;
	e->outfiles.open += (size_t)by;
	if (first_or_last)
		post_open_files(e, pod);
}

/* Also counts the file among the open ones, or no longer. */
static void set_fate(struct engine *e, struct outputs *s, struct outfile *f, enum outfile_fate fate)
{
	bool was = is_open(f->fate);

	f->fate = fate;
	if (was != is_open(fate))
		change_open_count(e, s, f->pod, was ? -1 : 1);
}

void outfiles_disclaim(struct engine *e, int pod)
{
	for (uint32_t i = 0; are_of_command(e) && i < e->work.count; i++) {
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
	/* a volume that is not sold by its size has no limit */
	return v->size_gb && v->price_microusd_month ? v->size_gb << 30 : COMMAND_OUTPUT_MAX_BYTES;
}

static void count_names(struct engine *e, const struct outfile *f, int sign)
{
	e->pods[f->pod].named_bytes +=
		sign * (int64_t)(sizeof(*f) + strlen(f->name) + strlen(f->path));
}

/* The pod reports a file again: unless it is the same, the new one replaces it. A running command
 * may replace or extend a file that it has reported, and a later attempt makes files of the same
 * names. What ending.c has under way becomes a final file all the same. */
static void replace_file(struct engine *e, struct outputs *s, struct outfile *f, int pod,
			 const char *path, int64_t bytes, const char *sha256)
{
	if (f->bytes == bytes && !strcmp(f->sha256, sha256) && !strcmp(f->path, path) &&
	    f->pod == pod && f->fate != FATE_LOST && f->fate != FATE_FALSE)
		return;
	if (f->r) {
		receive_drop(TAKE(f->r), false);
		*(are_of_command(e) ? &s->ready : &s->home) -= 1;
	}
	if (f->fetch != FETCH_NONE) /* it uses the part of that name until it ends */
		f->fetch = FETCH_OUTDATED;
	f->turn = ++e->outfiles.turns;
	f->retries = 0;
	count_names(e, f, -1);
	free(f->path);
	f->path = xstrdup(path);
	f->bytes = bytes;
	COPY_TEXT(f->sha256, sha256);
	if (f->pod != pod && is_open(f->fate)) {
		change_open_count(e, s, pod, 1);
		change_open_count(e, s, f->pod, -1);
	}
	f->pod = pod;
	count_names(e, f, 1);
	if (are_of_command(e) && f->fate != FATE_PLACING)
		set_fate(e, s, f, FATE_OPEN);
}

struct outfile *outfiles_add(struct engine *e, int pod, uint32_t segment, const char *name,
			     const char *path, int64_t bytes, const char *sha256, bool is_new)
{
	struct outputs *s = &e->outfiles.of[segment];
	size_t *noted = are_of_command(e) ? claims_file(e, segment, name) : NULL;
	size_t at = noted ? *noted : 0;

	if (at < s->count && !strcmp(s->files[at].name, name)) {
		if (is_new && s->state == OUTPUTS_OPEN)
			replace_file(e, s, &s->files[at], pod, path, bytes, sha256);
		return &s->files[at];
	}
	if (noted)
		*noted = s->count;
	GROW(s->files, s->count, s->cap);
	struct outfile *f = &s->files[s->count++];
	*f = (struct outfile){
		.name = xstrdup(name), .path = xstrdup(path), .bytes = bytes, .pod = pod};
	COPY_TEXT(f->sha256, sha256);
	count_names(e, f, 1);
	if (are_of_command(e))
		change_open_count(e, s, pod, 1);
	return f;
}

static bool is_of_segment(const void *ctx, const void *segment)
{
	const struct getting *g = ctx;

	return g->segment == *(const uint32_t *)segment;
}

void outfiles_discard(struct engine *e, uint32_t segment)
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
	/* Fetches of this attempt would block the files of the next one. What a provider still
	 * brings from the volume is dropped when it comes: it is not current. */
	if (under_way && s->pod >= 0 && !pod_files_on_volume(core_pod_at(e->core, s->pod)) &&
	    e->pods[s->pod].conn.fetcher)
		fetcher_cancel(e->pods[s->pod].conn.fetcher, is_of_segment, &segment);
}

/* ---- suspect files: the best of several tries ---- */

static int doubt_of(const struct check *check)
{
	return check->doubt > 0 ? check->doubt : CHECK_DOUBT_MOST;
}

bool outfiles_is_best(const struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	int doubt = doubt_of(&s->check);

	/* of files that cannot be compared the last one is kept: none need be aside */
	return doubt < CHECK_DOUBT_MOST && s->count == 1 && s->files[0].r &&
	       (!s->aside || doubt <= doubt_of(&s->aside->check));
}

void outfiles_forget_aside(struct engine *e, uint32_t segment)
{
	struct tried *aside = TAKE(e->outfiles.of[segment].aside);

	if (aside)
		receive_drop(aside->file, false);
	free(aside);
}

void outfiles_keep_aside(struct engine *e, uint32_t segment, const struct tried *t)
{
	struct outputs *s = &e->outfiles.of[segment];
	struct err err;

	outfiles_forget_aside(e, segment);
	s->aside = xmalloc(sizeof(*s->aside));
	*s->aside = *t;
	if (receive_set_aside(t->file, &err) == 0)
		return;
	engine_log(e, LOG_INFO, "%s: %s", e->work.segments[segment].id, err.msg);
	outfiles_forget_aside(e, segment);
}

void outfiles_prefer_aside(struct engine *e, uint32_t segment, struct tried *t)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (!s->aside || doubt_of(&s->aside->check) >= doubt_of(&t->check))
		return;
	receive_drop(t->file, false);
	*t = *s->aside;
	s->aside->file = NULL;
}

void outfiles_init(struct engine *e, void (*place)(struct engine *e, uint32_t segment))
{
	e->outfiles.place = place;
	e->outfiles.of = xcalloc(e->work.count, sizeof(*e->outfiles.of));
	for (uint32_t i = 0; i < e->work.count; i++)
		e->outfiles.of[i].pod = -1;
}

void outfiles_free(struct engine *e)
{
	for (uint32_t i = 0; i < e->work.count; i++) {
		outfiles_discard(e, i);
		outfiles_forget_aside(e, i);
	}
	free(e->outfiles.of);
}

/* The segment's outputs come from this pod now; -1: from one that is not known yet. */
static void begin_attempt(struct engine *e, uint32_t segment, int pod)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (!are_of_command(e))
		outfiles_discard(e, segment);
	s->pod = pod;
	s->state = OUTPUTS_OPEN;
}

void outfiles_begin_batch(struct engine *e, uint32_t segment, const char *batch)
{
	struct outputs *s = &e->outfiles.of[segment];

	begin_attempt(e, segment, -1);
	s->refused = false;
	s->unkept = 0;
	COPY_TEXT(s->batch, batch);
}

void outfiles_begin_report(struct engine *e, uint32_t segment, int pod)
{
	begin_attempt(e, segment, pod);
}

void outfiles_refuse(struct engine *e, uint32_t segment)
{
	e->outfiles.of[segment].refused = true;
}

void outfiles_end_report(struct engine *e, uint32_t segment, const json_t *event)
{
	struct outputs *s = &e->outfiles.of[segment];

	s->state = OUTPUTS_REPORTED;
	copy_pod_text(s->batch, sizeof(s->batch), jsonx_text(event, "batch", ""));
	s->seconds = reported_seconds(event);
	s->rate = reported_rate(event);
}

static void work_inspect(void *ctx, const char *part_path)
{
	struct getting *g = ctx;
	const struct engine_setup *setup = g->e->setup;
	struct err err = {0};

	g->check = (struct check){.ok = true};
	g->checked = true;
	if (setup->job_ops->check &&
	    setup->job_ops->check(setup->job, g->segment, part_path, &g->check, &err) < 0) {
		g->check.ok = false;
		COPY_WORDS(g->check.reason, err.msg);
	}
}

/* The first output that keeps the command from being done; NULL: none. *count: of all such. */
static const struct outfile *find_lost(const struct outputs *s, size_t *count)
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

/* If one of a command's finished outputs is not here, the command has not done its work: posts
 * that, and returns true. */
static bool announce_if_lost(struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	size_t lost;
	const struct outfile *f = find_lost(s, &lost);
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
		COPY_WORDS(e->setup->results[segment].reason, err.msg);
	struct event ev = {.type = EV_FETCH_FAILED, .pod = s->pod, .segment = segment};
	post(e, &ev, &err);
	return true;
}

/* Posts EV_FETCHED once all outputs of a reported segment are fetched or given up; EV_FETCH_FAILED
 * if some were lost. */
static void announce_if_fetched(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (s->state != OUTPUTS_REPORTED || (are_of_command(e) ? s->open > 0 : s->home < s->count))
		return;
	s->state = OUTPUTS_ANNOUNCED;
	if (are_of_command(e) && announce_if_lost(e, segment))
		return;
	struct event ev = {.type = EV_FETCHED,
			   .pod = s->pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = are_of_command(e) || s->check.ok || !s->count};
	if (!ev.check_ok)
		engine_log(e, LOG_INFO, "%s: %s", e->work.segments[segment].id, s->check.reason);
	post(e, &ev, NULL);
}

void outfiles_log_failure(struct engine *e, uint32_t segment, const struct err *why)
{
	if (why->kind == ERR_JOB)
		COPY_WORDS(e->setup->results[segment].reason, why->msg);
	engine_log(e, why->kind == ERR_JOB ? LOG_WARN : LOG_INFO, "%s: %s",
		   e->work.segments[segment].id, why->msg);
}

void outfiles_note_unkept(struct engine *e, uint32_t segment, const char *why)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (s->unkept++ == 0)
		COPY_TEXT(s->unkept_why, why);
	if (s->unkept <= FAILED_LOGGED)
		engine_log(e, LOG_WARN, "%s: %s", e->work.segments[segment].id, why);
}

/* The file of a fetch; NULL: the segment went to another pod meanwhile. A command keeps the files
 * of its earlier attempts. */
static struct outfile *file_of(const struct getting *g)
{
	struct outputs *s = &g->e->outfiles.of[g->segment];

	return (are_of_command(g->e) || s->pod == g->pod) && g->file < s->count ? &s->files[g->file]
										: NULL;
}

/* Whether the fetch is the one that counts. Otherwise the segment went to another pod, or there is
 * a newer file of that name. */
static bool is_current(const struct getting *g)
{
	const struct outfile *f = file_of(g);

	return f && f->fetch != FETCH_NONE && f->turn == g->turn;
}

static void fetch_file(struct engine *e, uint32_t segment, size_t file);

/* Fetches the segment's files that this pod has, unless that is done or under way. */
static void fetch_files(struct engine *e, int pod, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];

	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod == pod)
			fetch_file(e, segment, i);
}

/* If the fetch was of an older file of that name, fetches the present one. */
static void fetch_newer(const struct getting *g)
{
	struct outfile *f = file_of(g);

	if (!f || f->fetch != FETCH_OUTDATED)
		return;
	f->fetch = FETCH_NONE;
	fetch_file(g->e, g->segment, g->file);
}

/* Returns true if the failure is not the file's own: it is fetched again, or not needed. */
static bool retry_fetch(const struct getting *g, struct outfile *f, const struct err *err)
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

static void fail_file(const struct getting *g, const struct err *err)
{
	struct event ev = {.type = EV_FETCH_FAILED, .pod = g->pod, .segment = g->segment};
	struct err why = *err;

	if (why.kind == ERR_BUSY)
		why.kind = ERR_TRANSIENT; /* our own doing: the older fetch that has the part is
					     about to end */
	outfiles_log_failure(g->e, g->segment, &why);
	post(g->e, &ev, &why);
}

static void take_file(const struct getting *g, struct outfile *f, struct receive *r)
{
	struct outputs *s = &g->e->outfiles.of[g->segment];

	f->r = r;
	s->home++;
	if (g->checked && (g->file == 0 || !g->check.ok))
		s->check = g->check;
	announce_if_fetched(g->e, g->segment);
}

/* ---- a command's outputs, each by itself ---- */

/* An output of a command cannot be fetched or placed: tried again when the command has ended. */
static void lose_output(struct engine *e, uint32_t segment, struct outfile *f,
			const struct err *why)
{
	struct outputs *s = &e->outfiles.of[segment];

	f->why = *why;
	engine_log(e, ++s->failed <= FAILED_LOGGED ? LOG_WARN : LOG_INFO, "%s: %s",
		   e->work.segments[segment].id, why->msg);
	set_fate(e, s, f, FATE_LOST);
	checkpoint_output_settled(e, segment);
	announce_if_fetched(e, segment);
}

void outfiles_place_all(struct engine *e)
{
	loop_untimer(TAKE(e->outfiles.due));
	for (uint32_t i = 0; e->outfiles.open && i < e->work.count; i++)
		e->outfiles.place(e, i);
}

static void on_due_timer(void *ctx)
{
	struct engine *e = ctx;

	e->outfiles.due = NULL;
	outfiles_place_all(e);
}

/* An output of a command is fetched and verified. Several are placed with one sync of the manifest
 * and of their folder. */
static void take_output(const struct getting *g, struct outfile *f, struct receive *r)
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
		e->outfiles.due = loop_timer(e->loop, TOGETHER_MS, on_due_timer, e);
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
		lose_output(e, segment, f, why);
	} else {
		set_fate(e, s, f, FATE_HERE);
		checkpoint_output_settled(e, segment);
		announce_if_fetched(e, segment);
	}
}

void outfiles_begin_placing(struct engine *e, uint32_t segment)
{
	e->outfiles.of[segment].placing = true;
}

void outfiles_end_placing(struct engine *e, uint32_t segment)
{
	e->outfiles.of[segment].placing = false;
}

void outfiles_fetch_rest(struct engine *e, int pod)
{
	for (uint32_t i = 0; i < e->work.count; i++)
		fetch_files(e, pod, i);
}

void outfiles_lose_rest(struct engine *e, int pod)
{
	for (uint32_t i = 0; i < e->work.count; i++) {
		struct outputs *s = &e->outfiles.of[i];
		for (size_t k = 0; k < s->count; k++) {
			struct outfile *f = &s->files[k];
			struct err why;
			if (f->pod != pod || f->fate != FATE_OPEN || f->r)
				continue;
			err_set(&why, ERR_JOB, "%s was finished, and lost with pod %s", f->name,
				pod_called(e, pod));
			f->turn = ++e->outfiles.turns;
			lose_output(e, i, f, &why);
		}
	}
}

void outfiles_retry_lost(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	for (size_t i = 0; are_of_command(e) && i < s->count; i++) {
		struct outfile *f = &s->files[i];
		if (f->fate != FATE_LOST || f->why.kind == ERR_JOB)
			continue;
		f->retries = 0;
		set_fate(e, s, f, FATE_OPEN);
		fetch_file(e, segment, i);
	}
}

size_t outfiles_count_open(const struct engine *e)
{
	return e->outfiles.open;
}

/* ---- a fetch ---- */

/* fetch_want.done: hands r to the segment's file, or drops it if the fetch no longer counts. err:
 * there is no r; the file is fetched again, or given up. Frees ctx. */
static void on_fetched(void *ctx, struct receive *r, const struct err *err)
{
	struct getting *g = ctx;
	struct outfile *f = file_of(g);

	g->e->outfiles.of[g->segment].under_way--;
	if (!is_current(g)) {
		receive_drop(r, false);
		fetch_newer(g);
	} else {
		f->fetch = FETCH_NONE;
		if (!err && are_of_command(g->e))
			take_output(g, f, r);
		else if (!err)
			take_file(g, f, r);
		else if (retry_fetch(g, f, err))
			;
		else if (are_of_command(g->e))
			lose_output(g->e, g->segment, f, err);
		else
			fail_file(g, err);
	}
	free(g);
}

static struct fetch_want make_want(struct getting *g)
{
	const struct outfile *f = file_of(g);

	return (struct fetch_want){
		.output_dir = g->e->setup->output_dir,
		.name = f->name,
		.path = f->path,
		.bytes = f->bytes,
		.max_bytes = outfiles_most_bytes(g->e, f->pod),
		.sha256 = f->sha256,
		.inspect = work_inspect,
		.done = on_fetched,
		.ctx = g,
	};
}

static void on_volume_file(void *ctx, const char *local, const struct err *err)
{
	struct getting *g = ctx;
	struct segment_result *r = &g->e->setup->results[g->segment];
	struct err why = err ? *err : (struct err){.kind = ERR_INTERRUPTED};

	if (!err && is_current(g)) {
		struct fetch_want want = make_want(g);
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
	on_fetched(g, NULL, &why);
}

/* From the pod, over SSH, or without it from its volume. Returns false if no file can come from
 * there now; nothing was begun. */
static bool begin_fetch(struct getting *g)
{
	struct engine *e = g->e;
	const struct core_pod *p = core_pod_at(e->core, g->pod);
	struct fetcher *fetcher = e->pods[g->pod].conn.fetcher;
	struct fetch_want want = make_want(g);

	if (pod_files_on_volume(p)) {
		CLEANUP(free_text)
		char *name = xasprintf("%s-%u-%zu", p->rental.attempt, g->segment, g->file);
		volume_files_get(e, g->pod, want.path, name, want.bytes + 1, on_volume_file, g);
		return true;
	}
	if (fetcher)
		fetcher_get(fetcher, &want);
	return fetcher;
}

/* Fetches the file unless it is fetched, given up, or under way. */
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

void outfiles_fetch_output(struct engine *e, uint32_t segment, const struct outfile *f)
{
	fetch_file(e, segment, (size_t)(f - e->outfiles.of[segment].files));
}

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
	if (are_of_command(e) && s->state == OUTPUTS_ANNOUNCED)
		s->state = OUTPUTS_REPORTED; /* what was lost is tried again */
	outfiles_retry_lost(e, segment);
	fetch_files(e, pod, segment);
	announce_if_fetched(e, segment); /* nothing to fetch, or all is fetched already */
}

int64_t outfiles_bytes_left(const struct engine *e, int pod)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < e->work.count; i++) {
		const struct outputs *s = &e->outfiles.of[i];
		bool waits = are_of_command(e) || core_seg_state(e->core, i) == SEG_RENDERED;
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

	if (are_of_command(e)) {
		set_fate(e, s, &s->files[file], FATE_PLACING);
		s->ready--;
	}
	return TAKE(s->files[file].r);
}

/* ---- the end ---- */

/* Whether the file was finished, is not here, and perhaps is on a volume. */
static bool is_perhaps_on_volume(const struct outfile *f)
{
	return f->fate == FATE_OPEN || f->fate == FATE_PLACING ||
	       (f->fate == FATE_LOST && f->why.kind != ERR_JOB);
}

void outfiles_note_left(struct engine *e)
{
	for (int pod = 0; are_of_command(e) && pod < e->pod_count; pod++) {
		const struct core_pod *p = core_pod_at(e->core, pod);
		const struct outfile *first = NULL;
		size_t count = 0;
		for (uint32_t i = 0; i < e->work.count; i++)
			for (size_t k = 0; k < e->outfiles.of[i].count; k++) {
				const struct outfile *f = &e->outfiles.of[i].files[k];
				if (f->pod != pod || !is_perhaps_on_volume(f))
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
