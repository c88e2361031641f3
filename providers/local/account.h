/* account.h - the name and home of a pod's user. */
#ifndef BURST_PROVIDERS_LOCAL_ACCOUNT_H
#define BURST_PROVIDERS_LOCAL_ACCOUNT_H

#include <stdbool.h>

/* What a pod in namespaces calls its user, whatever this machine does: root, or "pod" for an
 * ordinary user. */
const char *account_in_pod(void);
const char *account_home_in_pod(void);

/* Of a pod that is a process group: this machine's name of the user. Static. */
const char *account_name(void);
/* Whether sshd can run commands for that user: the password file gives it a shell. */
bool account_has_shell(void);

#endif
