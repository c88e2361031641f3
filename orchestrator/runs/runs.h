/* runs.h - the library under the commands: runs, their pods and what they cost.
 *
 * No function here prints, reads argv or exits. What a user is to hear goes to struct watch; what
 * depends on the config comes as values; accounts of providers are opened by a callback. All runs
 * on the calling thread, and what asks a provider waits for its answer.
 *
 * Beside it: bill.h and reconcile.h (vendors' bills), spend.h and allow.h (dollars of a day, and
 * caps on them), measured.h (what runs showed of speed and price), volume_gc.h (old folders of
 * volumes), deliver_folder.h (what a delivery is given).
 */
#ifndef BURST_RUNS_H
#define BURST_RUNS_H

#include "base/log.h"
#include "core/reap.h"
#include "engine/engine.h"
#include "store/store.h"

/* ---- open: one state folder, and who reaches the accounts of its runs ---- */

/* What happens on the way. Callbacks may be NULL. */
struct watch {
	void (*note)(void *ctx, enum log_level level, const char *text); /* one line */
	/* Of these pods, those that are not over may still bill. */
	void (*unreleased)(void *ctx, const struct pod_row *pods, size_t count);
	/* A run of a dead client was settled: its row, read anew, and its status before. */
	void (*settled)(void *ctx, const struct run_row *now, enum run_status was);
	void *ctx;
};

/* Filled by the caller, who keeps all of it alive. */
struct runs {
	const char *state_dir; /* absolute */
	struct store *store;
	bool no_ledger;            /* the store stands in for one that cannot be opened */
	const struct pod_kit *kit; /* what each pod gets */
	bool verbose;
	struct watch watch;
	/* Opens the user's account at a provider: ops and handle of *out, which the library closes
	 * with ops->close(). Any error but ERR_NO_ACCOUNT means that there is an account, even if
	 * its key is not available now. */
	int (*open_account)(void *ctx, const char *provider, struct engine_provider *out,
			    struct err *err);
	void *ctx;
};

/* ---- a run: one life of it, in this process ---- */

/* From run_init() to run_free() it does not move. */
struct run {
	const struct runs *runs;
	struct run_row row;        /* as it stands in the ledger */
	struct engine_setup setup; /* setup.run is &row; its providers and its job are the run's */
	char machine[20];
	char *dir, *output_dir;          /* dir: its state folder, once it is taken */
	int lock, job_lock, output_lock; /* -1: not held */
	bool output_lent;                /* the lock is another run's: run_lend_output() */
	bool had_work;                   /* something was left to render when it went on */
	/* of an earlier life: its pods, and where it rented */
	struct pod_row *adopted;
	struct {
		char provider[PROVIDER_NAME_MAX];
		int64_t last_end_s; /* epoch: the latest hard end of its pods there */
	} rented_at[CORE_PROVIDERS_MAX];
	int rented_at_count;
	int out_of_reach; /* pods to release whose account cannot be opened */
	/* once it has ended */
	struct err err;
	bool finished_well;      /* the job's finish() was called, and had nothing to complain of */
	struct pod_row *unsaved; /* pods as they are, where the ledger could not be written */
	size_t unsaved_count;
};

/* Without rs->store only to look at a job. */
void run_init(struct run *run, const struct runs *rs);
void run_free(struct run *run);
/* Opens an account of the user's, unless the run has it open already. */
int run_open_account(struct run *run, const char *provider, struct err *err);
/* Makes and locks the folder of run->row. who: RUN_CLIENT, or what else holds it; `cancel` stops
 * clients. ERR_BUSY: it is held. */
int run_take(struct run *run, const char *who, struct err *err);
/* The run's pods as the ledger has them, and as they are where it could not be written; the caller
 * frees them. */
struct pod_row *run_pods(const struct run *run, size_t *count);

/* ---- checks: what would stop a run, before anything is rented ---- */

/* Raises the limit of descriptors; ERR_CONFIG where so many pods are more than fit into it. */
int run_check_width(struct run *run, int64_t pods, struct err *err);
/* ERR_BALANCE: none of its accounts can pay the cap. One that does not say counts as able. */
int run_check_balance(const struct run *run, int64_t cap_microusd, struct err *err);
/* ERR_CREDENTIALS: its only provider refuses the keys for files of the volume (NULL: none). */
int run_check_files(const struct run *run, const char *volume, struct err *err);
/* ERR_BUSY while pods of a detached run of this very job may still work on it, though its client is
 * gone. */
int runs_check_detached(const struct runs *rs, const char *config, const char *job,
			struct err *err);
/* Whether run->output_dir could be written, or made, without making it. */
int run_check_output(const struct run *run, struct err *err);

/* ---- locks: one client for a job, one for an output folder; ERR_BUSY: another has it ---- */

int run_lock_job(struct run *run, const char *config, const char *job, struct err *err);
/* Makes run->output_dir and holds it until run_free(). */
int run_lock_output(struct run *run, struct err *err);
/* A second run of this process, which writes there before run_free(of): it uses the lock of the
 * first one, and with it the very folder that is held, whatever stands at that path by now. */
void run_lend_output(struct run *to, const struct run *of);
bool run_output_is_locked(const char *dir);

/* ---- begin, go: a new run, until its last pod is gone ---- */

/* What a command wants of a run beyond run->setup. */
struct run_want {
	/* to begin with; the job's name, its config's path or "", its commit or "" */
	const char *id; /* "": a new one */
	const char *job, *config, *commit;
	bool anew; /* to resume: nothing of before the run counts as rendered */
	/* Keeps beside the run, whose folder is locked, what a later client needs. */
	int (*keep)(void *ctx, struct run *run, struct err *err);
	/* Puts the run's row, with what it may cost under the caps over runs. */
	int (*reserve)(void *ctx, struct run *run, struct err *err);
	void *ctx;
};

/* Puts a new run in the ledger, with its folder and its lock. run->setup has the job and its conf.
 * Signals are held from here on. */
int run_begin(struct run *run, const struct run_want *want, struct err *err);
size_t run_open_segments(const struct run *run); /* not done yet */

/* The callbacks of struct engine_setup; ended gets the engine once more before it is freed. All may
 * be NULL. */
struct run_watch {
	void (*progress)(void *ctx, const struct engine *e);
	void (*output)(void *ctx, const char *pod, const char *line);
	void (*ended)(void *ctx, const struct engine *e);
	void *ctx; /* also of run->setup.keep */
};
/* Runs the engine. Returns the exit status; run->err and run->row say the rest. */
int run_go(struct run *run, const struct run_watch *watch);
/* Of a run with more to come behind its last file: writes its end by the exit status of that. */
void run_write_end(struct run *run, int status, const struct err *err);

/* ---- resume, adopt, settle: what an earlier client has left ---- */

/* How long a provider is asked for its own time; a minute of it is for the account's limits. */
enum { OVERDUE_ASK_MS = 90 * 1000 };

/* Goes on with an old run: locks it, checks that the job is still the one its pods work on, adopts
 * its pods and what is done already. run->setup has the job and its conf. Signals are held from
 * here on. */
int run_resume(struct run *run, const struct run_row *row, const struct run_want *want,
	       struct err *err);
/* The pods alone of run->row, which is taken, with their accounts, and what they have cost. A pod
 * that is past its hard end and whose provider cannot be asked counts as gone. */
int run_adopt(struct run *run, struct err *err);
/* Closes in the ledger a pod whose provider cannot be asked, at what it can have cost by its hard
 * end. */
int run_write_off(const struct runs *rs, struct pod_row *pod, struct err *err);

/* Settles all runs whose client died: releases their pods, proves them gone, closes their rows. -1
 * with ERR_UNRELEASED if a pod could not be confirmed gone. except: a run to leave alone (about to
 * be resumed); NULL. */
int runs_settle(const struct runs *rs, const char *except, struct err *err);
/* By its result: three signals came, so that whatever follows would only ask for as much again. */
bool runs_wants_out(int result, const struct err *err);
/* One run, whose client is dead, if it has not been settled and none of its pods is open any more.
 */
int run_settle(const struct runs *rs, const char *id, struct err *err);
/* Releases the pods of one run (its client must be dead) and marks it `status`. */
int run_release(const struct runs *rs, const struct run_row *run, enum run_status status,
		struct err *err);

/* ---- pool: pods that pass from run to run (engine/kept.h) ---- */

/* For struct engine_setup.take: moves a pod that another run offers, and that fits want, to this
 * run, with its keys. False: there is none. */
bool run_take_kept(struct run *run, const json_t *want, struct pod_row *pod);
/* How many pods on offer would fit this run now. run->setup and run->row.planned_ms say what it
 * wants. */
int run_kept_pods(const struct run *run);
/* For struct engine_setup.wanted: a living run waits for a pod like this one. */
bool runs_want_pod(const struct runs *rs, const struct pod_row *pod);
/* Is the client that keeps the pods which the run `from` offers, in a run of its own, until other
 * runs have taken them, their time is over, or told_to_end() says so. Then it releases what is
 * left. */
int run_keep(struct run *run, const char *from, bool (*told_to_end)(void), struct err *err);

/* ---- queries: runs as the ledger and their locks show them ---- */

/* The folder of a run's lock, keys, flags and log (name NULL), or one of those; the caller frees
 * it. */
char *run_path(const struct runs *rs, const char *run, const char *name);
/* The id of this machine in markers: 16 hex digits, drawn once for each ledger. */
void runs_machine(const struct runs *rs, char machine[20]);
/* An id that no run of the ledger has: "k7x2fd". */
int run_new_id(const struct runs *rs, char id[24], struct err *err);
/* A process holds the run's lock: a client, whose note there begins with RUN_CLIENT and its number;
 * or, for a while, a command that settles it or removes its files. */
#define RUN_CLIENT "process"
bool run_is_alive(const struct runs *rs, const char *run);
/* As above, and that process is a client. */
bool run_has_client(const struct runs *rs, const char *run);
/* What a job is known by, from its config's path and its name: hex digits. */
enum { RUN_JOB_KEY = 32 };
void run_job_key(const char *config, const char *job, char key[RUN_JOB_KEY]);
/* What a pod's row tells now. Without a client the ledger learns nothing more of a pod. */
enum pod_now {
	POD_NOW_AS_ROW,    /* its row is up to date, or nothing else is known */
	POD_NOW_UNWATCHED, /* it was live when its client left, and may have ended itself since */
	POD_NOW_OVER       /* it is past its hard end, and so has ended itself */
};
struct run_pod_now {
	enum pod_now is;
	enum pod_row_state row; /* as the ledger has it */
	int64_t at_ms;          /* wall time until which its age and cost are counted */
};
struct run_pod_now run_pod_now(const struct runs *rs, const struct pod_row *pod, int64_t now);
/* "unwatched", "over", or the word of the row's state. */
const char *run_pod_now_word(struct run_pod_now now);
/* How many of its pods may still bill. */
int run_open_pods(const struct runs *rs, const char *run, size_t *count, struct err *err);
/* The ids of a provider's pods that may bill, of all runs of the ledger: NULL-terminated; free with
 * core_ids_free(). NULL: the ledger cannot be read. */
char **run_pod_ids(const struct runs *rs, const char *provider);
/* The billed, the computed and the wasted time of a run, and its cost, are those of its pods. */
int run_sum(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err);
/* The row of a run has its sums only once it has ended: until then, and while one of its pods may
 * bill, they are what its pods and segments say now. */
int run_so_far(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err);
/* Writes into the row that the run has ended so, and with which exit status. */
void run_end(struct run_row *run, enum run_status status);
/* What an unreleased run is when its pods are gone: RUN_DONE or RUN_PARTIAL. */
enum run_status run_ended_as(const struct runs *rs, const struct run_row *run);

/* ---- sweep: pods that no client looks after are released and proven gone ---- */

enum swept_as { SWEPT_GONE, SWEPT_SKIPPED, SWEPT_UNRELEASED };

struct swept {
	enum swept_as as;
	const char *provider;
	const struct pod_view *view; /* as its list showed it */
	enum reap_what why;          /* SWEPT_GONE, SWEPT_UNRELEASED: why it was released */
	bool has_client;             /* SWEPT_SKIPPED: the client of its run runs here */
	const char *trouble;         /* SWEPT_UNRELEASED: what went wrong */
};

struct sweep_want {
	const char *const *providers; /* NULL-terminated: the accounts to look at */
	bool accounts_named;          /* the user named them: one that is missing is an error */
	const char *pod;              /* id or attempt of the pod that the user named; NULL: none */
	bool force;                   /* the named pod is released, whichever client rented it */
	void (*told)(void *ctx, const struct swept *pod); /* what becomes of each pod */
	void *ctx;
};

struct sweep_end {
	int gone, skipped, unreleased;
	bool unlisted; /* a provider refuses its list: only what the ledger knows was looked up */
	bool named, named_skipped; /* the named pod was there; and was left alone */
	char (*runs)[24];          /* whose rows say now that a pod of theirs is gone */
	size_t run_count;
	char (*accounts)[PROVIDER_NAME_MAX]; /* that were looked at */
	size_t account_count;
	struct err failure; /* of the last pod that is not released; its kind is ERR_UNRELEASED */
};

/* Lists every account and decides with core/reap.h what becomes of each pod; a core with conf.reap
 * then releases what is to go, all at once, and proves it gone (design part 8). What was ended is
 * written into the ledger's row, unless a living client of its run does that. -1: an account could
 * not be looked at; the others were, and *end says what was found there. Of several such errors the
 * one that may cost money is returned, the others are noted. Free with sweep_end_free(). */
int runs_sweep(const struct runs *rs, const struct sweep_want *want, struct sweep_end *end,
	       struct err *err);
void sweep_end_free(struct sweep_end *end);
/* Keeps in *worst what may bill, else the error that came first; the other one is noted. */
void runs_note_worse(const struct runs *rs, struct err *worst, const struct err *why);

/* ---- gather: what the pods of an ended run left on their volumes ---- */

struct gather_end {
	size_t fetched, failed; /* files; failed: finished on a pod, and not fetched */
	struct str notes;       /* of the job's finish(), a line each */
};

/* Fetches finished files of run->row into its output folder, which is locked; its job has been
 * read. Rents and renders nothing. What a pod's event log says is checked as in a run
 * (engine/reported.h), and its files go home by the same steps (engine/place.h). A file that
 * cannot be fetched is noted and counted. ERR_USAGE: it is a command. Free end->notes. */
int run_gather(struct run *run, struct gather_end *end, struct err *err);

/* ---- deliveries: runs of their own, which know whose outputs they deliver ---- */

#define DELIVER_JOB_ENDING "-deliver" /* of its job's name */
/* The key of its job (run_job_key()) in the path of a run's config, if burst wrote that for a
 * delivery: STATE/jobs/KEY.cfg; to be freed. NULL: the run is no delivery. A project's file cannot
 * have such a path, and the path makes nothing trusted. */
char *delivery_key(const struct runs *rs, const char *config);
/* The path that has this key; to be freed. */
char *delivery_config(const struct runs *rs, const char *key);
bool delivery_is(const struct runs *rs, const char *config);
/* The newest delivery with this key. 1: there is one; 0: none; -1 with *err. */
int delivery_newest(const struct runs *rs, const char *key, struct run_row *out, struct err *err);
/* The newest delivery of what this run has rendered, over or not. Likewise. */
int delivery_of(const struct runs *rs, const struct run_row *run, struct run_row *out,
		struct err *err);
/* Records that the delivery with this key begins now, for this run ("": for none), with these
 * outputs. */
int delivery_begins(const struct runs *rs, const char *key, const char *parent, const char *state,
		    struct err *err);
/* The last delivery that went well was of these very outputs. */
bool delivery_went_well(const struct runs *rs, const char *key, const char *state);
/* The run is a delivery of what the job in this file has rendered. */
bool delivery_is_of(const struct runs *rs, const struct run_row *run, const char *config);
/* The run whose outputs this one delivers; false: it is no delivery, or one that no run in the
 * ledger began. */
bool delivery_render(const struct runs *rs, const struct run_row *run, struct run_row *out);
/* What a run and all deliveries of what it rendered took together. */
struct delivery_total {
	size_t deliveries;
	char newest[24]; /* of them; "": none */
	int64_t billed_ms, compute_ms, cost_microusd;
};
int delivery_total(const struct runs *rs, const struct run_row *run, int64_t now_ms,
		   struct delivery_total *out, struct err *err);

/* ---- names: the row that an id, or any part of one, means ----
 *
 * A whole id goes before the beginning of one, and that before any other part. What several ids
 * have is ERR_USAGE, and the message lists them; so is what none has. */

/* Where no run has it: the run of a pod, or of a request, that has it. */
int named_run(struct store *s, const char *text, struct run_row *out, struct err *err);
/* By its vendor's id, its name or its attempt; pods that may bill go before others. Where no pod
 * has it: the only such pod of a run. */
int named_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
/* The same of pods alone. 1: *out is set, 0: this ledger has none, -1: *err is set. */
int name_find_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
int named_request(struct store *s, const char *text, struct request_row *out, struct err *err);
/* A new id that no row has, as people type it: LEN letters and digits that are not taken for one
 * another. */
enum { NAME_LEN = 6 };
void name_draw(char id[NAME_LEN + 1]);

#endif
