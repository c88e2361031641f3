/* sandbox.h - a pod's own view of the machine: network, processes, files and names, by direct
 * system calls.
 *
 * What the pod sees: the machine's programs and /etc read-only, a root, /run and /dev of its own in
 * memory, /tmp and its home on its scratch folder, its volume at the mount path. An ordinary user
 * gets a user namespace in which it keeps its own number and nobody else exists; root needs none,
 * and loses the capabilities that reach past a container. */
#ifndef BURST_PROVIDERS_LOCAL_SANDBOX_H
#define BURST_PROVIDERS_LOCAL_SANDBOX_H

#include <stdbool.h>

#include "base/err.h"

struct sandbox {
	const char *
		scratch; /* the pod's disk: an existing folder; `root`, `tmp`, ... are made in it */
	const char *volume; /* the folder to be seen at `mount`; NULL: an empty one on the scratch
			       folder */
	const char *mount;  /* absolute: "/workspace" */
	const char *home;   /* absolute; becomes a folder on the pod's disk */
	const char *hostname;
	const char *script; /* becomes the file SANDBOX_SCRIPT */
	bool gpu;           /* let it see the machine's GPUs */
	bool shared_network;
};
#define SANDBOX_SCRIPT "/run/burst-start"

/* Puts the calling process, which stays outside with its files and processes, into a new network
 * namespace with loopback up (unless shared_network), and arranges that its next child is the first
 * process of a new pid namespace. */
int sandbox_enter(bool shared_network, struct err *err);
/* In that child: everything else. On return the process is in its new root, at "/". */
int sandbox_build(const struct sandbox *box, struct err *err);
/* Gives up what reaches past a container; nothing can be mounted afterwards. */
void sandbox_drop_powers(void);
/* Does all of it once in a child, with a throwaway folder made inside dir: can this machine do it,
 * for this user? */
int sandbox_probe(const char *dir, struct err *err);

/* The user the pod runs as, and its home: from the password file, or made up where that has none
 * that will do. Static. */
const char *sandbox_user(void);
const char *sandbox_home(void);
/* Whether that user can have commands run by sshd as the password file stands. In a namespace it is
 * given a shell that can. */
bool sandbox_has_shell(void);

#endif
