/* impl.h - the inside of an engine, shared by the files of engine/. */
#ifndef BURST_ENGINE_IMPL_H
#define BURST_ENGINE_IMPL_H

#include "net/http.h"
#include "net/loop.h"
#include "net/pool.h"
#include "sync/receive.h"
#include "sync/tree.h"
#include "caller.h"
#include "engine.h"
#include "fetch.h"
#include "image.h"
#include "link.h"
#include "quiet.h"
#include "upsync.h"

enum {
	LINK_DEADLINE_MS = 60 * 1000,
	RENT_TIMEOUT_MS = 120 * 1000,
	OUTPUT_MAX_BYTES = 256 << 20, /* of one segment's file; commands may have larger ones */
};
/* No volume that is sold holds a larger file of a command. Where the vendor says what its volume
 * holds, that is the bound. */
#define COMMAND_OUTPUT_MAX_BYTES (INT64_C(4) << 40)

enum prepare_step { PREP_NONE, PREP_TREES, PREP_SETUP, PREP_INSTALL, PREP_START, PREP_DONE };

/* One finished file on a pod that is, or will be, on its way home. */
struct outfile {
	char *name, *path, sha256[SHA256_HEX];
	int64_t bytes;
	struct receive *r;          /* home, verified, not renamed yet */
	bool under_way, superseded; /* superseded: what is under way is not what the pod has now */
	unsigned turn;              /* of the fetch that counts */
	int retries;
};

struct seg_state {
	struct outfile *files;   /* one for speech, any number for a command */
	size_t count, cap, home; /* home: so many are here, verified */
	int pod;
	bool reported; /* the pod said it is finished */
	/* one of its files cannot be taken: what else is said of this try does not count */
	bool refused;
	bool announced; /* the core has heard EV_HOME */
	struct check check;
	char batch[24];
	double seconds;
	int rate;
};

struct at { /* context of a link's callbacks */
	struct engine *e;
	int pod;
};

struct gpu_use {              /* samples of its GPUs while its workers rendered */
	int samples, at[101]; /* at[x]: so many were x percent busy */
	int64_t memory_peak_mib;
	/* by a client before us; kept until there are more of ours */
	int earlier_samples, earlier_p50, earlier_p95;
};

/* Where it stands between runs: as in its row. */
struct holding {
	int64_t kept_ms, kept_until_ms;
	char pool[96], handed_from[24], handed_to[24];
	int holds;
	bool offered; /* another run may have it by now */
	bool taken;   /* one has: from here on its row is that of a part */
};

struct epod {          /* beside core_pod */
	struct at *at; /* context of its link's callbacks */
	struct link *link;
	/* of a pod whose release has no answer yet: to tell its agent to end it */
	struct link *spare;
	struct fetcher *fetcher;
	struct upsync *kit_sync, *code_sync;
	struct ssh_key client, host; /* host.private_pem only until the create */
	char *host_public;
	int64_t last_event, bill_asked_ms, logged_bytes;
	int64_t named_bytes;  /* of the names and paths of its outputs that are kept here */
	int64_t empty_events; /* since one that brought the work further */
	/* while its log is read once more: batches up to this event were counted */
	int64_t counted_to;
	struct op_bill bill;   /* of the vendor; its hours are not kept */
	struct event greeting; /* EV_CONNECTED, held back until the events before it are known */
	int64_t caught_up_at;
	int64_t running_t;
	json_t *running; /* of that hello: ids of the segments in its workers' hands */
	struct quiet quiet;
	bool save_failed, helloed, zstd, shared_part, clock_said;
	/* the environment of its job on its volume; "": none yet */
	char env_name[64], env_tree[SHA256_HEX];
	char env_python[32]; /* what made it; "": not known */
	/* its image has the environment of its job; the log has reported what the image has */
	bool env_in_image, image_said;
	bool started_from_image; /* the last start named that one */
	int lacked;              /* how often its volume did not have what it should */
	/* what it was prepared with, how long its setup took, and what it was sent: as in its row
	 */
	char image[96], setup[20];
	int64_t setup_began_ms, setup_ms, synced_bytes;
	int64_t load_ms[LOAD_PHASES], unpack_bytes; /* as its first worker said */
	/* its workers were told to start before hello, and it has not said that it cannot */
	bool early;
	bool gone_over; /* its keys are removed */
	enum prepare_step step;
	bool logs_asked;  /* of its provider, before it was released */
	bool little_left; /* was waited for once, instead of a sync */
	struct str log;   /* what its provider's log said when it was last read */
	int64_t log_read_at;
	int image_percent; /* of its image, by that log; -1: not known */
	/* the hashes of all lines of that log that were the provider's */
	uint32_t *log_lines;
	size_t log_line_count, log_line_cap;
	int workers_ready, workers_failed, rendered;
	char gpu_seen[GPU_MAX];
	char worker_version[40]; /* of the engine, as its workers say */
	struct gpu_use use;
	char account[64]; /* as its row says, where it was taken over; "": ours */
	struct holding hold;
	char detail[64];
	char fault[200];
	/* what it was called when it was last said that the ledger does not know of it */
	char said_unsaved[POD_ID_MAX];
};

struct queued {
	struct event ev;
	struct err err;
	struct offer *offers;
	struct offer_past *past;
	struct pod_view *views;
	struct volume volume;
	struct queued *next;
};

struct engine {
	const struct engine_setup *setup;
	struct core *core;
	struct loop *loop;
	struct http *http;
	struct caller *caller;
	struct asked *asked; /* operations under way (vendor.c) */
	struct pool *pool;
	struct fetch_share fetching;
	unsigned fetch_turns; /* given to fetches; none is given twice */
	int lanes_left;       /* further connections that may be open */
	/* files on volumes that are to be fetched without a pod, in a row: vendor.c */
	struct asked *file_first, **file_last;
	int files_asked;
	struct actions actions;
	struct queued *first, **last;
	struct timer *wake;
	int64_t started_ms;
	bool over;
	bool unwritten;                            /* the ledger, and it was said why */
	int command_code;                          /* exit code of the last command that failed */
	struct volume volumes[CORE_PROVIDERS_MAX]; /* by provider; id empty: none */
	bool list_refused[CORE_PROVIDERS_MAX];     /* it refuses its list, which was told */
	bool remarked[CORE_PROVIDERS_MAX];         /* what it had to say of the offers was told */
	/* the list that is under way and not pressed yet; NULL: none */
	struct asked *looks[CORE_PROVIDERS_MAX];
	/* by provider: what is put into its image, once it was asked for */
	struct image_steps image_steps[CORE_PROVIDERS_MAX];
	/* by provider, as rent_request.known_image; empty: none */
	char images[CORE_PROVIDERS_MAX][IMAGE_MAX];
	/* by provider: the log of a pod that pulls its image is being read for the display; when
	 * the next one may be */
	bool watching_log[CORE_PROVIDERS_MAX];
	int64_t watch_log_at[CORE_PROVIDERS_MAX];
	char doing[200];
	char life[8]; /* tells this client's batch ids from an earlier client's */

	const struct segment *segments;
	size_t segment_count;
	const struct job_needs *needs;
	struct seg_state *segs;
	void *claims;    /* names of commands' outputs (outfiles.c) */
	uint32_t *by_id; /* segment numbers sorted by id */

	struct epod *pods;
	int pod_count;
	size_t pod_cap;

	/* what travels */
	struct tree *kit_tree, *code_tree, *code_base;
	bool tree_scanning, tree_wanted;
	struct stage *stages[CORE_PROVIDERS_MAX]; /* stage.c; by provider, NULL: none yet */
	struct tree_scan_job *scan;
	struct err tree_error;
	char *cache_path;

	/* journal */
	struct segment_row *safe_rows;
	uint32_t *safe_segments;
	size_t safe_count, safe_cap, safe_cap2;

	/* batches.c */
	struct batch_row *batch_rows; /* not written yet */
	size_t batch_count, batch_cap;
	int replans; /* of this life, that the ledger has */
	bool batches_folded;
	unsigned char *begins; /* by batch: how often it was begun */
	size_t begins_count, begins_cap;

	/* the end */
	bool finishing, finished;
	int64_t finishing_at, finished_at; /* boot clock */
	int billing_open;
	struct str notes;
	struct err finish_error;
	FILE *log;
	int64_t progress_at, watch_at, note_at, keep_at;
};

/* post.c */
void post(struct engine *e, const struct event *ev, const struct err *err); /* a copy is queued */
void post_pod(struct engine *e, enum event_type type, int pod, const struct err *err);
void engine_log(struct engine *e, int level, const char *fmt, ...) PRINTF(3, 4);
int64_t segment_by_id(const struct engine *e, const char *id);
/* How pods are called in messages: its id, else its attempt. */
const char *pod_called(const struct engine *e, int pod);

/* trees.c */
void trees_make(struct engine *e);

/* journal.c */
void journal_pod(struct engine *e, int pod);
void journal_run(struct engine *e);
void journal_replans(struct engine *e); /* of this life, that the ledger does not have */
/* Of its offer, for later runs. */
void journal_bad_host(struct engine *e, int pod, const char *why);
void journal_good_host(struct engine *e, int pod);
void journal_safe(struct engine *e, uint32_t segment, bool suspect);
void journal_flush(struct engine *e); /* safe rows reach the disk, then the core hears of them */
void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *out);
void journal_adopt(struct engine *e, int pod, const struct pod_row *row);

/* batches.c: what is learned from a run. What agents say of their times is bounded, and decides
 * nothing but later plans. */
/* By the ledger, for this pod's GPU and its worker's version; all 0: not known. */
struct batch_speed batches_speed(const struct engine *e, int pod);
void batches_begun(struct engine *e, int pod, uint32_t batch);
void batches_done(struct engine *e, int pod, uint32_t batch, int64_t busy_ms);
void batches_usage(struct engine *e, int pod, const json_t *event);
void batches_use_of(const struct gpu_use *u, struct pod_row *row);
void batches_flush(struct engine *e); /* to the ledger */

/* keep.c: pods that other runs may take */
void keep_offer(struct engine *e, int pod, int64_t keep_ms);
/* Another run has it: the core is told. */
bool keep_is_taken(struct engine *e, int pod);
/* Writes its row; true: another run has the pod, and it was not written. */
bool keep_put(struct engine *e, int pod, const struct pod_row *row, struct err *err, int *result);
void keep_watch(struct engine *e); /* in each turn */
/* Drops from a list what bears our mark and was handed on. */
size_t keep_without_handed(struct engine *e, struct pod_view *views, size_t count);
bool keep_waits(const struct engine *e); /* a pod is on offer: the loop turns soon */

/* keys.c */
int keys_make(struct engine *e, int pod, struct err *err);
int keys_load(struct engine *e, int pod, struct err *err);
void keys_drop(struct engine *e, int pod);

/* vendor.c: actions that are operations of a provider */
void vendor_offers(struct engine *e, int provider);
void vendor_volume(struct engine *e, int provider, bool create);
/* prepare.c: what the pod's agent says of its image. */
void prepare_image_seen(struct engine *e, int pod, const json_t *hello);
void vendor_image(struct engine *e, int provider);
/* The core hears of the volume that was found (e->volumes). */
void vendor_volume_ready(struct engine *e, int provider);
void vendor_volume_fills(struct engine *e, int provider); /* that takes long */
void vendor_list(struct engine *e, int provider);
/* lists that were asked for before there was something to end: they wait no longer than it does */
void vendor_press(struct engine *e);
void vendor_rent(struct engine *e, int pod);
void vendor_forget(struct engine *e); /* what was under way when the caller was freed */
void vendor_release(struct engine *e, int pod);
void vendor_log(struct engine *e, int pod);
/* For the display: how far an image is that takes long. One log of each provider at a time. */
void vendor_watch_images(struct engine *e);
void vendor_inspect(struct engine *e, int pod);
/* What the vendor says it billed, for the ledger; counts down e->billing_open when it has answered.
 */
void vendor_billing(struct engine *e, int pod);
void vendor_salvage(struct engine *e, int pod);
void vendor_fetch(struct engine *e, int pod, uint32_t segment);

/* podlink.c: actions that talk with an agent */
void podlink_connect(struct engine *e, int pod);
void podlink_send(struct engine *e, int pod, uint32_t batch);
void podlink_revoke(struct engine *e, int pod);
void podlink_renew(struct engine *e, int pod);
void podlink_handover(struct engine *e, int pod, int turn);
void podlink_takeover(struct engine *e, int pod);
void podlink_sync(struct engine *e, int pod, int turn);
void podlink_close(struct engine *e, int pod);
/* Its agent is told to end it, over the connection that stands or else (unless standing_only) a new
 * one. */
void podlink_finish(struct engine *e, int pod, bool standing_only);
void podlink_watch(struct engine *e); /* in each turn: pods that fell silent are let go */
/* How far the pod's clock is off from ours at wall_ms, negative: behind; by its hello, 0 when that
 * does not say. */
int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms);
/* One event of an agent, live or from the log on the volume. */
void podlink_event(struct engine *e, int pod, const json_t *event);

/* For this pod's line on the display, and to its agent (takes line; lost when there is no link). */
void podlink_detail(struct engine *e, int pod, const char *text);
void podlink_say(struct engine *e, int pod, json_t *line);
/* Text of a pod, made fit to be shown. */
void podlink_shown(char *to, size_t room, const char *from);
/* Which GPU an agent says that it sees, called as offers call it. */
void podlink_gpu_seen(struct epod *p, const char *said);
/* A number of a pod, held between 0 and most. */

/* prepare.c: what a pod needs before it can work. shared: also what its volume keeps for all pods.
 */
void prepare_pod(struct engine *e, int pod, bool shared);
/* The environment of a pod that another run has prepared, as its row says; "": none. */
void prepare_env_of(struct epod *p, const char *env);
/* The code folder has been read. */
void prepare_tree_ready(struct engine *e);
/* The agent is in place and has not said hello yet. */
void prepare_early(struct engine *e, int pod);
void prepare_note(struct engine *e, int pod); /* what a new pod will be prepared with */
/* false: not one of these */
bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event);
/* By the ledger: whether a volume has our code tree; and the tree that it was last given, NULL
 * where it is not known. */
bool prepare_has_tree(const struct engine *e, int provider, const struct volume *volume);
const struct tree *prepare_known_base(const struct engine *e, int provider,
				      const struct volume *volume);

/* stage.c: the code on a volume before there is a pod, where the vendor can take it */
/* This provider's volume is known. vendor_volume_ready() follows: now, or when what takes long is
 * there. */
void stage_volume(struct engine *e, int provider);
void stage_tree_ready(struct engine *e);
/* A pod wants the code now: true when it can be taken from the volume, *want then says how. Else
 * staging is given up. */
bool stage_take(struct engine *e, int provider, struct upsync_want *want);
void stage_stop(struct engine *e, int provider);
void stage_free(struct engine *e);

/* outfiles.c: from finished there to safe here */
void outfiles_fetch(struct engine *e, int pod, uint32_t segment);
/* One that was added just now, while its command still runs. */
void outfiles_stream(struct engine *e, int pod, uint32_t segment, const struct outfile *f);
/* What came, or did not, was asked for before the file was another one: that is asked for now. f:
 * NULL, nothing is known of it. */
void outfiles_stale(struct engine *e, int pod, uint32_t segment, struct outfile *f);
void outfiles_want(struct engine *e, uint32_t segment, size_t file, struct fetch_want *want);
void outfiles_keep(struct engine *e, uint32_t segment, bool suspect);
void outfiles_discard(struct engine *e, uint32_t segment);
void outfiles_reset(struct engine *e, uint32_t segment);
/* An output's name belongs to the first segment that reports it. Another name that is a folder of
 * it, or below it, cannot be a file beside it. owner: who has the name that is in the way. */
enum claim_answer { CLAIM_TAKEN, CLAIM_OF_ANOTHER, CLAIM_IN_THE_WAY };
enum claim_answer outfiles_claim(struct engine *e, uint32_t segment, const char *name,
				 uint32_t *owner);
void outfiles_unclaim(struct engine *e, uint32_t segment, const char *name);
void outfiles_free_claims(struct engine *e);
/* A pod that is not believed any more has no names: those of what is not safe are free. */
void outfiles_disclaim(struct engine *e, int pod);
/* The largest file that this pod can have. */
int64_t outfiles_most_bytes(const struct engine *e, int pod);
/* Of this pod's finished segments, as announced: bytes of files that are not here yet. */
int64_t outfiles_left(const struct engine *e, int pod);
/* is_new: it was not told before; then a file of that name replaces the one that is known. */
struct outfile *outfiles_add(struct engine *e, uint32_t segment, const char *name, const char *path,
			     int64_t bytes, const char *sha256, bool is_new);

#endif
