/* lane.h - one more SSH session to a pod, for one command: where a line is long, one connection
 * carries no more than its window each round trip, and several carry several. */
#ifndef BURST_ENGINE_LANE_H
#define BURST_ENGINE_LANE_H

#include "net/http.h"
#include "net/ssh.h"

struct lane;

struct lane_setup {
	const char *host, *user;
	int port;
	const char *host_key, *private_key; /* as struct link_setup has them */
	const char *command;
};

/* Strings are copied; ops is kept by reference. Its callbacks are those of a channel: closed() is
 * the last one, whatever was in the way (ERR_NETWORK, ERR_UNTRUSTED, ERR_REFUSED). Never calls back
 * before it has returned. */
struct lane *lane_open(struct loop *loop, struct http *http, const struct lane_setup *setup,
		       const struct ssh_channel_ops *ops, void *ctx);
/* NULL before the session stands and after closed(). */
struct ssh_channel *lane_channel(struct lane *lane);
/* No callback afterwards. Wanted after closed() too; may be called from inside callbacks. NULL is
 * fine. */
void lane_close(struct lane *lane);

#endif
