/* launch.h - what commands do with a run: from its config and flags to its end */
#ifndef BURST_CMD_LAUNCH_LAUNCH_H
#define BURST_CMD_LAUNCH_LAUNCH_H

#include <jansson.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "engine/engine.h"
#include "decide.h"
#include "runs/caps.h"
#include "runs/choice.h"

/* ---- launch ----
 * From a config to a running engine; shared by the commands that rent, resume or release. */

/* Exit statuses of a run; after a signal it is SIGNAL_STATUS plus the signal's number. */
enum {
	JOB_FAILED_STATUS = 1,
	NO_CAPACITY_STATUS = 4,
	CAP_STATUS = 5,
	UNRELEASED_STATUS = 9,
	SIGNAL_STATUS = 128,
};

/* A run of this process. A function that needs one part of it takes that part. */
struct launch {
	struct cmd_context *ctx; /* flags, config, ledger; nothing here changes it */
	struct order order;      /* order.c; a part of another run narrows its copy */
	/* its job and accounts: launch.c; its row, pods and end: the library of runs */
	struct run run;
	struct run_choice choice; /* decide.c, when it began or now */
	int64_t least_microusd;   /* decide.c: cost until a pod of it is up; 0: unknown */
	/* the run of this process that this one is a part of; NULL: it stands by itself */
	const struct launch *within;
	char id[24];         /* that the runner of a queue gave it; "": none */
	char *renders_dir;   /* launch.c: where rendered segments are cached */
	int starter;         /* detach.c: waits until the pods have the queue; -1: none */
	bool keeper_started; /* volume.c: a client for the pods that it leaves has started */
	/* what is left once all segments are safe: the stages, or for the run of one its end; NULL:
	 * nothing. Returns the exit status, or -1. */
	int (*finish)(struct launch *l, struct err *err);
	const struct stage_work *stage; /* of a stage's own run (stages.h); NULL: it is none */
	json_t *stages; /* stage_run.c: an object for each stage that was looked at; NULL: none */
};

void launch_init(struct launch *l, struct cmd_context *ctx);
/* A run that is a part of l, with a copy of its order to be changed. It prints no object and
 * sends no notice of success. Free it first. */
void launch_within(struct launch *out, const struct launch *l);
void launch_free(struct launch *l);

/* Opens the providers that the order names. With several providers, a missing account or key of
 * one is only a warning. */
int launch_open_providers(const struct order *o, struct run *run, struct err *err);
/* The open provider of this name; NULL: none. */
const struct engine_provider *launch_provider(const struct run *run, const char *name);

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
/* Settles what dead runs left, and checks that this one may rent; the accounts are open. Lowers
 * max_cost to what caps over runs leave. ERR_CAP: they leave nothing. ERR_BALANCE: no account can
 * pay what the run may cost; one that reports no balance counts as able. ERR_CREDENTIALS: a
 * provider refuses the keys for files of its volumes, and the config names no other. */
int launch_check_can_rent(struct launch *l, struct err *err);
/* Fills the engine's settings from the order; the job is loaded. */
void launch_set_engine_conf(struct launch *l);
/* Adds a new run to the ledger, with its folder and its lock. */
int launch_begin(struct launch *l, bool detached, struct err *err);
/* Takes over a run whose client is gone: its row, folder, lock, pods and flags. */
int launch_resume(struct launch *l, const struct run_row *row, struct err *err);
/* Runs the engine with the live display; prints phases, JSON and on_exit as the flags say. Returns
 * the exit status. */
int launch_run(struct launch *l);
/* For a loaded job with nothing left to render, instead of launch_run(): rents no pod, but releases
 * a dead client's pods and does the steps after rendering. Returns the exit status, or -1. */
int launch_finish_rendered(struct launch *l, struct err *err);
/* For struct cmd.failed: prints the --json object of a run that never began. */
void launch_failed(struct cmd_context *ctx, const struct err *err);
/* plan.c: shows what a run would rent, render and pay. Returns the exit status, or -1 with *err. */
int plan_dry_run(struct launch *l, struct err *err);

/* Replaces ctx->config by the config that the run was started with, in whatever folder the user is,
 * and applies the run's flags; this command's own flags override them. ERR_USAGE: a run of this
 * type has no files. */
int launch_open_config_of(struct cmd_context *ctx, const struct run_row *row, struct err *err);
/* Continues a run whose client is gone, and reports that. place: its job and folder. Returns the
 * exit status, or -1 with *err. */
int launch_continue(struct cmd_context *ctx, const struct run_row *row, const char *place,
		    struct err *err);
/* "; files in DIR" if the run has files there, else "". The caller frees it. */
char *launch_files_in(const struct run_row *run);
/* Prints the object of a run with nothing left to do, if --json is given. Returns status, or -1
 * with *err. */
int launch_print_end(struct cmd_context *ctx, const struct run_row *row, int status,
		     struct err *err);
extern const struct opt launch_resume_opts[]; /* options of the commands that may continue a run */

/* Allocates the results of the segments of the launch's job. */
void launch_make_results(struct launch *l);
/* The run's --json object; new reference. */
json_t *launch_result_json(struct launch *l);

/* ---- caps ----
 * Caps over runs as the config sets them: what is left of one becomes the max_cost of the order.
 */

/* Fills *out with the caps of the config and what counts toward them. If something is left of them,
 * and the run renders, lowers max_cost of the order to that. */
int caps_plan(struct caps *out, struct launch *l, bool renders, struct err *err);

/* ---- run flags ----
 * Keeps the options of a run's command line, for all commands that continue it: runs/ID/flags,
 * one JSON object of config keys and texts ("caps.max_cost": "0.10"). "force" is no key: it
 * allows overwriting foreign files. */

/* Sets them in ctx->config and ctx->overwrite; does nothing without the file. */
int run_flags_apply(struct cmd_context *ctx, const char *run_dir, struct err *err);

/* ---- detach ----
 * `run -d`: a client in the background, and its starter, which waits until the pods have the
 * queue. */

/* In the client: the descriptor to its starter; -1: not a detached client. */
int detach_starter_fd(void);
/* In the starter: starts the client and waits for it. Prints the run's id on stdout once the pods
 * have the queue (with --no-wait: once there is a run), or the run has ended before. Returns the
 * exit status: 0, or that of a run that has ended. */
int detach_run(struct cmd_context *ctx, struct err *err);

/* Before it rents: says whether this machine must stay awake until the run ends. */
void detach_say_needs(const struct launch *l);
/* In the client, once there is a run: tells the starter its id; with --no-wait, also moves output
 * to the run's folder. Does nothing without a starter. If the starter is gone, ends the run before
 * anything is rented and returns -1. */
int detach_on_run_begun(struct launch *l, int starter, struct err *err);
/* Call now and then during the run: releases the starter once the pods have the queue; stops the
 * run if the starter is gone before. */
void detach_watch_starter(struct launch *l, const struct engine *e);
/* After the end, with --json: waits until the starter has printed the id on stdout. */
void detach_on_run_ended(struct launch *l);

/* ---- find run ----
 * The run that an id or the current folder means. */

/* Finds the run of this name; NULL: the newest of the burst.cfg in this folder (runs_newest_of()),
 * never of another one. ERR_USAGE: there is none. */
int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* Adds the run's job and folder (run_place()) to the message of *err. Returns -1. */
int run_add_place(const struct run_row *run, struct err *err);

/* ---- holder ----
 * Waits for the process that holds a run's lock. */

/* Asks the run's client to stop and release its pods, and waits for it, or for another holder, such
 * as a command that settles the run. place: run_place(), for messages. Returns 0 once no process
 * holds the run; ERR_UNRELEASED: its holder makes no progress. */
int holder_stop_and_wait(const struct cmd_context *ctx, const char *run, const char *place,
			 struct err *err);

/* ---- quick ----
 * A run without a burst.cfg: turns a text or a command on the command line into a config. */

struct quick {
	/* absolute path for --save. With the job's name it identifies the job, saved or not */
	char *path;
	char *text; /* in burst.cfg's syntax, with paths relative to that folder */
};

/* What a config of speech says beyond its job's type; texts of the user are quoted. */
struct quick_speech {
	const char *name, *engine, *input, *output; /* name, input, output NULL: absent */
	const char *join; /* more keys in libconfig's syntax; NULL: none */
};

/* Sets ctx->quick to a config that speaks; takes path. */
void quick_to_speak(struct cmd_context *ctx, char *path, const struct quick_speech *say);
/* Replaces ctx->config by ctx->quick, or if that is NULL by this file as it was in the commit
 * (NULL: as it is now). The caller applies flags and checks it. */
int quick_open(struct cmd_context *ctx, const char *file, const char *commit, struct err *err);
/* Sets ctx->quick if the words name a text to speak ("book.md") or, behind "--", a command. Leaves
 * it NULL if they name a config or nothing. ERR_USAGE: the words cannot be a job. */
int quick_from_words(struct cmd_context *ctx, struct err *err);
/* For `burst listen` with a text, in a folder without a burst.cfg: sets ctx->quick to the config of
 * a job whose input the command sets. Leaves it NULL otherwise. */
int quick_to_listen(struct cmd_context *ctx, struct err *err);
/* Sets ctx->quick to the config that a run without a burst.cfg began with. Leaves it NULL if the
 * run had one. */
int quick_of_run(struct cmd_context *ctx, const char *config, const char *run_dir, struct err *err);
/* Keeps ctx->quick in the run's folder, so that the run can be resumed. Does nothing if it is NULL.
 */
int quick_keep_with_run(const struct cmd_context *ctx, const char *run_dir, struct err *err);
/* Prints ctx->quick to stderr or, with --save, writes it to its path. Does nothing if it is NULL.
 */
int quick_show_or_save(struct cmd_context *ctx, struct err *err);
/* Accepts NULL. */
void quick_free(struct quick *q);

/* ---- check ----
 * Finds every mistake of a config at once: its values, its job, its providers, its plan. Rents
 * nothing and calls no provider. */

/* "chatterbox needs 3.7 GiB for one segment", of GPU memory; "" if the engine's need is unknown. */
enum { CHECK_NEED = 160 };
char *check_describe_need(char to[CHECK_NEED], const struct job_needs *needs);

/* After config_check() has failed: notes in ctx->mistakes what else is wrong. */
void check_note_rest(struct cmd_context *ctx);

/* ---- travel ----
 * What of the code goes to the pods. */

/* Both list the code folder, so that what cannot be read there is an error before anything is
 * rented, and log how many files travel, the largest, and names that look like secrets. Call with
 * the job loaded. */
int travel_report(struct launch *l, struct err *err);
/* Logs only before the job's first run. */
int travel_report_once(struct launch *l, struct err *err);

/* ---- render ----
 * A new run of the config's job, from reading it to its last file. */

/* Rents nothing if all is rendered already. detached: the pods finish without this client. Returns
 * the exit status, or -1 with *err. */
int launch_render(struct launch *l, bool detached, struct err *err);

#endif
