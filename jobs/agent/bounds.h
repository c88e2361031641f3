/* bounds.h - sizes and times that several files of the agent keep to. */
#ifndef BURST_JOBS_AGENT_BOUNDS_H
#define BURST_JOBS_AGENT_BOUNDS_H

enum {
	LINE_MAX_BYTES = 1 << 20, /* of one JSON line, both ways */
	WORKERS_MAX = 256,
	CLIENTS_MAX = 8,
	SLICE = 1 << 20, /* bytes hashed or copied between two looks at the descriptors */
	PATH_BYTES_MAX = 4096,
	WORKER_UID = 61001, /* where the agent may: who workers and commands are, */
	SETUP_UID = 61002,  /* ... and who a job's setup is: what it leaves no worker can change */
	GROUPS_MAX = 16,
	ALIVE_MS = 5 * 1000,
	START_CHECK_S = 3600,
};

#endif
