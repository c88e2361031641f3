/* known_providers.h - the providers that a command must not pass over in silence. */
#ifndef BURST_CMD_LAUNCH_KNOWN_PROVIDERS_H
#define BURST_CMD_LAUNCH_KNOWN_PROVIDERS_H

#include "cmd/cmd.h"

/* Those that `provider` of the user's file, or of the burst.cfg of this folder, names; a broken
 * burst.cfg names none. NULL-terminated; free with names_free(). */
char **providers_of_configs(const struct cmd_context *ctx);
/* Those at which the ledger has a pod or a volume, gone or not. */
char **providers_of_ledger(const struct cmd_context *ctx);
void names_free(char **names);

#endif
