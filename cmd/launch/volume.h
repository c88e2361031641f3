/* volume.h - volumes and kept pods that a job may use */
#ifndef BURST_CMD_LAUNCH_VOLUME_H
#define BURST_CMD_LAUNCH_VOLUME_H

#include "engine/pooled.h"
#include "decide.h"
#include "launch.h"

/* ---- keep pool ----
 * Pods that outlive their run: a client keeps them for a while, and the next suitable run takes
 * them over. */

/* Lets the engine of this run hand on its pods and take over those of other runs. Call after
 * launch_set_engine_conf(). */
void keep_pool(struct launch *l);
/* Pods that other runs keep and that a run of this launch would take over now, as offers: those of
 * one kind, that of the first pod which it would take. The accounts are open and the job is loaded.
 * The caller frees *out. Returns the count. */
size_t keep_warm_offers(struct launch *l, struct offer **out);
/* The number of such pods of the same kind as `like`, for a run that takes planned_ms. */
int keep_warm_pods(struct launch *l, const struct offer *like, int64_t planned_ms);
/* Whether some run keeps a pod for others. */
bool keep_has_any(struct store *store);

/* ---- volume make ----
 * Creates a volume, and records volumes in the ledger. */

/* Writes a provider's description of a volume to the ledger, and to *row unless it is NULL. */
void volume_remember(struct store *store, const char *provider, const struct volume *v,
		     struct volume_row *row);
/* Creates a volume of this size near most of the GPUs (NULL: anywhere), unless the
 * provider has one of this name. Waits for another client that is creating one. Returns 1 if it was
 * created, 0 if it existed, -1 with *err. *row describes the volume. The caller has
 * checked the size (volume_trust_size()). */
int volume_make(struct cmd_context *ctx, const struct engine_provider *p, const char *name,
		int64_t size_gb, const char *const *gpus, struct volume_row *row, struct err *err);

/* ---- volume warm ----
 * Fills a volume from a pod without a GPU, so that no GPU waits for downloads. */

/* Rents the cheapest pod without a GPU beside the volume, puts there what the config's job needs
 * before it can work (worker files, code, the result of its set-up, packages), and releases the
 * pod. It is a run of its own in the ledger, under the same caps. l: its providers are open; closes
 * all but the volume's. memory_gb: least memory of the pod; 0: as the set-up needs it. Prints on
 * stdout that the volume is ready. Returns the exit status, or -1. */
int volume_warm(struct launch *l, const struct volume_row *v, int64_t memory_gb, struct err *err);
/* Before a run rents GPUs: fills the volume of the plan's provider as a part of that run, if the
 * plan's first GPU pod would run the job's set-up, any pod could, and the result would be kept.
 * Creates the volume if the config allows. Subtracts its cost from the run's max_cost;
 * *spent_microusd has it even on failure. Returns 1 if the volume is ready, 0 if there is nothing
 * to do or no pod without a GPU is free (the GPU pod then runs the set-up, and a note says so), -1
 * with *err if no GPU may be rented. */
int warm_first(struct launch *l, const struct estimate *e, const struct plan *pick,
	       int64_t *spent_microusd, struct err *err);

/* ---- volume trust ----
 * Decides which volumes a project's file may name.
 *
 * Every run on a volume can read and change the code, environments and outputs there. So a
 * project may use its own volumes, and others only if the user allows them. */

/* Returns 1 if the provider has a volume of this name, 0 if not, -1 with *err. */
int volume_is_there(const struct engine_provider *p, const char *name, struct err *err);

/* Call before a run. of: the run that is resumed or delivered, whose pods prove what was allowed
 * then; or NULL. ERR_CONFIG, with the command to type, if the project's file names a volume that
 * does not belong to the project, or would create one larger than max_volume_gb. Prompts on a
 * terminal and records a yes in the ledger. Closes a provider that cannot report its volumes, with
 * a warning, if another one is left. */
int volume_trust(struct cmd_context *ctx, const struct order *o, struct run *run, const char *of,
		 struct err *err);
/* For `plan` and `doctor`: ERR_CONFIG if a run would refuse or prompt at this open provider. Never
 * prompts and writes nothing. */
int volume_trust_check(struct cmd_context *ctx, const struct order *o,
		       const struct engine_provider *p, struct err *err);
/* Before `burst volume create NAME`: ERR_CONFIG if the project's file chose a size that is too
 * large. */
int volume_trust_size(struct cmd_context *ctx, const char *provider, const char *name, int64_t gb,
		      struct err *err);
/* Allows the project to use the volume from now on, because the user typed its name in the
 * project's folder. Does nothing without a project. */
int volume_trust_note(struct cmd_context *ctx, const char *provider, const char *name,
		      struct err *err);
/* After a removal: a new volume of this name has no owner. */
int volume_trust_forget(struct cmd_context *ctx, const char *provider, const char *name,
			struct err *err);

#endif
