/* link.h - the connections to pods: their keys, sessions and uploads. */
#ifndef BURST_ENGINE_LINK_H
#define BURST_ENGINE_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crypto.h"
#include "base/err.h"
#include "core/core.h"
#include "job.h"
#include "net/http.h"
#include "net/pool.h"
#include "net/ssh.h"
#include "sync/tree.h"

struct engine;

/* ---- ssh keys ----
 * The two SSH keys of each attempt. */

/* After keys_load() without the client's public line and the host's private key. Only ssh_keys.c
 * writes it. */
struct ssh_keys {
	struct ssh_key client, host; /* host.private_pem only until the create */
	char *host_public;
	bool dropped; /* the files are removed */
};

/* Makes the keys of a pod that is about to be rented, and writes them to the run's folder.
 * ERR_LOCAL. */
int keys_make(struct engine *e, int pod, struct err *err);
/* Reads the keys of a pod that an earlier client rented, unless they are here. ERR_LOCAL. */
int keys_load(struct engine *e, int pod, struct err *err);
/* Removes the keys of a pod that is gone, from memory and disk. */
void keys_drop(struct engine *e, int pod);
/* The pod's own private key is needed for the create alone: wipes it. */
void keys_forget_host(struct engine *e, int pod);
void keys_free(struct ssh_keys *k);

/* ---- link ----
 * One connection to one pod's agent: TCP or a child process that carries it, SSH with the host key
 * that we made, the upload of the agent, then JSON lines both ways (jobs/agent/CONTROL.md). After a
 * loss the owner closes the link and opens a new one; the agent continues from its event log. */

struct link;

struct link_setup {
	const char *host; /* its sshd listens there */
	int port;
	const struct call *dial; /* this child's stdin and stdout lead to it; NULL: TCP */
	const char *user;
	const char *host_key;    /* public line */
	const char *private_key; /* of the client */
	const struct pod_kit *kit;
	int64_t from_event; /* the agent sends the events after this one */
	const char *run;    /* an agent of another run is handed to this one */
	int64_t limit_ms;   /* from now until the agent's hello */
};

struct link_ops {
	/* The agent is in place: what link_send() gets now goes out together with the attach. May
	 * be NULL. */
	void (*placed)(void *ctx);
	/* The agent answers; *reached_ms: boot clock when TCP was accepted, or
	 * through a child when the login was. hello is borrowed. */
	void (*up)(void *ctx, const json_t *hello, int64_t reached_ms);
	/* Called for every later line, which is borrowed. May be NULL. */
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
void link_close(struct link *link);      /* no callback afterwards; accepts NULL */

/* ---- meter ----
 * Measures the rate of an upload's line while it sends. */

enum {
	METER_WINDOW = 2 << 20, /* bytes that sshd lets one channel send in a round trip */
};

struct meter {
	bool begun;
	int64_t at_ms, from; /* begin of this measurement, and the bytes gone until then */
	bool starved;        /* the line had to wait for us during it */
	/* The first window goes out at once. It tells only whether the line is slow. */
	bool first_window;
	int64_t rate; /* bytes a second, as last measured; -1: not yet */
};

enum measured { MEASURED_NOTHING, MEASURED_FIRST_WINDOW, MEASURED_RATE };

void meter_start(struct meter *m);
/* gone of the sent bytes have left this machine by now_ms (CLOCK_BOOTTIME). Says whether m->rate is
 * new. round_trip_ms: of the connection; 0: unknown. */
enum measured meter_add(struct meter *m, int64_t now_ms, int64_t gone, int64_t sent,
			int64_t round_trip_ms);

/* ---- trees ----
 * What is synced to the pods. */

/* The trees live as long as the engine. NULL: the job has no such tree, or it is not scanned yet.
 * Only upsync.c writes it. */
struct trees {
	struct tree *kit, *code;
	struct tree *code_before; /* as the last run of this project scanned it */
	bool scanning;
	struct err failure; /* why a tree could not be made; kind 0: nothing failed */
	char *cache_path;   /* of the last scan */
};

/* Makes the tree of the job's own files, and begins to scan the code folder. ready(e) follows in
 * the loop when that is done, well or not; without code it does not. Once for an engine. */
void trees_make(struct engine *e, void (*ready)(struct engine *e));
void trees_free(struct trees *t);

/* ---- upsync ----
 * Uploads a tree to a pod's volume under its id: one exec, one tar stream; nothing is sent that
 * is there already. The stream is cut into frames. The rate of the first frames decides whether
 * further channels carry later ones, which the agent puts in order (jobs/agent/CONTROL.md, `tree
 * --lanes`), and whether frames are packed: if they shrink, on a line that the processor cannot
 * fill. */

struct upsync;

struct upsync_want {
	const char *dir;         /* "code", "kit" */
	const struct tree *tree; /* borrowed until done() */
	/* the folder it was scanned from; NULL: every entry has its data */
	const char *root;
	const struct tree *base; /* what the volume has, by the ledger; NULL: nothing */
	bool zstd; /* the pod can unpack it; whether to pack is decided during the upload */
	/* The stream is on the volume already, as staged/TREE-ID.0 and so on; missing parts are
	 * sent. 0: it is not. */
	int staged_parts;
	char staged_sha256[SHA256_HEX];
	int64_t silent_ms; /* without a byte that the pod took, or a line of it, for longer than
			      this the upload is stuck. After the last byte the pod unpacks and
			      syncs, and gets the time that this may take */
	/* In the loop, exactly once: sent is the bytes that went over the line (0: it was there).
	 */
	void (*done)(void *ctx, int64_t sent, const struct err *err);
	void *ctx;
};

/* The link stays the caller's and outlives the transfer. */
struct upsync *upsync_start(struct loop *loop, struct link *link, struct pool *pool,
			    const struct upsync_want *want);
void upsync_cancel(struct upsync *u); /* no done() afterwards; accepts NULL */

/* ---- quiet ----
 * Decides when a connected pod is stuck: it has been silent for too long, or only pretends to
 * work. The caller counts in ticks of a second, so that a pod is not blamed for the time in which
 * this machine slept or was busy. */

enum quiet_task {
	QUIET_NONE,  /* it has no task with a known time */
	QUIET_SETUP, /* its agent ends them after a time that we gave */
	QUIET_INSTALL,
	QUIET_START, /* its agent restarts a worker that is silent for 300 s before its hello */
	QUIET_BATCH, /* its agent restarts a worker that is silent for the time of a hang */
};

/* Of one pod. The seconds begin anew with each hello. Only podlink.c writes it. */
struct quiet {
	bool answer_due; /* a renewal of its lease was sent, which the agent answers at once */
	int unanswered_s;
	int unheard_s;   /* without a report of its work, its workers' lines included */
	int fruitless_s; /* without an event that advanced the work */
	enum quiet_task task;
	int task_s;
	int64_t est_ms; /* of the longest batch that it was sent */
};

struct quiet_now {
	enum quiet_task task;
	int64_t hang_ms; /* of the job */
	int64_t lease_ms;
	bool loading; /* a worker of it is about to be started, or started again */
};

enum { QUIET_SETUP_S = 1800, QUIET_INSTALL_S = 900 }; /* limits that the agent gets */

/* It was sent a line that its agent answers at once. */
void quiet_asked(struct quiet *q);
/* An event of its agent. fruitful: it reports new work. */
void quiet_event(struct quiet *q, const char *what, bool fruitful);
/* A batch was sent; alone: it has no other one. */
void quiet_sent(struct quiet *q, int64_t est_ms, bool alone);
/* Call it once a second. False: the pod is stuck, and `why` gets the reason. */
bool quiet_tick(struct quiet *q, const struct quiet_now *now, char *why, size_t room);

/* ---- podlink ----
 * Makes, watches and ends the connection to one agent. */

struct fetcher;

/* The connection to one pod's agent. A lost one leads back to PODLINK_NONE; the core decides
 * whether another is made. Only podlink.c writes it. */
struct podlink {
	enum podlink_state {
		PODLINK_NONE,
		PODLINK_CONNECTING,  /* there is a link; no hello yet */
		PODLINK_CATCHING_UP, /* hello came; events of the time without a client come first
				      */
		PODLINK_UP           /* the core knows */
	} state;
	struct link *link; /* NULL: PODLINK_NONE */
	/* of a pod whose release has no answer yet: orders its agent to end it */
	struct link *spare;
	struct fetcher *fetcher; /* from the hello on */
	/* of the hello, while catching up */
	struct event greeting; /* EV_CONNECTED */
	int64_t caught_up_at;  /* the number of the last event before the hello */
	int64_t running_t;
	json_t *running;   /* ids of the segments that its workers hold */
	bool zstd;         /* the pod can unpack it */
	bool clock_logged; /* how far its clock is off, once */
};

/* Closes the connection that there is and makes another one. EV_CONNECTED or EV_CONNECT_FAILED
 * follows; neither, if another run has taken the pod (ledger.h). */
void podlink_connect(struct engine *e, int pod);
/* Ends the connection. If the core waits for the answer to the pod's release, it is kept as `spare`
 * instead; if the pod is gone, its keys are removed. */
void podlink_close(struct engine *e, int pod);
/* For a pod whose provider refuses its release. Tells its agent to end the pod, over the present
 * connection or else (unless standing_only) a new one. */
void podlink_finish(struct engine *e, int pod, bool standing_only);
/* Once a second, while the job has work: ends the connection of pods that fell silent. */
void podlink_watch(struct engine *e);
/* By how many ms the pod's clock differs from ours at wall_ms, negative: behind; from its hello, 0
 * if that does not report it. */
int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms);

#endif
