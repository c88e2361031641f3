/* lease.h - the lease: how long this pod may live. */
#ifndef BURST_JOBS_AGENT_LEASE_H
#define BURST_JOBS_AGENT_LEASE_H

#include <stdint.h>

#include "agent.h"

int64_t lease_left_s(const struct agent *a);
void lease_renew(struct agent *a, int64_t lease_s);

/* Until this agent writes a lease, the lease is the one of the start script or of an earlier agent:
 * by the wall clock, or by the uptime if that ends sooner, since the uptime may have begun anew
 * meanwhile. */
void lease_find(struct agent *a);
void lease_say(struct agent *a);

#endif
