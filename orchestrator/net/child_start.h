/* child_start.h - starts a program with pipes to its stdin, stdout and stderr, for child.c. */
#ifndef BURST_NET_CHILD_START_H
#define BURST_NET_CHILD_START_H

#include <sys/types.h>

#include "provider.h"

/* Our ends of a running child; all are the caller's to close, and the child to reap. */
struct child_ends {
	pid_t pid; /* also its process group */
	int in;    /* -1: its stdin is a file */
	int out, err;
};

/* The program that argv[0] means; NULL if there is none. The caller frees it. */
char *child_program(const char *name);
/* Starts `program` with call->argv; waits until it runs, 5 s at most. Its stdin is a pipe if the
 * call has a body in memory, else call->body_from or nothing. name is for messages. ERR_LOCAL: it
 * could not be started, and no child is left. */
int child_start(struct child_ends *out, char *program, const struct call *call, const char *name,
		struct err *err);

#endif
