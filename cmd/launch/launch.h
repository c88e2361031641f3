/* launch.h - from a config to an engine that runs, shared by the commands that rent, come back, or
 * give back. */
#ifndef BURST_CMD_LAUNCH_LAUNCH_H
#define BURST_CMD_LAUNCH_LAUNCH_H

#include "cmd/cmd.h"
#include "cmd/unattended/queue_client.h"
#include "engine/engine.h"

struct launch {
	struct cmd_context *ctx;
	struct run run;
	char *renders_dir;
	const char **gpus;
	/* by decide.c, where the config leaves them open; 0 and NULL (else NULL-terminated): as it
	 * says */
	int chosen_pods;
	bool at_once; /* the plan takes all of them from the start */
	char **chosen_gpus;
	struct core_plan plan; /* what a run may change later; its forecasts are the launch's own */
	struct core_forecast *forecasts;
	struct queued queued;   /* set where the runner of a queue started us */
	int64_t least_microusd; /* what is spent before a pod of it is up; 0: not known */
	/* the cap over runs whose rest is its max_cost; "": it has its own */
	char cap_words[256];
	/* detach.h: the starter that waits for the pods to have the queue; -1: none */
	int starter;
	bool keeper_started; /* who keeps the pods that it leaves (keep_pool.h) */
	/* what the delivery's own run said; NULL: there was none */
	json_t *delivered;
};

void launch_init(struct launch *l, struct cmd_context *ctx);
void launch_free(struct launch *l);

/* Opens the providers that the config names. A missing account or key of one of several providers
 * is only a warning. */
int launch_open_providers(struct launch *l, struct err *err);

/* The job of the config as it is, without locks: for its needs alone. */
int launch_read_job(struct launch *l, struct err *err);
/* The job that was read becomes the one that is run: `job` owns it. Nothing of it is done, and no
 * file is written; the output folder only says what does not travel with the code. */
void launch_replace_job(struct launch *l, const struct job_ops *ops, struct job *job);
/* Reads the job and finds what is done already, beside a run that may be at work on it: takes no
 * lock, makes no folder. */
int launch_peek_job(struct launch *l, struct err *err);
/* Reads the job, locks it and its output folder, finds what is done already. ERR_BUSY: it is
 * running. */
int launch_load_job(struct launch *l, struct err *err);
/* Like launch_load_job(). ERR_CONFIG, too: there is something to render, and a file of the user's
 * own is in the way of its delivery. */
int launch_load_to_render(struct launch *l, struct err *err);

/* Raises the limit of descriptors; ERR_CONFIG where `pods` are more than fit into it. */
int launch_check_width(struct launch *l, struct err *err);
/* ERR_BALANCE: no provider's account can pay what this run may cost. One that does not say counts
 * as able. */
int launch_check_balance(struct launch *l, struct err *err);
/* ERR_CREDENTIALS: a provider refuses the keys for files of its volumes, and no other one is named.
 */
int launch_check_files(struct launch *l, struct err *err);
/* ERR_BUSY while pods of a detached run of this very job may still work on it, though its client is
 * gone. */
int launch_check_detached(const struct launch *l, struct err *err);
/* The config's gpu: NULL-terminated, the launch's own; NULL: any will do. */
const char *const *launch_gpus(struct launch *l);
/* What the config says, for the engine; the job has been read. */
void launch_conf_from_config(struct launch *l);
/* A new run in the ledger, with its folder and its lock. */
int launch_begin(struct launch *l, bool detached, struct err *err);
/* Runs the engine with the live display; prints phases, JSON and on_exit as the flags say. Returns
 * the exit status. */
int launch_run(struct launch *l);
/* Warns about kept files that failed every audio check: they count as done for the exit status, but
 * may sound wrong. */
void launch_say_suspects(const struct launch *l);
/* What is left to do when all segments are safe: the delivery. The exit status; the run's row says
 * then how it ended. Signals are held when it returns. */
int launch_deliver(struct launch *l, struct err *err);
/* The one object of `--json`, if it was asked for. */
void launch_print_json(struct launch *l);
/* For struct cmd.failed: the object of a run that never began. */
void launch_failed(struct cmd_context *ctx, const struct err *err);
/* What the config and the job, if it was read, want of a pod. Its texts are borrowed from them. */
void launch_want_offers(struct launch *l, struct op_want *want);
/* What one provider would rent us now; as_run: what a run would find there, tied to its volume.
 * With kind ERR_CONFIG a run would never rent there. op_result_free(out) on success. */
int launch_fetch_offers(struct launch *l, int provider, bool as_run, int64_t most_ms,
			struct op_result *out, struct err *err);
/* Appends what costs no more than caps.max_price_per_hour to a list, and frees the result. */
void launch_keep_offers(const struct launch *l, struct op_result *from, struct offer **all,
			size_t *count);
enum { LAUNCH_ASK_MS = 60 * 1000 }; /* how long a command waits for an answer that it shows */
/* `plan` and `run --dry-run`: offers and the planner's choice. Returns the exit status. */
struct plan_words; /* plan_show.h */
int launch_plan(struct launch *l, const struct plan_words *words, struct err *err);

/* Reads the config that the run was started with, whatever folder we stand in, into ctx->config. */
int launch_its_config(struct cmd_context *ctx, const struct run_row *row, struct err *err);
/* Continues this run, whose client is gone, and says so. place: its job and folder. The exit
 * status; -1 with *err. */
int launch_continue(struct cmd_context *ctx, const struct run_row *row, const char *place,
		    struct err *err);
/* The object of a run for which nothing is left to do here, where --json asks for it; returns
 * status, or -1 with *err. */
int launch_tell_end(struct cmd_context *ctx, const struct run_row *row, int status,
		    struct err *err);
extern const struct opt launch_resume_opts[]; /* of the commands that may continue a run */

/* progress.c: the display of a running engine. */
struct progress;
struct progress *progress_new(const struct cmd_context *ctx);
void progress_draw(struct progress *p, const struct engine *e);
/* At the end: how long joining took here is kept for later estimates. */
void progress_learn(struct progress *p, const struct engine *e);
void progress_free(struct progress *p);

/* Room for what becomes of each segment of the launch's job. */
void launch_make_results(struct launch *l);
/* What the run says of itself as --json does; new reference. */
json_t *launch_result_json(struct launch *l);
/* The run's own figure, and that of its delivery under this key of its object. */
double launch_with_delivery(const struct launch *l, const char *key, double own);

#endif
