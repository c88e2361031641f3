/* runs.h - runs as the ledger and their locks show them: which one is meant, whether a client
 * drives it, how it ended. */
#ifndef BURST_CMD_RUNS_H
#define BURST_CMD_RUNS_H

#include "cmd.h"

/* Of the folder where it keeps its lock, keys, flags and log (name NULL), or of one of those; the
 * caller frees it. */
char *run_path(const struct cmd_context *ctx, const char *run, const char *name);
/* One that no run of the ledger has: "k7x2fd". */
int run_new_id(struct store *store, char id[24], struct err *err);
/* A process holds the run's lock: a client, whose note there begins with RUN_CLIENT and its number;
 * or, for a while, a command that settles it or removes its files. */
#define RUN_CLIENT "process"
bool run_is_alive(const struct cmd_context *ctx, const char *run);
/* As above, and it is no other who settles it. */
bool run_has_client(const struct cmd_context *ctx, const char *run);
/* By its name; NULL: of the burst.cfg in this folder, never of another one. Of its runs and their
 * deliveries the newest that is running, else the newest with pods that may bill, else the newest.
 * ERR_USAGE: there is none. */
int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* For messages: job "quiz" in /home/me/quiz. To be freed. */
char *run_place(struct cmd_context *ctx, const struct run_row *run);
/* Adds that to the message. Returns -1. */
int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err);
/* As of when its age and cost are told, and in which state it is ("unwatched" and "over" beside the
 * ledger's words). Without a client the ledger learns nothing more of a pod: one that was handed
 * over may have ended itself, and past its hard end every pod has. */
struct run_pod_now {
	const char *state;
	int64_t at_ms;
};
struct run_pod_now run_pod_now(const struct cmd_context *ctx, const struct pod_row *pod,
			       int64_t now);
/* How many of its pods may still bill. */
int run_open_pods(const struct cmd_context *ctx, const char *run, size_t *count, struct err *err);
/* The ids of a provider's pods that may bill, of all runs of the ledger: NULL-terminated; free with
 * core_ids_free(). NULL: there is no ledger. */
char **run_pod_ids(const struct cmd_context *ctx, const char *provider);
/* Writes into the row that the run has ended so, and with which exit status. */
void run_end(struct run_row *run, const char *status);
/* What an unreleased one is when its pods are gone: "done" or "partial". */
const char *run_ended_as(const struct cmd_context *ctx, const struct run_row *run);

#endif
