/* stages.h - stages after a render */
#ifndef BURST_CMD_LAUNCH_STAGES_H
#define BURST_CMD_LAUNCH_STAGES_H

#include "cmd/show/plan_show.h"
#include "jobs/manifest.h"
#include "launch.h"
#include "runs/stage_folder.h"

/* ---- stages ----
 * What follows a render: commands on pods of their own, which work on the files of the steps
 * before. `deliver` is the short form of the last one. */

struct stage {
	const char *name; /* "deliver": of the short form */
	bool is_deliver;
	const struct section *conf; /* its group; texts are borrowed from the config */
	const struct section
		*pod; /* image, disk_gb, cpu, memory_gb; not of `deliver`: gpu, needs */
	int pods;
};

/* In the order of the config, `deliver` last. Free list with free(). */
struct stages {
	struct stage *list;
	size_t count;
};
void stages_read(struct stages *out, const struct config *c);
/* The items of one of its lists of texts. A key that `deliver` lacks has none. */
size_t stage_count(const struct stage *s, const char *key);
/* Whether it gets files of this earlier step: a stage's name, or STAGE_RENDER. */
#define STAGE_RENDER "render"
bool stage_gets_from(const struct stage *s, const char *step);
/* Whether it gets this file; asks: only if its config names it. */
bool stage_gets(const struct stage *s, const char *file, bool asks);
/* Sets what the stage's pods must be. */
void stage_shape(struct order *o, const struct stage *s);

/* Notes why a stage cannot work, before anything is rented; what the files of the render are called
 * is known once l's job is loaded. */
void stages_check(const struct launch *l, struct mistakes *m);
/* ERR_CONFIG names a file of the output folder that a stage would overwrite and no run has made,
 * unless the user passed --force. l's job is loaded. */
int stages_check_output(const struct launch *l, struct err *err);

/* stages.c. What each stage would rent now, and what it took before. The accounts are open, or
 * none is asked. Returns the number; free *out with free(). */
size_t stages_plan(struct launch *l, struct plan_stage **out);

/* stage_run.c. For l->finish: runs each stage that has not succeeded with the same command and
 * inputs, in order, as runs of their own, and stops at the first failure. All segments must be
 * local or durable, and l's output folder is lent to them. l->run.id may be empty: nothing was
 * rendered. l->stages gets their objects for --json. Returns the exit status; *err is set if it is
 * not 0. */
int stages_run(struct launch *l, struct err *err);
/* Finds the run to watch or to resume. Without a name, of a stage and the run that it is a part of,
 * the one that lives. ERR_USAGE: a stage is not resumed by itself. */
int stage_find_run(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* Sets the error that says what to do instead of resuming a stage. Returns -1. */
int stage_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

/* ---- stage parts ----
 * The state of a stage that runs. Private to stage_*.c. */

struct stage_work {
	struct launch *l;            /* the run whose stage it is */
	const struct stages *stages; /* all of them */
	const struct stage *s;
	char job[STAGE_JOB];
	char part_of[24];    /* l's run, or the newest one of its job; "": the ledger has none */
	struct manifest was; /* of the output folder, as the step before left it */
	struct stage_input *inputs;
	size_t count, cap, missing;
	struct volume_row *volumes; /* all in the ledger */
	size_t volume_count;
	char provider[PROVIDER_NAME_MAX]; /* whose volume has the inputs; "": none */
	struct pod_row pod;               /* the last one that path_there() looked up */
	bool pod_counts, pod_commands;    /* the volume has its files; they are a command's */
	char tree[SHA256_HEX];            /* the job's code on that volume; "": it is not there */
	char *dir;        /* the pods' code folder: the list, and files that the volume lacks */
	bool as_rendered; /* the code on its volume is that of this same render */
	char input[SHA256_HEX]; /* hash of its command and inputs */
};

#endif
