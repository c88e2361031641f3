/* engine.h - carries out what the core decides: waits, makes events, asks the core, performs its
 * actions in order.
 *
 * One engine is one life of one run (or of a reap). Everything happens on the calling thread but
 * for hashing, packing and writing, which a small pool does. */
#ifndef BURST_ENGINE_H
#define BURST_ENGINE_H

#include "ending.h"
#include "journal.h"
#include "ssh_keys.h"
#include "known.h"
#include "pod_rows.h"
#include "setup.h"
#include "signals.h"
#include "trees.h"
#include "volumes.h"

/* For how many pods a limit of so many descriptors is enough, `open` of them being taken when a run
 * begins; 0: for none. */
int engine_pods_fit(long limit, int open);
/* Before the first engine: can this machine run one? ERR_LOCAL: libcurl is missing. */
int engine_ready(struct err *err);
/* Runs to the end. Returns the exit status of design part 7; *summary and *run tell the rest
 * (run.cost etc. are in the ledger already). setup is borrowed until engine_free(). */
struct engine *engine_new(const struct engine_setup *setup);
int engine_run(struct engine *e, struct err *err);
void engine_free(struct engine *e);

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
int engine_pod_rendered(const struct engine *e, int pod); /* segments it has finished */

#endif
