/* forward.h - the ports that `burst ssh -L` forwards. */
#ifndef BURST_CMD_SSH_FORWARD_H
#define BURST_CMD_SSH_FORWARD_H

#include "base/err.h"

/* The most ports that one command forwards. */
enum { FORWARDS_MAX = 16 };

struct forwards {
	char *spec[FORWARDS_MAX]; /* as ssh's -L takes it */
	int count;
};

void forwards_free(struct forwards *f);
/* "8080,9000:90": with commas between. ERR_USAGE names the word that is no port. */
int forwards_read(struct forwards *f, const char *text, struct err *err);

static inline void forwards_free_cleanup(struct forwards *f)
{
	forwards_free(f);
}

#endif
