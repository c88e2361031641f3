/* orders.h - sends the core's orders to agents. */
#ifndef BURST_ENGINE_ORDERS_H
#define BURST_ENGINE_ORDERS_H

#include <stdint.h>

struct engine;

void orders_send(struct engine *e, int pod, uint32_t batch);
void orders_revoke(struct engine *e, int pod);
void orders_renew(struct engine *e, int pod);
void orders_handover(struct engine *e, int pod, int turn);
void orders_takeover(struct engine *e, int pod);
void orders_sync(struct engine *e, int pod, int turn);

#endif
