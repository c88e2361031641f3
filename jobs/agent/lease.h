/* lease.h - the lease: how long this pod may live. */
#ifndef BURST_JOBS_AGENT_LEASE_H
#define BURST_JOBS_AGENT_LEASE_H

#include <stdint.h>

#include "agent.h"

int64_t lease_left_s(const struct agent *a);
void lease_renew(struct agent *a, int64_t lease_s);

/* Until we write one, the lease is what the start script was told, or what an agent before us
 * wrote: by the wall clock, or by the uptime where that is over sooner, since it may have begun
 * anew meanwhile. */
void lease_find(struct agent *a);
void lease_say(struct agent *a);

#endif
