/* send.h - `send`: files of the volume, requested line by line. */
#ifndef BURST_JOBS_AGENT_SEND_H
#define BURST_JOBS_AGENT_SEND_H

#include <stdint.h>

#include "base/str.h"
#include "place.h"

/* Sends exactly `left` bytes even if the file changes: the receiver checks the hash. */
int send_bytes(int fd, int64_t offset, int64_t left);
int send_lines(const struct place *place, struct str *in);
int agent_send(void);

#endif
