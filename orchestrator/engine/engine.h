/* engine.h - carries out what the core decides: waits, makes events, asks the core, performs its
 * actions in order. One engine is one client of one run (or of a reap). Everything runs on the
 * calling thread, except that a small pool hashes, packs and writes. */
#ifndef BURST_ENGINE_H
#define BURST_ENGINE_H

#include "ending.h"
#include "journal.h"
#include "known.h"
#include "pod_rows.h"
#include "pods.h"
#include "setup.h"
#include "signals.h"
#include "ssh_keys.h"
#include "trees.h"
#include "volumes.h"

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

/* For displays and the JSON result. */
const struct core *engine_core(const struct engine *e);
const struct engine_setup *engine_of(const struct engine *e);
int64_t engine_started_ms(const struct engine *e); /* boot clock */
/* what delays the first pods, as "modal: image: ..."; "": nothing */
const char *engine_doing(const struct engine *e);

#endif
