/* hook.h - the parts of `burst hook`. */
#ifndef BURST_CMD_UNATTENDED_HOOK_H
#define BURST_CMD_UNATTENDED_HOOK_H

#include "cmd/cmd.h"
#include "unattended/hook.h"

int hook_fire(struct cmd_context *ctx, struct err *err);
int hook_status(struct cmd_context *ctx, const struct hook_target *t, struct err *err);

/* ---- hook_target.c: the job and its repository ---- */

/* Finds the job that the arguments name. With --into, makes the working tree of a bare repository.
 */
int hook_find_target(const struct cmd_context *ctx, struct hook_target *t, struct err *err);
/* Whether its repository is bare. */
bool hook_is_bare(const struct hook_target *t);
/* Reports a mistake in the job now, while the user reads the output. */
int hook_check_job(const struct hook_target *t, bool bare, struct err *err);
/* Removes the working tree if --into made it; its outputs stay. */
int hook_remove_tree(const struct hook_target *t, struct err *err);

/* ---- hook_flags.c ---- */

/* The hooks of --on, else `usual`. NULL-terminated. text holds the words. */
int hook_chosen(const struct cmd_context *ctx, const char *const *usual, char **text,
		const char *names[8], struct err *err);
/* ERR_USAGE names the flag that is no duration or number. */
int hook_check_durations(const struct cmd_context *ctx, struct err *err);
/* Checks --branch and --path. ERR_USAGE: nothing could ever match. Warns if nothing matches yet. */
int hook_check_filters(const struct cmd_context *ctx, const struct hook_target *t, struct err *err);
/* The job as a hook's settings; its texts are borrowed. */
struct hook_job hook_job_of(const struct cmd_context *ctx, const struct hook_target *t, bool bare);

/* ---- hook_change.c ---- */

/* Installs the hooks of --on, else the usual ones. Returns 1 if some were not installed. */
int hook_install_all(struct cmd_context *ctx, const struct hook_target *t, struct err *err);
/* Removes the hooks of --on, else all; then also the working tree that --into made. */
int hook_remove_all(struct cmd_context *ctx, struct hook_target *t, struct err *err);

#endif
