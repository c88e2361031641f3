/* engine.h - carries out what the core decides: waits, makes events, asks the core, performs its
 * actions in order. One engine is one client of one run (or of a reap). Everything runs on the
 * calling thread, except that a small pool hashes, packs and writes. */
#ifndef BURST_ENGINE_ENGINE_H
#define BURST_ENGINE_ENGINE_H

#include <jansson.h>

#include "base/card_needs.h"
#include "base/str.h"
#include "caller.h"
#include "core/core.h"
#include "job.h"
#include "provider.h"
#include "store/store.h"

struct engine;
struct receive;

/* What an engine needs to begin: the run, its job, its providers. */
struct engine_setup {
	/* what to run; `providers` below fills in conf.providers; conf.run must be set */
	struct core_conf conf;
	struct engine_provider providers[CORE_PROVIDERS_MAX];
	int provider_count;
	const struct job_ops *job_ops; /* NULL: no work (reap, cancel) */
	struct job *job;
	/* one per segment, `cached` filled in already; the engine fills in the rest */
	struct segment_result *results;

	const struct pod_kit *kit; /* what each pod gets */
	struct store *store;
	/* as it is in the ledger (already put); the engine updates it */
	struct run_row *run;
	const char *run_dir; /* state folder of this run */
	const char *output_dir;
	const char *code_path;   /* NULL: nothing is synced */
	const char *const *gpus; /* wanted, NULL-terminated; NULL: any */
	const char *volume_name; /* NULL: none */
	int64_t volume_gb;
	bool volume_create;
	const char *image;
	bool worker_root; /* workers are root in their pods, and can read what the pod keeps for
			     itself */
	bool want_spot;
	int64_t disk_gb, cpu, memory_gb;
	struct card_needs card; /* offers that lack it are left out */
	/* of `providers`: an earlier client of this run rented there */
	bool used_before[CORE_PROVIDERS_MAX];
	/* likewise, and a pod that no row names may live there */
	bool used_lately[CORE_PROVIDERS_MAX];
	/* with conf.pooled: what this run's pods are good for (pooled.h) */
	char pool[96];
	const struct pod_row *adopt; /* pods of an earlier client that may still bill */
	size_t adopt_count;
	/* A sweep: the pods of `adopt` belong to other runs, or to none, and a list has just shown
	 * them. No row is written of them: engine_pod_row() reports their state, in the order of
	 * `adopt`. */
	bool sweeps;
	bool handed_over;   /* the earlier client handed its pods over: their agents renew their
			       leases */
	bool ignore_hangup; /* a background client outlives its terminal */
	bool verbose;
	/* after the fetch the caller has more to do (a delivery), and writes the run's end */
	bool more_to_come;
	long files; /* descriptors that may be opened; 0: no limit */

	/* For a display: called at least every 250 ms. May be NULL. */
	void (*progress)(void *ctx, const struct engine *e);
	/* A pod is on offer, to be kept: the client that keeps pods must take it. May be NULL. */
	void (*keep)(void *ctx);
	/* With conf.pooled. Whether a living run that waits for capacity would take this pod. */
	bool (*wanted)(void *ctx, const struct pod_row *pod);
	/* With conf.pooled. Takes over a pod that another run offers and that fits want (pooled.h),
	 * by the ledger and with its keys; false: there is none. */
	bool (*take)(void *ctx, const json_t *want, struct pod_row *pod);
	/* Lines that the job's programs print (command jobs). May be NULL. */
	void (*output)(void *ctx, const char *pod, const char *line);
	void *ctx;
};

/* The number of pods for which a limit of `limit` descriptors is enough, if `open` of them are
 * taken when a run begins; 0: not even one. */
int engine_pods_fit(long limit, int open);
/* Before the first engine: checks that this machine can run one. ERR_LOCAL: libcurl is missing. */
int engine_ready(struct err *err);
/* Runs to the end. Returns the exit status (main.c lists them); *err is the run's error. setup is
 * borrowed until engine_free(). */
struct engine *engine_new(const struct engine_setup *setup);
int engine_run(struct engine *e, struct err *err);
void engine_free(struct engine *e);

/* From here on SIGINT, SIGTERM and SIGHUP wait for engine_run(), which takes them. */
void engine_block_signals(void);
/* Delivers the blocked signals; an engine_run() before a delivery blocks them again at its end. */
void engine_unblock_signals(void);
/* While they are held: takes one, and returns its number; 0: none is pending. */
int engine_take_signal(void);

/* ---- what a display and the JSON result show ---- */

const struct core *engine_core(const struct engine *e);
const struct engine_setup *engine_of(const struct engine *e);
int64_t engine_started_ms(const struct engine *e); /* boot clock */
/* what delays the first pods, as "modal: image: ..."; "": nothing */
const char *engine_doing(const struct engine *e);
const char *engine_phase_detail(const struct engine *e, int pod); /* "syncing code", "" */
/* How much of its image the pod has pulled, in percent, by its provider's log; -1: not known. */
int engine_image_percent(const struct engine *e, int pod);
int engine_pod_rendered(const struct engine *e, int pod); /* segments it has finished */
/* After engine_run(): the job's finish() ran and succeeded. */
bool engine_finished_well(const struct engine *e);
/* Whether the job's finish() has begun, has returned, and how long it has run, in ms. */
bool engine_finishing(const struct engine *e);
bool engine_finished(const struct engine *e);
int64_t engine_finishing_ms(const struct engine *e);
/* The ledger's row of one of the core's pods. */
struct pod_row engine_pod_row(const struct engine *e, int pod);
/* Adds time and cost of all its pods to the row. *s: core_summary() of now. */
void engine_add_sums(const struct engine *e, const struct core_summary *s, struct run_row *row);
/* The rows that the ledger lacks because it could not be written. The caller frees the list. */
size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out);

/* ---- what a run leaves: in the ledger, in its folder, at a provider ---- */

/* If a run ends with a pod not confirmed gone, the ledger records whether work remains although all
 * files are fetched: joining failed, or a delivery did. */
void engine_note_unfinished(struct store *store, const char *run, bool unfinished);
bool engine_is_unfinished(struct store *store, const char *run);
/* Removes the key files, if any, of an attempt whose pod is gone from its run's folder. */
void engine_drop_keys(const char *run_dir, const char *attempt);
/* Where the last scan of a code folder is kept (sync/tree.h), below the folder of all runs. The
 * caller frees it. */
char *engine_scan_path(const char *runs_dir, const char *code_path);
/* Of several clients that would make a volume, the one with this lock makes it; the others then
 * find it. See path_lock() for its rules. */
int engine_lock_volumes(const char *state_dir, int *lock, struct err *err);

/* ---- which reports of a pod on its finished files are believed ----
 * Live, or from the event log on its volume. */

enum { SPEECH_FILE_MAX_BYTES = 256 << 20 }; /* of one segment's file; commands may have more */

/* Texts are borrowed from the event. */
struct reported_file {
	const char *path, *sha256; /* where the pod has it */
	int64_t bytes;
};

enum report_fault { REPORT_FINE, REPORT_INVALID, REPORT_TOO_LARGE };

/* name: the file's local name; NULL: the report gives none. most_bytes: the largest size it can
 * have. A report that is not REPORT_FINE is refused, and its file not fetched. */
enum report_fault reported_file(const json_t *event, const char *name, int64_t most_bytes,
				struct reported_file *out);
/* "an invalid file", "a file of 12 bytes, more than it can have". */
void reported_fault_show(struct str *to, enum report_fault fault, int64_t bytes);
/* The reported length in seconds and sample rate of its sound, used if the check of the file finds
 * none. Never below 0, and bounded: a pod can report anything. */
double reported_seconds(const json_t *event);
int reported_rate(const json_t *event);

/* The ledger's row of a segment whose file has its final name. file: NULL: it has none. */
struct segment_row reported_row(const char *run, const struct segment *segment, const char *attempt,
				const char *file, const struct segment_result *result);

/* Places the files of one segment, which are complete, verified and checked: first the manifest's
 * lines, then the renames. A line without its file is harmless; a file without a line looks
 * foreign. Syncs the manifest and each folder once. May be called in a worker thread. */
int place_verified(const struct job_ops *ops, struct job *job, size_t index,
		   const struct segment_result *results, struct receive **list, size_t count,
		   struct err *err);

#endif
