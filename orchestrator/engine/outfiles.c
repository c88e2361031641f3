/* outfiles.c - fetches, verifies and checks the outputs of pods. */
#include "outfiles.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "base/log.h"
#include "claims.h"
#include "file_source.h"
#include "impl.h"
#include "post.h"
#include "reported.h"

struct getting { /* one file under way: the context of its fetch */
	struct engine *e;
	uint32_t segment;
	size_t file;
	int pod;
	unsigned turn;      /* number of this fetch; an older one that ends late is ignored */
	struct check check; /* a worker thread's until done */
	bool checked;
};

void outfiles_disclaim(struct engine *e, int pod)
{
	for (uint32_t i = 0; e->work.needs && e->work.needs->command && i < e->work.count; i++) {
		const struct outputs *s = &e->outfiles.of[i];
		for (size_t k = 0;
		     s->pod == pod && core_seg_state(e->core, i) != SEG_LOCAL && k < s->count; k++)
			claims_drop(e, i, s->files[k].name);
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

static void count_names(struct engine *e, const struct outputs *s, const struct outfile *f,
			int sign)
{
	if (s->pod >= 0)
		e->pods[s->pod].named_bytes +=
			sign * (int64_t)(sizeof(*f) + strlen(f->name) + strlen(f->path));
}

/* A running command may replace or extend a file that it has reported. */
static void supersede(struct engine *e, struct outputs *s, struct outfile *f, const char *path,
		      int64_t bytes, const char *sha256)
{
	if (f->bytes == bytes && !strcmp(f->sha256, sha256) && !strcmp(f->path, path))
		return;
	if (f->r) {
		receive_drop(TAKE(f->r), false);
		s->home--;
	}
	if (f->fetch != FETCH_NONE) /* it has its part until it ends */
		f->fetch = FETCH_OUTDATED;
	f->turn = ++e->outfiles.turns;
	f->retries = 0;
	count_names(e, s, f, -1);
	free(f->path);
	f->path = xstrdup(path);
	count_names(e, s, f, 1);
	f->bytes = bytes;
	COPY_TEXT(f->sha256, sha256);
}

struct outfile *outfiles_add(struct engine *e, uint32_t segment, const char *name, const char *path,
			     int64_t bytes, const char *sha256, bool is_new)
{
	struct outputs *s = &e->outfiles.of[segment];
	size_t *noted = e->work.needs->command ? claims_file(e, segment, name) : NULL;
	size_t at = noted ? *noted : 0;

	if (at < s->count && !strcmp(s->files[at].name, name)) {
		if (is_new && s->state == OUTPUTS_OPEN)
			supersede(e, s, &s->files[at], path, bytes, sha256);
		return &s->files[at]; /* without this, an event log that is read again would count
					 it twice */
	}
	if (noted)
		*noted = s->count;
	GROW(s->files, s->count, s->cap);
	struct outfile *f = &s->files[s->count++];
	*f = (struct outfile){.name = xstrdup(name), .path = xstrdup(path), .bytes = bytes};
	COPY_TEXT(f->sha256, sha256);
	count_names(e, s, f, 1);
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
		count_names(e, s, &s->files[i], -1);
		if (e->work.needs->command)
			claims_drop(e, segment, s->files[i].name);
		free(s->files[i].name);
		free(s->files[i].path);
	}
	free(s->files);
	s->files = NULL;
	s->count = s->cap = s->home = 0;
	s->state = OUTPUTS_OPEN;
	/* they would block the files of the next attempt */
	if (under_way && s->pod >= 0)
		file_source_of(e, s->pod)->cancel(e, s->pod, is_of, &segment);
}

void outfiles_new(struct engine *e)
{
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

void outfiles_expect(struct engine *e, uint32_t segment)
{
	reset(e, segment);
	e->outfiles.of[segment].pod = -1;
	e->outfiles.of[segment].refused = false;
}

void outfiles_from(struct engine *e, uint32_t segment, int pod)
{
	reset(e, segment);
	e->outfiles.of[segment].pod = pod;
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
	struct err err = {0};

	memset(&g->check, 0, sizeof(g->check));
	g->checked = true;
	if (g->e->setup->job_ops->check(g->e->setup->job, g->segment, part_path, &g->check, &err) <
	    0) {
		g->check.ok = false;
		COPY_TEXT(g->check.reason, err.msg);
	}
}

static void announce_fetched(struct engine *e, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	if (s->state != OUTPUTS_REPORTED || s->home < s->count)
		return;
	s->state = OUTPUTS_ANNOUNCED;
	struct event ev = {.type = EV_FETCHED,
			   .pod = s->pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = s->check.ok || !s->count};
	if (s->count && !s->check.ok)
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

/* Finds the file of a fetch. NULL: the segment went to another pod meanwhile. */
static struct outfile *file_of(const struct getting *g)
{
	struct outputs *s = &g->e->outfiles.of[g->segment];

	return s->pod == g->pod && g->file < s->count ? &s->files[g->file] : NULL;
}

/* Returns false if the segment went to another pod, or the pod has a newer file of that name. */
static bool is_current(const void *ctx)
{
	const struct getting *g = ctx;
	const struct outfile *f = file_of(g);

	return f && f->fetch != FETCH_NONE && f->turn == g->turn;
}

static void fetch_file(struct engine *e, int pod, uint32_t segment, size_t file);

static void fetch_files(struct engine *e, int pod, uint32_t segment)
{
	for (size_t i = 0; i < e->outfiles.of[segment].count; i++)
		fetch_file(e, pod, segment, i);
}

/* The fetch was of an older file of that name: fetches the present one. */
static void fetch_again(const struct getting *g)
{
	struct outfile *f = file_of(g);

	if (!f || f->fetch != FETCH_OUTDATED)
		return;
	f->fetch = FETCH_NONE;
	outfiles_stream(g->e, g->pod, g->segment, f);
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
	fetch_file(e, g->pod, g->segment, g->file); /* only the channel broke */
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

static void arrived(void *ctx, struct receive *r, const struct err *err)
{
	struct getting *g = ctx;
	struct outfile *f = file_of(g);

	if (!is_current(g)) {
		receive_drop(r, false);
		fetch_again(g);
	} else {
		f->fetch = FETCH_NONE;
		if (!err)
			file_came(g, f, r);
		else if (!tries_again(g, f, err))
			file_failed(g, err);
	}
	free(g);
}

static void fetch_file(struct engine *e, int pod, uint32_t segment, size_t file)
{
	struct outfile *f = &e->outfiles.of[segment].files[file];

	if (f->fetch != FETCH_NONE || f->r)
		return;
	struct getting *g = xcalloc(1, sizeof(*g));
	*g = (struct getting){
		.e = e, .segment = segment, .file = file, .pod = pod, .turn = ++e->outfiles.turns};
	struct fetch_want want = {
		.output_dir = e->setup->output_dir,
		.name = f->name,
		.path = f->path,
		.bytes = f->bytes,
		.max_bytes = outfiles_most_bytes(e, pod),
		.sha256 = f->sha256,
		.inspect = inspect,
		.wanted = is_current,
		.done = arrived,
		.ctx = g,
	};
	f->turn = g->turn;
	f->fetch = FETCH_UNDER_WAY;
	if (file_source_of(e, pod)->get(e, pod, segment, file, &want))
		return;
	f->fetch = FETCH_NONE;
	free(g);
}

void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f)
{
	fetch_file(e, pod, segment, (size_t)(f - e->outfiles.of[segment].files));
}

void outfiles_fetch(struct engine *e, int pod, uint32_t segment)
{
	struct outputs *s = &e->outfiles.of[segment];

	/* the pod has no such file (any more) */
	if (s->pod != pod || (!s->count && s->state == OUTPUTS_OPEN)) {
		struct err err;
		err_set(&err, ERR_NOT_FOUND, "%s: not reported by pod %s",
			e->work.segments[segment].id, pod_called(e, pod));
		struct event ev = {.type = EV_FETCH_FAILED, .pod = pod, .segment = segment};
		post(e, &ev, &err);
		return;
	}
	fetch_files(e, pod, segment);
	announce_fetched(e, segment); /* nothing to fetch, or all is fetched already */
}

int64_t outfiles_left(const struct engine *e, int pod)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < e->work.count; i++) {
		const struct outputs *s = &e->outfiles.of[i];
		for (size_t k = 0;
		     s->pod == pod && core_seg_state(e->core, i) == SEG_RENDERED && k < s->count;
		     k++)
			bytes += s->files[k].r ? 0 : s->files[k].bytes;
	}
	return bytes;
}

struct receive *outfiles_take(struct engine *e, uint32_t segment, size_t file)
{
	return TAKE(e->outfiles.of[segment].files[file].r);
}
