/* stage.c - puts the code on the volume before there is a pod: packs it part by part, and sends it
 * through the vendor's storage API; the agent unpacks it. An upload that takes longer than the boot
 * of a pod goes first, without a pod; so does one that a running pod would not see. */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "sync/pack.h"
#include "impl.h"
#include "known.h"
#include "post.h"
#include "trees.h"

enum {
	PART_BYTES = 256 << 20, /* S3-compatible stores take some hundred MB in one piece */
	SLICE = 1 << 20,
	FIRST_BYTES = 8 << 20, /* of content: as much as goes up while a pod boots */
	PARTS_MAX = 4000,
};

enum stage_state { STAGE_NOT, STAGE_UNDER_WAY, STAGE_THERE };

struct stage {
	struct engine *e;
	int provider;
	enum stage_state state;
	bool wanted; /* the volume is known; its event waits while `held` */
	bool held;
	struct caller_op *op;
	struct op_want want;
	char *path, *local;
	struct file_blocks blocks; /* of local, if the vendor needs them */
	int64_t sent, content;
	/* a worker thread's while busy */
	bool busy;
	atomic_bool stop;
	struct tree_diff diff;
	struct pack *pack;
	struct sha256 *sha;
	int64_t part_bytes;
	bool last;
	struct err err;
	/* what was staged */
	const struct tree *base;
	int parts;
	char sha256[SHA256_HEX];
};

static struct stage *stage_of(struct engine *e, int provider)
{
	if (!e->stages[provider]) {
		struct stage *s = e->stages[provider] = xcalloc(1, sizeof(*s));
		s->e = e;
		s->provider = provider;
	}
	return e->stages[provider];
}

static void release_volume(struct stage *s)
{
	if (!s->held)
		return;
	s->held = false;
	post_volume_ready(s->e, s->provider);
}

static void clean(struct stage *s)
{
	pack_close(s->pack);
	s->pack = NULL;
	sha256_free(s->sha);
	s->sha = NULL;
	tree_diff_free(&s->diff);
	memset(&s->diff, 0, sizeof(s->diff));
	blocks_free(&s->blocks);
	if (s->local)
		unlink(s->local);
	free(s->path);
	free(s->local);
	s->path = s->local = NULL;
}

/* ---- packing, on a worker thread ---- */

static int pack_part(struct stage *s, int fd)
{
	CLEANUP(free_text) char *room = xmalloc(SLICE);

	for (s->part_bytes = 0; s->part_bytes < PART_BYTES;) {
		ssize_t got = pack_read(s->pack, room, SLICE, &s->err);
		if (got < 0)
			return -1;
		if (got == 0) {
			s->last = true;
			return 0;
		}
		sha256_add(s->sha, room, (size_t)got);
		for (ssize_t at = 0; at < got;) {
			ssize_t n = write(fd, room + at, (size_t)(got - at));
			if (n < 0 && errno != EINTR)
				return err_set(&s->err, ERR_LOCAL, "%s: %s", s->local,
					       strerror(errno));
			at += MAX(n, 0);
		}
		s->part_bytes += got;
	}
	return 0;
}

static void work_part(void *arg)
{
	struct stage *s = arg;
	CLEANUP(fd_close) int fd = open(s->local, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0) {
		err_set(&s->err, ERR_LOCAL, "%s: %s", s->local, strerror(errno));
		return;
	}
	if (!s->pack) {
		struct pack_plan plan = pack_plan_of(&s->diff, s->e->setup->code_path);
		plan.stop = &s->stop;
		if (pack_open(&s->pack, &plan, &s->err) < 0)
			return;
	}
	int64_t block_bytes = s->e->setup->providers[s->provider].ops->stage_block_bytes;
	if (pack_part(s, fd) == 0 && block_bytes)
		blocks_of_file(&s->blocks, s->local, block_bytes, &s->err);
}

/* ---- putting it there ---- */

static void next_part(struct stage *s);

static void stop_staging(struct stage *s, const struct err *err)
{
	if (err && err->kind != ERR_INTERRUPTED)
		engine_log(s->e, LOG_INFO,
			   "code: cannot be stored on the volume without a pod (%s): sending it "
			   "over SSH",
			   err->msg);
	s->state = STAGE_NOT;
	clean(s);
	release_volume(s);
}

static void part_put(void *ctx, struct op_result *result, const struct err *err)
{
	struct stage *s = ctx;
	struct err short_of;

	s->op = NULL;
	if (!err && result->bytes != s->part_bytes) {
		err_set(&short_of, ERR_TRANSIENT, "%s has another size there", s->path);
		err = &short_of;
	}
	if (err) {
		stop_staging(s, err);
		return;
	}
	s->sent += s->part_bytes;
	s->parts++;
	if (!s->last) {
		next_part(s);
		return;
	}
	sha256_finish(TAKE(s->sha), s->sha256);
	s->state = STAGE_THERE;
	engine_log(s->e, LOG_INFO, "code: %lld bytes stored on volume %s without a pod",
		   (long long)s->sent, s->e->volumes[s->provider].name);
	clean(s);
	release_volume(s);
}

static void part_packed(void *arg)
{
	struct stage *s = arg;

	s->busy = false;
	if (s->err.kind || atomic_load(&s->stop)) {
		stop_staging(s, s->err.kind ? &s->err : NULL);
		return;
	}
	free(s->path);
	s->path = xasprintf("staged/%s.%d", trees_code(s->e)->id, s->parts);
	s->want = (struct op_want){.file = {.volume = s->e->volumes[s->provider],
					    .path = s->path,
					    .local = s->local,
					    .max_bytes = s->part_bytes,
					    .blocks = s->blocks}};
	s->op = caller_begin(s->e->caller, &s->e->setup->providers[s->provider], OP_STAGE, &s->want,
			     part_put, s);
}

static void next_part(struct stage *s)
{
	struct err err;

	if (s->parts >= PARTS_MAX) {
		err_set(&err, ERR_LOCAL, "it is too large");
		stop_staging(s, &err);
		return;
	}
	s->busy = true;
	blocks_free(&s->blocks);
	pool_run(s->e->pool, work_part, part_packed, s);
}

static void begin(struct stage *s)
{
	struct engine *e = s->e;
	const struct volume *v = &e->volumes[s->provider];

	s->base = known_base(e, s->provider, v);
	tree_diff(&s->diff, s->base, trees_code(e));
	s->content = s->diff.bytes;
	s->state = STAGE_UNDER_WAY;
	s->sent = s->parts = 0;
	s->last = false;
	atomic_store(&s->stop, false);
	err_clear(&s->err);
	s->sha = sha256_new();
	s->local = xasprintf("%s/staged-%d", e->setup->run_dir, s->provider);
	s->held = s->content >= FIRST_BYTES || e->setup->providers[s->provider].ops->volume_lags;
	if (s->held) {
		post_volume_fills(e, s->provider);
		engine_log(e, LOG_NOTE,
			   "code: storing %lld kB on volume %s before a pod is "
			   "rented",
			   (long long)(s->content + 999) / 1000, v->name);
	} else {
		post_volume_ready(e, s->provider);
	}
	next_part(s);
}

static bool may_stage(const struct engine *e, int provider)
{
	const struct engine_provider *v = &e->setup->providers[provider];

	return e->volumes[provider].id[0] &&
	       provider_can_stage(v->ops, v->handle, &e->volumes[provider]) &&
	       !provider_pods_are_free(v->ops, v->handle);
}

/* Whether the volume lacks code that can be staged. */
static bool worthwhile(struct stage *s)
{
	struct engine *e = s->e;

	return trees_code(e) && may_stage(e, s->provider) &&
	       !known_has_tree(e, s->provider, &e->volumes[s->provider]);
}

void stage_volume(struct engine *e, int provider)
{
	struct stage *s = stage_of(e, provider);

	if (s->state != STAGE_NOT || s->wanted || !e->work.needs || e->setup->conf.reap) {
		post_volume_ready(e, provider);
		return;
	}
	if (trees_scanning(e) && may_stage(e, provider)) {
		s->wanted = true; /* stage_tree_ready() */
		post_volume_fills(e, provider);
		return;
	}
	if (worthwhile(s))
		begin(s);
	else
		post_volume_ready(e, provider);
}

void stage_tree_ready(struct engine *e)
{
	for (int i = 0; i < e->setup->provider_count; i++) {
		struct stage *s = e->stages[i];
		if (!s || !s->wanted)
			continue;
		s->wanted = false;
		if (worthwhile(s))
			begin(s);
		else
			post_volume_ready(e, i);
	}
}

/* Does not wait for an unfinished upload: the pod bills. */
bool stage_take(struct engine *e, int provider, struct upsync_want *want)
{
	struct stage *s = e->stages[provider];

	if (!s || s->state != STAGE_THERE) {
		stage_stop(e, provider);
		return false;
	}
	/* The agent removes it. If other pods would not see that, each of them keeps the volume's
	 * copy. */
	if (!e->setup->providers[provider].ops->volume_lags)
		s->state = STAGE_NOT;
	want->base = s->base;
	want->staged_parts = s->parts;
	COPY_TEXT(want->staged_sha256, s->sha256);
	return true;
}

void stage_stop(struct engine *e, int provider)
{
	struct stage *s = e->stages[provider];

	if (!s || s->state != STAGE_UNDER_WAY)
		return;
	atomic_store(&s->stop, true);
	if (s->busy)
		return; /* part_packed() */
	caller_cancel(s->op);
	s->op = NULL;
	stop_staging(s, NULL);
}

/* After the caller and the pool have stopped. */
void stage_free(struct engine *e)
{
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++) {
		if (e->stages[i])
			clean(e->stages[i]);
		free(e->stages[i]);
	}
}
