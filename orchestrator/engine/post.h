/* post.h - passes text to the user and the run's log, and events to the core. */
#ifndef BURST_ENGINE_POST_H
#define BURST_ENGINE_POST_H

#include <jansson.h>

#include "core/core.h"

struct engine;
struct posts;

/* The queue of events and the run's log, which is a file in run_dir (NULL: there is none). */
struct posts *posts_new(const char *run_dir);
void posts_free(struct posts *p);

/* Queues a copy of an event, with what it points to, for the core. err: NULL, none. */
void post(struct engine *e, const struct event *ev, const struct err *err);
/* The next one; NULL: none waits. post_drop() removes it. */
const struct event *post_first(const struct engine *e);
void post_drop(struct engine *e);
void post_pod(struct engine *e, enum event_type type, int pod, const struct err *err);
/* Tells the core that the volume was found (e->volumes). */
void post_volume_ready(struct engine *e, int provider);
/* Tells the core that filling that volume takes long. */
void post_volume_fills(struct engine *e, int provider);
/* The answer to ACT_SYNC. */
void post_synced(struct engine *e, int pod, int turn, bool ok);

/* To standard error and the run's log, without secrets. */
void engine_log(struct engine *e, int level, const char *fmt, ...) PRINTF(3, 4);
/* A line that a program of the job printed: to the setup's output(), and to the run's log. */
void engine_output(struct engine *e, int pod, const char *line);
/* The name of a pod in messages: its id, else its attempt. */
const char *pod_called(const struct engine *e, int pod);
/* For this pod's line on the display. */
void pod_detail(struct engine *e, int pod, const char *text);
/* Sends a line to the pod's agent. Takes ownership of line, which is lost if there is no
 * connection. */
void pod_send(struct engine *e, int pod, json_t *line);
/* Text of a pod, made safe to show. */
void pod_shown(char *to, size_t room, const char *from);

#endif
