/* espeak_batch.h - a batch as one JSON line, and the answers to it. The agent has checked the line,
 * so nothing here reports a mistake. */
#ifndef BURST_JOBS_WORKERS_ESPEAK_BATCH_H
#define BURST_JOBS_WORKERS_ESPEAK_BATCH_H

#include <stddef.h>
#include <stdio.h>

#include "espeak_json.h"

/* One segment; NULL: the line does not say it. */
struct espeak_task {
	char *id, *file, *text, *voice;
	int speed, pitch, range, amplitude, gap;
};

/* The members of an object whose '{' is consumed already. End it with espeak_task_free(). */
struct espeak_task espeak_task_read(struct cursor *c);
void espeak_task_free(struct espeak_task *t);

/* Renders a segment into its file below BURST_OUT. 0, or -1 and why in error, cut to room. */
typedef int espeak_render(const struct espeak_task *t, char *error, size_t room);
/* Renders each segment of the line, and prints an answer to each and to the batch. line[len] must
 * be readable and 0. */
void espeak_batch(const char *line, size_t len, espeak_render *render);

/* Prints the text as JSON. */
void espeak_quote(FILE *to, const char *text);

#endif
