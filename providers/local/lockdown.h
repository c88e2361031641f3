/* lockdown.h - restricts a process for good before it becomes a pod's first. */
#ifndef BURST_PROVIDERS_LOCAL_LOCKDOWN_H
#define BURST_PROVIDERS_LOCAL_LOCKDOWN_H

#include "base/err.h"

/* Of this process and all it starts: no gain of rights by programs, few capabilities, a session
 * keyring of its own, the system calls that container runtimes allow, no abstract socket of other
 * programs (from Linux 6.12 on). Call it as the pod's user. ERR_LOCAL if the kernel cannot do one
 * of them, except the last and the keyring. */
int lockdown(struct err *err);
/* Whether this kernel keeps a pod off the abstract sockets of the network that it shares. */
bool lockdown_hides_sockets(void);
/* The capabilities alone, to what container runtimes leave to a container's root. */
void lockdown_capabilities(void);

#endif
