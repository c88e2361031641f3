/* outfiles.c - from finished on a pod to safe here: fetched, verified, checked, renamed, recorded.
 */
#include <search.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/path.h"
#include "impl.h"

enum { KEEP_AT_ONCE = 256 };

struct getting { /* one file under way: the context of its fetch */
	struct engine *e;
	uint32_t segment;
	size_t file;
	int pod;
	unsigned turn;      /* which try this is; an older one that ends late is passed over */
	struct check check; /* a worker thread's until done */
	bool checked;
};

/* Commands: which segment an output's name belongs to, from the first one that reported it, and
 * which of its files it is; or a folder that outputs lie in. */
struct claim {
	uint32_t segment;
	bool is_file;
	size_t file;
	size_t below; /* files in this folder, and further below */
	char name[];
};

static int claim_order(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void free_claim_cleanup(struct claim **c)
{
	free(*c);
}

static struct claim *claim_new(const char *name, size_t len)
{
	struct claim *c = xcalloc(1, sizeof(*c) + len + 1);

	memcpy(c->name, name, len);
	return c;
}

/* One command may have a hundred thousand. len: of the part of name that is meant. */
static struct claim *claim_find(const struct engine *e, const char *name, size_t len)
{
	CLEANUP(free_claim) struct claim *wanted = claim_new(name, len);
	struct claim **found = tfind(wanted, &e->claims, claim_order);

	return found ? *found : NULL;
}

static struct claim *claim_make(struct engine *e, const char *name, size_t len)
{
	struct claim *mine = claim_new(name, len);
	struct claim **found = tsearch(mine, &e->claims, claim_order);

	if (!found)
		abort();
	if (*found != mine)
		free(mine);
	return *found;
}

static void claim_drop(struct engine *e, struct claim *c)
{
	if (c->is_file || c->below)
		return;
	tdelete(c, &e->claims, claim_order);
	free(c);
}

/* The folders that a name leads through, one after the other: the length of each. 0: no more. */
static size_t next_folder(const char *name, size_t len)
{
	const char *slash = strchr(name + (len ? len + 1 : 0), '/');

	return slash ? (size_t)(slash - name) : 0;
}

/* A name that is a file's is no folder's. */
static const struct claim *in_the_way(const struct engine *e, const char *name)
{
	const struct claim *c = claim_find(e, name, strlen(name));

	if (c && c->below)
		return c;
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = claim_find(e, name, len);
		if (c && c->is_file)
			return c;
	}
	return NULL;
}

enum claim_answer outfiles_claim(struct engine *e, uint32_t segment, const char *name,
				 uint32_t *owner)
{
	struct claim *c = claim_find(e, name, strlen(name));

	if (c && c->is_file) {
		*owner = c->segment;
		return c->segment == segment ? CLAIM_TAKEN : CLAIM_OF_ANOTHER;
	}
	const struct claim *other = in_the_way(e, name);
	if (other) {
		*owner = other->segment;
		return CLAIM_IN_THE_WAY;
	}
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		struct claim *folder = claim_make(e, name, len);
		folder->segment = folder->below++ ? folder->segment : segment;
	}
	c = claim_make(e, name, strlen(name));
	c->is_file = true;
	c->segment = segment;
	return CLAIM_TAKEN;
}

void outfiles_unclaim(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = claim_find(e, name, strlen(name));

	if (!c || !c->is_file || c->segment != segment)
		return;
	c->is_file = false;
	claim_drop(e, c);
	for (size_t len = next_folder(name, 0); len; len = next_folder(name, len)) {
		c = claim_find(e, name, len);
		c->below--;
		claim_drop(e, c);
	}
}

void outfiles_free_claims(struct engine *e)
{
	while (e->claims) {
		struct claim *c = *(struct claim **)e->claims;
		tdelete(c, &e->claims, claim_order);
		free(c);
	}
}

static struct claim *claim_of(struct engine *e, uint32_t segment, const char *name)
{
	struct claim *c = claim_find(e, name, strlen(name));

	return c && c->is_file && c->segment == segment ? c : NULL;
}

void outfiles_disclaim(struct engine *e, int pod)
{
	for (uint32_t i = 0; e->needs && e->needs->command && i < e->segment_count; i++) {
		const struct seg_state *s = &e->segs[i];
		for (size_t k = 0;
		     s->pod == pod && core_seg_state(e->core, i) != SEG_SAFE && k < s->count; k++)
			outfiles_unclaim(e, i, s->files[k].name);
	}
}

int64_t outfiles_most_bytes(const struct engine *e, int pod)
{
	const struct volume *v = &core_pod_at(e->core, pod)->volume;

	if (!e->needs->command)
		return OUTPUT_MAX_BYTES;
	/* what is not sold by its size may not be held to it */
	return v->size_gb && v->price_microusd_month ? v->size_gb << 30 : COMMAND_OUTPUT_MAX_BYTES;
}

static void count_names(struct engine *e, const struct seg_state *s, const struct outfile *f,
			int sign)
{
	if (s->pod >= 0)
		e->pods[s->pod].named_bytes +=
			sign * (int64_t)(sizeof(*f) + strlen(f->name) + strlen(f->path));
}

/* A command that goes on has replaced or lengthened what it had told of. */
static void supersede(struct engine *e, struct seg_state *s, struct outfile *f, const char *path,
		      int64_t bytes, const char *sha256)
{
	if (f->bytes == bytes && !strcmp(f->sha256, sha256) && !strcmp(f->path, path))
		return;
	if (f->r) {
		receive_drop(TAKE(f->r), false);
		s->home--;
	}
	f->superseded = f->under_way; /* its part is taken until that has ended */
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
	struct claim *claim = e->needs->command ? claim_of(e, segment, name) : NULL;
	size_t at = claim ? claim->file : 0;

	if (at < s->count && !strcmp(s->files[at].name, name)) {
		if (is_new && !s->reported)
			supersede(e, s, &s->files[at], path, bytes, sha256);
		return &s->files[at]; /* else it is told twice (an event log read again) */
	}
	if (claim)
		claim->file = s->count;
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
	struct fetcher *fetcher = s->pod >= 0 ? e->pods[s->pod].fetcher : NULL;
	bool under_way = false;

	for (size_t i = 0; i < s->count; i++) {
		under_way = under_way || s->files[i].under_way;
		receive_drop(s->files[i].r, false);
		count_names(e, s, &s->files[i], -1);
		if (e->needs->command)
			outfiles_unclaim(e, segment, s->files[i].name);
		free(s->files[i].name);
		free(s->files[i].path);
	}
	free(s->files);
	s->files = NULL;
	s->count = s->cap = s->home = 0;
	s->reported = s->announced = false;
	if (under_way && fetcher)
		fetcher_cancel(fetcher, is_of,
			       &segment); /* they would keep the next try's files from coming */
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

static void announce_home(struct engine *e, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];

	if (!s->reported || s->announced || s->home < s->count)
		return;
	s->announced = true;
	struct event ev = {.type = EV_HOME,
			   .pod = s->pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = s->check.ok || !s->count};
	if (s->count && !s->check.ok)
		engine_log(e, LOG_INFO, "%s: %s", e->segments[segment].id, s->check.reason);
	post(e, &ev, NULL);
}

static void fetch_one(struct engine *e, int pod, uint32_t segment, size_t file);

/* ERR_JOB: its segment fails for it. */
static void file_failed(struct engine *e, uint32_t segment, const struct err *why)
{
	if (why->kind == ERR_JOB)
		COPY_TEXT(e->setup->results[segment].reason, why->msg);
	engine_log(e, why->kind == ERR_JOB ? LOG_WARN : LOG_INFO, "%s: %s", e->segments[segment].id,
		   why->msg);
}

void outfiles_stale(struct engine *e, int pod, uint32_t segment, struct outfile *f)
{
	if (!f || !f->superseded)
		return;
	f->superseded = f->under_way = false;
	outfiles_stream(e, pod, segment, f);
}

static void arrived(void *ctx, struct receive *r, const struct err *err)
{
	struct getting *g = ctx;
	struct engine *e = g->e;
	struct seg_state *s = &e->segs[g->segment];
	struct outfile *f = s->pod == g->pod && g->file < s->count ? &s->files[g->file] : NULL;
	bool current = f && f->under_way && f->turn == g->turn;

	if (!current) {
		/* the segment went elsewhere meanwhile, or the file is another one now */
		receive_drop(r, false);
		outfiles_stale(e, g->pod, g->segment, f);
	} else if (err && err->kind == ERR_NETWORK && !e->pods[g->pod].fetcher) {
		/* the connection is gone: all that is not home is asked for when it is back */
		f->under_way = false;
		if (core_pod_at(e->core, g->pod)->via_volume && !e->over)
			vendor_fetch(e, g->pod, g->segment);
	} else if (err && err->kind == ERR_NETWORK && f->retries++ < 3) {
		f->under_way = false; /* only the channel broke */
		fetch_one(e, g->pod, g->segment, g->file);
	} else if (err) {
		f->under_way = false;
		struct event ev = {.type = EV_HOME_FAILED, .pod = g->pod, .segment = g->segment};
		struct err why = *err;
		if (why.kind == ERR_BUSY)
			why.kind = ERR_TRANSIENT; /* of our own making: what holds it is about to
						     end */
		file_failed(e, g->segment, &why);
		post(e, &ev, &why);
	} else {
		f->under_way = false;
		f->r = r;
		s->home++;
		if (g->checked && (g->file == 0 || !g->check.ok))
			s->check = g->check;
		announce_home(e, g->segment);
	}
	free(g);
}

void outfiles_want(struct engine *e, uint32_t segment, size_t file, struct fetch_want *want)
{
	struct outfile *f = &e->segs[segment].files[file];
	struct getting *g = xcalloc(1, sizeof(*g));

	*g = (struct getting){.e = e,
			      .segment = segment,
			      .file = file,
			      .pod = e->segs[segment].pod,
			      .turn = ++e->fetch_turns};
	f->turn = g->turn;
	*want = (struct fetch_want){
		.output_dir = e->setup->output_dir,
		.name = f->name,
		.path = f->path,
		.bytes = f->bytes,
		.max_bytes = outfiles_most_bytes(e, e->segs[segment].pod),
		.sha256 = f->sha256,
		.inspect = inspect,
		.done = arrived,
		.ctx = g,
	};
}

static void fetch_one(struct engine *e, int pod, uint32_t segment, size_t file)
{
	struct outfile *f = &e->segs[segment].files[file];
	struct fetch_want want;

	if (f->under_way || f->r || !e->pods[pod].fetcher)
		return;
	outfiles_want(e, segment, file, &want);
	f->under_way = true;
	fetcher_get(e->pods[pod].fetcher, &want);
}

void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f)
{
	if (core_pod_at(e->core, pod)->via_volume)
		outfiles_fetch(e, pod, segment);
	else
		fetch_one(e, pod, segment, (size_t)(f - e->segs[segment].files));
}

void outfiles_fetch(struct engine *e, int pod, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];
	const struct core_pod *p = core_pod_at(e->core, pod);

	/* nothing is known of such a file (any more) */
	if (s->pod != pod || (!s->count && !s->reported)) {
		struct err err;
		err_set(&err, ERR_NOT_FOUND, "%s: not reported by pod %s", e->segments[segment].id,
			pod_called(e, pod));
		struct event ev = {.type = EV_HOME_FAILED, .pod = pod, .segment = segment};
		post(e, &ev, &err);
		return;
	}
	if (p->via_volume) {
		vendor_fetch(e, pod, segment);
	} else if (e->pods[pod].fetcher) {
		for (size_t i = 0; i < s->count; i++)
			fetch_one(e, pod, segment, i);
	}
	announce_home(e, segment); /* nothing to fetch, or all here already */
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

/* ---- under its final name ---- */

struct keeping {
	struct engine *e;
	uint32_t segment;
	bool suspect;
	bool command;
	struct receive **list;
	char **names, (*hashes)[SHA256_HEX]; /* commands: of each output */
	size_t count;
	struct segment_result result;
	struct err err;
};

static struct segment_result result_of(const struct keeping *k, size_t file)
{
	struct segment_result result = k->result;

	if (k->command) {
		result.file = k->names[file];
		COPY_TEXT(result.sha256, k->hashes[file]);
		result.bytes = receive_bytes(k->list[file]);
	}
	return result;
}

/* The manifest's lines first, then the renames: a line without its file is harmless, a file without
 * a line looks foreign. Both are synced for so many files at once. */
static int record_and_keep(struct keeping *k, size_t from, size_t count)
{
	const struct engine_setup *setup = k->e->setup;
	struct segment_result *results = xcalloc(count, sizeof(*results));

	for (size_t i = 0; i < count; i++)
		results[i] = result_of(k, from + i);
	int done = setup->job_ops->record(setup->job, k->segment, results, count, &k->err);
	free(results);
	if (done < 0 || receive_keep_all(k->list + from, count, &k->err) < 0)
		return -1;
	if (setup->job_ops->kept)
		setup->job_ops->kept(setup->job, k->segment, &k->result);
	return 0;
}

static void work_keep(void *arg)
{
	struct keeping *k = arg;

	k->result.state = SEGMENT_SAFE;
	for (size_t at = 0; at < k->count; at += KEEP_AT_ONCE)
		if (record_and_keep(k, at, MIN(k->count - at, (size_t)KEEP_AT_ONCE)) < 0)
			return;
}

static void kept(void *arg)
{
	struct keeping *k = arg;
	struct engine *e = k->e;

	for (size_t i = 0; i < k->count; i++)
		receive_drop(k->list[i], false);
	if (k->err.kind) {
		struct event ev = {.type = EV_HOME_FAILED,
				   .pod = e->segs[k->segment].pod,
				   .segment = k->segment};
		if (k->err.kind != ERR_JOB)
			k->err.kind = ERR_LOCAL;
		file_failed(e, k->segment, &k->err);
		post(e, &ev, &k->err);
	} else {
		e->setup->results[k->segment] = k->result;
		journal_safe(e, k->segment, k->suspect);
	}
	for (size_t i = 0; i < k->count; i++)
		free(k->names[i]);
	free(k->names);
	free(k->hashes);
	free(k->list);
	free(k);
}

void outfiles_keep(struct engine *e, uint32_t segment, bool suspect)
{
	struct seg_state *s = &e->segs[segment];
	const struct core_pod *p = core_pod_at(e->core, s->pod);
	struct keeping *k = xcalloc(1, sizeof(*k));

	k->e = e;
	k->segment = segment;
	k->suspect = suspect;
	k->count = s->count;
	k->list = xcalloc(s->count, sizeof(*k->list));
	k->names = xcalloc(s->count, sizeof(*k->names));
	k->hashes = xcalloc(s->count, sizeof(*k->hashes));
	k->command = e->needs->command;
	for (size_t i = 0; i < s->count; i++) {
		k->list[i] = TAKE(s->files[i].r);
		k->names[i] = xstrdup(s->files[i].name);
		COPY_TEXT(k->hashes[i], s->files[i].sha256);
	}
	struct segment_result *r = &k->result;
	r->suspect = suspect;
	if (suspect)
		COPY_TEXT(r->reason, s->check.reason);
	if (s->count) {
		COPY_TEXT(r->sha256, s->files[0].sha256);
		r->bytes = s->files[0].bytes;
	}
	r->seconds = s->check.seconds > 0 ? s->check.seconds : s->seconds;
	r->sample_rate = s->check.sample_rate > 0 ? s->check.sample_rate : s->rate;
	r->tries = core_seg_tries(e->core, segment) + 1;
	COPY_TEXT(r->provider, e->setup->providers[p->provider].ops->name);
	COPY_TEXT(r->gpu, e->pods[s->pod].gpu_seen[0] ? e->pods[s->pod].gpu_seen : p->offer.gpu);
	COPY_TEXT(r->attempt, p->attempt);
	COPY_TEXT(r->batch, s->batch);
	pool_run(e->pool, work_keep, kept, k);
}

void outfiles_discard(struct engine *e, uint32_t segment)
{
	outfiles_reset(e, segment);
}
