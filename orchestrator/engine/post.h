/* post.h - what all files of engine/ say: to the user, to the run's log, to the core. */
#ifndef BURST_ENGINE_POST_H
#define BURST_ENGINE_POST_H

#include <jansson.h>

#include "core/core.h"

struct engine;
struct epod;

/* Queues a copy of an event, with what it points to, for the core. err: NULL, none. */
void post(struct engine *e, const struct event *ev, const struct err *err);
/* The next one; NULL: none waits. post_drop() removes it. */
const struct event *post_first(const struct engine *e);
void post_drop(struct engine *e);
void post_pod(struct engine *e, enum event_type type, int pod, const struct err *err);
/* The core hears of the volume that was found (e->volumes). */
void post_volume_ready(struct engine *e, int provider);
/* Filling that volume takes long. */
void post_volume_fills(struct engine *e, int provider);
/* The answer to ACT_SYNC. */
void post_synced(struct engine *e, int pod, int turn, bool ok);

/* On standard error and in the run's log, without secrets. */
void engine_log(struct engine *e, int level, const char *fmt, ...) PRINTF(3, 4);
/* How pods are called in messages: its id, else its attempt. */
const char *pod_called(const struct engine *e, int pod);
/* For this pod's line on the display. */
void pod_detail(struct engine *e, int pod, const char *text);
/* Sends a line to the pod's agent. Takes line; without a connection it is lost. */
void pod_say(struct engine *e, int pod, json_t *line);
/* Text of a pod, made fit to be shown. */
void pod_shown(char *to, size_t room, const char *from);
/* Notes which GPU an agent says that it sees, called as offers call it. */
void pod_gpu_seen(struct epod *p, const char *said);

#endif
