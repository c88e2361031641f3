/* espeak_batch.h - reads a batch from one JSON line and answers it. The agent has checked the line,
 * so mistakes in it are not reported. */
#ifndef BURST_JOBS_WORKERS_ESPEAK_BATCH_H
#define BURST_JOBS_WORKERS_ESPEAK_BATCH_H

#include "jobs/agent/json.h"

/* One segment. Its texts belong to the line; NULL: the line has none. */
struct espeak_task {
	const char *id, *file, *text, *voice;
	int speed, pitch, range, amplitude, gap; /* in espeak-ng's units */
};

/* Reads one segment of a batch; for tests too. */
struct espeak_task espeak_task_read(const struct json *task);

/* Renders a segment into its file below BURST_OUT. Returns 0, or -1 with the reason in error. */
typedef int espeak_render(const struct espeak_task *t, char *error, size_t room);
/* Renders each segment of the line; prints an answer to each, then one to the batch. */
void espeak_batch(const char *line, size_t len, espeak_render *render);

#endif
