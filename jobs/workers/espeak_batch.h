/* espeak_batch.h - a batch as one JSON line, and the answers to it. The agent has checked the line,
 * so nothing here reports a mistake. */
#ifndef BURST_JOBS_WORKERS_ESPEAK_BATCH_H
#define BURST_JOBS_WORKERS_ESPEAK_BATCH_H

#include "jobs/agent/json.h"

/* One segment; NULL: the line does not say it. Its texts are the line's. */
struct espeak_task {
	const char *id, *file, *text, *voice;
	int speed, pitch, range, amplitude, gap;
};

struct espeak_task espeak_task_read(const struct json *task);

/* Renders a segment into its file below BURST_OUT. 0, or -1 and why in error, cut to room. */
typedef int espeak_render(const struct espeak_task *t, char *error, size_t room);
/* Renders each segment of the line, and prints an answer to each and to the batch. */
void espeak_batch(const char *line, size_t len, espeak_render *render);

#endif
