/* lane.c - one more SSH session to a pod, for one command. */
#include "lane.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

enum { OPEN_LIMIT_MS = 20000, SILENCE_MS = 30000 };

struct lane {
	struct loop *loop;
	const struct ssh_channel_ops *ops;
	void *ctx;
	char *user, *host_key, *private_key, *command;
	int64_t deadline_at;
	struct http_connect *connecting;
	struct ssh *ssh;
	struct ssh_channel *channel;
	bool over;
};

static void lane_over(struct lane *l, int code, const char *signal, const struct err *err)
{
	if (l->over)
		return;
	l->over = true;
	l->channel = NULL;
	l->ops->closed(l->ctx, code, signal, err);
}

static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct lane *l = ctx;

	l->ops->data(l->ctx, stream, bytes, len);
}

static void on_writable(void *ctx)
{
	struct lane *l = ctx;

	if (l->ops->writable)
		l->ops->writable(l->ctx);
}

static void on_closed(void *ctx, int code, const char *signal, const struct err *err)
{
	lane_over(ctx, code, signal, err);
}

static const struct ssh_channel_ops channel_ops = {
	.data = on_data, .writable = on_writable, .closed = on_closed};

static void on_up(void *ctx, const struct err *err)
{
	struct lane *l = ctx;

	if (err)
		lane_over(l, 0, NULL, err);
	else
		l->channel = ssh_exec(l->ssh, l->command, &channel_ops, l, false);
}

static void on_lost(void *ctx, const struct err *err)
{
	lane_over(ctx, 0, NULL, err);
}

static void on_tcp(void *ctx, int fd, const struct err *err)
{
	struct lane *l = ctx;

	l->connecting = NULL;
	if (err) {
		lane_over(l, 0, NULL, err);
		return;
	}
	struct ssh_setup setup = {
		.fd = fd,
		.user = l->user,
		.host_key = l->host_key,
		.private_key = l->private_key,
		.deadline_ms = MAX(l->deadline_at - clock_boot_ms(), 1000),
		.silence_ms = SILENCE_MS,
	};
	l->ssh = ssh_open(l->loop, &setup, on_up, on_lost, l);
}

struct lane *lane_open(struct loop *loop, struct http *http, const struct lane_setup *setup,
		       const struct ssh_channel_ops *ops, void *ctx)
{
	struct lane *l = xcalloc(1, sizeof(*l));

	l->loop = loop;
	l->ops = ops;
	l->ctx = ctx;
	l->user = xstrdup(setup->user);
	l->host_key = xstrdup(setup->host_key);
	l->private_key = xstrdup(setup->private_key);
	l->command = xstrdup(setup->command);
	l->deadline_at = clock_boot_ms() + OPEN_LIMIT_MS;
	l->connecting = http_connect(http, setup->host, setup->port, OPEN_LIMIT_MS, on_tcp, l);
	return l;
}

struct ssh_channel *lane_channel(struct lane *l)
{
	return l->channel;
}

static void free_later(void *ctx)
{
	struct lane *l = ctx;

	free(l->user);
	free(l->host_key);
	explicit_bzero(l->private_key, strlen(l->private_key));
	free(l->private_key);
	free(l->command);
	free(l);
}

/* Callbacks may call this: the struct lives until the next turn. */
void lane_close(struct lane *l)
{
	if (!l)
		return;
	l->over = true;
	http_connect_cancel(l->connecting);
	ssh_close(l->ssh);
	l->ssh = NULL;
	l->channel = NULL;
	loop_timer(l->loop, 0, free_later, l);
}
