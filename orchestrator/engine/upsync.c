#include "upsync.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../sync/pack.h"

enum { SLICE = 128 << 10, QUEUED_MAX = 512 << 10 };

struct upsync {
	struct ssh *ssh;
	struct loop *loop;
	struct pool *pool;
	struct upsync_want want;
	bool with_base;
	struct ssh_channel *channel;
	struct str said, complaint;
	int64_t sent;
	bool busy, cancelled, remote_over, eof_sent;
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

static void drop(struct upsync *u)
{
	pack_close(u->pack);
	tree_diff_free(&u->diff);
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
	if (u->exit_code == 99 && u->with_base) {
		/* the volume does not have what we thought: everything, then */
		pack_close(u->pack);
		u->pack = NULL;
		tree_diff_free(&u->diff);
		u->with_base = false;
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

static void on_writable(void *ctx)
{
	struct upsync *u = ctx;

	if (u->busy || u->eof_sent || u->remote_over || !u->channel || ssh_queued(u->channel) > QUEUED_MAX)
		return;
	u->busy = true;
	pool_run(u->pool, work_slice, slice_ready, u);
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
		ssh_channel_close(u->channel); /* cut: the pod cannot take it for whole */
		u->channel = NULL;
		u->remote_over = true;
		u->exit_code = 1;
		settle(u);
		return;
	}
	if (u->got == 0) {
		u->eof_sent = true;
		ssh_send_eof(u->channel);
		return;
	}
	u->sent += u->got;
	ssh_write(u->channel, u->slice, (size_t)u->got);
	on_writable(u);
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
		err_set(&u->remote, ERR_TRANSIENT, "unpacking %s was killed by SIG%.20s", u->want.dir, signal);
	atomic_store(&u->stop, true);
	settle(u);
}

static const struct ssh_channel_ops tree_ops = {.data = on_data, .writable = on_writable, .closed = on_closed};

static void start_channel(struct upsync *u)
{
	CLEANUP(str_free) struct str command = STR_INIT;

	str_add(&command, "exec \"$BURST_HOME/burst-agent\" tree --dir ");
	str_add_shell(&command, u->want.dir);
	str_addf(&command, " --id %s", u->want.tree->id);
	if (u->with_base)
		str_addf(&command, " --base %s", u->want.base->id);
	if (u->want.zstd)
		str_add(&command, " --zstd");
	u->remote_over = u->eof_sent = false;
	u->exit_code = 0;
	err_clear(&u->remote);
	err_clear(&u->result);
	str_reset(&u->complaint);
	atomic_store(&u->stop, false);
	u->channel = ssh_exec(u->ssh, str_text(&command), &tree_ops, u, false);
}

struct upsync *upsync_start(struct ssh *ssh, struct loop *loop, struct pool *pool, const struct upsync_want *want)
{
	struct upsync *u = xcalloc(1, sizeof(*u));

	u->ssh = ssh;
	u->loop = loop;
	u->pool = pool;
	u->want = *want;
	u->with_base = want->base != NULL;
	u->slice = xmalloc(SLICE);
	u->said.max = 64 << 10;
	u->complaint.max = 2048;
	start_channel(u);
	return u;
}

void upsync_cancel(struct upsync *u)
{
	if (!u)
		return;
	u->cancelled = true;
	ssh_channel_close(u->channel);
	u->channel = NULL;
	u->remote_over = true;
	atomic_store(&u->stop, true);
	settle(u);
}
