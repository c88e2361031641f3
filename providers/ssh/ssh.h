/* ssh.h - pods on your own machines ("hosts"), which OpenSSH's client reaches.
 *
 * On each host works the vendor of the local provider, as the program burst-host
 * (providers/local/host.c). burst carries it and installs it in ~/.local/share/burst, which is all
 * that it needs there: no root, no other program. A pod's id is HOST:ATTEMPT, a volume's
 * HOST:NAME. */
#ifndef BURST_PROVIDERS_SSH_H
#define BURST_PROVIDERS_SSH_H

#include "provider.h"

extern const struct provider_ops provider_ssh;

#endif
