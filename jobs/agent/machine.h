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

/* Opens the file of this process's control group that counts the processes which the kernel has
 * killed for want of memory. -1: there is none. */
int oom_open(void);
/* That count now; 0 if it cannot be read. */
int64_t oom_kills(int fd);

/* Returns whether programs can run from this disk and it is not memory. */
bool disk_fits(const char *path);

#endif
