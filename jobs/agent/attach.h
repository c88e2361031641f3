/* attach.h - `attach`: between the SSH channel and the socket of `serve`. */
#ifndef BURST_JOBS_AGENT_ATTACH_H
#define BURST_JOBS_AGENT_ATTACH_H

int agent_attach(void);

#endif
