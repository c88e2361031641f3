/* pod_log.h - what a provider's log says of a pod. */
#ifndef BURST_ENGINE_POD_LOG_H
#define BURST_ENGINE_POD_LOG_H

struct engine;

void pod_log_read(struct engine *e, int pod);
/* For the display: how far an image is that takes long. One log of each provider at a time. */
void pod_log_watch(struct engine *e);
/* Shows a log to the user. */
void pod_log_show(struct engine *e, int pod, const char *text);

struct pod_logs *pod_logs_new(void);
void pod_logs_free(struct pod_logs *l);

#endif
