/* way.h - finds how ssh reaches a pod: its address, its key and its host key. */
#ifndef BURST_CMD_SSH_WAY_H
#define BURST_CMD_SSH_WAY_H

#include "cmd/cmd.h"
#include "runs/runs.h"

/* What ssh removes from its own lists, in the form of ssh_config(5). */
#define KEX_ALGORITHMS "-*-sha1"
#define CIPHERS        "-*-cbc"
#define MACS           "-*sha1*,*md5*,umac-64*"

struct ssh_setting {
	const char *key, *value;
};
/* What ssh must not do for a pod, whatever the user's own ssh config says of all hosts. Ends with a
 * NULL key. Only options that OpenSSH 7.8 (2018) knows: an older ssh would refuse the user's whole
 * config. */
extern const struct ssh_setting way_settings[];

struct way {
	struct pod_row pod; /* set by the caller before way_open() */
	char *dir;          /* folder of its run, with the two files */
	char *key, *known;
};

void way_free(struct way *w);
/* Uses the key and host key that burst made, so that ssh neither prompts nor trusts an unknown
 * host. */
int way_open(struct cmd_context *ctx, struct way *w, struct err *err);
/* The user to log in as. */
const char *way_user(const struct pod_row *pod);

static inline void way_free_cleanup(struct way *w)
{
	way_free(w);
}

#endif
