/* machine.h - what the pod is: processors, memory, disks, programs, clocks. */
#ifndef BURST_JOBS_AGENT_MACHINE_H
#define BURST_JOBS_AGENT_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

int64_t uptime_s(void);
bool have_program(const char *name);
int cpu_count(void);
int64_t memory_mb(void);
int64_t free_bytes(const char *path);

/* Returns whether programs can run from this disk and it is not memory. */
bool disk_fits(const char *path);

#endif
