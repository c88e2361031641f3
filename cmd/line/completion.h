/* completion.h - prints the completion scripts of bash, zsh and fish, and the values that they
 * offer */
#ifndef BURST_CMD_LINE_COMPLETION_H
#define BURST_CMD_LINE_COMPLETION_H

#include <stddef.h>

#include "cmd/cmd.h"

/* ---- completion ----
 * Prints the completion scripts of bash, zsh and fish. */

/* Prints the script of this shell to stdout. Returns false if there is none. commands ends with
 * NULL. */
bool completion_print(const char *shell, const struct cmd *const *commands);

/* ---- offer ----
 * Decides which values a shell offers for an argument, from its word in the tables. CONFIG offers
 * config files, FILE files, DIR folders. RUN, POD, PROVIDER, GPU, COMMAND and some others offer
 * what `burst words` lists. a|b|c offers these three. Other words offer nothing. */

struct cmd;

enum offer_kind {
	OFFER_NOTHING,
	OFFER_FILES,
	OFFER_ENDINGS, /* files with one of these endings, and folders */
	OFFER_FOLDERS,
	OFFER_LIST,
	OFFER_CHOICES
};

#endif
