/* cmd.h - a subcommand describes itself in a struct cmd. main.c parses the flags, opens what .needs
 * names, applies flags that set config keys, calls .run, prints the error and turns its kind into
 * the exit status. Help, completion and the man page come from the same tables. */
#ifndef BURST_CMD_H
#define BURST_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "config/config.h"
#include "runs/runs.h"
#include "store/store.h"

/* A table ends with a row without a name. */
struct opt {
	char letter;      /* 0: none */
	const char *name; /* "max-cost" */
	const char
		*arg; /* "USD"; NULL: a switch. line/offer.c decides what a shell offers for it */
	const char *help;
	const char *key; /* the config key that it sets ("caps.max_cost"); a switch sets true */
	bool optional;   /* the argument is optional, and then only accepted as --name=VALUE */
};

/* Rows of every command that rents for a project's config: what the user allows the project. clang-
 * format would take the braces for a block. */
/* clang-format off */
#define ALLOW_OPTS                                                                                 \
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too", "allow_paths"}, \
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own", "volumes"}, \
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size", "max_volume_gb"}
/* clang-format on */

enum cmd_need {
	NEED_LEDGER = 1,   /* ctx->store and ctx->state_dir */
	NEED_STATE = 2,    /* ctx->state_dir only */
	NEED_ACCOUNTS = 4, /* ctx->config of the user's file only: works beside a broken project */
	NEED_CONFIG = 8,   /* ctx->config: also the project's file, if there is one */
	NEED_JOB = 16,     /* as NEED_CONFIG; the config must have a job */
	CONFIG_ARG = 32,   /* the first argument, if given, is the project's file or folder */
	/* if the config has mistakes, also report those of its job and its providers */
	CHECKS_ALL = 128,
	/* report a failure that keeps it from beginning as `notify` says (notify.h) */
	NOTIFIES_FAILURE = 256,
	/* with NEED_LEDGER: use an empty substitute if the ledger cannot be opened */
	LEDGER_IF_ANY = 64,
};

enum cmd_group { CMD_GROUP_RENDER, CMD_GROUP_RUNS, CMD_GROUP_SETUP, CMD_GROUP_OTHER, CMD_GROUPS };

struct cmd_context;
struct commit_tree; /* commit_tree.h */
struct quick;       /* quick.h */

struct cmd {
	const char *name;
	const char *args;       /* in help: "[CONFIG]", "POD [COMMAND...]"; NULL: none */
	int min_args, max_args; /* max -1: unlimited */
	const char *summary;    /* one line, lower case */
	const char *details;    /* paragraphs for help and man; may be NULL */
	const struct opt *opts;
	unsigned needs;
	enum cmd_group group;
	bool json;          /* takes --json */
	bool hidden;        /* in no list of commands */
	bool raw;           /* argv is passed unparsed: args[0] follows the name */
	bool takes_command; /* the words behind "--" are a command: ctx->command */
	bool passes_on;     /* flags end at the first argument ("ssh POD ls -l") */
	/* Returns the exit status (0-255), or -1 with *err set. */
	int (*run)(struct cmd_context *ctx, struct err *err);
	/* With --json, after an error of run or of its needs: prints the object. May be NULL. */
	void (*failed)(struct cmd_context *ctx, const struct err *err);
};

struct cmd_context {
	const struct cmd *cmd;
	int64_t began_ms;  /* wall clock: when the command began */
	char **argv;       /* as given; the command's name follows the program's */
	const char **args; /* NULL-terminated */
	int arg_count;
	char **command;    /* if takes_command: the words behind "--"; NULL: no "--" */
	int command_count; /* also 0 if nothing follows "--" */
	bool yes;          /* -y */
	bool json_printed; /* the object of --json is printed, by a command that failed later */
	bool json, quiet, trace, color; /* color: stderr may have colours */
	bool live;                      /* stderr is a terminal whose lines may be redrawn */
	int verbose;                    /* how many -v */
	/* overwrite foreign files of the output folder: `run --force`, now or when the run began */
	bool overwrite;
	/* `run --anew`, `run --prune`, now or when the run began */
	bool anew, prune;
	char *state_dir;
	struct mistakes mistakes; /* all mistakes found in the config and the job */
	struct config *config;
	/* files for config and job; NULL: the working tree's */
	struct commit_tree *tree;
	struct quick *quick; /* the config that the command line stands for; NULL: a file */
	struct store *store;
	struct err no_ledger; /* LEDGER_IF_ANY: why the ledger is missing; else ERR_NONE */
	struct runs runs; /* for the library: store, state_dir and config; see cmd_open_runs() */
	const struct cmd *const *commands; /* all commands; NULL-terminated */
	/* For each row of cmd->opts: its argument, "" for a switch, NULL if not given. */
	const char **values;
};

/* The value of a flag, by the flag's long name. A name that is not in the table is a bug and
 * aborts. */
bool opt_has(const struct cmd_context *ctx, const char *name);
const char *opt_text(const struct cmd_context *ctx, const char *name); /* NULL: not given */
/* All keep *out if the flag is not given, and return -1 with ERR_USAGE for a wrong value. */
int opt_int(const struct cmd_context *ctx, const char *name, int64_t least, int64_t most,
	    int64_t *out, struct err *err);
int opt_duration(const struct cmd_context *ctx, const char *name, int64_t *out_ms, struct err *err);
/* A number above 0; a duration in seconds. */
int opt_number(const struct cmd_context *ctx, const char *name, double *out, struct err *err);
int opt_seconds(const struct cmd_context *ctx, const char *name, double *out, struct err *err);
/* As strtod(), which also takes "0x10": that is no number here. *end is text then. */
double number_parse(const char *text, char **end);
/* Reads "40", "40%" or "0.4" as a share of 1, above 0. Returns what follows it; NULL: it is none.
 */
const char *share_parse(const char *text, double *out);

/* The flags of every command, ended like any table. */
extern const struct opt common_opts[];
/* A common flag as the command shows it: without its name if one of the command's own flags has
 * that name (submit --quiet TIME). cmd NULL: for every command. */
struct opt cmd_common_opt(const struct cmd *cmd, const struct opt *common);

/* Only parses, for main and tests: fills args, values and the common fields of ctx. argv[0] is the
 * command's name; the words are borrowed. Sets *help for -h or --help. Free with
 * cmd_context_free(). */
int cmd_parse(struct cmd_context *ctx, const struct cmd *cmd, int argc, char **argv, bool *help,
	      struct err *err);
void cmd_context_free(struct cmd_context *ctx);
/* Returns NULL if no command has this name; *err then suggests what the user may mean. */
const struct cmd *cmd_find(const struct cmd *const *commands, const char *name, struct err *err);

/* Loads the providers outside the tree, unless the command (its name; "": none) is local-cloud.
 * cmd_perform() warns of those that cannot be loaded; cmd_free_warnings() frees these warnings. */
void cmd_load_providers(const char *command);
void cmd_free_warnings(void);
/* Opens what ctx->cmd needs and calls it. Returns the exit status, or -1 with *err. */
int cmd_perform(struct cmd_context *ctx, struct err *err);

/* Opens the project's config. commit not NULL: of that commit, whose files become ctx->tree. */
int cmd_open_config(struct cmd_context *ctx, struct config_source *ask, const char *commit,
		    struct err *err);

/* Sets ctx->state_dir, with NEED_LEDGER the store, and ctx->runs, as `needs` says. With
 * LEDGER_IF_ANY, a ledger that cannot be opened becomes ctx->no_ledger and an empty store in
 * memory. cmd_perform() calls it for commands that always need them. */
int cmd_open_state(struct cmd_context *ctx, unsigned needs, struct err *err);
/* Fills ctx->runs; call once state_dir and store are set. ctx must not move afterwards. */
void cmd_open_runs(struct cmd_context *ctx);

/* Sets the config keys that flags stand for in ctx->config, over the files' values. */
int cmd_apply_flags(struct cmd_context *ctx, struct err *err);

/* Reports a failed command: prints *err and the config's mistakes, sends a notice if the command
 * has NOTIFIES_FAILURE, and with json calls cmd->failed. Returns the exit status. */
int cmd_tell_failure(struct cmd_context *ctx, struct err *err, bool json);

/* Prompts on the terminal; returns true for yes. -y means yes; without a terminal it is no. */
bool cmd_confirm(const struct cmd_context *ctx, const char *fmt, ...) PRINTF(2, 3);

/* Like cmd_confirm(), but returns false with -y, which scripts and hooks pass, or without a
 * terminal. */
bool cmd_confirm_typed(const struct cmd_context *ctx, const char *fmt, ...) PRINTF(2, 3);

/* Flushes stdout. Returns -1 if any write to stdout has failed. */
int cmd_flush(struct err *err);

extern const struct cmd cmd_attach, cmd_keep, cmd_breakeven, cmd_cache, cmd_calibrate, cmd_cancel,
	cmd_completion, cmd_doctor, cmd_engines, cmd_fetch, cmd_gpus, cmd_help, cmd_hook, cmd_image,
	cmd_init, cmd_ledger, cmd_listen, cmd_local_cloud, cmd_logs, cmd_offers, cmd_plan, cmd_ps,
	cmd_queue, cmd_reap, cmd_report, cmd_resume, cmd_run, cmd_schedule, cmd_size, cmd_ssh,
	cmd_ssh_config, cmd_status, cmd_submit, cmd_voices, cmd_volume, cmd_words;

/* help.c: usage and flags of all commands, or of one */
void help_all(FILE *to, const struct cmd *const *commands);
void help_one(FILE *to, const struct cmd *cmd);

#endif
