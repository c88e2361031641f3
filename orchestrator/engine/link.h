/* link.h - one connection to one pod's agent: TCP, SSH with the host key that we made, the upload
 * of the agent, then JSON lines both ways (jobs/agent/CONTROL.md). After a loss the owner closes
 * the link and opens a new one; the agent continues from its event log. */
#ifndef BURST_ENGINE_LINK_H
#define BURST_ENGINE_LINK_H

#include <jansson.h>

#include "job.h"
#include "net/http.h"
#include "net/ssh.h"
#include "lane.h"

struct link;

struct link_setup {
	const char *host, *user;
	int port;
	const char *host_key;    /* public line */
	const char *private_key; /* of the client */
	const struct pod_kit *kit;
	int64_t from_event;  /* the agent sends the events after this one */
	const char *run;     /* an agent of another run is handed to this one */
	int64_t deadline_ms; /* from now until the agent's hello */
};

struct link_ops {
	/* The agent is in place: what link_send() gets now goes out together with the attach. May
	 * be NULL. */
	void (*placed)(void *ctx);
	/* The agent answers; *reached_ms: boot clock when TCP was accepted. hello is borrowed. */
	void (*up)(void *ctx, const json_t *hello, int64_t reached_ms);
	/* Called for every later line, which is borrowed. */
	void (*line)(void *ctx, const json_t *event);
	/* The last call, before or after up(): ERR_NETWORK, ERR_UNTRUSTED, ERR_REFUSED, ERR_BUG. */
	void (*down)(void *ctx, const struct err *err);
};

/* Strings are copied; kit and ops are kept by reference. Never calls back before it has returned.
 */
struct link *link_open(struct loop *loop, struct http *http, const struct link_setup *setup,
		       const struct link_ops *ops, void *ctx);
/* Replaces the callbacks and their ctx. */
void link_hand(struct link *link, const struct link_ops *ops, void *ctx);
/* queued; before up() too */
void link_send(struct link *link, const json_t *line);
struct ssh *link_ssh(struct link *link); /* for further channels, after up() */
/* Another session to the same pod, for one command (lane.h). After up(); it may outlive the link.
 */
struct lane *link_lane(struct link *link, const char *command, const struct ssh_channel_ops *ops,
		       void *ctx);
void link_close(struct link *link); /* no callback afterwards; accepts NULL */

#endif
