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

/* A folder on this machine that holds one snapshot alone, and its tree: what is sent to a
 * pod. A thread may still read it after its transfer was cancelled, so it is freed at the end. */
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

static bool is_on_pods_volume(const struct engine *e, int pod, const struct snapshot *s)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return s->volume[0] && !strcmp(p->rental.volume.id, s->volume) &&
	       !strcmp(e->setup->providers[p->rental.provider].ops->name, s->provider);
}

bool bring_add_to_task(struct engine *e, int pod, uint32_t segment, json_t *task)
{
	const struct bringing *b = &e->pods[pod].bring;
	struct saved *v = e->checkpoints ? &e->checkpoints->of[segment] : NULL;
	char size[32], ago[24];

	if (!v || !v->safe.attempt[0])
		return false;
	const struct snapshot *s = &v->safe;
	bool reachable = is_on_pods_volume(e, pod, s);
	if (!reachable && !b->here[0])
		return false;
	CLEANUP(free_text)
	char *path = reachable ? checkpoint_path_there(e, segment, s)
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

/* Ends the transfer that is under way, and the wait for the next try. */
static void end_transfer(struct bringing *b)
{
	upsync_cancel(TAKE(b->sync));
	if (b->what)
		path_remove_tree(b->what->dir, NULL);
	b->what = NULL;
	loop_untimer(TAKE(b->again));
}

static void stop_bringing(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;

	end_transfer(b);
	b->send = NULL;
}

static bool is_batch_wanted(const struct engine *e, int pod, uint32_t batch)
{
	return core_has_batch(e->core, batch, pod) && !core_batch_at(e->core, batch)->over;
}

/* The snapshot is there, or given up: sends the batch, then those that waited. */
static void finish_bringing(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	void (*send)(struct engine *, int, uint32_t) = b->send;

	stop_bringing(e, pod);
	pod_set_detail(e, pod, "");
	if (send && is_batch_wanted(e, pod, b->batch))
		send(e, pod, b->batch);
	while (send && !b->send && b->later_count) {
		uint32_t next = b->later[0];
		memmove(b->later, b->later + 1, --b->later_count * sizeof(*b->later));
		if (is_batch_wanted(e, pod, next))
			bring_send(e, pod, next, send);
	}
}

static void bring_snapshot(struct engine *e, int pod);

static void on_retry_timer(void *ctx)
{
	const struct at *at = ctx;

	at->e->pods[at->pod].bring.again = NULL;
	bring_snapshot(at->e, at->pod);
}

static bool can_retry_help(enum err_kind kind)
{
	return kind != ERR_NOT_FOUND && kind != ERR_UNTRUSTED && kind != ERR_CREDENTIALS &&
	       kind != ERR_REFUSED && kind != ERR_NO_ACCOUNT;
}

/* Tries again later if that can help. Else the batch is sent without its snapshot. */
static void retry_or_give_up(struct engine *e, int pod, const struct err *why)
{
	struct bringing *b = &e->pods[pod].bring;
	struct saved *v = &e->checkpoints->of[b->segment];

	bool copy_is_wrong = why->kind == ERR_UNTRUSTED && v->safe.here && v->safe.volume[0];
	if (copy_is_wrong) /* the volume has it, too */
		checkpoint_remove_here(e, b->segment, &v->safe);
	end_transfer(b);
	if ((copy_is_wrong || can_retry_help(why->kind)) && ++b->tries < TRIES) {
		engine_log(e, LOG_NOTE,
			   "%s: its checkpoint did not reach pod %s (%s): trying again",
			   e->work.segments[b->segment].id, pod_called(e, pod), why->msg);
		b->again = loop_timer(e->loop, (int64_t)AGAIN_MS << 2 * (b->tries - 1),
				      on_retry_timer, e->pods[pod].at);
		return;
	}
	if (why->kind == ERR_NOT_FOUND || why->kind == ERR_UNTRUSTED)
		v->useless = USELESS_PODS;
	engine_log(e, LOG_WARN, "%s: its checkpoint cannot be used (%s): the command begins anew",
		   e->work.segments[b->segment].id, why->msg);
	finish_bringing(e, pod);
}

static void on_tree_sent(void *ctx, int64_t bytes, const struct err *err)
{
	struct at *at = ctx;
	struct bringing *b = &at->e->pods[at->pod].bring;

	(void)bytes;
	b->sync = NULL;
	if (err) {
		retry_or_give_up(at->e, at->pod, err);
		return;
	}
	COPY_TEXT(b->here, b->what->tree->id);
	finish_bringing(at->e, at->pod);
}

struct folder_job { /* a folder that is made for one pod */
	struct engine *e;
	int pod;
	unsigned turn;
	char *path, *dir;
	char sha256[SHA256_HEX];
	struct tree *tree;
	struct err err;
};

/* In a worker thread: makes a folder that has the snapshot's file alone, and its tree. */
static void work_make_folder(void *arg)
{
	struct folder_job *r = arg;
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

/* Whether the pod still waits for what began in this turn. */
static bool is_still_bringing(const struct engine *e, int pod, unsigned turn)
{
	const struct bringing *b = &e->pods[pod].bring;

	return b->turn == turn && b->send && e->pods[pod].conn.link;
}

/* Takes over tree and dir. */
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
		.done = on_tree_sent,
		.ctx = p->at};
	p->bring.sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void on_folder_made(void *arg)
{
	struct folder_job *r = arg;
	struct engine *e = r->e;
	bool current = is_still_bringing(e, r->pod, r->turn);

	if (current && !r->err.kind) {
		send_tree(e, r->pod, TAKE(r->tree), TAKE(r->dir));
	} else {
		path_remove_tree(r->dir, NULL);
		if (current)
			retry_or_give_up(e, r->pod, &r->err);
	}
	tree_free(r->tree);
	free(r->path);
	free(r->dir);
	free(r);
}

/* Sends the copy on this machine to the pod. */
static void make_and_send_folder(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	const struct snapshot *s = &e->checkpoints->of[b->segment].safe;
	CLEANUP(free_text) char *dir = checkpoints_dir(e);
	struct folder_job *r = xcalloc(1, sizeof(*r));

	*r = (struct folder_job){.e = e, .pod = pod, .turn = b->turn};
	r->path = checkpoint_path_here(e, b->segment, s);
	r->dir = xasprintf("%s/.send-%u", dir, e->checkpoints->dirs++);
	COPY_TEXT(r->sha256, s->sha256);
	pool_run(e->pool, work_make_folder, on_folder_made, r);
}

struct fetching { /* a snapshot that comes from a volume to this machine */
	struct engine *e;
	int pod;
	unsigned turn;
};

/* The snapshot came from a volume (err NULL): keeps a copy here, and sends it to the pod. */
static void on_volume_file(void *ctx, const char *local, const struct err *err)
{
	struct fetching *f = ctx;
	struct engine *e = f->e;

	if (is_still_bringing(e, f->pod, f->turn)) {
		uint32_t segment = e->pods[f->pod].bring.segment;
		struct snapshot *s = &e->checkpoints->of[segment].safe;
		CLEANUP(free_text) char *dir = checkpoints_dir(e);
		CLEANUP(free_text) char *path = checkpoint_path_here(e, segment, s);
		struct err why = err ? *err : (struct err){0};
		if (!err && (path_mkdirs(dir, 0700, &why) < 0 || rename(local, path) < 0) &&
		    !why.kind)
			err_set(&why, ERR_LOCAL, "%s: %s", path, strerror(errno));
		s->here = !why.kind;
		if (s->here)
			make_and_send_folder(e, f->pod);
		else
			retry_or_give_up(e, f->pod, &why);
	}
	if (local)
		unlink(local);
	free(f);
}

/* The volume with the snapshot, if readable without a pod; else NULL. *provider: whose it is. */
static const struct volume *find_volume_with(const struct engine *e, const struct snapshot *s,
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

/* Begins a try: sends the copy on this machine, or fetches one from the snapshot's volume first. */
static void bring_snapshot(struct engine *e, int pod)
{
	struct bringing *b = &e->pods[pod].bring;
	const struct snapshot *s = &e->checkpoints->of[b->segment].safe;
	struct err err;
	int provider = -1;

	pod_set_detail(e, pod, "sending its checkpoint");
	if (s->here) {
		make_and_send_folder(e, pod);
		return;
	}
	const struct volume *v = find_volume_with(e, s, &provider);
	if (!v) {
		err_set(&err, ERR_REFUSED, "it is on a volume that cannot be read from here");
		retry_or_give_up(e, pod, &err);
		return;
	}
	if (s->bytes > e->work.needs->checkpoint_most_bytes) {
		checkpoint_too_large(e, b->segment, s->bytes);
		err_set(&err, ERR_REFUSED, "it is too large to travel through this machine");
		retry_or_give_up(e, pod, &err);
		return;
	}
	struct fetching *f = xcalloc(1, sizeof(*f));
	CLEANUP(free_text) char *path = checkpoint_path_there(e, b->segment, s);
	CLEANUP(free_text) char *name = xasprintf("checkpoint-%d", pod);
	*f = (struct fetching){e, pod, b->turn};
	volume_files_from(e, provider, v, path, name, s->bytes + 1, on_volume_file, f);
}

void bring_send(struct engine *e, int pod, uint32_t batch,
		void (*send)(struct engine *e, int pod, uint32_t batch))
{
	const struct core_batch *of = core_batch_at(e->core, batch);
	const struct snapshot *s = NULL;

	if (e->checkpoints && of->count)
		s = &e->checkpoints->of[of->segments[0]].safe;
	if (!s || !s->attempt[0] || is_on_pods_volume(e, pod, s)) {
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
	bring_snapshot(e, pod);
}

void bring_drop(struct engine *e, int pod)
{
	e->pods[pod].bring.turn++;
	e->pods[pod].bring.later_count = 0;
	stop_bringing(e, pod);
}

static void post_revoked(struct engine *e, int pod, uint32_t batch)
{
	struct event ev = {.type = EV_REVOKED, .pod = pod, .batch = batch, .segment = UINT32_MAX};

	post(e, &ev, NULL);
}

void bring_revoke(struct engine *e, int pod)
{
	const struct bringing *b = &e->pods[pod].bring;

	if (!b->send)
		return;
	post_revoked(e, pod, b->batch);
	for (size_t i = 0; i < b->later_count; i++)
		post_revoked(e, pod, b->later[i]);
	bring_drop(e, pod);
	pod_set_detail(e, pod, "");
}
