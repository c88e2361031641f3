/* store.h - the ledger: what was run, which pods were rented for it and what became of them. SQLite
 * in a file behind store_open(), in memory alone behind store_memory().
 *
 * Rows are plain structs; "put" writes the whole row under its key, new or not. A put has reached
 * the disk when it returns (synchronous=FULL) unless it is made between store_begin() and
 * store_commit(), which then is that moment. Times are wall clock ms, -1 or 0: not yet. All texts
 * fit their fields (longer ones are cut). Numbers are those of times, bytes and money: what lies
 * beyond STORE_NUMBER_MOST, either way, was not written by us and comes back as that, so that sums
 * and products of what is read stay numbers; a fraction that is no number comes back as 0. Never a
 * secret in here. */
#ifndef BURST_STORE_H
#define BURST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/states.h"

#define STORE_NUMBER_MOST INT64_C(1000000000000000)

struct store;

struct run_row {
	char id[24];
	char job[64]; /* its name */
	char type[16];
	char config[512]; /* real path of burst.cfg */
	char output[512];
	char machine[20];
	enum run_status status;
	bool detached; /* the agents hold the queue and renew their own lease */
	int64_t started_ms, ended_ms;
	/* the caps it began with; ends_by: by max_duration, wall ms, 0: none */
	int64_t max_cost_microusd, ends_by_ms;
	int64_t total, rendered, cached, failed;
	/* cost: sum over its pods of the larger of our count and the vendor's figure; counted and
	 * cost_vendor: sums of each by itself */
	int64_t billed_ms, compute_ms, wasted_ms, cost_microusd, counted_microusd,
		cost_vendor_microusd;
	int64_t unpriced_ms; /* the part of billed_ms that has no price */
	/* makespan and cost as planned before it rented; 0: no plan */
	int64_t planned_ms, planned_microusd;
	int64_t promised_ms, promised_microusd; /* what nine runs in ten keep; 0: no plan */
	int replans;                            /* how often it was planned again since */
	char replanned[512];                    /* why and how, a line for each */
	int exit_status;
	char error_code[24];
	char error[ERR_TEXT];
	char commit_id[65]; /* of the tree that it rendered; "": the project's folder as it stood */
	/* while it waits for capacity: which pods of other runs it would take (pooled.h); "": none
	 */
	char wants[512];
	/* of a stage (runs.h): its name, the run that it is a part of ("": the ledger has none), a
	 * hash of its command and inputs, and whether its command succeeded; "": it is none */
	char stage[32], part_of[24], stage_input[65];
	bool stage_done;
};

/* What a run decided when it began, and why (runs/choice.h). Written with its first row. */
struct choice_row {
	char run[24];
	int64_t decided_ms;
	char goal[12];
	int64_t value_of_time_microusd;
	char deadline[64];         /* the user's words; "": none */
	int64_t deadline_ms;       /* what they meant when the command began: wall ms; 0: none */
	int pods, pods_most;       /* how wide; to how many the run may widen by itself */
	bool at_once;              /* all of them from the start */
	bool pods_open, gpus_open; /* the planner chose how many, and which GPUs */
	bool on_demand;            /* rather than spot pods, though these may cost less an hour */
	char gpus[2048];           /* in order, separated by commas; "": any, or none is needed */
	int batch;                 /* segments in a batch, as planned; 0: no plan */
	int64_t cost_microusd;     /* of its pods, as planned */
	char why[400];             /* the plan in one sentence, or why there is none */
};

/* What the plan expected of the pods of a provider with one GPU. */
struct forecast_row {
	char run[24];
	char provider[24];
	char gpu[64];
	double once_s, longest_s, each_s; /* time of a batch (plan/speed.h) */
	double host_share;
	int batch_max;
	double cold_p50_s, cold_p90_s;
	bool measured;
	double speed_sigma;   /* how far they may be off (plan/speed.h) */
	char speed_from[128]; /* the source of the times */
};

/* What workers may tell apart of the time before their hello (jobs/PROTOCOL.md). */
enum load_phase {
	LOAD_UNPACK,
	LOAD_IMPORT,
	LOAD_READ,
	LOAD_BUILD,
	LOAD_WARM_UP,
	LOAD_PROBE,
	LOAD_PHASES
};
const char *load_phase_name(enum load_phase phase); /* "unpack", "import", ..., "warm_up", ... */

/* the second: it waited for the pod that prepared the volume */
enum { SYNCED_UNKNOWN = -1, SYNCED_BY_ANOTHER = -2 };

/* One attempt to rent one pod. Written before the create call, in state POD_ROW_INTENT. */
struct pod_row {
	char attempt[20]; /* key: 16 hex digits, never used twice */
	char run[24];
	char provider[24];
	char account[64];
	char name[64];
	char id[80]; /* the vendor's id; empty until known */
	enum pod_row_state state;
	char gpu[64];         /* the GPU that it has, once that is known */
	char gpu_offered[64]; /* the GPU that was requested, and that the price is for */
	char region[32];
	bool spot;
	bool preempted;   /* its provider took it back */
	bool volume_safe; /* its finished files are on the volume for good */
	char volume_id[80], volume_name[64];
	/* the pod's price, as its vendor reports it; never below the offer's */
	int64_t price_microusd_h;
	int64_t price_list_microusd_h; /* the price of the offer; 0: unknown */
	bool unpriced;                 /* its provider named no price, which is not a price of 0 */
	int64_t hard_end_s;            /* epoch seconds */
	/* Where waiting for the start is free: how long it may run from then (0: it bills from its
	 * create). Wall ms: it started and bills from then (0: no view showed that); a view last
	 * showed it waiting. */
	int64_t run_ms, start_ms, queued_ms;
	int reach; /* enum pod_reach; with the next three as in struct pod_view */
	char host[128];
	int port;
	char user[32];
	/* wall ms: create call, its reply, first seen running, TCP accepted, handshake done,
	 * synced, workers ready, last batch done, last file local, release sent, release accepted,
	 * confirmed gone */
	int64_t create_ms, rented_ms, running_ms, reached_ms, connected_ms, synced_ms, ready_ms,
		worked_ms, safe_ms, release_ms, released_ms, gone_ms;
	/* wall ms: a release was first accepted; a list last showed it running after that. It may
	 * bill while outlived is not before released, and released then is when a list omitted it.
	 */
	int64_t accepted_ms, outlived_ms;
	/* when its container started, by the vendor's clock and word; 0: it does not say */
	int64_t vendor_started_ms;
	/* billed and cost: our count alone; pod_row_cost() has what counts */
	int64_t compute_ms, wasted_ms, billed_ms, cost_microusd;
	/* What its vendor billed, which stands beside our count; all 0: it has no record yet.
	 * cost_beside is the part of cost_vendor that the price does not pay for (a disk that is
	 * billed beside the GPU). */
	int64_t billed_vendor_ms, cost_vendor_microusd, cost_beside_microusd;
	/* the seconds are the vendor's own; false: implied from its dollars and the price */
	bool vendor_reported;
	int64_t vendor_asked_ms; /* when it reported that, or that it has no record; 0: never
				    requested */
	/* of the samples of its GPUs while workers rendered: how many, percent busy, MiB in use */
	int gpu_samples, gpu_busy_p50, gpu_busy_p95;
	int64_t gpu_memory_peak_mib;
	/* how it was prepared: its image, a key of the set-up (engine/image.h), what that took (0:
	 * it did not run there), and the bytes of code and worker files that were sent to it */
	char image[96], setup[20];
	int64_t setup_ms;
	int64_t synced_bytes; /* or one of the words above */
	/* What came before the hello of its first worker, as that worker reports it; all 0: no
	 * report. Before that the agent unpacked an environment of unpack_bytes; 0: none. */
	int64_t unpack_ms, unpack_bytes, import_ms, read_ms, build_ms, warm_up_ms, probe_ms;
	int64_t event; /* last agent event that was dealt with */
	/* A pod without work may be handed to another run: since when it is kept for one, until
	 * when, and what it is good for (pool.h). 0, "": it is not on offer. */
	int64_t kept_ms, kept_until_ms;
	char pool[96];
	/* its environment, so that the next run need not make it: name, id and Python */
	char env[176];
	int64_t cold_ms; /* from the create until its workers stood, in the run that rented it */
	/* A pod has one row per run that held it. The newest keeps the attempt of the create and
	 * begins where the one before ends; that one is "gone" under another attempt. */
	int holds;                           /* runs that held it before */
	char handed_from[24], handed_to[24]; /* runs; "": none */
	char error[ERR_TEXT];
};

enum segment_state { SEGMENT_ROW_SAFE = 1, SEGMENT_ROW_FAILED = 2 };

struct segment_row {
	char run[24];
	char id[256];
	char key[65];
	enum segment_state state; /* a segment that is still open has no row */
	char attempt[20];
	char file[256];
	char sha256[65];
	int64_t bytes;
	double seconds;
	int sample_rate;
	int tries;
	bool suspect;
	char reason[320];
};

struct volume_row {
	char provider[24];
	char id[80];
	char name[64];
	char region[32];
	int64_t size_gb, price_microusd_month, seen_ms;
};

/* One finished batch, from which burst learns how fast an engine is on a GPU. Lengths are weights.
 * */
struct batch_row {
	char attempt[20]; /* of its pod; with id the key */
	char id[24];      /* the number that the core gave it */
	char run[24];
	char speed[160]; /* key of its speed_row */
	int segments;
	int most;                   /* largest batch that its worker takes; 0: unknown */
	enum row_batching batching; /* as its worker reports it */
	/* longest 0: rendered beside others, took_ms is its share of the time */
	double longest, sum;
	int64_t took_ms, done_ms;
};

/* What all batches of one kind taught, as sums for a least-squares fit; older runs count less. */
struct speed_row {
	/* engine, version, options, GPU, provider, cores: what the speed depends on */
	char key[160];
	double n, longest, sum, longest2, longest_sum, sum2, t, longest_t, sum_t;
	int64_t batches, updated_ms;
	int most; /* of the newest batch, as in batch_row */
	enum row_batching batching;
};

/* A trigger that waits to be rendered (`burst submit`). The run that it is bound to, when that has
 * succeeded, satisfies it. */
struct request_row {
	char id[24];
	char config[512]; /* real path of burst.cfg: the queue that it stands in */
	enum request_state state;
	int64_t created_ms;
	int64_t quiet_ms; /* no start until no request has come for so long */
	/* started after so long whatever else it waits for; 0: no limit */
	int64_t max_wait_ms;
	int64_t by_ms;            /* when it should be done; 0: no deadline */
	int64_t below_microusd_h; /* the price that it waits for; 0: any */
	int64_t min_segments;     /* how many segments it waits for; 0: any number */
	bool fills_pod;           /* it waits for work that is worth a cold start */
	/* full id of the commit to render; "": the project's folder as it is then */
	char commit_id[65];
	char repo[512], path[512]; /* with a commit: its repository, and the config's path in it */
	char run[24];              /* bound to it before it began; may have no row yet */
	int64_t tries;             /* starts that have failed */
	int64_t first_try_ms;      /* when the first of them failed */
	int64_t not_before_ms;     /* the next one */
	int64_t deaths;            /* how often the client of its run died */
	int64_t ended_ms;
	int exit_status; /* of its last run */
	char error[ERR_TEXT];
};

/* A job that runs at set times (`burst schedule`). */
struct schedule_row {
	char name[48];    /* key */
	char rule[96];    /* when, as the user gave it (base/calendar.h) */
	char config[512]; /* real path of burst.cfg */
	enum schedule_backend backend;
	char environment[3072]; /* of its runs, NAME=value lines */
	int64_t catch_up_ms;    /* how late a missed time is still made up for; 0: never */
	int64_t made_ms;
	int64_t due_ms;   /* the last due time that it submitted; 0: none yet */
	char request[24]; /* what it submitted then */
};

/* Opens (and makes, 0600) the ledger. ERR_LOCAL when it cannot be read or written, is not ours or
 * is of another version of burst. */
int store_open(struct store **out, const char *path, struct err *err);
/* For questions only: makes and changes nothing, and what it answers is all of one moment.
 * ERR_NOT_FOUND: there is no ledger; ERR_BUSY: another process holds it, which is waited for no
 * longer than a prompt may take. A put fails. */
int store_open_to_read(struct store **out, const char *path, struct err *err);
/* A ledger that ends with this process. Never NULL. */
struct store *store_memory(void);
/* ERR_LOCAL if the ledger's file was removed or replaced since store_open(). The open file still
 * answers queries, but what is put there is lost, and no retry brings it back: a client that waits
 * for a change of the ledger must call this and end. */
int store_check(struct store *s, struct err *err);
void store_close(struct store *s);

/* Not nested (a bug). begin takes the write lock, waiting up to 10 s for other processes, so that
 * what is read inside is still true when it is written. A commit that fails has undone everything
 * since begin. Closing rolls back; so does rollback, which is fine when nothing is open. After a
 * put inside has failed, roll back. */
int store_begin(struct store *s, struct err *err);
int store_commit(struct store *s, struct err *err);
void store_rollback(struct store *s);
/* Ends it by the result of what was done inside: rolls back if that is negative, else commits.
 * Returns the result, or -1. */
int store_end(struct store *s, int result, struct err *err);

/* The name that messages use for the pod: its id, else its attempt. */
const char *pod_row_called(const struct pod_row *row);
/* It is gone, or never existed: it bills no more. */
bool pod_row_over(const struct pod_row *row);
/* The time of one phase, as the pod's worker reported it. */
int64_t pod_row_load_ms(const struct pod_row *row, enum load_phase phase);
void pod_row_set_load(struct pod_row *row, const int64_t load_ms[LOAD_PHASES]);

enum table_id {
	TABLE_RUN,
	TABLE_POD,
	TABLE_SEGMENT,
	TABLE_VOLUME,
	TABLE_FACT,
	TABLE_BATCH,
	TABLE_SPEED,
	TABLE_REQUEST,
	TABLE_SCHEDULE,
	TABLE_CHOICE,
	TABLE_FORECAST,
	TABLE_COUNT
};
/* For the typed calls below, which make a mismatch of table and row impossible. */
int store_put(struct store *s, enum table_id table, const void *row, struct err *err);
#define STORE_PUT(row, table)                                                                      \
	static inline int store_put_##row(struct store *s, const struct row##_row *it,             \
					  struct err *err)                                         \
	{                                                                                          \
		return store_put(s, table, it, err);                                               \
	}
STORE_PUT(run, TABLE_RUN)
STORE_PUT(pod, TABLE_POD)
STORE_PUT(volume, TABLE_VOLUME)
STORE_PUT(batch, TABLE_BATCH)
STORE_PUT(choice, TABLE_CHOICE)
STORE_PUT(forecast, TABLE_FORECAST)
STORE_PUT(speed, TABLE_SPEED)
STORE_PUT(request, TABLE_REQUEST)
STORE_PUT(schedule, TABLE_SCHEDULE)
#undef STORE_PUT
/* All of them or none. */
int store_put_segments(struct store *s, const struct segment_row *rows, size_t count,
		       struct err *err);
/* Absent is success, here and below. */
int store_remove_request(struct store *s, const char *id, struct err *err);
int store_remove_volume(struct store *s, const char *provider, const char *id, struct err *err);
int store_remove_schedule(struct store *s, const char *name, struct err *err);

/* ERR_NOT_FOUND when absent. Whole ids only, here and below. */
int store_run(struct store *s, const char *id, struct run_row *out, struct err *err);
/* An attempt takes precedence over an id. If several pods share an id, the newest counts. */
int store_pod(struct store *s, const char *attempt_or_id, struct pod_row *out, struct err *err);

/* Lists into a new array *out, which the caller frees; NULL if empty. */
/* Newest start first; job_config (the row's config) NULL: of all; most 0: all; only those in
 * RUN_RUNNING when running. Of one config without `running`: no stages. */
int store_runs(struct store *s, const char *job_config, bool running, size_t most,
	       struct run_row **out, size_t *count, struct err *err);
/* The stages of this config's runs, in the order of their starts. */
int store_stages(struct store *s, const char *job_config, struct run_row **out, size_t *count,
		 struct err *err);
/* run NULL: of all runs; open_only: state neither gone nor failed. Here and below in the order of
 * their first put. */
int store_pods(struct store *s, const char *run, bool open_only, struct pod_row **out,
	       size_t *count, struct err *err);
/* Those that were billed at some moment after this one, or may be now; also those that maybe never
 * were and count all the same. */
int store_pods_since(struct store *s, int64_t wall_ms, struct pod_row **out, size_t *count,
		     struct err *err);
/* Pods of this provider that were reached over SSH, newest put first; most 0: all. */
int store_pods_up(struct store *s, const char *provider, size_t most, struct pod_row **out,
		  size_t *count, struct err *err);
int store_segments(struct store *s, const char *run, struct segment_row **out, size_t *count,
		   struct err *err);
int store_volumes(struct store *s, struct volume_row **out, size_t *count, struct err *err);
int store_batches(struct store *s, const char *run, struct batch_row **out, size_t *count,
		  struct err *err);
/* Those of this speed_row, of any run; the newest first, at most `most`. */
int store_batches_of_speed(struct store *s, const char *key, size_t most, struct batch_row **out,
			   size_t *count, struct err *err);
/* ERR_NOT_FOUND: nothing was decided for it. */
int store_choice(struct store *s, const char *run, struct choice_row *out, struct err *err);
int store_forecasts(struct store *s, const char *run, struct forecast_row **out, size_t *count,
		    struct err *err);
/* Of one config (NULL: of all); open_only: pending or running. */
int store_requests(struct store *s, const char *config, bool open_only, struct request_row **out,
		   size_t *count, struct err *err);
/* Those that have this part in their id; a pod also in its attempt or its name. */
int store_runs_named(struct store *s, const char *part, struct run_row **out, size_t *count,
		     struct err *err);
int store_pods_named(struct store *s, const char *part, struct pod_row **out, size_t *count,
		     struct err *err);
int store_requests_named(struct store *s, const char *part, struct request_row **out, size_t *count,
			 struct err *err);
/* Those whose keys begin with prefix ("": all). */
int store_speeds(struct store *s, const char *prefix, struct speed_row **out, size_t *count,
		 struct err *err);

/* ERR_NOT_FOUND when absent. */
int store_schedule(struct store *s, const char *name, struct schedule_row *out, struct err *err);
int store_schedules(struct store *s, struct schedule_row **out, size_t *count, struct err *err);

/* Small facts under a name: facts.h has their names, which no other file spells. Name below 96
 * bytes, value below 4096, else ERR_BUG. store_fact: false when absent or unreadable; cut to room.
 * */
int store_put_fact(struct store *s, const char *name, const char *value, struct err *err);
bool store_fact(struct store *s, const char *name, char *out, size_t room);

#endif
