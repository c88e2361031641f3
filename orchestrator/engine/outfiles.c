/* outfiles.c - fetches, verifies and checks the outputs of pods. */
#include "outfiles.h"

#include <stdlib.h>

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
	for (uint32_t i = 0; e->needs && e->needs->command && i < e->segment_count; i++) {
		const struct seg_state *s = &e->segs[i];
		for (size_t k = 0;
		     s->pod == pod && core_seg_state(e->core, i) != SEG_LOCAL && k < s->count; k++)
			claims_drop(e, i, s->files[k].name);
	}
}

int64_t outfiles_most_bytes(const struct engine *e, int pod)
{
	const struct volume *v = &core_pod_at(e->core, pod)->rental.volume;

	if (!e->needs->command)
		return SPEECH_FILE_MAX_BYTES;
	/* the vendor does not sell it by its size, so its size is no limit */
	return v->size_gb && v->price_microusd_month ? v->size_gb << 30 : COMMAND_OUTPUT_MAX_BYTES;
}

static void count_names(struct engine *e, const struct seg_state *s, const struct outfile *f,
			int sign)
{
	if (s->pod >= 0)
		e->pods[s->pod].named_bytes +=
			sign * (int64_t)(sizeof(*f) + strlen(f->name) + strlen(f->path));
}

/* A running command may replace or extend a file that it has reported. */
static void supersede(struct engine *e, struct seg_state *s, struct outfile *f, const char *path,
		      int64_t bytes, const char *sha256)
{
	if (f->bytes == bytes && !strcmp(f->sha256, sha256) && !strcmp(f->path, path))
		return;
	if (f->r) {
		receive_drop(TAKE(f->r), false);
		s->home--;
	}
	f->superseded = f->under_way; /* an older fetch has its part until that fetch ends */
	f->turn = ++e->fetch_turns;
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
	struct seg_state *s = &e->segs[segment];
	size_t *noted = e->needs->command ? claims_file(e, segment, name) : NULL;
	size_t at = noted ? *noted : 0;

	if (at < s->count && !strcmp(s->files[at].name, name)) {
		if (is_new && !s->reported)
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

void outfiles_reset(struct engine *e, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];
	bool under_way = false;

	for (size_t i = 0; i < s->count; i++) {
		under_way = under_way || s->files[i].under_way;
		receive_drop(s->files[i].r, false);
		count_names(e, s, &s->files[i], -1);
		if (e->needs->command)
			claims_drop(e, segment, s->files[i].name);
		free(s->files[i].name);
		free(s->files[i].path);
	}
	free(s->files);
	s->files = NULL;
	s->count = s->cap = s->home = 0;
	s->reported = s->announced = false;
	/* they would block the files of the next attempt */
	if (under_way && s->pod >= 0)
		file_source_of(e, s->pod)->cancel(e, s->pod, is_of, &segment);
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
	struct seg_state *s = &e->segs[segment];

	if (!s->reported || s->announced || s->home < s->count)
		return;
	s->announced = true;
	struct event ev = {.type = EV_FETCHED,
			   .pod = s->pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = s->check.ok || !s->count};
	if (s->count && !s->check.ok)
		engine_log(e, LOG_INFO, "%s: %s", e->segments[segment].id, s->check.reason);
	post(e, &ev, NULL);
}

void outfiles_failed(struct engine *e, uint32_t segment, const struct err *why)
{
	if (why->kind == ERR_JOB)
		COPY_TEXT(e->setup->results[segment].reason, why->msg);
	engine_log(e, why->kind == ERR_JOB ? LOG_WARN : LOG_INFO, "%s: %s", e->segments[segment].id,
		   why->msg);
}

/* Finds the file of a fetch. NULL: the segment went to another pod meanwhile. */
static struct outfile *file_of(const struct getting *g)
{
	struct seg_state *s = &g->e->segs[g->segment];

	return s->pod == g->pod && g->file < s->count ? &s->files[g->file] : NULL;
}

/* False: the segment went to another pod, or the pod has a newer file of that name. */
static bool is_current(const void *ctx)
{
	const struct getting *g = ctx;
	const struct outfile *f = file_of(g);

	return f && f->under_way && f->turn == g->turn;
}

static void fetch_file(struct engine *e, int pod, uint32_t segment, size_t file);

static void fetch_files(struct engine *e, int pod, uint32_t segment)
{
	for (size_t i = 0; i < e->segs[segment].count; i++)
		fetch_file(e, pod, segment, i);
}

/* The fetch was of an older file of that name: fetches the present one. */
static void fetch_again(const struct getting *g)
{
	struct outfile *f = file_of(g);

	if (!f || !f->superseded)
		return;
	f->superseded = f->under_way = false;
	outfiles_stream(g->e, g->pod, g->segment, f);
}

/* Returns true if the failure is not the file's own, and it is fetched again. */
static bool tries_again(const struct getting *g, struct outfile *f, const struct err *err)
{
	struct engine *e = g->e;

	if (err->kind == ERR_INTERRUPTED && e->turns.over)
		return true; /* no segment needs it any more */
	if (err->kind != ERR_NETWORK)
		return false;
	if (!e->pods[g->pod].conn.fetcher) {
		/* the connection is gone: its files are fetched when it is back, or from the volume
		 */
		if (!e->turns.over)
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
	struct seg_state *s = &g->e->segs[g->segment];

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
		f->under_way = false;
		if (!err)
			file_came(g, f, r);
		else if (!tries_again(g, f, err))
			file_failed(g, err);
	}
	free(g);
}

static void fetch_file(struct engine *e, int pod, uint32_t segment, size_t file)
{
	struct outfile *f = &e->segs[segment].files[file];

	if (f->under_way || f->r)
		return;
	struct getting *g = xcalloc(1, sizeof(*g));
	*g = (struct getting){
		.e = e, .segment = segment, .file = file, .pod = pod, .turn = ++e->fetch_turns};
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
	f->under_way = true;
	if (file_source_of(e, pod)->get(e, pod, segment, file, &want))
		return;
	f->under_way = false;
	free(g);
}

void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f)
{
	fetch_file(e, pod, segment, (size_t)(f - e->segs[segment].files));
}

void outfiles_fetch(struct engine *e, int pod, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];

	/* the pod has no such file (any more) */
	if (s->pod != pod || (!s->count && !s->reported)) {
		struct err err;
		err_set(&err, ERR_NOT_FOUND, "%s: not reported by pod %s", e->segments[segment].id,
			pod_called(e, pod));
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

	for (uint32_t i = 0; i < e->segment_count; i++) {
		const struct seg_state *s = &e->segs[i];
		for (size_t k = 0;
		     s->pod == pod && core_seg_state(e->core, i) == SEG_RENDERED && k < s->count;
		     k++)
			bytes += s->files[k].r ? 0 : s->files[k].bytes;
	}
	return bytes;
}

void outfiles_discard(struct engine *e, uint32_t segment)
{
	outfiles_reset(e, segment);
}
