#include "upsync.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../sync/pack.h"

enum {
	SLICE = 128 << 10,
	QUEUED_MAX = 512 << 10, /* per session */
	FRAME_HEAD = 12,
	/* More sessions than the link's own: sshd lets one carry about 2 MiB a round trip. What it costs to open them, some eight
	 * round trips while the first one already sends, is won back from here on. */
	LANES_FROM_BYTES = 16 << 20,
	LANES_FROM_RTT_MS = 5,
	LANES_LONG_RTT_MS = 40,
	TICKS = 8, /* of one silence; counted, so that a machine that slept gives it the same chance again */
	UNPACK_BYTES_S = 5 << 20, /* at least, with all that is synced: a tenth of what slow volumes do */
	UNPACK_FILES_S = 20,
	LATE_MS = 20000, /* for the pod's word when all has gone, but for what a lost session may have had */
	LANES = 3,
	LANES_LONG = 7, /* sshd begins to refuse beyond ten that log in at once */
};

/* One of the further sessions. */
struct carrier {
	struct upsync *u;
	struct lane *lane;
	bool ready; /* the pod's end has joined the stream: what it is given now belongs to the stream */
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
	bool lane_lost, link_lost; /* what may have taken frames with it */
	bool alone;		   /* without further sessions: one was lost before */
	struct timer *late;
	struct timer *tick;
	int64_t moved; /* at the last tick: bytes that went over the line, and that the pod said */
	int unmoved_ticks;
	struct carrier carriers[LANES_LONG];
	int carrier_count;
	bool lanes_judged;
	uint64_t frame; /* the number of the next one */
	int exit_code;
	struct err remote;
	/* a worker thread's while busy */
	atomic_bool stop;
	struct tree_diff diff;
	struct pack *pack;
	char *slice;
	ssize_t got;
	struct err result;
};

static void start_channel(struct upsync *u);

static void close_lanes(struct upsync *u)
{
	for (int i = 0; i < u->carrier_count; i++)
		lane_close(u->carriers[i].lane);
	*u->want.lanes_left += u->carrier_count;
	u->carrier_count = 0;
}

/* What was prepared and sent so far counts no more. */
static void clear(struct upsync *u)
{
	loop_untimer(u->late);
	u->late = NULL;
	close_lanes(u);
	pack_close(u->pack);
	u->pack = NULL;
	tree_diff_free(&u->diff);
}

static void drop(struct upsync *u)
{
	clear(u);
	loop_untimer(u->tick);
	str_free(&u->said);
	str_free(&u->complaint);
	free(u->slice);
	free(u);
}

static void finish(struct upsync *u, const struct err *err)
{
	struct upsync_want want = u->want;
	int64_t sent = u->sent;
	bool tell = !u->cancelled;
	struct err copy = err ? *err : (struct err){0};

	drop(u);
	if (tell)
		want.done(want.ctx, sent, err ? &copy : NULL);
}

static void settle(struct upsync *u)
{
	struct err err = {0};

	if (u->busy || !u->remote_over)
		return;
	if (u->cancelled || (u->exit_code == 0 && !u->remote.kind) || u->exit_code == 98) {
		if (u->exit_code == 98)
			u->sent = 0;
		finish(u, NULL);
		return;
	}
	if ((u->exit_code == 99 && u->with_base) || (u->exit_code == 97 && u->staged)) {
		/* the volume does not have what we thought: everything, then */
		clear(u);
		u->with_base = u->with_base && u->exit_code == 97;
		u->staged = false;
		start_channel(u);
		return;
	}
	if (u->lane_lost && !u->link_lost && !u->alone && !u->result.kind) {
		clear(u);
		u->alone = true;
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
	finish(u, &err);
}

static void work_slice(void *arg)
{
	struct upsync *u = arg;

	if (!u->pack) {
		tree_diff(&u->diff, u->with_base ? u->want.base : NULL, u->want.tree);
		struct pack_plan plan = pack_plan_of(&u->diff, u->want.root, u->want.zstd);
		plan.stop = &u->stop;
		if (pack_open(&u->pack, &plan, &u->result) < 0) {
			u->got = -1;
			return;
		}
	}
	u->got = pack_read(u->pack, u->slice, SLICE, &u->result);
}

static void slice_ready(void *arg);

/* The session with the least to do among those that take more; NULL: all are full. */
static struct ssh_channel *free_channel(struct upsync *u)
{
	struct ssh_channel *best = u->channel;

	for (int i = 0; i < u->carrier_count; i++) {
		struct ssh_channel *c = u->carriers[i].ready ? lane_channel(u->carriers[i].lane) : NULL;
		if (c && ssh_queued(c) < ssh_queued(best))
			best = c;
	}
	return ssh_queued(best) > QUEUED_MAX ? NULL : best;
}

static void more(struct upsync *u)
{
	if (u->staged || u->busy || u->eof_sent || u->remote_over || !u->channel || !free_channel(u))
		return;
	u->busy = true;
	pool_run(u->pool, work_slice, slice_ready, u);
}

static void on_writable(void *ctx)
{
	more(ctx);
}

static void send_frame(struct upsync *u, struct ssh_channel *to, const char *bytes, size_t len)
{
	unsigned char head[FRAME_HEAD];

	for (int i = 0; i < 8; i++)
		head[i] = (unsigned char)(u->frame >> (56 - 8 * i));
	for (int i = 0; i < 4; i++)
		head[8 + i] = (unsigned char)(len >> (24 - 8 * i));
	u->frame++;
	u->sent += (int64_t)len;
	ssh_write(to, head, sizeof(head));
	ssh_write(to, bytes, len);
}

/* Ends the transfer: the pod cannot take what it has for whole. */
static void cut(struct upsync *u)
{
	if (u->channel)
		ssh_channel_close(u->channel);
	u->channel = NULL;
	u->remote_over = true;
	u->exit_code = 1;
	atomic_store(&u->stop, true);
	settle(u);
}

static void on_lane_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct carrier *c = ctx;

	if (stream || c->ready || !memchr(bytes, '\n', len))
		return;
	c->ready = true;
	more(c->u);
}

static void on_lane_writable(void *ctx)
{
	struct carrier *c = ctx;

	if (c->ready)
		more(c->u);
}

static void on_late(void *ctx)
{
	struct upsync *u = ctx;

	u->late = NULL;
	cut(u);
}

/* One that never joined is no loss; one that did may have taken frames with it: then it all goes once more, over one. */
static void on_lane_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct carrier *c = ctx;
	struct upsync *u = c->u;
	bool joined = c->ready;

	c->ready = false;
	if (!joined || u->remote_over || (u->eof_sent && !err && !signal && !exit_code))
		return;
	u->lane_lost = true;
	if (!u->eof_sent)
		cut(u);
	else if (!u->late) /* all was given to it, not all may have gone: the pod says whether that mattered, if it learns of it */
		u->late = loop_timer(u->loop, LATE_MS, on_late, u);
}

static const struct ssh_channel_ops lane_ops = {.data = on_lane_data, .writable = on_lane_writable, .closed = on_lane_closed};

static void judge_lanes(struct upsync *u, int64_t bytes)
{
	int64_t rtt = ssh_round_trip_ms(link_ssh(u->link));
	CLEANUP(str_free) struct str command = STR_INIT;

	if (u->lanes_judged)
		return;
	u->lanes_judged = true;
	if (bytes < LANES_FROM_BYTES || rtt < LANES_FROM_RTT_MS)
		return;
	str_addf(&command, "exec \"$BURST_HOME/burst-agent\" lane %s", u->want.tree->id);
	u->carrier_count = MIN(rtt < LANES_LONG_RTT_MS ? LANES : LANES_LONG, *u->want.lanes_left);
	*u->want.lanes_left -= u->carrier_count;
	for (int i = 0; i < u->carrier_count; i++) {
		struct carrier *c = &u->carriers[i];
		*c = (struct carrier){.u = u};
		c->lane = link_lane(u->link, str_text(&command), &lane_ops, c);
	}
}

static void slice_ready(void *arg)
{
	struct upsync *u = arg;

	u->busy = false;
	if (u->remote_over || !u->channel) {
		settle(u);
		return;
	}
	if (u->got < 0) {
		cut(u);
		return;
	}
	judge_lanes(u, u->diff.bytes);
	if (u->got == 0) {
		send_frame(u, u->channel, u->slice, 0);
		u->eof_sent = true;
		ssh_send_eof(u->channel);
		return;
	}
	struct ssh_channel *to = free_channel(u);
	send_frame(u, to ? to : u->channel, u->slice, (size_t)u->got);
	more(u);
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
	u->link_lost = err != NULL;
	if (err)
		u->remote = *err;
	else if (signal)
		err_set(&u->remote, ERR_TRANSIENT, "unpacking %s was killed by SIG%.20s", u->want.dir, signal);
	atomic_store(&u->stop, true);
	settle(u);
}

static const struct ssh_channel_ops tree_ops = {.data = on_data, .writable = on_writable, .closed = on_closed};

/* ---- a pod that takes nothing ---- */

static void on_tick(void *ctx);

static int64_t bytes_moved(const struct upsync *u)
{
	int64_t queued = u->channel ? (int64_t)ssh_queued(u->channel) : 0;

	for (int i = 0; i < u->carrier_count; i++) {
		struct ssh_channel *c = u->carriers[i].ready ? lane_channel(u->carriers[i].lane) : NULL;
		queued += c ? (int64_t)ssh_queued(c) : 0;
	}
	return u->sent - queued + (int64_t)u->said.len + (int64_t)u->complaint.len;
}

/* It has all that it gets. */
static bool unpacks(const struct upsync *u)
{
	return u->staged || (u->eof_sent && u->channel && !ssh_queued(u->channel));
}

static int ticks_most(const struct upsync *u)
{
	int64_t unpack_s = u->want.tree->bytes / UNPACK_BYTES_S + (int64_t)u->want.tree->count / UNPACK_FILES_S;

	return TICKS + (int)MIN(unpacks(u) ? unpack_s * 1000 * TICKS / MAX(u->want.silent_ms, 1) : 0, (int64_t)1 << 20);
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
	err_set(&u->result, ERR_TRANSIENT, "nothing of it was taken for %s",
		duration_show(time, sizeof(time), u->unmoved_ticks * (u->want.silent_ms / TICKS)));
	cut(u);
}

static void start_channel(struct upsync *u)
{
	CLEANUP(str_free) struct str command = STR_INIT;

	str_add(&command, "exec \"$BURST_HOME/burst-agent\" tree --dir ");
	str_add_shell(&command, u->want.dir);
	str_addf(&command, " --id %s", u->want.tree->id);
	if (u->with_base)
		str_addf(&command, " --base %s", u->want.base->id);
	/* where the line is short, packing takes longer than sending */
	u->want.zstd = u->want.zstd && ssh_round_trip_ms(link_ssh(u->link)) >= LANES_FROM_RTT_MS;
	if (u->staged)
		str_addf(&command, " --from %s --parts %d --sha256 %s", u->want.tree->id, u->want.staged_parts,
			 u->want.staged_sha256);
	else
		str_add(&command, u->want.zstd ? " --lanes --zstd" : " --lanes");
	u->remote_over = u->eof_sent = u->lane_lost = u->link_lost = false;
	u->lanes_judged = u->alone;
	u->exit_code = 0;
	u->frame = 0;
	err_clear(&u->remote);
	err_clear(&u->result);
	str_reset(&u->complaint);
	atomic_store(&u->stop, false);
	u->channel = ssh_exec(link_ssh(u->link), str_text(&command), &tree_ops, u, false);
	if (u->staged)
		ssh_send_eof(u->channel);
	else if (!u->with_base)
		judge_lanes(u, u->want.tree->bytes); /* they are some round trips behind: the first one will be expected */
}

struct upsync *upsync_start(struct loop *loop, struct link *link, struct pool *pool, const struct upsync_want *want)
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
	settle(u);
}
