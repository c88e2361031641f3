/* volume.c - uses volumes without a pod: makes them, puts code on them, fetches their files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/path.h"
#include "impl.h"
#include "store/facts.h"
#include "sync/pack.h"

/* ---- volume intent ----
 * Makes a volume of one name once: what the ledger knows of its create. */

/* As of a pod whose create was not answered: lists lag by less. */
enum { SURFACE_MS = 60 * 1000 };

static void intent_key(const struct engine_provider *p, const char *name, char key[SHA256_NAME])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s", p->ops->name, p->ops->account(p->handle), name);

	sha256_name(text, key);
}

/* Notes when the create was sent; 0: none can surface. */
static int put_intent(struct store *s, const struct engine_provider *p, const char *name,
		      int64_t wall_ms, struct err *err)
{
	char key[SHA256_NAME], value[24];

	intent_key(p, name, key);
	snprintf(value, sizeof(value), "%lld", (long long)wall_ms);
	return fact_put(s, FACT_VOLUME_CREATE, key, NULL, value, err);
}

int64_t volume_intent_wait_ms(struct store *s, const struct engine_provider *p, const char *name)
{
	char key[SHA256_NAME], value[24];
	int64_t now = clock_wall_ms();

	intent_key(p, name, key);
	if (!fact_get(s, FACT_VOLUME_CREATE, key, NULL, value, sizeof(value)))
		return 0;
	int64_t sent = strtoll(value, NULL, 10);
	if (sent > now) { /* the clock was set back: count from now on */
		put_intent(s, p, name, now, NULL);
		return SURFACE_MS;
	}
	return MAX(sent + SURFACE_MS - now, (int64_t)0);
}

int volume_intent_put(struct store *s, const struct engine_provider *p, const char *name,
		      struct err *err)
{
	return put_intent(s, p, name, clock_wall_ms(), err) < 0
		       ? err_wrap(err, "volume %s: not created", name)
		       : 0;
}

void volume_intent_answered(struct store *s, const struct engine_provider *p, const char *name,
			    const struct err *err)
{
	/* made, or lost: from now on it may surface */
	bool may_surface = !err || err->kind == ERR_AMBIGUOUS;

	put_intent(s, p, name, may_surface ? clock_wall_ms() : 0, NULL);
}

void volume_intent_drop(struct store *s, const struct engine_provider *p, const char *name)
{
	put_intent(s, p, name, 0, NULL);
}

/* ---- stage ----
 * Puts the code on the volume before there is a pod: packs it part by part, and sends it through
 * the vendor's storage API; the agent unpacks it. An upload that takes longer than the boot of a
 * pod goes first, without a pod; so does one that a running pod would not see. */

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
	bool waits_for_tree; /* the volume is known, the code is not scanned yet */
	bool delays_volume;  /* the volume's event waits for this upload */
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

static void post_delayed_volume(struct stage *s)
{
	if (!s->delays_volume)
		return;
	s->delays_volume = false;
	post_volume_ready(s->e, s->provider);
}

static void free_upload(struct stage *s)
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
		if (fd_write_all(fd, room, (size_t)got) < 0)
			return err_set(&s->err, ERR_LOCAL, "%s: %s", s->local, strerror(errno));
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

static void pack_next_part(struct stage *s);

/* Stops; err: why, NULL: it is not needed. The code then goes over SSH. */
static void stop_staging(struct stage *s, const struct err *err)
{
	if (err && err->kind != ERR_INTERRUPTED)
		engine_log(s->e, LOG_INFO,
			   "code: cannot be stored on the volume without a pod (%s): sending it "
			   "over SSH",
			   err->msg);
	s->state = STAGE_NOT;
	free_upload(s);
	post_delayed_volume(s);
}

static void on_part_stored(void *ctx, struct op_result *result, const struct err *err)
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
		pack_next_part(s);
		return;
	}
	sha256_finish(TAKE(s->sha), s->sha256);
	s->state = STAGE_THERE;
	engine_log(s->e, LOG_INFO, "code: %lld bytes stored on volume %s without a pod",
		   (long long)s->sent, s->e->volumes[s->provider].name);
	free_upload(s);
	post_delayed_volume(s);
}

static void on_part_packed(void *arg)
{
	struct stage *s = arg;

	s->busy = false;
	if (s->err.kind || atomic_load(&s->stop)) {
		stop_staging(s, s->err.kind ? &s->err : NULL);
		return;
	}
	free(s->path);
	s->path = xasprintf("staged/%s.%d", s->e->trees.code->id, s->parts);
	s->want = (struct op_want){.file = {.volume = s->e->volumes[s->provider],
					    .path = s->path,
					    .local = s->local,
					    .max_bytes = s->part_bytes,
					    .blocks = s->blocks}};
	s->op = caller_begin(s->e->caller, &s->e->setup->providers[s->provider], OP_STAGE, &s->want,
			     on_part_stored, s);
}

static void pack_next_part(struct stage *s)
{
	struct err err;

	if (s->parts >= PARTS_MAX) {
		err_set(&err, ERR_LOCAL, "it is too large");
		stop_staging(s, &err);
		return;
	}
	s->busy = true;
	blocks_free(&s->blocks);
	pool_run(s->e->pool, work_part, on_part_packed, s);
}

/* Begins to pack the code for the volume, whose event waits for that if the upload is large or
 * running pods would not see it. */
static void begin_staging(struct stage *s)
{
	struct engine *e = s->e;
	const struct volume *v = &e->volumes[s->provider];

	s->base = known_base(e, s->provider, v);
	tree_diff(&s->diff, s->base, e->trees.code);
	s->content = s->diff.bytes;
	s->state = STAGE_UNDER_WAY;
	s->sent = s->parts = 0;
	s->last = false;
	atomic_store(&s->stop, false);
	err_clear(&s->err);
	s->sha = sha256_new();
	s->local = xasprintf("%s/staged-%d", e->setup->run_dir, s->provider);
	s->delays_volume =
		s->content >= FIRST_BYTES || e->setup->providers[s->provider].ops->volume_lags;
	if (s->delays_volume) {
		post_volume_fills(e, s->provider);
		engine_log(e, LOG_NOTE,
			   "code: storing %lld kB on volume %s before a pod is "
			   "rented",
			   (long long)(s->content + 999) / 1000, v->name);
	} else {
		post_volume_ready(e, s->provider);
	}
	pack_next_part(s);
}

static bool may_stage(const struct engine *e, int provider)
{
	const struct engine_provider *v = &e->setup->providers[provider];

	return e->volumes[provider].id[0] &&
	       provider_can_stage(v->ops, v->handle, &e->volumes[provider]) &&
	       !provider_pods_are_free(v->ops, v->handle);
}

/* Whether the volume lacks code that can be staged. */
static bool is_worth_staging(struct stage *s)
{
	struct engine *e = s->e;

	return e->trees.code && may_stage(e, s->provider) &&
	       !known_code(e, s->provider, &e->volumes[s->provider], e->trees.code);
}

/* This provider's volume is known. post_volume_ready() follows, now or after a long upload. */
static void stage_volume(struct engine *e, int provider)
{
	struct stage *s = stage_of(e, provider);

	if (s->state != STAGE_NOT || s->waits_for_tree || !e->work.needs || e->setup->conf.reap) {
		post_volume_ready(e, provider);
		return;
	}
	if (e->trees.scanning && may_stage(e, provider)) {
		s->waits_for_tree = true; /* stage_tree_ready() */
		post_volume_fills(e, provider);
		return;
	}
	if (is_worth_staging(s))
		begin_staging(s);
	else
		post_volume_ready(e, provider);
}

void stage_tree_ready(struct engine *e)
{
	for (int i = 0; i < e->setup->provider_count; i++) {
		struct stage *s = e->stages[i];
		if (!s || !s->waits_for_tree)
			continue;
		s->waits_for_tree = false;
		if (is_worth_staging(s))
			begin_staging(s);
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

void stage_free(struct engine *e)
{
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++) {
		if (e->stages[i])
			free_upload(e->stages[i]);
		free(e->stages[i]);
	}
}

/* ---- volumes ---- */

enum { VOLUME_LOCK_MS = 300, REGIONS_MOST = 64 };

static void request_volume(void *ctx);

/* An earlier client's create may still surface. Returns true if the volume is looked for again. */
static bool look_again_later(struct request *a, const struct err *err)
{
	if (!a->looks || !err || err->kind != ERR_NOT_FOUND)
		return false;
	a->looks = false;
	a->want.volume.create = true;
	a->timer = loop_timer(a->e->loop, VOLUME_LOOK_MS, request_volume, a);
	return true;
}

static void take_volume(struct engine *e, int provider, const struct volume *v)
{
	const struct engine_provider *p = &e->setup->providers[provider];
	struct volume_row row = {.size_gb = v->size_gb,
				 .price_microusd_month = v->price_microusd_month,
				 .seen_ms = clock_wall_ms()};
	char price[32];

	e->volumes[provider] = *v;
	e->volumes[provider].apart = provider_can_fetch(p->ops, p->handle, v);
	COPY_TEXT(row.provider, p->ops->name);
	COPY_TEXT(row.id, v->id);
	COPY_TEXT(row.name, v->name);
	COPY_TEXT(row.region, v->region);
	store_put_volume(e->setup->store, &row, NULL);
	if (v->price_microusd_month)
		engine_log(e, LOG_NOTE, "volume %s: %lld GB, %s a month until it is removed",
			   v->name, (long long)v->size_gb,
			   money_show(price, sizeof(price), v->price_microusd_month));
}

static void on_volume(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct engine *e = a->e;

	if (look_again_later(a, err))
		return;
	if (a->want.volume.create)
		volume_intent_answered(e->setup->store, &e->setup->providers[a->provider],
				       a->want.volume.name, err);
	if (result && result->volume_count) {
		take_volume(e, a->provider, &result->volumes[0]);
		stage_volume(e, a->provider);
	} else {
		struct event ev = {.type = EV_VOLUME, .provider = a->provider};
		struct err none;
		if (!err)
			err_set(&none, ERR_TRANSIENT, "%s named no volume",
				e->setup->providers[a->provider].ops->name);
		post(e, &ev, err ? err : &none);
	}
	request_free(a);
}

int engine_lock_volumes(const char *state_dir, int *lock, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(state_dir, "volume.lock");

	return path_lock(path, "makes a volume\n", lock, err);
}

/* Sends the create only if none of its name can surface any more, and once it is on disk. Otherwise
 * a look replaces it for now. Returns false with *err if the ledger cannot be written. */
static bool prepare_create(struct request *a, struct err *err)
{
	const struct engine_provider *p = &a->e->setup->providers[a->provider];
	const char *name = a->want.volume.name;
	int64_t wait_ms = volume_intent_wait_ms(a->e->setup->store, p, name);
	char wait[24];

	if (!wait_ms)
		return volume_intent_put(a->e->setup->store, p, name, err) == 0;
	if (!a->told)
		engine_log(a->e, LOG_NOTE,
			   "volume %s: %s was told to create it a moment ago; looking for it for "
			   "%s before another one is created",
			   name, p->ops->name, duration_show(wait, sizeof(wait), wait_ms));
	a->told = a->looks = true;
	a->want.volume.create = false;
	return true;
}

static void request_volume(void *ctx)
{
	struct request *a = ctx;
	const char *run_dir = a->e->setup->run_dir;
	CLEANUP(free_text) char *state_dir = run_dir ? xasprintf("%s/../..", run_dir) : NULL;
	struct err err;

	a->timer = NULL;
	if (state_dir && a->want.volume.create && !a->lock &&
	    engine_lock_volumes(state_dir, &a->lock, &err) < 0 && err.kind == ERR_BUSY) {
		a->timer = loop_timer(a->e->loop, VOLUME_LOCK_MS, request_volume, a);
		return;
	}
	if (a->want.volume.create && !prepare_create(a, &err)) {
		struct event ev = {.type = EV_VOLUME, .provider = a->provider};
		post(a->e, &ev, &err);
		request_free(a);
		return;
	}
	request_begin(a, OP_VOLUME, on_volume);
}

/* Copies the regions of the offers, which may have changed when the volume is made. */
static void add_regions(struct request *a)
{
	const char *names[REGIONS_MOST];
	size_t count = core_offer_regions(a->e->core, a->provider, names, ARRAY_LEN(names));

	if (!count)
		return;
	a->regions = xcalloc(count + 1, sizeof(*a->regions));
	for (size_t i = 0; i < count; i++)
		a->regions[i] = xstrdup(names[i]);
	a->want.regions = (const char *const *)a->regions;
}

void volumes_get(struct engine *e, int provider, bool create)
{
	struct request *a = request_new(e, provider, -1);

	if (create)
		add_regions(a);

	a->want.volume.name = e->setup->volume_name;
	a->want.volume.size_gb = e->setup->volume_gb;
	a->want.volume.create = create;
	a->want.volume.gpus = e->setup->gpus;
	request_volume(a);
}

/* ---- volume files ---- */

enum { FILES_AT_ONCE = 16 };

struct volume_file {
	struct engine *e;
	struct volume_file *next; /* in the order of the requests */
	int provider;
	struct op_want want;
	char *path, *local;
	void (*done)(void *ctx, const char *local, const struct err *err);
	void *ctx;
};

struct volume_files {
	struct volume_file *first, **last;
	struct volume_file *waiting; /* the first one that is not under way yet */
	int asked;
	bool stopped;
};

static void begin_fetches(struct engine *e);

static void end_file(struct volume_file *f, const struct err *err)
{
	struct volume_files *all = f->e->volume_files;
	struct volume_file **at = &all->first;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (all->last == &f->next)
		all->last = at;
	f->done(f->ctx, err ? NULL : f->local, err);
	if (err)
		path_remove_tree(f->local, NULL);
	free(f->path);
	free(f->local);
	free(f);
}

static void on_file_fetched(void *ctx, struct op_result *result, const struct err *err)
{
	struct volume_file *f = ctx;
	struct engine *e = f->e;
	(void)result;

	end_file(f, err);
	e->volume_files->asked--;
	begin_fetches(e);
}

static void begin_fetches(struct engine *e)
{
	struct volume_files *all = e->volume_files;

	while (!all->stopped && all->waiting && all->asked < FILES_AT_ONCE) {
		struct volume_file *f = all->waiting;
		all->waiting = f->next;
		all->asked++;
		caller_begin(e->caller, &e->setup->providers[f->provider], OP_FETCH, &f->want,
			     on_file_fetched, f);
	}
}

void volume_files_get(struct engine *e, int pod, const char *path, const char *name,
		      int64_t max_bytes,
		      void (*done)(void *ctx, const char *local, const struct err *err), void *ctx)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	volume_files_from(e, p->rental.provider, &p->rental.volume, path, name, max_bytes, done,
			  ctx);
}

void volume_files_from(struct engine *e, int provider, const struct volume *volume,
		       const char *path, const char *name, int64_t max_bytes,
		       void (*done)(void *ctx, const char *local, const struct err *err), void *ctx)
{
	struct volume_file *f = xcalloc(1, sizeof(*f));
	CLEANUP(free_text) char *dir = path_join(e->setup->run_dir, "volume");
	struct volume_files *all = e->volume_files;

	if (!all) {
		all = e->volume_files = xcalloc(1, sizeof(*all));
		all->last = &all->first;
	}
	path_mkdirs(dir, 0700, NULL);
	f->e = e;
	f->provider = provider;
	f->path = xstrdup(path);
	f->local = path_join(dir, name);
	path_remove_tree(f->local, NULL);
	f->want.file.volume = *volume;
	f->want.file.path = f->path;
	f->want.file.local = f->local;
	f->want.file.max_bytes = max_bytes;
	f->done = done;
	f->ctx = ctx;
	*all->last = f;
	all->last = &f->next;
	if (!all->waiting)
		all->waiting = f;
	begin_fetches(e);
}

void volume_files_stop(struct engine *e)
{
	struct volume_files *all = e->volume_files;
	struct err err;

	if (!all)
		return;
	err_set(&err, ERR_INTERRUPTED, "no longer needed");
	all->stopped = true;
	while (all->first)
		end_file(all->first, &err);
	free(all);
	e->volume_files = NULL;
}
