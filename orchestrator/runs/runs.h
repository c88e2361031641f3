/* runs.h - the library under the commands: runs, their pods and what they cost.
 *
 * No function here prints, reads argv or exits. Messages for the user go to struct watch. What
 * depends on the config comes as values. A callback opens accounts of providers. All functions run
 * on the calling thread and block while a provider answers.
 *
 * Beside it: estimate.h (what the ledger knows for a plan), choice.h (what a run takes from its
 * plan), caps.h (dollars of a day, caps over runs), bill.h (vendors' bills), volume_gc.h (old
 * folders of volumes), stage_folder.h (the folder of a stage).
 */
#ifndef BURST_RUNS_H
#define BURST_RUNS_H

#include "base/err.h"
#include "core/core.h"
#include "engine/engine.h"
#include "store/store.h"

/* ---- open: one state folder, and the accounts of its runs ---- */

/* Events on the way. Callbacks may be NULL. */
struct watch {
	void (*note)(void *ctx, enum log_level level, const char *text); /* one line */
	/* those of these pods that are not over may still bill */
	void (*unreleased)(void *ctx, const struct pod_row *pods, size_t count);
	/* A run of a dead client was settled. now: its row, read again; was: its earlier status. */
	void (*settled)(void *ctx, const struct run_row *now, enum run_status was);
	void *ctx;
};

/* Filled by the caller, who keeps all of it alive. */
struct runs {
	const char *state_dir; /* absolute */
	struct store *store;
	bool no_ledger;            /* the ledger cannot be opened; store is a substitute */
	const struct pod_kit *kit; /* the programs for each pod */
	bool verbose;
	struct watch watch;
	/* Opens the user's account at a provider: ops and handle of *out, which the library closes
	 * with ops->close(). Any error except ERR_NO_ACCOUNT means that an account exists, even if
	 * its key is not available now. */
	int (*open_account)(void *ctx, const char *provider, struct engine_provider *out,
			    struct err *err);
	void *ctx;
};

/* ---- a run: one life of it, in this process ---- */

struct run_choice; /* choice.h */

/* Must not move between run_init() and run_free(). */
struct run {
	const struct runs *runs;
	struct run_row row; /* as in the ledger */
	/* what it decided: the ledger gets it with the row; NULL: nothing */
	const struct run_choice *choice;
	struct engine_setup setup; /* setup.run is &row; the run owns its providers and its job */
	char machine[20];
	char *dir, *output_dir;          /* dir: its state folder, once it is taken */
	int lock, job_lock, output_lock; /* -1: not held */
	bool output_lent;                /* the lock belongs to another run: run_lend_output() */
	bool had_work;                   /* segments were left to render when it was resumed */
	/* of an earlier life: its pods, and the providers where it rented */
	struct pod_row *adopted;
	struct {
		char provider[PROVIDER_NAME_MAX];
		int64_t last_end_s; /* epoch: the latest hard end of its pods there */
	} rented_at[CORE_PROVIDERS_MAX];
	int rented_at_count;
	int out_of_reach; /* pods to release whose account cannot be opened */
	/* set once it has ended */
	struct err err;
	bool finished_well;      /* the job's finish() ran without an error */
	struct pod_row *unsaved; /* current pods, if the ledger could not be written */
	size_t unsaved_count;
};

/* rs->store may be NULL if the run only loads a job. */
void run_init(struct run *run, const struct runs *rs);
void run_free(struct run *run);
/* Opens the user's account, unless the run has opened it already. */
int run_open_account(struct run *run, const char *provider, struct err *err);
/* Makes and locks the folder of run->row. who: RUN_CLIENT, or another holder; `cancel` stops
 * clients. ERR_BUSY: it is held. */
int run_lock_folder(struct run *run, const char *who, struct err *err);
/* The run's pods: as in the ledger, or newer if it could not be written. Free them. */
struct pod_row *run_pods(const struct run *run, size_t *count);

/* ---- checks: find what would stop a run before anything is rented ---- */

/* Raises the limit of descriptors. ERR_CONFIG if this many pods exceed it. */
int run_check_width(struct run *run, int64_t pods, struct err *err);
/* ERR_BALANCE: no account can pay the cap. An account that reports no balance counts as able. */
int run_check_balance(const struct run *run, int64_t cap_microusd, struct err *err);
/* ERR_CREDENTIALS: its only provider refuses the keys for files of the volume (NULL: none). */
int run_check_files(const struct run *run, const char *volume, struct err *err);
/* ERR_BUSY while pods of a detached run of the same job may work without a client. */
int runs_check_detached(const struct runs *rs, const char *config, const char *job,
			struct err *err);
/* Whether run->output_dir can be written, or made. Does not make it. */
int run_check_output(const struct run *run, struct err *err);

/* ---- locks: one client for a job, one for an output folder; ERR_BUSY: another holds it ---- */

int run_lock_job(struct run *run, const char *config, const char *job, struct err *err);
/* Makes run->output_dir and holds it until run_free(). */
int run_lock_output(struct run *run, struct err *err);
/* Lets a second run of this process use the first one's lock, until run_free(of). Both then use the
 * same open folder, even if another now has its path. */
void run_lend_output(struct run *to, const struct run *of);
bool run_output_is_locked(const char *dir);

/* ---- begin, go: a new run, until its last pod is gone ---- */

/* What a command requests of a run, beside run->setup. */
struct run_want {
	/* to begin with; the job's name, its config's path or "", its commit or "" */
	const char *id; /* "": draw a new one */
	const char *job, *config, *commit;
	/* of a stage: its name, the run that it is a part of or "", and a hash of its command and
	 * inputs; NULL: it is none */
	const char *stage, *part_of, *stage_input;
	bool anew; /* to resume: count nothing from before the run as rendered */
	/* Keeps in the run's folder, which is locked, what a later client needs. */
	int (*keep)(void *ctx, struct run *run, struct err *err);
	/* Adds the run's row, and what it may cost under the caps over runs. */
	int (*reserve)(void *ctx, struct run *run, struct err *err);
	void *ctx;
};

/* Adds a new run to the ledger, with its folder and its lock. run->setup has the job and its conf.
 * Holds signals from here on. */
int run_begin(struct run *run, const struct run_want *want, struct err *err);
size_t run_open_segments(const struct run *run); /* segments that are not done */

/* The callbacks of struct engine_setup. All may be NULL. */
struct run_watch {
	void (*progress)(void *ctx, const struct engine *e);
	void (*output)(void *ctx, const char *pod, const char *line);
	void *ctx; /* also for run->setup.keep */
};
/* Runs the engine. Returns the exit status; details are in run->err and run->row. */
int run_go(struct run *run, const struct run_watch *watch);
/* For a run with steps after its last file: records its end with their exit status. */
void run_write_end(struct run *run, int status, const struct err *err);

/* ---- resume, adopt, settle: what an earlier client left ---- */

/* How long to ask a provider for its time; a minute of it covers the account's rate limit. */
enum { OVERDUE_ASK_MS = 90 * 1000 };

/* Resumes an old run: locks it, checks that the job is unchanged, and adopts its pods and finished
 * segments. run->setup has the job and its conf. Holds signals from here on. */
int run_resume(struct run *run, const struct run_row *row, const struct run_want *want,
	       struct err *err);
/* Whether no account of the user reaches the pod, and its run has no client. Such a pod would keep
 * every later run from ending well. */
bool run_pod_is_out_of_reach(const struct runs *rs, const struct pod_row *pod);
/* Does run_write_off(), and ends the run if this was the last pod that it could not release. */
int run_write_off_unreleased(const struct runs *rs, struct pod_row *pod, struct err *err);

/* Settles all runs whose client died: releases their pods, proves them gone, closes their rows.
 * Returns -1 with ERR_UNRELEASED if a pod could not be confirmed gone. except: a run to skip (about
 * to be resumed); NULL: none. */
int runs_settle(const struct runs *rs, const char *except, struct err *err);
/* Whether to stop after this result: the user sent three signals, and waits for no step. */
bool runs_should_stop(int result, const struct err *err);
/* Settles one run whose client is dead, unless it is settled and has no open pods. */
int run_settle(const struct runs *rs, const char *id, struct err *err);
/* Releases the pods of one run whose client is dead, and sets its status. */
int run_release(const struct runs *rs, const struct run_row *run, enum run_status status,
		struct err *err);

/* ---- pool: pods that pass from run to run (engine/pooled.h) ---- */

/* For struct engine_setup.take: moves an offered pod that fits `want` to this run, with its keys.
 * Returns false if there is none. */
bool run_take_kept(struct run *run, const json_t *want, struct pod_row *pod);
/* Lists the offered pods that fit this run now, by run->setup and run->row.planned_ms, in the order
 * in which it would take them. The caller frees *out. Returns the count. */
size_t run_kept_pods(const struct run *run, struct pod_row **out);
/* For struct engine_setup.wanted: whether a living run waits for a pod like this one. */
bool runs_want_pod(const struct runs *rs, const struct pod_row *pod);
/* Runs the client that keeps the pods offered by the run `from`, in a run of its own. It ends once
 * other runs have taken them, their time is over, or stop_requested() returns true. Then it
 * releases the rest. */
int run_keep_pods(struct run *run, const char *from, bool (*stop_requested)(void), struct err *err);

/* ---- sweep: release pods without a client and prove them gone ---- */

enum swept_as { SWEPT_GONE, SWEPT_SKIPPED, SWEPT_UNRELEASED };

struct swept {
	enum swept_as as;
	const char *provider;
	const struct pod_view *view; /* as listed */
	enum reap_what why;          /* SWEPT_GONE, SWEPT_UNRELEASED: why it was released */
	bool has_client;             /* SWEPT_SKIPPED: its run's client is on this machine */
	const char *trouble;         /* SWEPT_UNRELEASED: the failure */
};

struct sweep_want {
	const char *const *providers; /* accounts to sweep; NULL-terminated */
	bool accounts_named;          /* the user named them: a missing one is an error */
	/* NULL-terminated. A missing account of the first is an error, too, since the user means to
	 * rent there; one of the second is noted. */
	char *const *configured, *const *in_ledger;
	const char *pod; /* id or attempt of the pod that the user named; NULL: none */
	bool force;      /* release the named pod even if another client rented it */
	void (*told)(void *ctx, const struct swept *pod); /* called with the result for each pod */
	void *ctx;
};

struct sweep_end {
	int gone, skipped, unreleased;
	bool unlisted; /* a provider refuses its list: only pods of the ledger were checked */
	bool named, named_skipped; /* the named pod exists; it was skipped */
	char (*runs)[24];          /* whose rows now show a pod as gone */
	size_t run_count;
	char (*accounts)[PROVIDER_NAME_MAX]; /* accounts that were checked */
	size_t account_count;
	struct err failure; /* of the last unreleased pod; its kind is ERR_UNRELEASED */
};

/* Lists every account and decides with reap_pod() what to do with each pod. A core with conf.reap
 * then releases the chosen pods at once and proves them gone (design part 8). The ledger's rows
 * record that, unless a living client of the run does. Returns -1 if an account could not be
 * checked; *end has the results of the others. Returns the error that may cost money first and
 * notes the others. Free with sweep_end_free(). */
int runs_sweep(const struct runs *rs, const struct sweep_want *want, struct sweep_end *end,
	       struct err *err);
void sweep_end_free(struct sweep_end *end);
/* Settles the runs whose last pod was ended there: nothing else of theirs can be found. Of several
 * errors *worst keeps the one that may cost money. */
void runs_settle_swept(const struct runs *rs, const struct sweep_end *end, struct err *worst);
/* Keeps in *worst the error that may cost money, else the first one. Notes the other. */
void runs_note_worse(const struct runs *rs, struct err *worst, const struct err *why);

/* ---- gather: fetch what the pods of an ended run left on their volumes ---- */

struct gather_end {
	size_t fetched, failed; /* files; failed: finished on a pod, but not fetched */
	struct str notes;       /* from the job's finish(), a line each */
};

/* Fetches finished files of run->row into its output folder, which is locked; its job is loaded.
 * Rents and renders nothing. Checks a pod's event log as in a run (engine/engine.h) and places
 * files by the same steps. Notes and counts a file that cannot be fetched. Free end->notes. */
int run_gather(struct run *run, struct gather_end *end, struct err *err);

/* ---- stages: runs of their own that work on the outputs of another one, as parts of it ---- */

/* The name of a stage's job: that of the job, cut if needed, and the stage's. */
enum { STAGE_JOB = 64 };
void stage_job_name(char to[STAGE_JOB], const char *job, const char *stage);
/* The newest run of this stage of the job in this file; done: the newest whose command succeeded.
 * Returns 1 if there is one, 0 if not, -1 with *err. */
int stage_newest(const struct runs *rs, const char *config, const char *job, const char *stage,
		 bool done, struct run_row *out, struct err *err);
/* The stages of this run, repeated ones too, in order of their starts. Free *out. */
int stages_of(const struct runs *rs, const struct run_row *run, struct run_row **out, size_t *count,
	      struct err *err);
/* The last one of them to start. Returns like stage_newest(). */
int stage_newest_of(const struct runs *rs, const struct run_row *run, struct run_row *out,
		    struct err *err);
/* The run that this one is a stage of. False: it is none, or the ledger lacks that run. */
bool stage_find_whole(const struct runs *rs, const struct run_row *run, struct run_row *out);
/* Adds the times and costs of a stage to those of its run. */
void stage_add_costs(struct run_row *run, const struct run_row *stage);
/* Adds the times and costs of its stages so far to the run's own. Returns their number. */
int stages_add_costs(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err);

/* ---- queries: runs as the ledger and their locks show them ---- */

/* The folder of a run's lock, keys, flags and log (name NULL), or one of these. Free it. */
char *run_path(const struct runs *rs, const char *run, const char *name);
/* This machine's id in markers: 16 hex digits, drawn once for each ledger. */
void runs_machine(const struct runs *rs, char machine[20]);
/* Draws an id that no run of the ledger has: "k7x2fd". */
int run_new_id(const struct runs *rs, char id[24], struct err *err);
/* Begins the note of a client in the run's lock; its process number follows. Other commands hold
 * the lock briefly, to settle the run or to remove its files. */
#define RUN_CLIENT "process"
bool run_is_alive(const struct runs *rs, const char *run);
/* Whether a process holds the lock and is a client. */
bool run_has_client(const struct runs *rs, const char *run);
/* A job's key, from its config's path and its name: hex digits. */
enum { RUN_JOB_KEY = 32 };
void run_job_key(const char *config, const char *job, char key[RUN_JOB_KEY]);
/* What a pod's row shows now. Without a client the ledger learns nothing more. */
enum pod_now {
	POD_NOW_AS_ROW,    /* the row is current, or nothing else is known */
	POD_NOW_UNWATCHED, /* live when its client left; may have ended itself since */
	POD_NOW_OVER       /* past its hard end, so it has ended itself */
};
struct run_pod_now {
	enum pod_now is;
	enum pod_row_state row; /* from the ledger */
	int64_t at_ms;          /* wall time until which age and cost are counted */
};
struct run_pod_now run_pod_now(const struct runs *rs, const struct pod_row *pod, int64_t now);
/* "unwatched", "over", or the row's own state. */
const char *run_pod_now_word(struct run_pod_now now);
/* Counts its pods that may still bill. */
int run_open_pods(const struct runs *rs, const char *run, size_t *count, struct err *err);
/* Ids of a provider's pods that may bill, of all runs of the ledger. NULL-terminated; free with
 * core_ids_free(). NULL: the ledger cannot be read. */
char **run_pod_ids(const struct runs *rs, const char *provider);
/* The sums of a run's pods in its row: clears them; adds a pod's, as of now_ms; computes all. */
void run_clear_sums(struct run_row *run);
void run_add_pod(struct run_row *run, const struct pod_row *pod, int64_t now_ms);
int run_sum(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err);
/* Writes the sums of a run that has ended after its pods' rows have changed. In a transaction; a
 * run that a client drives is left to it. */
int run_sum_ended(const struct runs *rs, const char *id, struct err *err);
/* The same for a run that has not ended or has a pod that may bill: its row lacks the sums, so they
 * come from its pods and segments. */
int run_sum_so_far(const struct runs *rs, struct run_row *run, int64_t now_ms, struct err *err);
/* Records that the run has ended, with its exit status. */
void run_set_ended(struct run_row *run, enum run_status status);

/* ---- find: the run that a job's config means ---- */

/* Among the runs of this config's path and their stages, takes the newest running one, else the
 * newest with pods that may bill, else the newest, if possible not of a type in `except` (NULL-
 * terminated). 1: *out is set; 0: there is none; -1: *err. */
int runs_newest_of(const struct runs *rs, const char *config, const char *const *except,
		   struct run_row *out, struct err *err);
/* There is none: ERR_USAGE, which lists what runs elsewhere, since those can be named. config:
 * NULL: the folder has none. Returns -1. */
int runs_refuse_none(const struct runs *rs, const char *config, struct err *err);
/* For messages: job "quiz" in /home/me/quiz. The caller frees it. */
char *run_place(const struct run_row *run);

/* ---- names: the row that an id, or any part of one, means ----
 *
 * A whole id takes precedence over the start of one, and that over any other part. A text that fits
 * several ids or none is ERR_USAGE; the message lists the matches. */

/* If no run has it: the run of a pod or a request that has it. */
int named_run(struct store *s, const char *text, struct run_row *out, struct err *err);
/* Searches the vendor's id, the name and the attempt; prefers pods that may bill. If no pod has it:
 * the only such pod of a run. */
int named_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
/* The same for pods only. Returns 1 with *out set, 0 if there is none, -1 with *err set. */
int name_find_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
int named_request(struct store *s, const char *text, struct request_row *out, struct err *err);
/* Draws an unused id that is easy to type: LEN letters and digits that cannot be confused. */
enum { NAME_LEN = 6 };
void name_draw(char id[NAME_LEN + 1]);

#endif
