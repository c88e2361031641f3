/* completion.h - prints the completion scripts of bash, zsh and fish. */
#ifndef BURST_CMD_LINE_COMPLETION_H
#define BURST_CMD_LINE_COMPLETION_H

#include "cmd/cmd.h"

/* Prints the script of this shell to stdout. Returns false if there is none. commands ends with
 * NULL. */
bool completion_print(const char *shell, const struct cmd *const *commands);

#endif
