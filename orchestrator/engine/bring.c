/* bring.c - brings what a command saved to the pod of its next attempt. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "impl.h"

enum {
	TREE_SILENT_MS = 300 * 1000,
	TRIES = 3, /* to get a snapshot to a pod */
	AGAIN_MS = 1000,
};

static const char FILE_NAME[] = "snapshot";

/* A folder on this machine that holds one snapshot alone, and its tree: what is sent to a pod. A
 * thread may still read it after its transfer was cancelled, so it is freed at the end. */
struct sending {
	struct sending *next;
	struct tree *tree;
	char *dir;
};

void bring_free(struct engine *e)
{
	if (!e->checkpoints)
		return;
	for (struct sending *s = e->checkpoints->sendings, *next; s; s = next) {
		next = s->next;
		tree_free(s->tree);
		free(s->dir);
		free(s);
	}
	for (int i = 0; i < e->pod_count; i++)
		free(e->pods[i].bring.later);
}

static bool has_volume_of(const struct engine *e, int pod, const struct snapshot *s)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return s->volume[0] && !strcmp(p->rental.volume.id, s->volume) &&
	       !strcmp(e->setup->providers[p->rental.provider].ops->name, s->provider);
}

bool bring_task(struct engine *e, int pod, uint32_t segment, json_t *task)
{
	const struct bringing *b = &e->pods[pod].bring;
	struct saved *v = e->checkpoints ? &e->checkpoints->of[segment] : NULL;
	char size[32], ago[24];

	if (!v || !v->safe.attempt[0])
		return false;
	const struct snapshot *s = &v->safe;
	bool reachable = has_volume_of(e, pod, s);
	if (!reachable && !b->here[0])
		return false;
	CLEANUP(free_text)
	char *path = reachable ? checkpoint_there(e, segment, s)
			       : xasprintf("%s/%s/%s", CHECKPOINT_DIR, b->here, FILE_NAME);
	json_object_set_new(task, "checkpoint",
			    json_pack("{s:s,s:s,s:s}", "path", path, "sha256", s->sha256, "attempt",
				      s->attempt));
	engine_log(e, LOG_NOTE, "%s: continues from its checkpoint of %s ago (%s)",
		   e->work.segments[segment].id,
		   duration_show(ago, sizeof(ago), MAX(clock_wall_ms() - v->taken_ms, (int64_t)0)),
		   bytes_show(size, sizeof(size), s->bytes));
	return true;
}

/* Ends the transfer. */
static void cut(struct bringing *b)
{
	upsync_cancel(TAKE(b->sync));
	if (b->what)
		path_remove_tree(b->what->dir, NULL);
	b->what = NULL;
	loop_untimer(TAKE(b->again));
}

static void stop(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;

	cut(b);
	b->send = NULL;
}

static bool is_wanted(const struct engine *e, int pod, uint32_t batch)
{
	return core_has_batch(e->core, batch, pod) && !core_batch_at(e->core, batch)->over;
}

static void over(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	void (*send)(struct engine *, int, uint32_t) = b->send;

	stop(e, pod);
	pod_detail(e, pod, "");
	if (send && is_wanted(e, pod, b->batch))
		send(e, pod, b->batch);
	while (send && !b->send && b->later_count) {
		uint32_t next = b->later[0];
		memmove(b->later, b->later + 1, --b->later_count * sizeof(*b->later));
		if (is_wanted(e, pod, next))
			bring_send(e, pod, next, send);
	}
}

static void bring(struct engine *e, int pod);

static void again_now(void *ctx)
{
	const struct at *at = ctx;

	at->e->pods[at->pod].bring.again = NULL;
	bring(at->e, at->pod);
}

static bool can_help(enum err_kind kind)
{
	return kind != ERR_NOT_FOUND && kind != ERR_UNTRUSTED && kind != ERR_CREDENTIALS &&
	       kind != ERR_REFUSED && kind != ERR_NO_ACCOUNT;
}

static void failed(struct engine *e, int pod, const struct err *why)
{
	struct bringing *b = &e->pods[pod].bring;
	struct saved *v = &e->checkpoints->of[b->segment];

	/* the copy on this machine is not what the volume has */
	bool again = why->kind == ERR_UNTRUSTED && v->safe.here && v->safe.volume[0];
	if (again)
		checkpoint_remove_here(e, b->segment, &v->safe);
	cut(b);
	if ((again || can_help(why->kind)) && ++b->tries < TRIES) {
		engine_log(e, LOG_NOTE,
			   "%s: its checkpoint did not reach pod %s (%s): trying again",
			   e->work.segments[b->segment].id, pod_called(e, pod), why->msg);
		b->again = loop_timer(e->loop, (int64_t)AGAIN_MS << 2 * (b->tries - 1), again_now,
				      e->pods[pod].at);
		return;
	}
	if (why->kind == ERR_NOT_FOUND || why->kind == ERR_UNTRUSTED)
		v->useless = USELESS_PODS;
	engine_log(e, LOG_WARN, "%s: its checkpoint cannot be used (%s): the command begins anew",
		   e->work.segments[b->segment].id, why->msg);
	over(e, pod);
}

static void sent(void *ctx, int64_t bytes, const struct err *err)
{
	struct at *at = ctx;
	struct bringing *b = &at->e->pods[at->pod].bring;

	(void)bytes;
	b->sync = NULL;
	if (err) {
		failed(at->e, at->pod, err);
		return;
	}
	COPY_TEXT(b->here, b->what->tree->id);
	over(at->e, at->pod);
}

struct reading { /* a snapshot that is made ready to be sent */
	struct engine *e;
	int pod;
	unsigned turn;
	char *path, *dir;
	char sha256[SHA256_HEX];
	struct tree *tree;
	struct err err;
};

/* In a worker thread: a folder of its own, with the file alone, is what is sent. */
static void work_read_file(void *arg)
{
	struct reading *r = arg;
	CLEANUP(free_text) char *name = path_join(r->dir, FILE_NAME);

	path_remove_tree(r->dir, NULL);
	if (path_mkdirs(r->dir, 0700, &r->err) < 0)
		return;
	if (link(r->path, name) < 0) {
		err_set(&r->err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", name,
			strerror(errno));
		return;
	}
	if (tree_scan(&r->tree, r->dir, NULL, &r->err) < 0)
		return;
	if (r->tree->count != 1 || strcmp(r->tree->list[0].sha256, r->sha256) != 0)
		err_set(&r->err, ERR_UNTRUSTED, "%s: the file has changed", r->path);
}

static bool is_current(const struct engine *e, int pod, unsigned turn)
{
	const struct bringing *b = &e->pods[pod].bring;

	return b->turn == turn && b->send && e->pods[pod].conn.link;
}

static void send_tree(struct engine *e, int pod, struct tree *tree, char *dir)
{
	struct epod *p = &e->pods[pod];
	struct sending *s = xmalloc(sizeof(*s));

	*s = (struct sending){e->checkpoints->sendings, tree, dir};
	e->checkpoints->sendings = p->bring.what = s;
	struct upsync_want want = {
		.dir = CHECKPOINT_DIR,
		.tree = tree,
		.root = dir,
		.silent_ms = MIN((int64_t)TREE_SILENT_MS, e->setup->conf.lease_ms / 2),
		.done = sent,
		.ctx = p->at};
	p->bring.sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void was_read(void *arg)
{
	struct reading *r = arg;
	struct engine *e = r->e;
	bool current = is_current(e, r->pod, r->turn);

	if (current && !r->err.kind) {
		send_tree(e, r->pod, TAKE(r->tree), TAKE(r->dir));
	} else {
		path_remove_tree(r->dir, NULL);
		if (current)
			failed(e, r->pod, &r->err);
	}
	tree_free(r->tree);
	free(r->path);
	free(r->dir);
	free(r);
}

static void send_file(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	const struct snapshot *s = &e->checkpoints->of[b->segment].safe;
	CLEANUP(free_text) char *dir = checkpoints_dir(e);
	struct reading *r = xcalloc(1, sizeof(*r));

	*r = (struct reading){.e = e, .pod = pod, .turn = b->turn};
	r->path = checkpoint_here(e, b->segment, s);
	r->dir = xasprintf("%s/.send-%u", dir, e->checkpoints->dirs++);
	COPY_TEXT(r->sha256, s->sha256);
	pool_run(e->pool, work_read_file, was_read, r);
}

struct fetching { /* a snapshot that comes from a volume to this machine */
	struct engine *e;
	int pod;
	unsigned turn;
};

static void came_from_volume(void *ctx, const char *local, const struct err *err)
{
	struct fetching *f = ctx;
	struct engine *e = f->e;

	if (is_current(e, f->pod, f->turn)) {
		uint32_t segment = e->pods[f->pod].bring.segment;
		struct snapshot *s = &e->checkpoints->of[segment].safe;
		CLEANUP(free_text) char *dir = checkpoints_dir(e);
		CLEANUP(free_text) char *path = checkpoint_here(e, segment, s);
		struct err why = err ? *err : (struct err){0};
		if (!err && (path_mkdirs(dir, 0700, &why) < 0 || rename(local, path) < 0) &&
		    !why.kind)
			err_set(&why, ERR_LOCAL, "%s: %s", path, strerror(errno));
		s->here = !why.kind;
		if (s->here)
			send_file(e, f->pod);
		else
			failed(e, f->pod, &why);
	}
	if (local)
		unlink(local);
	free(f);
}

/* The volume that has it, if it can be read without a pod. */
static const struct volume *volume_of(const struct engine *e, const struct snapshot *s,
				      int *provider)
{
	for (int i = 0; i < e->setup->provider_count; i++)
		if (!strcmp(e->setup->providers[i].ops->name, s->provider) &&
		    !strcmp(e->volumes[i].id, s->volume) && e->volumes[i].apart) {
			*provider = i;
			return &e->volumes[i];
		}
	return NULL;
}

static void bring(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	const struct snapshot *s = &e->checkpoints->of[b->segment].safe;
	struct err err;
	int provider = -1;

	pod_detail(e, pod, "sending its checkpoint");
	if (s->here) {
		send_file(e, pod);
		return;
	}
	const struct volume *v = volume_of(e, s, &provider);
	if (!v) {
		err_set(&err, ERR_REFUSED, "it is on a volume that cannot be read from here");
		failed(e, pod, &err);
		return;
	}
	if (s->bytes > e->work.needs->checkpoint_most_bytes) {
		checkpoint_too_large(e, b->segment, s->bytes);
		err_set(&err, ERR_REFUSED, "it is too large to travel through this machine");
		failed(e, pod, &err);
		return;
	}
	struct fetching *f = xcalloc(1, sizeof(*f));
	CLEANUP(free_text) char *path = checkpoint_there(e, b->segment, s);
	CLEANUP(free_text) char *name = xasprintf("checkpoint-%d", pod);
	*f = (struct fetching){e, pod, b->turn};
	volume_files_from(e, provider, v, path, name, s->bytes + 1, came_from_volume, f);
}

void bring_send(struct engine *e, int pod, uint32_t batch,
		void (*send)(struct engine *e, int pod, uint32_t batch))
{
	const struct core_batch *of = core_batch_at(e->core, batch);
	const struct snapshot *s = NULL;

	if (e->checkpoints && of->count)
		s = &e->checkpoints->of[of->segments[0]].safe;
	if (!s || !s->attempt[0] || has_volume_of(e, pod, s)) {
		send(e, pod, batch);
		return;
	}
	struct bringing *b = &e->pods[pod].bring;
	if (b->send) { /* one at a time */
		GROW(b->later, b->later_count, b->later_cap);
		b->later[b->later_count++] = batch;
		return;
	}
	b->turn++;
	b->segment = of->segments[0];
	b->batch = batch;
	b->send = send;
	b->tries = 0;
	b->here[0] = '\0';
	bring(e, pod);
}

void bring_drop(struct engine *e, int pod)
{
	e->pods[pod].bring.turn++;
	e->pods[pod].bring.later_count = 0;
	stop(e, pod);
}

static void take_back(struct engine *e, int pod, uint32_t batch)
{
	struct event ev = {.type = EV_REVOKED, .pod = pod, .batch = batch, .segment = UINT32_MAX};

	post(e, &ev, NULL);
}

void bring_revoke(struct engine *e, int pod)
{
	const struct bringing *b = &e->pods[pod].bring;

	if (!b->send)
		return;
	take_back(e, pod, b->batch);
	for (size_t i = 0; i < b->later_count; i++)
		take_back(e, pod, b->later[i]);
	bring_drop(e, pod);
	pod_detail(e, pod, "");
}
