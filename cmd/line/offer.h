/* offer.h - decides which values a shell offers for an argument, from its word in the tables.
 * CONFIG offers config files, FILE files, DIR folders. RUN, POD, PROVIDER, GPU, COMMAND and some
 * others offer what `burst words` lists. a|b|c offers these three. Other words offer nothing. */
#ifndef BURST_CMD_LINE_OFFER_H
#define BURST_CMD_LINE_OFFER_H

#include <stddef.h>

struct cmd;

enum offer_kind {
	OFFER_NOTHING,
	OFFER_FILES,
	OFFER_ENDINGS, /* files with one of these endings, and folders */
	OFFER_FOLDERS,
	OFFER_LIST,
	OFFER_CHOICES
};

/* out: the argument of `burst words`, or the choices or endings, separated by blanks. cmd NULL: the
 * word belongs to a flag of all commands. */
enum offer_kind offer_of(const struct cmd *cmd, const char *word, char *out, size_t room);
/* The n-th word of the command's arguments, or "". */
void offer_argument(const struct cmd *cmd, int n, char *out, size_t room);

#endif
