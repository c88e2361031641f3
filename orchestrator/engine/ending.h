/* ending.h - ends a run: what needs no pod, bills, the run's last row. */
#ifndef BURST_ENGINE_ENDING_H
#define BURST_ENGINE_ENDING_H

#include "core/core.h"
#include "store/store.h"

struct engine;

/* Begins the job's finish() (joining, loudness, subtitles) when the last segment is settled.
 * at_end: begins it in any case. */
void ending_finish(struct engine *e, bool at_end);
/* Logs what the job's finish() noted. */
void ending_notes(struct engine *e);
/* Requests from providers what they billed for the pods that are gone. */
void ending_request_bills(struct engine *e);
/* Records their answers. */
void ending_note_bills(struct engine *e);
/* A command of the job ended with this code. */
void ending_command_failed(struct engine *e, int code);
/* If a pod is not confirmed gone, records whether work remains (engine_note_unfinished()). Makes
 * the error of finish() the run's error unless a worse one happened; logs it in any case. If the
 * job failed by a command, the error names the exit code of the last one that failed. */
void ending_judge(struct engine *e, struct core_summary *s);
/* Writes the run's final row. */
void ending_write(struct engine *e, const struct core_summary *s, int status);

/* If a run ends with a pod not confirmed gone, the ledger records whether work remains although all
 * files are fetched: joining failed, or a delivery did. */
void engine_note_unfinished(struct store *store, const char *run, bool unfinished);
bool engine_is_unfinished(struct store *store, const char *run);

/* After engine_run(): the job's finish() ran and succeeded. */
bool engine_finished_well(const struct engine *e);
/* Whether the job's finish() has begun, has returned, and how long it has run, in ms. */
bool engine_finishing(const struct engine *e);
bool engine_finished(const struct engine *e);
int64_t engine_finishing_ms(const struct engine *e);

struct ending *ending_new(void);
void ending_free(struct ending *n);

#endif
