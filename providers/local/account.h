/* account.h - the name and home of a pod's user. */
#ifndef BURST_PROVIDERS_LOCAL_ACCOUNT_H
#define BURST_PROVIDERS_LOCAL_ACCOUNT_H

#include <stdbool.h>

/* Name of the user inside a pod in namespaces: root, or "pod" for an ordinary user. */
const char *account_in_pod(void);
const char *account_home_in_pod(void);

/* Name of this machine's user, who runs a pod that is a process group. Static. */
const char *account_name(void);
/* Returns whether sshd can run commands for that user: the password file names a shell. */
bool account_has_shell(void);

#endif
