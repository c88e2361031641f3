/* impl.h - the inside of an engine, shared by the files of engine/. */
#ifndef BURST_ENGINE_IMPL_H
#define BURST_ENGINE_IMPL_H

#include "net/http.h"
#include "net/loop.h"
#include "net/pool.h"
#include "sync/tree.h"
#include "caller.h"
#include "engine.h"
#include "files.h"
#include "ledger.h"
#include "link.h"
#include "run.h"
#include "vendor.h"

/* The context of callbacks about a pod: unlike epod it stays where it is. */
struct at {
	struct engine *e;
	int pod;
};

/* What the engine has of a pod beside the core's core_pod. The file that is named here alone writes
 * the part; others read it. `make lint` checks that. */
struct epod {
	struct at *at;          /* prepare.c: context of its callbacks */
	struct origin origin;   /* prepare.c: what it was made with */
	struct ssh_keys keys;   /* ssh_keys.c: of its connection */
	struct podlink conn;    /* podlink.c: the connection to its agent */
	struct quiet quiet;     /* podlink.c: since when it has been silent */
	struct preparing prep;  /* prepare.c: how it gets what its workers need */
	struct bringing bring;  /* bring.c: the snapshot that its command continues from */
	struct pod_env env;     /* image.c: the environment of its job */
	struct workers workers; /* prepare.c: what its workers report */
	struct reports reports; /* pod_events.c: what its agent has reported */
	struct gpu_use use;     /* learn.c: how busy its GPUs are */
	int64_t named_bytes;    /* outfiles.c: of the names and paths of its outputs in memory */
	size_t files_open;    /* outfiles.c: reported outputs of commands that are still to come */
	bool little_left;     /* engine.c: the core knows that the few missing bytes come sooner
			       * than a sync */
	struct pooled pooled; /* journal.c: whether another run may have it */
	struct saving saving; /* journal.c: whether the ledger has its row */
	struct pod_log *log;  /* vendor.c; NULL: never read */
	bool logs_requested;  /* vendor.c: before its release */
	struct billing billing; /* vendor.c: what its provider billed */
	char detail[64];        /* post.c: for its line on the display */
};

/* What one client does with its run. Only engine.c writes it. */
struct client {
	char life[8];           /* distinguishes its batch ids from an earlier client's */
	struct actions actions; /* of the event that was last fed to the core */
	struct timer *wake;     /* when the core wants a tick; NULL: never */
	int64_t started_ms;
	bool over; /* the core has said ACT_END: it gets no more events */
	/* when to show progress, note work in the ledger, look for silent pods and for pods that
	 * other runs took */
	int64_t show_at, note_at, silence_at, taken_at;
};

struct engine {
	const struct engine_setup *setup;
	struct core *core;
	struct loop *loop;
	struct http *http;
	struct caller *caller;
	struct pool *pool;
	struct client client;
	struct fetch_share fetch_share; /* engine.c; fetch.c counts it */

	struct work work;         /* names.c: segments, and what they need */
	struct outfiles outfiles; /* outfiles.c: what pods made of them */
	struct epod *pods;        /* prepare.c; by number, as in the core */
	int pod_count;
	size_t pod_cap;
	struct volume volumes[CORE_PROVIDERS_MAX]; /* volume.c; by provider, id empty: none */
	struct stage *stages[CORE_PROVIDERS_MAX];  /* volume.c; by provider, NULL: none yet */
	struct trees trees;                        /* upsync.c: what is synced to the pods */
	bool sought; /* keep.c: pods of other runs were looked for once */

	/* Each belongs to the file with its name, which alone sees inside. */
	struct batches *batches;
	struct checkpoints *checkpoints; /* NULL: the job is no command */
	void *claims;
	struct ending *ending;
	struct journal *journal;
	struct pod_images *pod_images;
	struct pod_logs *pod_logs;
	struct posts *posts;
	struct request *requests;
	struct vendors *vendors;
	struct volume_files *volume_files;
};

#endif
