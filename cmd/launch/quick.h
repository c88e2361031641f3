/* quick.h - a run without a burst.cfg: turns a text or a command on the command line into a config.
 */
#ifndef BURST_CMD_LAUNCH_QUICK_H
#define BURST_CMD_LAUNCH_QUICK_H

#include "cmd/cmd.h"

struct quick {
	char *path; /* absolute path for --save. With the job's name it identifies the job, saved or
		       not */
	char *text; /* in burst.cfg's syntax, with paths relative to that folder */
};

/* Sets ctx->quick if the words name a text to speak ("book.md") or, behind "--", a command. Leaves
 * it NULL if they name a config or nothing. ERR_USAGE: the words cannot be a job. */
int quick_from_words(struct cmd_context *ctx, struct err *err);
/* Sets ctx->quick to the config that a run without a burst.cfg began with. Leaves it NULL if the
 * run had one. */
int quick_of_run(struct cmd_context *ctx, const char *config, const char *run_dir, struct err *err);
/* Keeps ctx->quick in the run's folder, so that the run can be resumed. Does nothing if it is NULL.
 */
int quick_keep(const struct cmd_context *ctx, const char *run_dir, struct err *err);
/* Prints the config of a run without one to stderr or, with --save, writes it. Does nothing if
 * ctx->quick is NULL. */
int quick_tell(struct cmd_context *ctx, struct err *err);
/* Accepts NULL. */
void quick_free(struct quick *q);

#endif
