/* sandbox.h - gives a pod its own view of the machine by direct system calls: users, network,
 * processes, files and names.
 *
 * The pod sees the machine's programs read-only, a made-up /etc, a root, /run and /dev in memory,
 * /tmp and its home on its scratch folder, and its volume at the mount path. Its users are
 * unprivileged users of this machine (ids.h): a range of its own if root starts it, else the user
 * who starts it. */
#ifndef BURST_PROVIDERS_LOCAL_SANDBOX_H
#define BURST_PROVIDERS_LOCAL_SANDBOX_H

#include <stdbool.h>

#include "ids.h"

struct sandbox {
	/* the pod's disk: an existing folder in which `root` and `disk` are made */
	const char *scratch;
	/* folder mounted at `mount`; NULL: an empty one on the scratch folder */
	const char *volume;
	const char *mount; /* absolute: "/workspace" */
	const char *hostname;
	const char *script;  /* becomes the file SANDBOX_SCRIPT */
	const char *private; /* folder to hide, wherever it lies */
	bool gpu;            /* show the machine's GPUs */
	bool shared_network;
	struct sandbox_users {
		struct pod_ids ids;
		int namespace; /* descriptor; -1: sandbox_enter() has entered it already */
	} users;
};
#define SANDBOX_SCRIPT "/run/burst-start"

/* Enters a new network namespace with loopback up (unless shared_network) and makes the next child
 * the first process of a new pid namespace. The calling process keeps its files and processes. An
 * ordinary user's process is then in the pod's user namespace, root's is not. The caller closes
 * users->namespace if it is a descriptor. */
int sandbox_enter(bool shared_network, struct sandbox_users *users, struct err *err);
/* Runs in that child: builds its files and names. On return the process is in its new root, at "/".
 */
int sandbox_build(const struct sandbox *box, struct err *err);
/* Runs in that child afterwards: becomes the pod's user and drops for good all rights outside the
 * pod. */
int sandbox_confine(const struct sandbox_users *users, struct err *err);
/* Tests all of it in a child, with a temporary folder in dir: returns whether this user can build a
 * sandbox on this machine. */
int sandbox_probe(const char *dir, struct err *err);

#endif
