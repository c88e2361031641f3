/* forward.h - reads the ports that `burst ssh -L` forwards. */
#ifndef BURST_CMD_SSH_FORWARD_H
#define BURST_CMD_SSH_FORWARD_H

#include "base/err.h"

/* Most ports of one command. */
enum { FORWARDS_MAX = 16 };

struct forwards {
	char *spec[FORWARDS_MAX]; /* in the form of ssh's -L */
	int count;
};

void forwards_free(struct forwards *f);
/* Reads "8080,9000:90". ERR_USAGE names the word that is no port. */
int forwards_read(struct forwards *f, const char *text, struct err *err);

static inline void forwards_free_cleanup(struct forwards *f)
{
	forwards_free(f);
}

#endif
