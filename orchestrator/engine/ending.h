/* ending.h - the end of a run: what needs no pod, bills, the run's last row. */
#ifndef BURST_ENGINE_ENDING_H
#define BURST_ENGINE_ENDING_H

#include "core/core.h"
#include "store/store.h"

struct engine;

/* Joining, loudness and subtitles need no pod: they begin when the last segment is settled, while
 * pods are let go. at_end: begins them in any case. */
void ending_finish(struct engine *e, bool at_end);
/* Says what the job's finish() noted. */
void ending_notes(struct engine *e);
/* Asks providers what they billed for the pods that are gone. */
void ending_ask_bills(struct engine *e);
/* Records what they answered. */
void ending_note_bills(struct engine *e);
/* What finish() says counts where nothing worse has happened, and is said in any case. */
void ending_judge(struct engine *e, struct core_summary *s);
/* The run's row as it stays. */
void ending_write(struct engine *e, const struct core_summary *s, int status);

/* A run that ends without being sure of a pod keeps in the ledger whether something is left to do
 * for it though all its files are home: joining failed, a delivery did not go well. */
void engine_note_unfinished(struct store *store, const char *run, bool unfinished);
bool engine_is_unfinished(struct store *store, const char *run);

/* After engine_run(): the job's finish() was called, and had nothing to complain of. */
bool engine_finished_well(const struct engine *e);
/* The job's finish() has been called, and has returned; for how long it has been at work, in ms. */
bool engine_finishing(const struct engine *e);
bool engine_finished(const struct engine *e);
int64_t engine_finishing_ms(const struct engine *e);

struct ending *ending_new(void);
void ending_free(struct ending *n);

#endif
