/* upsync.c - makes the trees that pods need, and uploads them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "impl.h"
#include "sync/pack.h"

/* ---- meter ---- */

enum { LEAST_MS = 100, LEAST_ROUND_TRIPS = 2 }; /* of one measurement */

void meter_start(struct meter *m)
{
	*m = (struct meter){.rate = -1};
}

static void begin_measurement(struct meter *m, int64_t now_ms, int64_t gone)
{
	m->at_ms = now_ms;
	m->from = gone;
	m->starved = false;
}

static bool is_long_enough(const struct meter *m, int64_t took_ms, int64_t gone,
			   int64_t round_trip_ms)
{
	if (m->first_window)
		return gone >= METER_WINDOW / 2;
	return took_ms >= MAX((int64_t)LEAST_MS, LEAST_ROUND_TRIPS * round_trip_ms);
}

enum measured meter_add(struct meter *m, int64_t now_ms, int64_t gone, int64_t sent,
			int64_t round_trip_ms)
{
	if (!m->begun && gone > 0) {
		m->begun = m->first_window = true;
		begin_measurement(m, now_ms, gone);
	}
	int64_t took_ms = now_ms - m->at_ms;
	if (!m->begun || took_ms <= 0)
		return MEASURED_NOTHING;
	m->starved = m->starved || gone == sent;
	if (!is_long_enough(m, took_ms, gone, round_trip_ms))
		return MEASURED_NOTHING;
	bool first = m->first_window, valid = first || !m->starved;
	if (valid)
		m->rate = (gone - m->from) * 1000 / took_ms;
	/* After the first window the line sends a window in each round trip at most. */
	if (first && round_trip_ms)
		m->rate = MIN(m->rate, (int64_t)METER_WINDOW * 1000 / round_trip_ms);
	m->first_window = false;
	begin_measurement(m, now_ms, gone);
	return !valid ? MEASURED_NOTHING : first ? MEASURED_FIRST_WINDOW : MEASURED_RATE;
}

/* ---- trees ----
 * What is synced to the pods: the job's own files, and the code, which is scanned while the first
 * pod is rented. */

/* What the scanning thread has. */
struct scan_job {
	struct engine *e;
	void (*ready)(struct engine *e);
	const char *cache_path;
	struct tree *tree, *old;
	struct err err;
};

static void log_skipped(void *ctx, const char *path, enum tree_skip why)
{
	(void)ctx;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, path, strlen(path), 200);
	log_line(LOG_INFO, "code: %s skipped (%s)", str_text(&shown), tree_skip_name(why));
}

static void work_scan(void *arg)
{
	struct scan_job *s = arg;
	const char *root = s->e->setup->code_path;
	const char *output_dir = s->e->setup->output_dir;
	/* The output folder may lie inside the code; the pods do not need it. */
	CLEANUP(free_text) char *output = output_dir ? path_below(root, output_dir) : NULL;
	const char *inside[2] = {output, NULL};

	tree_load(&s->old, s->cache_path, NULL);
	struct tree_scan_options opts = {
		.known = s->old, .exclude = inside, .skipped = log_skipped};
	if (tree_scan(&s->tree, root, &opts, &s->err) < 0)
		return;
	tree_save(s->tree, s->cache_path, NULL);
}

static void log_tree(struct engine *e, const struct tree *tree)
{
	int64_t left_out = 0;

	for (int i = 0; i < TREE_SKIP_KINDS; i++)
		left_out += tree->skipped[i];
	engine_log(e, LOG_NOTE, "code: %zu %s, %lld kB; %lld skipped (-v names them)", tree->count,
		   tree->count == 1 ? "entry" : "entries", (long long)(tree->bytes + 999) / 1000,
		   (long long)left_out);
	if (tree->skipped[TREE_SKIP_KEPT])
		engine_log(e, LOG_NOTE, "code: %lld skipped: keys, or files of burst itself",
			   (long long)tree->skipped[TREE_SKIP_KEPT]);
}

static void on_scanned(void *arg)
{
	struct scan_job *s = arg;
	struct engine *e = s->e;

	e->trees.scanning = false;
	e->trees.code = s->tree;
	e->trees.code_before = s->old;
	if (!s->tree)
		e->trees.failure = s->err;
	else
		log_tree(e, s->tree);
	s->ready(e);
	free(s);
}

char *engine_scan_path(const char *runs_dir, const char *code_path)
{
	char hex[SHA256_HEX];

	sha256_hex(code_path, strlen(code_path), hex);
	return xasprintf("%s/tree-%.16s", runs_dir, hex);
}

void trees_make(struct engine *e, void (*ready)(struct engine *e))
{
	struct trees *t = &e->trees;
	struct err err = {0};

	if (e->work.needs && e->work.needs->file_count) {
		t->kit = tree_new();
		for (size_t i = 0; i < e->work.needs->file_count; i++) {
			const struct job_file *f = &e->work.needs->files[i];
			if (tree_add(t->kit, f->name, f->data, f->len, (f->mode & 0100) != 0,
				     &err) < 0)
				t->failure = err;
		}
	}
	if (!e->setup->code_path || !e->work.needs)
		return;
	CLEANUP(free_text) char *runs = xasprintf("%s/..", e->setup->run_dir);
	t->cache_path = engine_scan_path(runs, e->setup->code_path);
	struct scan_job *s = xcalloc(1, sizeof(*s));
	s->e = e;
	s->ready = ready;
	s->cache_path = t->cache_path;
	t->scanning = true;
	pool_run(e->pool, work_scan, on_scanned, s);
}

void trees_free(struct trees *t)
{
	tree_free(t->kit);
	tree_free(t->code);
	tree_free(t->code_before);
	free(t->cache_path);
}

/* ---- upsync ----
 * Uploads a tree to a pod's volume as one tar stream, cut into frames. */

enum {
	/* Smaller slices shrink less, and a near line idles while the threads hand them over. */
	SLICE = 512 << 10,
	QUEUED_MAX = 1 << 20,
	QUEUED_MAX_LANE = 512 << 10, /* of each channel, where there are several */
	FRAME_HEAD = 12,
	/* A line with at least this round trip counts as slow until a measurement. */
	FAR_MS = 5,
	LANES_MAX = 3, /* with them a connection's own window is the limit */
	/* of opening lanes, while the first channel sends */
	OPEN_ROUND_TRIPS = 4,
	OPEN_MS = 100,
	/* sent as it is after a slice that did not shrink by a sixteenth: its neighbours are
	 * probably alike, and trying costs time */
	PLAIN_BYTES = 2 << 20,
	TICKS = 8, /* of one silence; counted, so that the sleep of this machine is not taken for
		      one */
	/* A tenth of what slow volumes unpack and sync. */
	UNPACK_BYTES_S = 5 << 20,
	UNPACK_FILES_S = 20,
};

/* Bytes a second that all channels together should be able to carry. */
static const int64_t CARRY_WANTED = 250 * 1000 * 1000;
/* Packing pays on a line below this rate, in bytes a second. A processor packs some 300 MB/s; if
 * pod and client share it, or it is slow, sending unpacked is as fast. */
static const int64_t PACK_BELOW_NEAR = 50 * 1000 * 1000, PACK_BELOW_FAR = 150 * 1000 * 1000;

#define FRAME_PACKED (UINT32_C(1) << 31)

/* Exit codes of the agent's `tree` (jobs/agent/CONTROL.md). */
enum { EXIT_LACKS_STAGED = 97, EXIT_IS_THERE = 98, EXIT_LACKS_BASE = 99 };

/* A further channel that carries frames of an upload. */
struct lane {
	struct upsync *of;
	struct ssh_channel *channel; /* NULL: closed */
	bool joined;                 /* the pod's end has joined the stream: it may carry frames */
};

struct upsync {
	struct link *link;
	struct pool *pool;
	struct upsync_want want;
	struct loop *loop;
	bool with_base, staged;
	struct ssh_channel *channel;
	struct str said, complaint;
	int64_t sent;
	bool busy, cancelled, remote_over, eof_sent;
	struct timer *tick;
	int64_t moved; /* at the last tick: bytes sent and received */
	int unmoved_ticks;
	struct lane lanes[LANES_MAX];
	int lane_count;
	struct meter meter;
	bool packs;         /* the line is slow enough that packing pays */
	int64_t plain_left; /* bytes that are not tried after a slice that did not shrink */
	int64_t taken;      /* bytes of the tar stream that are sent */
	uint64_t frame;     /* the number of the next one */
	int exit_code;
	struct err remote;
	/* a worker thread's while busy */
	atomic_bool stop;
	struct tree_diff diff;
	struct pack *pack;
	char *slice;
	bool pack_slice; /* in: pack it if it shrinks; out: it is packed */
	bool tried;      /* it was to be packed */
	ssize_t got;     /* of the tar stream */
	struct str packed;
	struct err result;
};

static void start_channel(struct upsync *u);

static void close_lanes(struct upsync *u)
{
	for (int i = 0; i < u->lane_count; i++)
		ssh_channel_close(u->lanes[i].channel);
	u->lane_count = 0;
}

/* Undoes what was prepared and sent. */
static void reset_upload(struct upsync *u)
{
	close_lanes(u);
	pack_close(u->pack);
	u->pack = NULL;
	tree_diff_free(&u->diff);
}

static void free_upsync(struct upsync *u)
{
	reset_upload(u);
	loop_untimer(u->tick);
	str_free(&u->said);
	str_free(&u->complaint);
	str_free(&u->packed);
	free(u->slice);
	free(u);
}

/* Frees u, and calls done() unless the upload was cancelled. */
static void finish_upsync(struct upsync *u, const struct err *err)
{
	struct upsync_want want = u->want;
	int64_t sent = u->sent;
	bool tell = !u->cancelled;
	struct err copy = err ? *err : (struct err){0};

	free_upsync(u);
	if (tell)
		want.done(want.ctx, sent, err ? &copy : NULL);
}

/* Ends the upload if neither a thread nor the pod is at work on it. If the volume lacks what the
 * stream builds on, sends all of it instead. */
static void end_if_over(struct upsync *u)
{
	struct err err = {0};

	if (u->busy || !u->remote_over)
		return;
	if (u->cancelled || (u->exit_code == 0 && !u->remote.kind) ||
	    u->exit_code == EXIT_IS_THERE) {
		if (u->exit_code == EXIT_IS_THERE)
			u->sent = 0;
		finish_upsync(u, NULL);
		return;
	}
	if ((u->exit_code == EXIT_LACKS_BASE && u->with_base) ||
	    (u->exit_code == EXIT_LACKS_STAGED && u->staged)) {
		reset_upload(u);
		u->with_base = u->with_base && u->exit_code == EXIT_LACKS_STAGED;
		u->staged = false;
		start_channel(u);
		return;
	}
	if (u->result.kind)
		err = u->result;
	else if (u->remote.kind)
		err = u->remote;
	else
		err_set(&err, ERR_JOB, "the pod could not unpack %s: %s", u->want.dir,
			u->complaint.len ? str_text(&u->complaint) : "no reason given");
	finish_upsync(u, &err);
}

/* In a worker thread: reads the next slice of the tar stream, and packs it if that pays. */
static void work_slice(void *arg)
{
	struct upsync *u = arg;

	if (!u->pack) {
		tree_diff(&u->diff, u->with_base ? u->want.base : NULL, u->want.tree);
		struct pack_plan plan = pack_plan_of(&u->diff, u->want.root);
		plan.stop = &u->stop;
		if (pack_open(&u->pack, &plan, &u->result) < 0) {
			u->got = -1;
			return;
		}
	}
	u->tried = u->pack_slice;
	u->got = pack_read(u->pack, u->slice, SLICE, &u->result);
	str_reset(&u->packed);
	u->pack_slice = u->tried && u->got > 0 &&
			pack_add_zstd_frame(&u->packed, u->slice, (size_t)u->got) &&
			u->packed.len <= (size_t)u->got - (size_t)u->got / 16;
}

static void on_slice_ready(void *arg);

/* The channel for the next frame; NULL: all are full. */
static struct ssh_channel *free_channel(const struct upsync *u)
{
	struct ssh_channel *best = u->channel;

	for (int i = 0; i < u->lane_count; i++)
		if (u->lanes[i].joined && ssh_queued(u->lanes[i].channel) < ssh_queued(best))
			best = u->lanes[i].channel;
	return ssh_queued(best) > (u->lane_count ? QUEUED_MAX_LANE : QUEUED_MAX) ? NULL : best;
}

static void prepare_slice(struct upsync *u)
{
	if (u->staged || u->busy || u->eof_sent || u->remote_over || !u->channel ||
	    !free_channel(u))
		return;
	u->busy = true;
	u->pack_slice = u->packs && u->plain_left <= 0;
	pool_run(u->pool, work_slice, on_slice_ready, u);
}

static void on_writable(void *ctx)
{
	prepare_slice(ctx);
}

static void send_frame(struct upsync *u, struct ssh_channel *to, const char *bytes, size_t len,
		       bool packed)
{
	unsigned char head[FRAME_HEAD];
	uint32_t length = (uint32_t)len | (packed ? FRAME_PACKED : 0);

	for (int i = 0; i < 8; i++)
		head[i] = (unsigned char)(u->frame >> (56 - 8 * i));
	for (int i = 0; i < 4; i++)
		head[8 + i] = (unsigned char)(length >> (24 - 8 * i));
	u->frame++;
	u->sent += (int64_t)len;
	ssh_write(to, head, sizeof(head));
	ssh_write(to, bytes, len);
}

/* Ends the transfer before its end frame: the pod drops what it has. */
static void break_off(struct upsync *u)
{
	if (u->channel)
		ssh_channel_close(u->channel);
	u->channel = NULL;
	u->remote_over = true;
	u->exit_code = 1;
	atomic_store(&u->stop, true);
	end_if_over(u);
}

/* ---- lanes ----
 * sshd lets a channel send one window in each round trip; several channels send several. */

/* The agent writes a line when it has joined. */
static void on_lane_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct lane *l = ctx;

	if (stream || l->joined || !memchr(bytes, '\n', len))
		return;
	l->joined = true;
	prepare_slice(l->of);
}

static void on_lane_writable(void *ctx)
{
	const struct lane *l = ctx;

	if (l->joined)
		prepare_slice(l->of);
}

/* One that ends too early takes frames with it, and the pod drops a stream that lacks some. A lost
 * connection takes the upload's own channel, too. */
static void on_lane_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct lane *l = ctx;
	struct upsync *u = l->of;
	bool joined = l->joined, clean = !signal && !exit_code;

	l->channel = NULL;
	l->joined = false;
	if (!joined || err || u->remote_over || (u->eof_sent && clean))
		return;
	err_set(&u->result, ERR_TRANSIENT, "a part of the upload ended early");
	break_off(u);
}

static const struct ssh_channel_ops lane_ops = {
	.data = on_lane_data, .writable = on_lane_writable, .closed = on_lane_closed};

static void open_lanes(struct upsync *u, int64_t wanted)
{
	CLEANUP(free_text)
	char *command = xasprintf("exec \"$BURST_HOME/burst-agent\" lane %s", u->want.tree->id);

	u->lane_count = (int)MIN(wanted, (int64_t)LANES_MAX);
	for (int i = 0; i < u->lane_count; i++) {
		struct lane *l = &u->lanes[i];
		*l = (struct lane){.of = u};
		l->channel = ssh_exec(link_ssh(u->link), command, &lane_ops, l, false);
	}
}

static int64_t bytes_gone(const struct upsync *u)
{
	int64_t queued = u->channel ? (int64_t)ssh_queued(u->channel) : 0;

	for (int i = 0; i < u->lane_count; i++)
		queued += u->lanes[i].joined ? (int64_t)ssh_queued(u->lanes[i].channel) : 0;
	return u->sent - queued;
}

/* How long the rest takes at the measured rate. */
static int64_t left_ms(const struct upsync *u)
{
	/* tar adds headers and padding */
	int64_t all = u->diff.bytes + (int64_t)u->diff.changed_count * 1024;
	double shrunk = u->taken ? (double)u->sent / (double)u->taken : 1;

	return (int64_t)((double)MAX(all - u->taken, 0) * shrunk * 1000 /
			 (double)MAX(u->meter.rate, 1));
}

/* Decides by the measured rate whether to pack, and whether to open lanes. They help where the
 * window of sshd limits the pace and not the line. */
static void decide_by_rate(struct upsync *u, bool first_window)
{
	int64_t rtt = ssh_round_trip_ms(link_ssh(u->link));
	int64_t rate = u->meter.rate, pack_below = rtt < FAR_MS ? PACK_BELOW_NEAR : PACK_BELOW_FAR;

	if (!first_window || rate < pack_below)
		u->packs = u->want.zstd && rate < pack_below;
	if (!u->lane_count && rtt >= FAR_MS && rate * rtt / 1000 >= METER_WINDOW / 2 &&
	    left_ms(u) > OPEN_ROUND_TRIPS * rtt + OPEN_MS)
		open_lanes(u, CARRY_WANTED / 1000 * rtt / METER_WINDOW);
}

static void measure_line(struct upsync *u)
{
	int64_t rtt = MAX(ssh_round_trip_ms(link_ssh(u->link)), 0);
	enum measured now = meter_add(&u->meter, clock_boot_ms(), bytes_gone(u), u->sent, rtt);

	if (now != MEASURED_NOTHING)
		decide_by_rate(u, now == MEASURED_FIRST_WINDOW);
}

static void note_if_shrunk(struct upsync *u)
{
	if (!u->tried)
		u->plain_left -= u->got;
	else if (!u->pack_slice)
		u->plain_left = PLAIN_BYTES;
}

static void on_slice_ready(void *arg)
{
	struct upsync *u = arg;

	u->busy = false;
	if (u->remote_over || !u->channel) {
		end_if_over(u);
		return;
	}
	if (u->got < 0) {
		break_off(u);
		return;
	}
	measure_line(u);
	if (u->got == 0) {
		send_frame(u, u->channel, u->slice, 0, false);
		u->eof_sent = true;
		ssh_send_eof(u->channel);
		return;
	}
	u->taken += u->got;
	note_if_shrunk(u);
	struct ssh_channel *to = free_channel(u);
	send_frame(u, to ? to : u->channel, u->pack_slice ? u->packed.s : u->slice,
		   u->pack_slice ? u->packed.len : (size_t)u->got, u->pack_slice);
	prepare_slice(u);
}

static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct upsync *u = ctx;

	if (stream == 0)
		str_addn(&u->said, bytes, len);
	else if (u->complaint.len < 400)
		str_add_printable(&u->complaint, bytes, len, 400);
}

static void on_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct upsync *u = ctx;

	u->channel = NULL;
	u->remote_over = true;
	u->exit_code = exit_code;
	if (err)
		u->remote = *err;
	else if (signal)
		err_set(&u->remote, ERR_TRANSIENT, "unpacking %s was killed by SIG%.20s",
			u->want.dir, signal);
	atomic_store(&u->stop, true);
	end_if_over(u);
}

static const struct ssh_channel_ops tree_ops = {
	.data = on_data, .writable = on_writable, .closed = on_closed};

/* ---- a pod that makes no progress ---- */

static int64_t bytes_moved(const struct upsync *u)
{
	return bytes_gone(u) + (int64_t)u->said.len + (int64_t)u->complaint.len;
}

static bool is_unpacking(const struct upsync *u)
{
	return u->staged || (u->eof_sent && u->channel && !ssh_queued(u->channel));
}

static int ticks_most(const struct upsync *u)
{
	int64_t unpack_s = u->want.tree->bytes / UNPACK_BYTES_S +
			   (int64_t)u->want.tree->count / UNPACK_FILES_S;

	return TICKS +
	       (int)MIN(is_unpacking(u) ? unpack_s * 1000 * TICKS / MAX(u->want.silent_ms, 1) : 0,
			(int64_t)1 << 20);
}

static void on_tick(void *ctx)
{
	struct upsync *u = ctx;
	int64_t moved = bytes_moved(u);
	char time[24];

	u->tick = NULL;
	u->unmoved_ticks = moved != u->moved || u->busy ? 0 : u->unmoved_ticks + 1;
	u->moved = moved;
	if (u->unmoved_ticks <= ticks_most(u)) {
		u->tick = loop_timer(u->loop, MAX(u->want.silent_ms / TICKS, 1), on_tick, u);
		return;
	}
	err_set(&u->result, ERR_TRANSIENT, "no progress for %s",
		duration_show(time, sizeof(time), u->unmoved_ticks * (u->want.silent_ms / TICKS)));
	break_off(u);
}

static void start_channel(struct upsync *u)
{
	CLEANUP(str_free) struct str command = STR_INIT;

	str_add(&command, "exec \"$BURST_HOME/burst-agent\" tree --dir ");
	str_add_shell(&command, u->want.dir);
	str_addf(&command, " --id %s", u->want.tree->id);
	if (u->with_base)
		str_addf(&command, " --base %s", u->want.base->id);
	if (u->staged)
		str_addf(&command, " --from %s --parts %d --sha256 %s", u->want.tree->id,
			 u->want.staged_parts, u->want.staged_sha256);
	else
		str_add(&command, " --lanes");
	u->remote_over = u->eof_sent = false;
	meter_start(&u->meter);
	u->packs = u->want.zstd && ssh_round_trip_ms(link_ssh(u->link)) >= FAR_MS;
	u->plain_left = u->taken = 0;
	u->exit_code = 0;
	u->frame = 0;
	err_clear(&u->remote);
	err_clear(&u->result);
	str_reset(&u->complaint);
	atomic_store(&u->stop, false);
	u->channel = ssh_exec(link_ssh(u->link), str_text(&command), &tree_ops, u, false);
	if (u->staged)
		ssh_send_eof(u->channel);
}

struct upsync *upsync_start(struct loop *loop, struct link *link, struct pool *pool,
			    const struct upsync_want *want)
{
	struct upsync *u = xcalloc(1, sizeof(*u));

	u->loop = loop;
	u->link = link;
	u->pool = pool;
	u->want = *want;
	u->with_base = want->base != NULL;
	u->staged = want->staged_parts > 0;
	u->slice = xmalloc(SLICE);
	u->said.max = 64 << 10;
	u->complaint.max = 2048;
	if (want->silent_ms > 0)
		u->tick = loop_timer(loop, MAX(want->silent_ms / TICKS, 1), on_tick, u);
	start_channel(u);
	return u;
}

void upsync_cancel(struct upsync *u)
{
	if (!u)
		return;
	u->cancelled = true;
	close_lanes(u);
	ssh_channel_close(u->channel);
	u->channel = NULL;
	u->remote_over = true;
	atomic_store(&u->stop, true);
	end_if_over(u);
}
