/* setup.h - what an engine needs to begin: the run, its job, its providers. */
#ifndef BURST_ENGINE_SETUP_H
#define BURST_ENGINE_SETUP_H

#include <jansson.h>

#include "core/core.h"
#include "store/store.h"
#include "caller.h"
#include "job.h"
#include "provider.h"

struct engine;

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
	/* of `providers`: an earlier client of this run rented there */
	bool used_before[CORE_PROVIDERS_MAX];
	/* likewise, and a pod that no row names may live there */
	bool used_lately[CORE_PROVIDERS_MAX];
	/* with conf.pooled: what this run's pods are good for (kept.h) */
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
	/* With conf.pooled. Takes over a pod that another run offers and that fits want (kept.h),
	 * by the ledger and with its keys; false: there is none. */
	bool (*take)(void *ctx, const json_t *want, struct pod_row *pod);
	/* Lines that the job's programs print (command jobs). May be NULL. */
	void (*output)(void *ctx, const char *pod, const char *line);
	void *ctx;
};

#endif
