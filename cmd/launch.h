/* launch.h - from a config to an engine that runs, shared by the commands that rent, come back, or give back. */
#ifndef BURST_CMD_LAUNCH_H
#define BURST_CMD_LAUNCH_H

#include "cmd.h"
#include "engine/engine.h"

struct launch {
	struct cmd_context *ctx;
	struct engine_setup setup;
	struct run_row run;
	char machine[20];
	char *run_dir, *output_dir;
	const char **gpus;
	struct pod_row *adopted;
	char rented_at[CORE_PROVIDERS_MAX][PROVIDER_NAME_MAX]; /* by an earlier life of this run */
	int rented_at_count;
	int out_of_reach; /* pods to give back whose account cannot be opened */
	int run_lock, job_lock, output_lock; /* -1: not held */
	struct err err;			     /* of the run, once it has ended */
	struct pod_row *unsaved;	     /* pods as they are, where the ledger could not be told */
	size_t unsaved_count;
	bool had_work;			     /* something was left to render when it went on */
	json_t *delivered;		     /* what the delivery's own run said; NULL: there was none */
};

void launch_init(struct launch *l, struct cmd_context *ctx);
void launch_free(struct launch *l);

/* Opens the providers of the config (all that are named) or one by its name. Without ERR_NO_ACCOUNT: there is one, even if its key
 * cannot be had now. Either is a warning, of one of several. */
int launch_open_providers(struct launch *l, struct err *err);
int launch_open_provider(struct launch *l, const char *name, struct err *err);

/* The job of the config as it is, without locks: for its needs alone. */
int launch_read_job(struct launch *l, struct err *err);
/* Reads the job and finds what is done already, beside a run that may be at work on it: takes no lock, makes no folder. */
int launch_look_at_job(struct launch *l, struct err *err);
/* Whether the output folder could be written, or made, without making it. */
int launch_check_output(const struct launch *l, struct err *err);
/* Reads the job, locks it and its output folder, finds what is done already. ERR_BUSY: it is running. */
int launch_load_job(struct launch *l, struct err *err);
size_t launch_open_segments(const struct launch *l); /* not done yet */

/* Settles runs whose client died: releases their pods, proves them gone, marks them. Prints what it did. -1 with
 * ERR_UNRELEASED if a pod could not be confirmed gone. except: a run to leave alone (about to be resumed); NULL. */
int launch_settle(struct cmd_context *ctx, const char *except, struct err *err);
/* One run, whose client is dead, if it has not been settled and none of its pods is open any more. */
int launch_settle_run(struct cmd_context *ctx, const char *id, struct err *err);
/* By its result: three times interrupted, so that whatever follows would only ask for as much again. */
bool launch_wants_out(int result, const struct err *err);
/* Raises the limit of descriptors; ERR_CONFIG where `pods` are more than fit into it. */
int launch_check_width(struct launch *l, struct err *err);
/* ERR_BALANCE: no provider's account can pay what this run may cost. One that does not say counts as able. */
int launch_check_balance(struct launch *l, struct err *err);
/* ERR_BUSY while pods of a detached run of this very job may still work on it, though its client is gone. */
int launch_check_detached(const struct launch *l, struct err *err);
/* Writes into the row that the run has ended so, and with which exit status. */
void run_end(struct run_row *run, const char *status);
/* What an unreleased one is when its pods are gone: "done" or "partial". */
const char *run_ended_as(const struct cmd_context *ctx, const struct run_row *run);
/* How many of its pods may still bill. */
int run_open_pods(const struct cmd_context *ctx, const char *run, size_t *count, struct err *err);
/* Releases the pods of one run (its client must be dead) and marks it `status`. */
int launch_release_run(struct cmd_context *ctx, const struct run_row *run, const char *status, struct err *err);

/* A pod whose provider cannot be asked is closed in the ledger, at what it can have cost by its hard end. */
int launch_write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err);

/* A new run in the ledger, with its folder and its lock; or the old one, with its pods to take over. */
int launch_begin(struct launch *l, bool detached, struct err *err);
int launch_resume(struct launch *l, const struct run_row *run, struct err *err);

/* Runs the engine with the live display; prints phases, JSON and on_exit as the flags say. Returns the exit status. */
int launch_run(struct launch *l);
/* A warning, where files were kept that never sounded right: they are done for the exit status, not for whoever listens. */
void launch_say_suspects(const struct launch *l);
/* What is left to do when all segments are safe: the delivery. The exit status; the run's row says then how it ended. Signals are
 * held when it returns. */
int launch_deliver(struct launch *l, struct err *err);
/* The one object of `--json`, if it was asked for. */
void launch_print_json(struct launch *l);
/* For struct cmd.failed: the object of a run that never began. */
void launch_failed(struct cmd_context *ctx, const struct err *err);
/* What one provider would rent us now; as_run: what a run would find there, tied to its volume. With kind ERR_CONFIG a run
 * would never rent there. op_result_free(out) on success. */
int launch_ask_offers(struct launch *l, int provider, bool as_run, struct op_result *out, struct err *err);
/* `plan` and `run --dry-run`: offers and the simple estimate. Returns the exit status. */
int launch_plan(struct launch *l, struct err *err);

/* Reads the config that the run was started with, whatever folder we stand in, into ctx->config. */
int launch_its_config(struct cmd_context *ctx, const struct run_row *row, struct err *err);

/* Somebody holds the run's lock: a client, whose note there begins with RUN_CLIENT and its number; or, for a while, who settles
 * it or removes its files. */
#define RUN_CLIENT "process"
bool run_is_alive(const struct cmd_context *ctx, const char *run);
/* By its name; NULL: the newest that is running, else the newest with pods that may bill, else the newest. */
int launch_find_run(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);

/* progress.c: the display of a running engine. */
struct progress;
struct progress *progress_new(const struct cmd_context *ctx);
void progress_draw(struct progress *p, const struct engine *e);
/* Takes the drawn lines away, so that something can be printed; the next draw puts them back. */
void progress_clear(struct progress *p);
void progress_free(struct progress *p);

#endif
