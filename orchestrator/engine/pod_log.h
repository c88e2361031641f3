/* pod_log.h - what a provider's log shows of a pod. */
#ifndef BURST_ENGINE_POD_LOG_H
#define BURST_ENGINE_POD_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct pod_log;

/* Requests the log of a pod; EV_LOG follows. */
void pod_log_read(struct engine *e, int pod);
/* Reads on, for the display, how much of its image a slow pod has pulled: one log of each provider
 * at a time. */
void pod_log_watch(struct engine *e);
/* Shows a log to the user. */
void pod_log_show(struct engine *e, int pod, const char *text);
/* Shows the log that was read within the last fresh_ms; false: there is none. */
bool pod_log_show_fresh(struct engine *e, int pod, int64_t fresh_ms);
/* How much of its image the pod has pulled, by its last log; -1: not known. */
int pod_log_image_percent(const struct engine *e, int pod);

/* A pod's; accepts NULL. */
void pod_log_free(struct pod_log *l);
struct pod_logs *pod_logs_new(void);
void pod_logs_free(struct pod_logs *l);

#endif
