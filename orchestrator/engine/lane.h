/* lane.h - one more SSH session to a pod, for one command. On a far line one connection carries at
 * most its window in each round trip; several connections carry several windows. */
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
 * the last one, whatever failed (ERR_NETWORK, ERR_UNTRUSTED, ERR_REFUSED). Never calls back before
 * it has returned. */
struct lane *lane_open(struct loop *loop, struct http *http, const struct lane_setup *setup,
		       const struct ssh_channel_ops *ops, void *ctx);
/* NULL before the session is up and after closed(). */
struct ssh_channel *lane_channel(struct lane *lane);
/* No callback afterwards. Needed also after closed(); callbacks may call it. Accepts NULL. */
void lane_close(struct lane *lane);

#endif
