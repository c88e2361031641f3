/* launch.h - from a config to a running engine; shared by the commands that rent, resume or
 * release. */
#ifndef BURST_CMD_LAUNCH_LAUNCH_H
#define BURST_CMD_LAUNCH_LAUNCH_H

#include "cmd/cmd.h"
#include "cmd/unattended/unattended.h"
#include "engine/engine.h"
#include "order.h"
#include "runs/choice.h"

struct launch {
	struct cmd_context *ctx;
	struct order order;
	/* the run of this process that this one is a part of; NULL: it stands by itself */
	const struct launch *within;
	struct run run;
	char *renders_dir;
	struct run_choice choice; /* by wish.c and decide.c, or what the ledger has of it */
	struct queued queued;     /* set if the runner of a queue started this process */
	int64_t least_microusd;   /* cost until a pod of it is up; 0: unknown */
	/* the cap over runs that limits its max_cost; "": none does */
	char cap_words[256];
	/* detach.h: the starter that waits until the pods have the queue; -1: none */
	int starter;
	bool keeper_started; /* a client for the pods that it leaves has started (keep_pool.h) */
	/* what is left once all segments are safe: the stages, or for the run of one its end; NULL:
	 * nothing. Returns the exit status, or -1. */
	int (*finish)(struct launch *l, struct err *err);
	/* of a stage's own run: what it works on (stage_parts.h); NULL: it is none */
	const struct stage_work *stage;
	/* an object for each stage that was looked at (report.h); NULL: there are none */
	json_t *stages;
};

void launch_init(struct launch *l, struct cmd_context *ctx);
/* A run that is a part of l, with a copy of its order to be changed. It prints no object and
 * sends no notice of success. Free it first. */
void launch_within(struct launch *out, const struct launch *l);
void launch_free(struct launch *l);

/* Opens the providers that the config names. With several providers, a missing account or key of
 * one is only a warning. */
int launch_open_providers(struct launch *l, struct err *err);

/* Reads the config's job without locks, only for its needs. */
int launch_read_job(struct launch *l, struct err *err);
/* Replaces the loaded job by this one, which owns `job`. None of it is done and no file is written;
 * the output folder only says what is not sent with the code. */
void launch_replace_job(struct launch *l, const struct job_ops *ops, struct job *job);
/* Checks the variables for pods, and hides their values. conf: the group with the key `env`. */
int launch_check_env(const struct section *conf, const struct job_needs *needs, struct err *err);
/* Reads the job and finds what is done, even while a run works on it: takes no lock, makes no
 * folder. */
int launch_peek_job(struct launch *l, struct err *err);
/* Reads the job, locks it and its output folder, and finds what is done. ERR_BUSY: it is running.
 */
int launch_load_job(struct launch *l, struct err *err);
/* The job is loaded: warns of what its end will lack on this machine, before anything is rented.
 * ERR_LOCAL: it could not write its files. */
int launch_foresee(struct launch *l, struct err *err);
/* Like launch_load_job(). Also ERR_CONFIG if something is left to render and a stage would
 * overwrite a user's file. */
int launch_load_to_render(struct launch *l, struct err *err);

/* Raises the limit of descriptors. ERR_CONFIG if `pods` exceed it. */
int launch_check_width(struct launch *l, struct err *err);
/* ERR_BALANCE: no account can pay what this run may cost. An account that reports no balance counts
 * as able. */
int launch_check_balance(struct launch *l, struct err *err);
/* ERR_CREDENTIALS: a provider refuses the keys for files of its volumes, and the config names no
 * other. */
int launch_check_files(struct launch *l, struct err *err);
/* ERR_BUSY while pods of a detached run of the same job may still work, though its client is gone.
 */
int launch_check_detached(const struct launch *l, struct err *err);
/* Fills the engine's settings from the order; the job is loaded. */
void launch_conf(struct launch *l);
/* Adds a new run to the ledger, with its folder and its lock. */
int launch_begin(struct launch *l, bool detached, struct err *err);
/* Runs the engine with the live display; prints phases, JSON and on_exit as the flags say. Returns
 * the exit status. */
int launch_run(struct launch *l);
/* Warns about kept suspect files: the exit status counts them as done. */
void launch_say_suspects(const struct launch *l);
/* Does what is left once all segments are safe (l->finish). Returns the exit status; the run's
 * row has its end. Signals are held on return. */
int launch_finish(struct launch *l, struct err *err);
/* Prints the object of `--json`, if requested. */
void launch_print_json(struct launch *l);
/* For struct cmd.failed: makes the object of a run that never began. */
void launch_failed(struct cmd_context *ctx, const struct err *err);
/* What config and job, if loaded, require of a pod. Borrows their texts. */
void launch_want_offers(struct launch *l, struct op_want *want);
/* Fetches the offers of one provider. as_run: only what a run would use, tied to its volume;
 * ERR_CONFIG then means that a run would never rent there. op_result_free(out) on success. */
int launch_fetch_offers(struct launch *l, int provider, bool as_run, int64_t most_ms,
			struct op_result *out, struct err *err);
enum { LAUNCH_ASK_MS = 60 * 1000 }; /* how long a command waits for a reply that it shows */
/* `plan` and `run --dry-run`: offers and the planner's choice. Returns the exit status. */
struct plan_words; /* plan_show.h */
int launch_plan(struct launch *l, const struct plan_words *words, struct err *err);

/* Reads the config that the run was started with into ctx->config, in whatever folder the user is.
 */
int launch_its_config(struct cmd_context *ctx, const struct run_row *row, struct err *err);
/* Continues a run whose client is gone, and reports that. place: its job and folder. Returns the
 * exit status, or -1 with *err. */
int launch_continue(struct cmd_context *ctx, const struct run_row *row, const char *place,
		    struct err *err);
/* "; files in DIR" if the run has files there, else "". The caller frees it. */
char *launch_files_in(const struct run_row *run);
/* Prints the object of a run with nothing left to do, if --json is given. Returns status, or -1
 * with *err. */
int launch_tell_end(struct cmd_context *ctx, const struct run_row *row, int status,
		    struct err *err);
extern const struct opt launch_resume_opts[]; /* options of the commands that may continue a run */

/* Allocates the results of the segments of the launch's job. */
void launch_make_results(struct launch *l);
/* The run's --json object; new reference. */
json_t *launch_result_json(struct launch *l);
/* The run's own figure plus those of its stages under this key. */
double launch_with_stages(const struct launch *l, const char *key, double own);

#endif
