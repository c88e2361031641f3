/* cmd.h - a subcommand describes itself in a struct cmd. main.c parses the flags, opens what .needs
 * names, applies flags that stand for config keys, calls .run, prints the error and turns its kind
 * into the exit status. Help, completion and the man page are printed from the same tables. */
#ifndef BURST_CMD_H
#define BURST_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "config/config.h"
#include "runs/runs.h"
#include "store/store.h"

/* The last line of a table has no name. */
struct opt {
	char letter;      /* 0: none */
	const char *name; /* "max-cost" */
	const char
		*arg; /* "USD"; NULL: a switch. line/offer.c knows what a shell offers for a word */
	const char *help;
	const char *key; /* the config key that it sets ("caps.max_cost"; a switch: to true) */
	bool optional;   /* the argument may be left out; it is then given as --name=VALUE only */
};

/* Rows of every command that reads a project's config to rent for it: what the user allows the
 * project. clang-format would take the braces for a block. */
/* clang-format off */
#define ALLOW_OPTS                                                                                 \
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too", "allow_paths", false}, \
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own", "volumes", false}, \
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size", "max_volume_gb", false}
/* clang-format on */

enum cmd_need {
	NEED_LEDGER = 1,   /* ctx->store and ctx->state_dir */
	NEED_STATE = 2,    /* ctx->state_dir only */
	NEED_ACCOUNTS = 4, /* ctx->config of the user's file alone: works beside a broken project */
	NEED_CONFIG = 8,   /* ctx->config: the project's file too, if there is one */
	NEED_JOB = 16,     /* as NEED_CONFIG, and it must have a job */
	CONFIG_ARG = 32,   /* the first argument, when given, is the project's file or folder */
	/* of a config with mistakes, what is wrong with its job and its providers is told as well
	 */
	CHECKS_ALL = 128,
	/* one that keeps it from beginning is told as `notify` says (notify.h) */
	TELLS_FAILURE = 256,
	/* with NEED_LEDGER: one that cannot be opened is stood in for by one that knows nothing */
	LEDGER_IF_ANY = 64,
};

enum cmd_group { CMD_GROUP_RENDER, CMD_GROUP_RUNS, CMD_GROUP_SETUP, CMD_GROUP_OTHER, CMD_GROUPS };

struct cmd_context;
struct commit_tree; /* commit_tree.h */
struct quick;       /* quick.h */

struct cmd {
	const char *name;
	const char *args;       /* as shown in help: "[CONFIG]", "POD [COMMAND...]"; NULL: none */
	int min_args, max_args; /* max -1: any number */
	const char *summary;    /* one line, lower case */
	const char *details;    /* paragraphs for help and man; NULL is fine */
	const struct opt *opts;
	unsigned needs;
	enum cmd_group group;
	bool json;          /* takes --json */
	bool hidden;        /* in no list */
	bool raw;           /* argv is handed over unparsed: args[0] is what follows the name */
	bool takes_command; /* what follows "--" is a command: ctx->command */
	bool passes_on; /* behind the first argument nothing is a flag of ours ("ssh POD ls -l") */
	/* The exit status (0-255), or -1 with *err set. */
	int (*run)(struct cmd_context *ctx, struct err *err);
	/* With --json, after run or what it needs has failed with an error: prints the object all
	 * the same. NULL is fine. */
	void (*failed)(struct cmd_context *ctx, const struct err *err);
};

struct cmd_context {
	const struct cmd *cmd;
	char **argv;       /* as given, the command's name first after the program's */
	const char **args; /* NULL-terminated */
	int arg_count;
	char **command;    /* of a cmd that takes_command: the words behind "--"; NULL: no "--" */
	int command_count; /* 0 also where nothing follows "--" */
	bool yes;          /* -y */
	bool json_printed; /* the object of --json, by a command that failed after it */
	bool json, quiet, trace, color; /* color: stderr may be coloured */
	bool live;                      /* stderr is a terminal on which lines may be redrawn */
	int verbose;                    /* how many -v */
	/* foreign files of the output folder: `run --force`, and the run that began with it */
	bool overwrite;
	/* `run --anew`, `run --prune`, and the run that began with them */
	bool anew, prune;
	struct delivery_own
		*delivers; /* this context is that of a delivery (deliver_run.h); NULL */
	char *state_dir;
	struct mistakes mistakes; /* of the config and the job, all that were found */
	struct config *config;
	/* whose files config and job are read from; NULL: the working tree's */
	struct commit_tree *tree;
	struct quick
		*quick; /* the config that the command line stands for; NULL: there is a file */
	struct store *store;
	struct err no_ledger; /* LEDGER_IF_ANY: why there is none; else ERR_NONE */
	struct runs runs; /* the library's view of store, state_dir and config: cmd_open_runs() */
	const struct cmd *const *commands; /* NULL-terminated: all of them */
	/* One per line of cmd->opts: its argument, "" for a switch, NULL: not given. NULL: a run
	 * that another one started, to which no flag is given (second_run.h) */
	const char **values;
};

/* Flags by their long name (a name that is not in the table is a bug and aborts). */
bool opt_has(const struct cmd_context *ctx, const char *name);
const char *opt_text(const struct cmd_context *ctx, const char *name); /* NULL: not given */
/* Leave *out alone when the flag is not given; ERR_USAGE names the flag. */
int opt_int(const struct cmd_context *ctx, const char *name, int64_t least, int64_t most,
	    int64_t *out, struct err *err);
int opt_duration(const struct cmd_context *ctx, const char *name, int64_t *out_ms, struct err *err);

/* The flags every command takes, ended like any table. */
extern const struct opt common_opts[];
/* A common flag as the command shows it: without its name if a flag of the command's own has that
 * name (submit --quiet TIME). cmd NULL: of every command. */
struct opt cmd_common_opt(const struct cmd *cmd, const struct opt *common);

/* Parsing alone, for main and tests: fills args, values and the common fields of ctx. argv[0] is
 * the command's name; the words are borrowed. *help is set when -h or --help was seen. Free with
 * cmd_context_free(). */
int cmd_parse(struct cmd_context *ctx, const struct cmd *cmd, int argc, char **argv, bool *help,
	      struct err *err);
void cmd_context_free(struct cmd_context *ctx);
/* NULL and *err with the nearest name. */
const struct cmd *cmd_find(const struct cmd *const *commands, const char *name, struct err *err);

/* Opens the project's config as ask says; commit not NULL: of that commit, whose files become
 * ctx->tree. */
int cmd_open_config(struct cmd_context *ctx, struct config_source *ask, const char *commit,
		    struct err *err);

/* Fills ctx->runs; to be called once state_dir and store are there. ctx must not move then. */
void cmd_open_runs(struct cmd_context *ctx);

/* Sets the config keys that flags stand for in ctx->config: the user's word over the files'. */
int cmd_apply_flags(struct cmd_context *ctx, struct err *err);

/* Prints the error and the config's mistakes, notifies, and prints the object of --json, as far as
 * the command does these. Returns the exit status. */
int cmd_tell_failure(struct cmd_context *ctx, struct err *err, bool json);

/* Asks on the terminal; true for yes. -y is yes; without a terminal it is
 * no. */
bool cmd_confirm(const struct cmd_context *ctx, const char *fmt, ...) PRINTF(2, 3);

/* Like cmd_confirm(), but -y is no answer, since scripts and hooks pass it: with -y, or without a
 * terminal, returns false. */
bool cmd_confirm_typed(const struct cmd_context *ctx, const char *fmt, ...) PRINTF(2, 3);

/* Flushes and checks stdout: what could not be written is an error, not silence. */
int cmd_flush(struct err *err);

extern const struct cmd cmd_attach, cmd_keep, cmd_breakeven, cmd_cache, cmd_calibrate, cmd_cancel,
	cmd_completion, cmd_doctor, cmd_engines, cmd_fetch, cmd_gpus, cmd_help, cmd_hook, cmd_image,
	cmd_init, cmd_ledger, cmd_local_cloud, cmd_logs, cmd_offers, cmd_plan, cmd_ps, cmd_queue,
	cmd_reap, cmd_report, cmd_resume, cmd_run, cmd_schedule, cmd_size, cmd_ssh, cmd_ssh_config,
	cmd_status, cmd_submit, cmd_volume, cmd_words;

/* help.c */
void help_all(FILE *to, const struct cmd *const *commands);
void help_one(FILE *to, const struct cmd *cmd);
/* man.c */
void man_print(FILE *to, const struct cmd *const *commands);

#endif
