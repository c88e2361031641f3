/* rented.h - what a vendor has, in words that all vendors share: offers, pods with burst's marker,
 * and volumes. Money in micro-dollars, epochs in seconds. */
#ifndef BURST_RENTED_H
#define BURST_RENTED_H

#include <stdbool.h>
#include <stdint.h>

/* Fixed fields: what comes from a vendor is cut to these sizes (ids longer than their field are
 * refused, never cut). */
enum {
	PROVIDER_NAME_MAX = 24,
	POD_ID_MAX = 80,
	POD_NAME_MAX = 64,
	IMAGE_MAX = 160,
	GPU_MAX = 64,
	REGION_MAX = 32,
	/* Hex digits of an attempt: pod_name_attempt() in core/state.c makes it. The row of a part
	 * of a pod adds "-NN": pooled_part_name() in engine/pooled.c. */
	ATTEMPT_LEN = 16,
	ATTEMPT_MAX = 20
};

/* What a vendor would rent us now. */
struct offer {
	char provider[PROVIDER_NAME_MAX];
	char id[160];      /* the vendor's own words for it; only the provider reads this */
	char gpu[GPU_MAX]; /* as people write it: "RTX 4090", "L40S", "none" */
	int gpus;
	int vram_gb;
	char region[REGION_MAX];
	bool spot;
	int64_t price_microusd_h; /* of the whole pod */
	/* what that pays for beside the GPU: "4 cores, 16 GB"; "" when the vendor does not say */
	char with[40];
	char stock[12]; /* "high", "low", "" when the vendor does not say */
	int wish;       /* which entry of the wanted list it satisfies, 0 first */
	int pods_max;   /* how many pods its vendor has left, over all of its offers; 0: unknown */
};

/* Stands in every pod that burst creates. It tells an orphan from a stranger's pod, and suffices to
 * judge the orphan without a ledger. */
struct marker {
	char machine[20]; /* 16 hex digits of this machine's state folder */
	char run[24];
	char attempt[ATTEMPT_MAX]; /* ATTEMPT_LEN digits, never used twice */
	int64_t hard_end_s;
};
/* Reads the four texts that a vendor keeps with a pod of ours (hard_end_s in decimal). All or
 * nothing: half a marker must not make a stranger's pod ours. False: there is no marker, and *out
 * is unchanged. */
bool marker_read(struct marker *out, const char *machine, const char *run, const char *attempt,
		 const char *hard_end_s);
/* Whichever client made it, the pod has ended itself by now or never will: `burst reap` ends it. */
bool pod_is_overdue(int64_t hard_end_s, int64_t wall_ms);

enum pod_state {
	POD_STATE_UNKNOWN, /* a state that burst does not know: list again, within the deadline */
	/* pulling, starting; or queued, where the vendor does not tell these apart */
	POD_STATE_CREATING,
	POD_STATE_RUNNING, /* its container runs; sshd may not answer yet */
	/* not running but still there, maybe still billing: preempted or stopped */
	POD_STATE_STOPPED,
	POD_STATE_FAILED, /* will never run */
	POD_STATE_GONE,   /* bills no more */
	/* accepted, and no machine is assigned: it costs nothing and may wait for ever. Last:
	   plug-ins know the others by number */
	POD_STATE_QUEUED,
};
const char *pod_state_name(enum pod_state state);

/* Why a pod ended, as far as the vendor reports it. */
enum pod_end {
	POD_END_UNKNOWN, /* it is not over, or the vendor does not say why */
	POD_END_SCRIPT,  /* its start script ended or failed */
	/* it was ended from outside: by us, or, where `preempted` is set, by the vendor */
	POD_END_OUTSIDE,
	POD_END_LIFETIME, /* the vendor's own limit on its life was reached */
	POD_END_IDLE,     /* the vendor's own limit on its idle time was reached */
	POD_END_MEMORY,   /* it used more memory than it has */
	/* its container could not be made: the image or the mounts are at fault, another host would
	   not help */
	POD_END_SETUP,
	POD_END_VENDOR, /* the vendor's own failure */
	/* it ended before the vendor assigned a machine to it, and cost nothing */
	POD_END_QUEUED,
};

/* How burst reaches the sshd of a pod. The ledger stores the number. */
enum pod_reach {
	REACH_NONE, /* not yet */
	REACH_SSH,  /* it listens at host and port */
	REACH_DIAL, /* provider_ops.dial names a child process that connects to it */
};

/* A pod as its vendor lists it. Empty text or 0: not reported. */
struct pod_view {
	char id[POD_ID_MAX];
	char name[POD_NAME_MAX];
	struct marker marker; /* marker.attempt empty: not one of burst's */
	enum pod_state state;
	bool preempted;
	enum pod_end end;
	/* A provider sets REACH_DIAL; provider_check_answer() sets REACH_SSH where there is a port.
	 */
	enum pod_reach reach;
	/* REACH_SSH: where its sshd listens. REACH_DIAL: for provider_ops.dial; may be empty. */
	char host[128];
	int port;
	char user[32]; /* to log in as; "": root */
	char gpu[GPU_MAX];
	char region[REGION_MAX];
	bool spot;
	int64_t price_microusd_h;
	int64_t created_at_s, started_at_s, ended_at_s;
	char detail[200]; /* the vendor's own explanation, for people */
};

struct volume {
	char provider[PROVIDER_NAME_MAX];
	char id[POD_ID_MAX];
	char name[64];
	char region[REGION_MAX]; /* "" : not tied to one */
	int64_t size_gb;
	int64_t used_bytes; /* -1: not known */
	int64_t price_microusd_month;
	bool apart; /* set by the engine: its files can be fetched without a pod */
};

/* One thing in a folder of a volume. */
struct volume_entry {
	/* the name there: foreign text that may be unsafe to print or to request */
	char name[256];
	bool folder;
	/* of a folder: the sum of all below it; -1: expensive to know here, use OP_VOLUME_SIZE */
	int64_t bytes, files;
	/* When something in it last arrived or changed; 0: unknown. It is not a date from an
	 * archive, except if bytes is -1: then it is the newest date of its files, whatever set
	 * that. */
	int64_t changed_s;
};

#endif
