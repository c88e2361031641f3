/* checkpoint.c - keeps what commands save in $BURST_CHECKPOINT, for their next attempts. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "impl.h"
#include "store/facts.h"

enum { TROUBLES_MOST = 20 }; /* lines about snapshots that one pod may cause */

char *checkpoints_dir(const struct engine *e)
{
	return path_join(e->setup->run_dir, CHECKPOINT_DIR);
}

static char *local_name(const struct engine *e, uint32_t segment, const struct snapshot *s)
{
	return xasprintf("%s.%s.%lld", e->work.segments[segment].id, s->attempt,
			 (long long)s->number);
}

char *checkpoint_path_here(const struct engine *e, uint32_t segment, const struct snapshot *s)
{
	CLEANUP(free_text) char *dir = checkpoints_dir(e);
	CLEANUP(free_text) char *name = local_name(e, segment, s);

	return path_join(dir, name);
}

char *checkpoint_path_there(const struct engine *e, uint32_t segment, const struct snapshot *s)
{
	return xasprintf("runs/%s/%s/checkpoint/%s.%lld", e->setup->run->id, s->attempt,
			 e->work.segments[segment].id, (long long)s->number);
}

/* ---- the ledger ---- */

/* Writes the segment's safe snapshot to the ledger, for a later client. */
static void write_note(struct engine *e, uint32_t segment)
{
	const struct snapshot *s = &e->checkpoints->of[segment].safe;
	CLEANUP(json_decref)
	json_t *line = json_pack(
		"{s:s,s:s,s:s,s:I,s:I,s:s,s:b,s:I,s:s,s:I,s:I}", "attempt", s->attempt, "provider",
		s->provider, "volume", s->volume, "number", (json_int_t)s->number, "bytes",
		(json_int_t)s->bytes, "sha256", s->sha256, "here", s->here, "taken_ms",
		(json_int_t)e->checkpoints->of[segment].taken_ms, "from", s->from, "from_ms",
		(json_int_t)s->from_work_ms, "holds_ms", (json_int_t)s->work_ms);
	CLEANUP(free_text) char *text = json_dumps(line, JSON_COMPACT);
	struct err err = {0};

	if (fact_put(e->setup->store, FACT_CHECKPOINT, e->setup->run->id,
		     e->work.segments[segment].id, s->attempt[0] ? text : "", &err) < 0)
		engine_log(e, LOG_INFO, "the ledger does not note a checkpoint: %s", err.msg);
}

static bool has_local_copy(const struct engine *e, uint32_t segment, const struct snapshot *s)
{
	CLEANUP(free_text) char *path = checkpoint_path_here(e, segment, s);
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == s->bytes;
}

/* Reads the segment's safe snapshot from the ledger, unless it is neither here nor on a volume. */
static void read_note(struct engine *e, uint32_t segment)
{
	struct saved *v = &e->checkpoints->of[segment];
	struct snapshot *s = &v->safe;
	char text[1024];

	if (!fact_get(e->setup->store, FACT_CHECKPOINT, e->setup->run->id,
		      e->work.segments[segment].id, text, sizeof(text)) ||
	    !text[0])
		return;
	CLEANUP(json_decref) json_t *line = jsonx_parse(text, strlen(text), NULL);
	COPY_TEXT(s->attempt, jsonx_text(line, "attempt", ""));
	COPY_TEXT(s->provider, jsonx_text(line, "provider", ""));
	COPY_TEXT(s->volume, jsonx_text(line, "volume", ""));
	COPY_TEXT(s->sha256, jsonx_text(line, "sha256", ""));
	COPY_TEXT(s->from, jsonx_text(line, "from", ""));
	s->from_work_ms = jsonx_bounded(line, "from_ms", 0, INT64_MAX);
	s->work_ms = jsonx_bounded(line, "holds_ms", 0, INT64_MAX);
	s->number = jsonx_bounded(line, "number", 0, INT64_MAX);
	s->bytes = jsonx_bounded(line, "bytes", 0, INT64_MAX);
	s->pod = -1;
	s->here = jsonx_bool(line, "here", false) && has_local_copy(e, segment, s);
	v->taken_ms = jsonx_bounded(line, "taken_ms", 0, INT64_MAX);
	if (!sha256_is_hex(s->sha256) || (!s->here && !s->volume[0]))
		*s = (struct snapshot){.pod = -1};
}

void checkpoints_read(struct engine *e)
{
	if (!e->work.needs || !e->work.needs->command)
		return;
	e->checkpoints = xcalloc(1, sizeof(*e->checkpoints));
	e->checkpoints->of = xcalloc(e->work.count, sizeof(*e->checkpoints->of));
	for (uint32_t i = 0; i < e->work.count; i++)
		if (e->setup->results[i].state != SEGMENT_SAFE)
			read_note(e, i);
}

void checkpoints_free(struct engine *e)
{
	if (!e->checkpoints)
		return;
	free(e->checkpoints->of);
	free(e->checkpoints->troubles);
	free(e->checkpoints);
	e->checkpoints = NULL;
}

void checkpoint_remove_here(struct engine *e, uint32_t segment, struct snapshot *s)
{
	if (!s->here)
		return;
	CLEANUP(free_text) char *path = checkpoint_path_here(e, segment, s);
	unlink(path);
	s->here = false;
}

/* Removes the segment's snapshots from this machine, with what cut off fetches have left. */
static void remove_all_local(struct engine *e, uint32_t segment)
{
	CLEANUP(free_text) char *dir = checkpoints_dir(e);
	CLEANUP(free_text) char *first = xasprintf("%s.", e->work.segments[segment].id);
	DIR *d = opendir(dir);
	struct dirent *f;

	while (d && (f = readdir(d)))
		if (!strncmp(f->d_name, first, strlen(first)))
			unlinkat(dirfd(d), f->d_name, 0);
	if (d)
		closedir(d);
}

static bool is_segment_done(const struct engine *e, uint32_t segment)
{
	return e->setup->results[segment].state == SEGMENT_SAFE;
}

/* ---- what pods report ---- */

enum snapshot_state { SNAPSHOT_UNSAFE, SNAPSHOT_SAFE };

/* Tells the core about a snapshot, and how many snapshots of its pod are not safe yet. */
static void post_snapshot(struct engine *e, uint32_t segment, const struct snapshot *s,
			  enum snapshot_state state)
{
	struct event ev = {.type = EV_CHECKPOINT,
			   .pod = s->pod,
			   .segment = segment,
			   .t = s->t,
			   .ok = state == SNAPSHOT_SAFE};

	for (uint32_t i = 0; i < e->work.count; i++) {
		const struct saved *v = &e->checkpoints->of[i];
		ev.number += (v->coming.attempt[0] && v->coming.pod == s->pod) ||
			     (v->waits.attempt[0] && v->waits.pod == s->pod);
	}
	post(e, &ev, NULL);
}

/* For the plans of later runs: how often to save depends on how long that takes. */
static void note_save_time(struct engine *e, const struct snapshot *s)
{
	char text[32];

	if (s->took_ms <= 0 || !e->work.needs->speed_options)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)s->took_ms);
	fact_put(e->setup->store, FACT_SAVES, e->work.needs->speed_options, NULL, text, NULL);
}

static void set_safe(struct engine *e, uint32_t segment, const struct snapshot *s)
{
	struct saved *v = &e->checkpoints->of[segment];
	char size[32];

	checkpoint_remove_here(e, segment, &v->safe);
	v->safe = *s;
	v->taken_ms = clock_wall_ms();
	v->told_large = false;
	v->useless = 0;
	write_note(e, segment);
	note_save_time(e, s);
	engine_log(e, LOG_INFO, "%s: checkpoint of %s saved%s", e->work.segments[segment].id,
		   bytes_show(size, sizeof(size), s->bytes),
		   s->here ? " on this machine" : " on its volume");
}

struct getting { /* one snapshot under way: the context of its fetch */
	struct engine *e;
	uint32_t segment;
	struct snapshot s;
	struct receive *r;
	struct err err;
};

static void work_place(void *arg)
{
	struct getting *g = arg;

	receive_keep_all(&g->r, 1, &g->err);
}

static void fetch_next(struct engine *e, uint32_t segment);

static void drop_waiting(struct engine *e, uint32_t segment)
{
	struct saved *v = &e->checkpoints->of[segment];

	checkpoint_remove_here(e, segment, &v->waits);
	v->waits = (struct snapshot){.pod = -1};
}

/* How many outputs from before the snapshot are not here; *lost: that never will be. */
static size_t outputs_missing(const struct engine *e, uint32_t segment, const struct snapshot *s,
			      size_t *lost)
{
	const struct outputs *o = &e->outfiles.of[segment];
	size_t missing = 0;

	*lost = 0;
	for (size_t i = 0; i < MIN(s->outputs, o->count); i++) {
		const struct outfile *f = &o->files[i];
		if (f->pod != s->pod || f->fate == FATE_HERE)
			continue;
		missing++;
		*lost += f->fate != FATE_OPEN && f->fate != FATE_PLACING;
	}
	return missing;
}

void checkpoint_output_settled(struct engine *e, uint32_t segment)
{
	struct saved *v = e->checkpoints ? &e->checkpoints->of[segment] : NULL;
	size_t lost;

	if (!v || !v->waits.attempt[0])
		return;
	struct snapshot s = v->waits;
	size_t missing = outputs_missing(e, segment, &s, &lost);
	if (missing && !lost)
		return;
	if (missing) {
		engine_log(e, LOG_INFO,
			   "%s: its checkpoint is not kept: %zu output%s of the time before it "
			   "%s lost",
			   e->work.segments[segment].id, lost, lost == 1 ? "" : "s",
			   lost == 1 ? "was" : "were");
		drop_waiting(e, segment);
	} else {
		v->waits = (struct snapshot){.pod = -1};
		set_safe(e, segment, &s);
	}
	post_snapshot(e, segment, &s, missing ? SNAPSHOT_UNSAFE : SNAPSHOT_SAFE);
	fetch_next(e, segment);
}

/* The snapshot becomes safe when the outputs that were finished before it are here, too. */
static void wait_for_outputs(struct engine *e, uint32_t segment, const struct snapshot *s)
{
	e->checkpoints->of[segment].waits = *s;
	e->outfiles.place(e, segment);
	checkpoint_output_settled(e, segment);
}

/* The fetch has ended: takes the snapshot, or logs why it is not kept. Frees g. */
static void end_getting(struct getting *g)
{
	struct engine *e = g->e;
	struct saved *v = &e->checkpoints->of[g->segment];
	bool newest = v->coming.number == g->s.number && !strcmp(v->coming.attempt, g->s.attempt);

	v->fetch = NULL;
	if (newest && g->err.kind != ERR_NETWORK)
		v->coming = (struct snapshot){.pod = -1};
	if (is_segment_done(e, g->segment)) {
		remove_all_local(e, g->segment);
	} else if (!g->err.kind) {
		g->s.here = true;
		wait_for_outputs(e, g->segment, &g->s);
		free(g);
		return;
	} else if (g->err.kind != ERR_NETWORK && g->err.kind != ERR_INTERRUPTED) {
		engine_log(e, LOG_WARN, "%s: its checkpoint is not kept: %s",
			   e->work.segments[g->segment].id, g->err.msg);
	}
	post_snapshot(e, g->segment, &g->s, SNAPSHOT_UNSAFE);
	fetch_next(e, g->segment);
	free(g);
}

static void on_placed(void *arg)
{
	struct getting *g = arg;

	receive_drop(g->r, false);
	end_getting(g);
}

static void on_snapshot_fetched(void *ctx, struct receive *r, const struct err *err)
{
	struct getting *g = ctx;

	if (err) {
		g->err = *err;
		end_getting(g);
		return;
	}
	g->r = r;
	pool_run(g->e->pool, work_place, on_placed, g);
}

/* Fetches the segment's coming snapshot if its pod can be reached and no other one is under way. */
static void fetch_next(struct engine *e, uint32_t segment)
{
	struct saved *v = &e->checkpoints->of[segment];
	int pod = v->coming.pod;

	if (!v->coming.attempt[0] || v->fetch || v->waits.attempt[0] || e->client.over ||
	    !e->pods[pod].conn.fetcher)
		return;
	CLEANUP(free_text) char *dir = checkpoints_dir(e);
	CLEANUP(free_text) char *name = local_name(e, segment, &v->coming);
	CLEANUP(free_text) char *path = checkpoint_path_there(e, segment, &v->coming);
	struct getting *g = xcalloc(1, sizeof(*g));
	*g = (struct getting){.e = e, .segment = segment, .s = v->coming};
	struct fetch_want want = {.output_dir = dir,
				  .name = name,
				  .path = path,
				  .bytes = g->s.bytes,
				  .max_bytes = e->work.needs->checkpoint_most_bytes,
				  .sha256 = g->s.sha256,
				  .done = on_snapshot_fetched,
				  .ctx = g};
	v->fetch = g;
	fetcher_get(e->pods[pod].conn.fetcher, &want);
}

static bool is_same_ctx(const void *ctx, const void *arg)
{
	return ctx == arg;
}

/* The pod is then kept for outputs alone, and they must not wait behind a snapshot. */
void checkpoint_finished(struct engine *e, uint32_t segment)
{
	struct saved *v = e->checkpoints ? &e->checkpoints->of[segment] : NULL;

	if (v && v->waits.attempt[0]) {
		struct snapshot waits = v->waits;
		drop_waiting(e, segment);
		post_snapshot(e, segment, &waits, SNAPSHOT_UNSAFE);
	}
	if (!v || !v->coming.attempt[0])
		return;
	struct snapshot coming = v->coming;
	struct fetcher *fetcher = e->pods[coming.pod].conn.fetcher;

	v->coming = (struct snapshot){.pod = -1};
	if (v->fetch && fetcher)
		fetcher_cancel(fetcher, is_same_ctx, v->fetch);
	post_snapshot(e, segment, &coming, SNAPSHOT_UNSAFE);
}

void checkpoint_done(struct engine *e, uint32_t segment)
{
	if (!e->checkpoints)
		return;
	checkpoint_finished(e, segment);
	remove_all_local(e, segment);
	if (!e->checkpoints->of[segment].safe.attempt[0])
		return;
	e->checkpoints->of[segment].safe = (struct snapshot){.pod = -1};
	write_note(e, segment);
}

void checkpoint_connected(struct engine *e, int pod)
{
	for (uint32_t i = 0; e->checkpoints && i < e->work.count; i++)
		if (e->checkpoints->of[i].coming.attempt[0] &&
		    e->checkpoints->of[i].coming.pod == pod)
			fetch_next(e, i);
}

/* Returns false after too many lines about this pod's snapshots. Counts the line. */
static bool may_complain(struct engine *e, int pod)
{
	struct checkpoints *all = e->checkpoints;

	if (pod >= all->pods) {
		all->troubles = xrealloc(all->troubles, ((size_t)pod + 1) * sizeof(int));
		while (all->pods <= pod)
			all->troubles[all->pods++] = 0;
	}
	return all->troubles[pod]++ < TROUBLES_MOST;
}

void checkpoint_too_large(struct engine *e, uint32_t segment, int64_t bytes)
{
	struct saved *v = &e->checkpoints->of[segment];
	char size[32], most[32];
	bool known = bytes > e->work.needs->checkpoint_most_bytes;

	if (v->told_large)
		return;
	v->told_large = true;
	engine_log(e, LOG_WARN,
		   "%s: its checkpoint%s%s is not kept: without a volume it travels through "
		   "this machine, at most %s (job.checkpoint_max_mb); the command goes on",
		   e->work.segments[segment].id, known ? " of " : "",
		   known ? bytes_show(size, sizeof(size), bytes) : "",
		   bytes_show(most, sizeof(most), e->work.needs->checkpoint_most_bytes));
}

/* The pod of this attempt could not unpack the safe snapshot. The fault may be the pod's. */
static void note_useless(struct saved *v, const char *attempt)
{
	v->useless += strcmp(v->useless_to, attempt) != 0;
	COPY_TEXT(v->useless_to, attempt);
}

static void on_trouble(struct engine *e, int pod, uint32_t segment, const json_t *event)
{
	const char *error = jsonx_text(event, "error", ""), *id = e->work.segments[segment].id;
	char words[300];

	if (!strcmp(error, "lost"))
		note_useless(&e->checkpoints->of[segment],
			     core_pod_at(e->core, pod)->rental.attempt);
	if (!may_complain(e, pod))
		return;
	copy_pod_text(words, sizeof(words), jsonx_text(event, "words", ""));
	if (!strcmp(error, "large"))
		checkpoint_too_large(e, segment, jsonx_int(event, "bytes", 0));
	else if (!strcmp(error, "lost"))
		engine_log(e, LOG_WARN,
			   "%s: its checkpoint cannot be used (%s): the command begins anew", id,
			   words);
	else if (!strcmp(error, "moving"))
		engine_log(e, LOG_WARN,
			   "%s: its checkpoint is not kept: $BURST_CHECKPOINT changes all the "
			   "time; write to a name that ends in .tmp, then rename",
			   id);
	else
		engine_log(e, LOG_WARN,
			   "%s: its checkpoint is not kept: $BURST_CHECKPOINT: %s; the command "
			   "goes on",
			   id, words);
}

/* Returns false if no agent of ours reports such a snapshot. */
static bool read_snapshot(struct engine *e, int pod, uint32_t segment, const json_t *event,
			  struct snapshot *s)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	const char *sha256 = jsonx_text(event, "sha256", "");
	int64_t t = jsonx_bounded(event, "t", 0,
				  MAX(clock_boot_ms() - p->rental.create_at, (int64_t)0));

	*s = (struct snapshot){
		.number = jsonx_bounded(event, "number", 0, INT64_MAX),
		.bytes = jsonx_int(event, "bytes", -1),
		.pod = pod,
		.took_ms = jsonx_bounded(event, "ms", 0, t),
	};
	s->t = t - s->took_ms;
	if (s->number <= 0 || s->bytes < 0 || !sha256_is_hex(sha256))
		return false;
	COPY_TEXT(s->attempt, p->rental.attempt);
	COPY_TEXT(s->provider, e->setup->providers[p->rental.provider].ops->name);
	COPY_TEXT(s->volume, p->rental.volume.id);
	COPY_TEXT(s->sha256, sha256);
	COPY_TEXT(s->from, jsonx_text(event, "from", ""));
	s->work_ms = jsonx_bounded(event, "ran_ms", 0, t);
	s->outputs = e->outfiles.of[segment].count;
	return true;
}

/* Adds to a snapshot's work that of the one with which its command began. */
static void add_earlier(const struct saved *v, struct snapshot *s)
{
	const struct snapshot *safe = &v->safe;

	if (!s->from[0])
		s->from_work_ms = 0;
	else if (!strcmp(s->from, safe->sha256))
		s->from_work_ms = safe->work_ms;
	else if (!strcmp(s->from, safe->from))
		s->from_work_ms = safe->from_work_ms;
	s->work_ms += MIN(s->from_work_ms, INT64_MAX - s->work_ms);
}

/* Whether the snapshot holds less work than the safe one, which it then does not replace; logs
 * that. A command that could not get the safe one began anew. */
static bool is_poorer(struct engine *e, uint32_t segment, const struct snapshot *s)
{
	struct saved *v = &e->checkpoints->of[segment];
	char is[24], safe[24];

	if (!v->safe.attempt[0] || s->work_ms >= v->safe.work_ms || v->useless >= USELESS_PODS)
		return false;
	if (strcmp(v->told_poorer, s->attempt) != 0)
		engine_log(e, LOG_WARN,
			   "%s: its new checkpoint holds %s of work, the earlier one %s: the "
			   "earlier one is kept until a new one holds as much",
			   e->work.segments[segment].id, duration_show(is, sizeof(is), s->work_ms),
			   duration_show(safe, sizeof(safe), v->safe.work_ms));
	COPY_TEXT(v->told_poorer, s->attempt);
	return true;
}

/* Whether another pod has the segment by now, it is finished, or one of its outputs was refused. */
static bool is_report_stale(const struct engine *e, int pod, uint32_t segment)
{
	enum core_seg_state state = core_seg_state(e->core, segment);
	int holder = core_seg_holder(e->core, segment);

	return state == SEG_RENDERED || state == SEG_LOCAL || state == SEG_FAILED ||
	       (holder >= 0 && holder != pod) || e->outfiles.of[segment].refused;
}

bool checkpoint_event(struct engine *e, int pod, const json_t *event, bool replayed)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));
	struct snapshot s;

	if (!e->checkpoints || segment < 0 || is_report_stale(e, pod, (uint32_t)segment))
		return true;
	struct saved *v = &e->checkpoints->of[segment];
	if (jsonx_text(event, "error", NULL)) {
		on_trouble(e, pod, (uint32_t)segment, event);
		return true;
	}
	if (!read_snapshot(e, pod, (uint32_t)segment, event, &s))
		return false;
	if (!strcmp(v->safe.attempt, s.attempt) && v->safe.number >= s.number) {
		/* the event log is read again */
		post_snapshot(e, (uint32_t)segment, &s, SNAPSHOT_SAFE);
		return true;
	}
	add_earlier(v, &s);
	if (is_poorer(e, (uint32_t)segment, &s)) {
		post_snapshot(e, (uint32_t)segment, &s, SNAPSHOT_UNSAFE);
		return true;
	}
	if (s.volume[0]) {
		if (!replayed && !jsonx_bool(event, "durable", false))
			return true;
		/* what is on a volume that can be read without a pod is not lost */
		if (core_pod_at(e->core, pod)->rental.volume.apart)
			s.outputs = 0;
		wait_for_outputs(e, (uint32_t)segment, &s);
		return true;
	}
	if (s.bytes > e->work.needs->checkpoint_most_bytes) {
		if (may_complain(e, pod))
			checkpoint_too_large(e, (uint32_t)segment, s.bytes);
		return true;
	}
	v->coming = s;
	post_snapshot(e, (uint32_t)segment, &s, SNAPSHOT_UNSAFE);
	fetch_next(e, (uint32_t)segment);
	return true;
}
