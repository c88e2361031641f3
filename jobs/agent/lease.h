/* lease.h - the lease: how long this pod may live. */
#ifndef BURST_JOBS_AGENT_LEASE_H
#define BURST_JOBS_AGENT_LEASE_H

#include <stdint.h>

#include "agent.h"

int64_t lease_left_s(const struct agent *a);
void lease_renew(struct agent *a, int64_t lease_s);

/* Reads the lease that the start script or an earlier agent left. It counts until this agent writes
 * one. Uses the wall clock, or the uptime if that ends sooner: the uptime may have restarted. */
void lease_find(struct agent *a);
void lease_say(struct agent *a);

#endif
