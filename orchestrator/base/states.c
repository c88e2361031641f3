/* states.c - the words of the states that the ledger keeps. */
#include "states.h"

#include <string.h>

#include "mem.h"

static const char *const run_words[] = {
	[RUN_UNKNOWN] = "unknown",         [RUN_RUNNING] = "running",       [RUN_DONE] = "done",
	[RUN_PARTIAL] = "partial",         [RUN_FAILED] = "failed",         [RUN_CAPPED] = "capped",
	[RUN_INTERRUPTED] = "interrupted", [RUN_UNRELEASED] = "unreleased",
};
const struct state_words run_status_words = {run_words, ARRAY_LEN(run_words)};

static const char *const pod_words[] = {
	[POD_ROW_UNKNOWN] = "unknown",     [POD_ROW_INTENT] = "intent",
	[POD_ROW_AMBIGUOUS] = "ambiguous", [POD_ROW_LIVE] = "live",
	[POD_ROW_RELEASING] = "releasing", [POD_ROW_GONE] = "gone",
	[POD_ROW_FAILED] = "failed",
};
const struct state_words pod_row_state_words = {pod_words, ARRAY_LEN(pod_words)};

static const char *const request_words[] = {
	[REQUEST_UNKNOWN] = "unknown", [REQUEST_PENDING] = "pending", [REQUEST_RUNNING] = "running",
	[REQUEST_DONE] = "done",       [REQUEST_FAILED] = "failed",   [REQUEST_REMOVED] = "removed",
};
const struct state_words request_state_words = {request_words, ARRAY_LEN(request_words)};

static const char *const backend_words[] = {
	[BACKEND_UNKNOWN] = "unknown",
	[BACKEND_SYSTEMD] = "systemd",
	[BACKEND_CRONTAB] = "crontab",
};
const struct state_words schedule_backend_words = {backend_words, ARRAY_LEN(backend_words)};

static const char *const batching_words[] = {
	[ROW_BATCHING_UNKNOWN] = "",
	[ROW_BATCHING_NONE] = "none",
	[ROW_BATCHING_PADDED] = "padded",
	[ROW_BATCHING_CONTINUOUS] = "continuous",
};
const struct state_words row_batching_words = {batching_words, ARRAY_LEN(batching_words)};

const char *state_word(const struct state_words *of, unsigned value)
{
	return of->words[value < of->count ? value : 0];
}

unsigned state_read(const struct state_words *of, const char *word)
{
	for (unsigned i = 1; word && i < of->count; i++)
		if (!strcmp(of->words[i], word))
			return i;
	return 0;
}

const char *run_status_word(enum run_status status)
{
	return state_word(&run_status_words, status);
}

const char *pod_row_state_word(enum pod_row_state state)
{
	return state_word(&pod_row_state_words, state);
}

const char *request_state_word(enum request_state state)
{
	return state_word(&request_state_words, state);
}

const char *schedule_backend_word(enum schedule_backend backend)
{
	return state_word(&schedule_backend_words, backend);
}
