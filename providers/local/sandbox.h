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

/* ---- place ----
 * Shared by the files that build a sandbox: mounts, folders and devices below its new root. */

/* <linux/mount.h> conflicts with <sys/mount.h> on some systems */
struct attr_change {
	uint64_t set, clear, propagation, userns_fd;
};
enum {
	ATTR_RDONLY = 1,
	ATTR_NOSUID = 2,
	ATTR_NODEV = 4,
	ATTR_NOEXEC = 8,
	AT_RECURSIVE_TREE = 0x8000
};
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* mount attributes: pods cannot change the machine's programs or gain another user by them */
enum {
	PROGRAMS = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV,
	DATA = ATTR_NOSUID | ATTR_NODEV,
	DEVICE = ATTR_NOSUID | ATTR_NOEXEC
};

/* The new root under construction, and its owner. */
struct place {
	const struct sandbox *box;
	const char *root;
	char options[64]; /* of memory file systems that belong to the pod's root */
};

/* ---- etc: makes the /etc of a pod in namespaces ---- */

struct etc {
	const struct pod_ids *ids;
	const char *hostname;
	bool shared_network; /* use this machine's resolver and host table */
};

/* ---- lockdown: restricts a process for good before it becomes a pod's first process ---- */

/* Restricts this process and its children: programs gain no rights; few capabilities; a session
 * keyring of their own; only the system calls that container runtimes allow; no access to other
 * programs' abstract sockets (from Linux 6.12 on). Call as the pod's user. ERR_LOCAL if the kernel
 * lacks one of them, except the keyring and the last. */
int lockdown(struct err *err);
/* Returns whether this kernel can hide the abstract sockets of a shared network from a pod. */
bool lockdown_hides_sockets(void);
/* Only reduces the capabilities, to those that container runtimes leave to a container's root. */
void lockdown_capabilities(void);

#endif
