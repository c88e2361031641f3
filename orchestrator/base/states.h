/* states.h - the states that the ledger keeps as words.
 *
 * In memory a state is an enum, on disk and in JSON a word; states.c is the one place that turns
 * one into the other. They are here and not in store/ because core, which includes only base,
 * decides how a run ended. A new state needs a new version of the ledger, so that an older burst
 * refuses the file instead of reading the state as "unknown". */
#ifndef BURST_BASE_STATES_H
#define BURST_BASE_STATES_H

#include <stddef.h>

/* In each enum the first value stands for a word that no version wrote, from a damaged row. It
 * equals none of the others, so a pod in such a state counts as one that may still bill. */
enum run_status {
	RUN_UNKNOWN,
	RUN_RUNNING,
	RUN_DONE,
	RUN_PARTIAL,
	RUN_FAILED,
	RUN_CAPPED,
	RUN_INTERRUPTED,
	RUN_UNRELEASED
};

enum pod_row_state {
	POD_ROW_UNKNOWN,
	POD_ROW_INTENT,
	POD_ROW_AMBIGUOUS,
	POD_ROW_LIVE,
	POD_ROW_RELEASING,
	POD_ROW_GONE,
	POD_ROW_FAILED /* never existed */
};

enum request_state {
	REQUEST_UNKNOWN,
	REQUEST_PENDING,
	REQUEST_RUNNING, /* bound to a run */
	REQUEST_DONE,
	REQUEST_FAILED,
	REQUEST_REMOVED
};

/* What wakes a schedule. */
enum schedule_backend { BACKEND_UNKNOWN, BACKEND_SYSTEMD, BACKEND_CRONTAB };

/* How a worker forms batches. Older ledgers did not record it. */
enum row_batching {
	ROW_BATCHING_UNKNOWN,
	ROW_BATCHING_NONE,
	ROW_BATCHING_PADDED,
	ROW_BATCHING_CONTINUOUS
};

/* The word of each value of one enum. The first is "unknown", or "" where older versions left the
 * column empty. */
struct state_words {
	const char *const *words;
	unsigned count;
};
extern const struct state_words run_status_words, pod_row_state_words, request_state_words,
	schedule_backend_words, row_batching_words;

/* The word of a value; that of the first value if it is out of range. */
const char *state_word(const struct state_words *of, unsigned value);
/* The value of a word; the first value if the word is unknown or NULL. */
unsigned state_read(const struct state_words *of, const char *word);

const char *run_status_word(enum run_status status);
const char *pod_row_state_word(enum pod_row_state state);
const char *request_state_word(enum request_state state);
const char *schedule_backend_word(enum schedule_backend backend);

#endif
