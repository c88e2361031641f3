/* lockdown.h - restricts a process for good before it becomes a pod's first process. */
#ifndef BURST_PROVIDERS_LOCAL_LOCKDOWN_H
#define BURST_PROVIDERS_LOCAL_LOCKDOWN_H

#include "base/err.h"

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
