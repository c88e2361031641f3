/* sandbox.h - a pod's own view of the machine: users, network, processes, files and names, by
 * direct system calls.
 *
 * What the pod sees: the machine's programs read-only, an /etc made up for it, a root, /run and
 * /dev of its own in memory, /tmp and its home on its scratch folder, its volume at the mount path.
 * Its users are unprivileged ones of this machine (ids.h): a range of their own if root starts
 * it, else the user who does. */
#ifndef BURST_PROVIDERS_LOCAL_SANDBOX_H
#define BURST_PROVIDERS_LOCAL_SANDBOX_H

#include <stdbool.h>

#include "ids.h"

struct sandbox {
	/* the pod's disk: an existing folder; `root` and `disk` are made in it */
	const char *scratch;
	/* the folder mounted at `mount`; NULL: an empty one on the scratch folder */
	const char *volume;
	const char *mount; /* absolute: "/workspace" */
	const char *hostname;
	const char *script;  /* becomes the file SANDBOX_SCRIPT */
	const char *private; /* a folder that must be hidden, wherever it lies */
	bool gpu;            /* let it see the machine's GPUs */
	bool shared_network;
	struct sandbox_users {
		struct pod_ids ids;
		int namespace; /* a descriptor; -1: sandbox_enter() has entered it already */
	} users;
};
#define SANDBOX_SCRIPT "/run/burst-start"

/* Puts the calling process, which stays outside with its files and processes, into a new network
 * namespace with loopback up (unless shared_network), and arranges that its next child is the first
 * process of a new pid namespace. An ordinary user's process is in the pod's user namespace
 * afterwards, root's is not. users->namespace is to be closed if it is one. */
int sandbox_enter(bool shared_network, struct sandbox_users *users, struct err *err);
/* In that child: its files and names. On return the process is in its new root, at "/". */
int sandbox_build(const struct sandbox *box, struct err *err);
/* In that child, afterwards: it becomes the pod's user and drops for good every right that reaches
 * past the pod. */
int sandbox_confine(const struct sandbox_users *users, struct err *err);
/* Does all of it once in a child, with a throwaway folder made inside dir: can this machine do it,
 * for this user? */
int sandbox_probe(const char *dir, struct err *err);

#endif
