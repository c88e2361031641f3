/* way.h - how ssh reaches a pod */
#ifndef BURST_CMD_SSH_WAY_H
#define BURST_CMD_SSH_WAY_H

#include "base/err.h"
#include "cmd/cmd.h"
#include "runs/runs.h"

/* ---- forward ----
 * Reads the ports that `burst ssh -L` forwards. */

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

/* ---- way ----
 * Finds how ssh reaches a pod: its address, its key and its host key. */

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

/* ---- host entry ----
 * Writes entries of pods for ssh(1), and the line that includes them. */

/* Writes an entry for each pod that can be reached now. The new file replaces the old one, with its
 * stale entries. */
int host_entries_write(struct cmd_context *ctx, const char *path, struct err *err);
/* Adds the include line at the top of the user's ssh config: below a Host it would apply to that
 * host only. */
int host_entries_include(struct cmd_context *ctx, const char *path, struct err *err);

#endif
