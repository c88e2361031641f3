/* sandbox.h - what builds and restricts a pod's own view of this machine */
#ifndef BURST_PROVIDERS_LOCAL_SANDBOX_H
#define BURST_PROVIDERS_LOCAL_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "vendor.h"

/* ---- sandbox ----
 * Gives a pod its own view of the machine by direct system calls: users, network, processes,
 * files and names.
 *
 * The pod sees the machine's programs read-only, a made-up /etc, a root, /run and /dev in memory,
 * /tmp and its home on its scratch folder, and its volume at the mount path. Its users are
 * unprivileged users of this machine (vendor.h): a range of its own if root starts it, else the
 * user who starts it. */

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
enum pod_network { NETWORK_PRIVATE, NETWORK_SHARED };

/* Enters a new network namespace with loopback up (unless NETWORK_SHARED) and makes the next child
 * the first process of a new pid namespace. The calling process keeps its files and processes. An
 * ordinary user's process is then in the pod's user namespace, root's is not. The caller closes
 * users->namespace if it is a descriptor. */
int sandbox_enter(enum pod_network network, struct sandbox_users *users, struct err *err);
/* Runs in that child: builds its files and names. The process then is in its new root, at "/". */
int sandbox_build(const struct sandbox *box, struct err *err);
/* Runs in that child afterwards: becomes the pod's user and drops for good all rights outside the
 * pod. */
int sandbox_confine(const struct sandbox_users *users, struct err *err);
/* Builds a sandbox in a child, with a temporary folder in dir. 0: this user can build one on this
 * machine; -1: *err has the reason. */
int sandbox_probe(const char *dir, struct err *err);

/* ---- lockdown.c ---- */

/* Restricts this process and its children for good: programs gain no rights; few capabilities; a
 * session keyring of their own; only the system calls that container runtimes allow; no access to
 * other programs' abstract sockets (from Linux 6.12 on). Call as the pod's user. ERR_LOCAL if the
 * kernel lacks one of them, except the keyring and the last. */
int lockdown_process(struct err *err);
/* Returns whether this kernel can hide the abstract sockets of a shared network from a pod. */
bool lockdown_hides_sockets(void);
/* Only reduces the capabilities, to those that container runtimes leave to a container's root. For
 * tests; part of lockdown_process(). */
void lockdown_capabilities(void);

#endif
