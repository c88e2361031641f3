/* orders.h - sends the core's orders to agents: each function carries out one action of
 * core/core.h, which says what answers it.
 *
 * Only engine.c calls them, for a pod whose connection stands. A line that a breaking connection
 * loses is not sent again here: the core gives the order anew when the pod is connected again. An
 * agent does nothing twice: it knows a batch or a handover by its id. */
#ifndef BURST_ENGINE_ORDERS_H
#define BURST_ENGINE_ORDERS_H

#include <stdint.h>

struct engine;

void orders_send(struct engine *e, int pod, uint32_t batch); /* ACT_SEND */
void orders_revoke(struct engine *e, int pod);               /* ACT_REVOKE */
/* Commands end, within grace_ms; no batch begins. */
void orders_halt(struct engine *e, int pod, int grace_ms);
void orders_renew(struct engine *e, int pod); /* ACT_RENEW */
/* ACT_HANDOVER. The run's row says from the first one on that the run is detached. */
void orders_handover(struct engine *e, int pod, int turn);
void orders_takeover(struct engine *e, int pod); /* ACT_TAKEOVER */
/* ACT_SYNC. The first time that few bytes are left it sends nothing and answers "not now". */
void orders_sync(struct engine *e, int pod, int turn);

#endif
