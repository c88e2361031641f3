/* engine.h - carries out what the core decides: waits, makes events, asks the core, performs its
 * actions in order.
 *
 * One engine is one life of one run (or of a reap). Everything happens on the calling thread but
 * for hashing, packing and writing, which a small pool does. */
#ifndef BURST_ENGINE_H
#define BURST_ENGINE_H

#include <jansson.h>

#include "caller.h"
#include "core/core.h"
#include "job.h"
#include "provider.h"
#include "store/store.h"

struct engine;

struct engine_setup {
	/* what to run; conf.providers is filled in from `providers` here, conf.run must be set */
	struct core_conf conf;
	struct engine_provider providers[CORE_PROVIDERS_MAX];
	int provider_count;
	const struct job_ops *job_ops; /* NULL: no work (reap, cancel) */
	struct job *job;
	/* one per segment, `cached` filled in already; the engine fills in the rest */
	struct segment_result *results;

	const struct pod_kit *kit; /* what each pod gets */
	struct store *store;
	/* as it stands in the ledger (already put); the engine updates it */
	struct run_row *run;
	const char *run_dir; /* state folder of this run */
	const char *output_dir;
	const char *code_path;   /* NULL: nothing is synced */
	const char *const *gpus; /* wanted, NULL-terminated; NULL: any */
	const char *volume_name; /* NULL: none */
	int64_t volume_gb;
	bool volume_create;
	const char *image;
	bool worker_root; /* workers are root in their pods, and can read what is the pod's own */
	bool want_spot;
	int64_t disk_gb, cpu, memory_gb;
	/* of `providers`: an earlier life of this run rented there */
	bool used_before[CORE_PROVIDERS_MAX];
	/* with conf.pooled: what this run's pods are good for (kept.h) */
	char pool[96];
	const struct pod_row *adopt; /* pods of an earlier life that may still bill */
	size_t adopt_count;
	/* A sweep: the pods of `adopt` belong to other runs, or to none, and a list has just shown
	 * them. No row is written of them: engine_pod_row() says what became of each, in the order
	 * of `adopt`. */
	bool sweeps;
	bool handed_over;   /* that life had left them alone: their agents keep them alive */
	bool ignore_hangup; /* a background client outlives its terminal */
	bool verbose;
	/* when all is fetched, the caller has more to do (a delivery), and writes the run's end */
	bool more_to_come;
	long files; /* descriptors that may be opened; 0: as many as are wanted */

	/* Called now and then, at least every 250 ms, for a display. May be NULL. */
	void (*progress)(void *ctx, const struct engine *e);
	/* A pod is on offer, to be kept: the client that keeps it is to take it. May be NULL. */
	void (*keep)(void *ctx);
	/* With conf.pooled. Whether a living run that waits for capacity would take this pod. */
	bool (*wanted)(void *ctx, const struct pod_row *pod);
	/* With conf.pooled. Takes over a pod that another run offers and that fits want (kept.h),
	 * by the ledger and with its keys; false: there is none. */
	bool (*take)(void *ctx, const json_t *want, struct pod_row *pod);
	/* Lines that the job's programs print (command jobs). May be NULL. */
	void (*output)(void *ctx, const char *pod, const char *line);
	void *ctx;
};

/* For how many pods a limit of so many descriptors is enough, `open` of them being taken when a run
 * begins; 0: for none. */
int engine_pods_fit(long limit, int open);
/* Before the first engine: can this machine run one? ERR_LOCAL: libcurl is missing. */
int engine_ready(struct err *err);
/* Of clients that would make a volume at once only one finds that there is none: who holds this
 * lock. path_lock()'s rules. */
int engine_lock_volumes(const char *state_dir, int *lock, struct err *err);
/* Runs to the end. Returns the exit status of design part 7; *summary and *run tell the rest
 * (run.cost etc. are in the ledger already). setup is borrowed until engine_free(). */
struct engine *engine_new(const struct engine_setup *setup);
/* From here on SIGINT, SIGTERM and SIGHUP wait for engine_run(), which hears of those that came. */
void engine_hold_signals(void);
/* What was held comes now: also after an engine_run() with more to come, which holds them at its
 * end. */
void engine_let_signals_in(void);
/* While they are held: takes one that came, and gives its number; 0: none came. */
int engine_held_signal(void);
int engine_run(struct engine *e, struct err *err);
/* After engine_run(): the job's finish() was called, and had nothing to complain of. */
bool engine_finished_well(const struct engine *e);
void engine_free(struct engine *e);

/* A run that ends without being sure of a pod keeps in the ledger whether something is left to do
 * for it though all its files are home: joining failed, a delivery did not go well. */
void engine_note_unfinished(struct store *store, const char *run, bool unfinished);
bool engine_is_unfinished(struct store *store, const char *run);

/* For displays and the JSON result. */
const struct core *engine_core(const struct engine *e);
const struct engine_setup *engine_of(const struct engine *e);
int64_t engine_started_ms(const struct engine *e);                /* boot clock */
const char *engine_phase_detail(const struct engine *e, int pod); /* "syncing code", "" */
/* what the pods wait for before there are any: "modal: image: ...", "" */
const char *engine_doing(const struct engine *e);
/* How much of its image has been pulled, in percent, as its provider's log says; -1: it does not.
 */
int engine_image_percent(const struct engine *e, int pod);
/* The job's finish() has been called, and has returned; for how long it has been at work, in ms. */
bool engine_finishing(const struct engine *e);
bool engine_finished(const struct engine *e);
int64_t engine_finishing_ms(const struct engine *e);
int engine_pod_rendered(const struct engine *e, int pod); /* segments it has finished */

/* The ledger's row of one of the core's pods. */
struct pod_row engine_pod_row(const struct engine *e, int pod);
/* The rows that the ledger should have and does not, as it could not be written. The caller frees
 * the list. */
size_t engine_unsaved_pods(const struct engine *e, struct pod_row **out);
/* The SSH keys of an attempt whose pod is gone, from its run's folder; none there is fine. */
void engine_drop_keys(const char *run_dir, const char *attempt);
/* Where the last scan of a code folder is kept (sync/tree.h), below the folder of all runs. To be
 * freed by the caller. */
char *engine_scan_path(const char *runs_dir, const char *code_path);
/* The code tree that pods of this job (the row's config and job) last had on a volume, code/TREE
 * there; false: none is known. */
bool engine_code_there(struct store *store, const struct run_row *job, const char *provider,
		       const char *volume_id, char tree[SHA256_HEX]);
/* Whether a volume has what needs->setup makes for the job of setup->run (the row's config and job)
 * with setup->image, for pods with this card, as far as the ledger knows. */
bool engine_env_there(const struct engine_setup *setup, const struct job_needs *needs,
		      const char *gpu, const char *provider, const char *volume_id);
/* Whether pods of setup->image at this provider have had it in their image, as far as the ledger
 * knows. */
bool engine_env_in_image(const struct engine_setup *setup, const struct job_needs *needs,
			 const char *provider);
/* As pod_row.setup has it; "" for NULL. */
void engine_setup_key(const char *script, char key[20]);

#endif
