/* carriers.c - the further sessions that carry one upload beside the session of its link. */
#include "carriers.h"

#include <string.h>

#include "base/str.h"

/* The agent writes a line when it has joined. */
static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct carrier *k = ctx;

	if (stream || k->joined || !memchr(bytes, '\n', len))
		return;
	k->joined = true;
	k->of->ops->writable(k->of->ctx);
}

static void on_writable(void *ctx)
{
	struct carrier *k = ctx;

	if (k->joined)
		k->of->ops->writable(k->of->ctx);
}

static void on_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct carrier *k = ctx;
	bool joined = k->joined;

	k->joined = false;
	if (joined)
		k->of->ops->closed(k->of->ctx, !err && !signal && !exit_code);
}

static const struct ssh_channel_ops lane_ops = {
	.data = on_data, .writable = on_writable, .closed = on_closed};

void carriers_open(struct carriers *c, struct link *link, const char *tree_id, int64_t wanted,
		   const struct carriers_ops *ops, void *ctx)
{
	CLEANUP(str_free) struct str command = STR_INIT;

	c->ops = ops;
	c->ctx = ctx;
	c->count = (int)MIN(MIN(wanted, (int64_t)CARRIERS_MAX), (int64_t)*c->left);
	*c->left -= c->count;
	str_addf(&command, "exec \"$BURST_HOME/burst-agent\" lane %s", tree_id);
	for (int i = 0; i < c->count; i++) {
		struct carrier *k = &c->all[i];
		*k = (struct carrier){.of = c};
		k->lane = link_lane(link, str_text(&command), &lane_ops, k);
	}
}

void carriers_close(struct carriers *c)
{
	for (int i = 0; i < c->count; i++)
		lane_close(c->all[i].lane);
	*c->left += c->count;
	c->count = 0;
}

static struct ssh_channel *channel_of(const struct carrier *k)
{
	return k->joined ? lane_channel(k->lane) : NULL;
}

struct ssh_channel *carriers_emptiest(const struct carriers *c, struct ssh_channel *first)
{
	struct ssh_channel *best = first;

	for (int i = 0; i < c->count; i++) {
		struct ssh_channel *channel = channel_of(&c->all[i]);
		if (channel && ssh_queued(channel) < ssh_queued(best))
			best = channel;
	}
	return best;
}

int64_t carriers_queued(const struct carriers *c)
{
	int64_t queued = 0;

	for (int i = 0; i < c->count; i++) {
		struct ssh_channel *channel = channel_of(&c->all[i]);
		queued += channel ? (int64_t)ssh_queued(channel) : 0;
	}
	return queued;
}
