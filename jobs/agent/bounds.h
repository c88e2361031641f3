/* bounds.h - limits of size and time that several files of the agent share. */
#ifndef BURST_JOBS_AGENT_BOUNDS_H
#define BURST_JOBS_AGENT_BOUNDS_H

enum {
	LINE_MAX_BYTES = 1 << 20, /* of one JSON line, in either direction */
	WORKERS_MAX = 256,
	CLIENTS_MAX = 8,
	SLICE = 1 << 20, /* bytes to hash or copy between two polls */
	PATH_BYTES_MAX = 4096,
	/* Users of workers and commands, and of a job's setup, if the agent is root. They differ so
	 * that no worker can change what the setup leaves. */
	WORKER_UID = 61001,
	SETUP_UID = 61002,
	GROUPS_MAX = 16,
	ALIVE_MS = 5 * 1000,
	START_CHECK_S = 3600,
};

#endif
