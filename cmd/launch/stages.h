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
/* Number of items of one of the stage's lists of texts; 0 for a key that `deliver` lacks. */
size_t stage_count(const struct stage *s, const char *key);
/* Whether the stage gets files of this earlier step: a stage's name, or STAGE_RENDER. */
#define STAGE_RENDER "render"
bool stage_gets_from(const struct stage *s, const char *step);
/* Whether `inputs` of the stage name this file. */
bool stage_asks_for(const struct stage *s, const char *file);
/* Whether the stage gets this file: it asks for it, or has no `inputs` and so gets all. */
bool stage_gets(const struct stage *s, const char *file);
/* Sets in the order what the stage's pods must be. */
void stage_shape_order(struct order *o, const struct stage *s);

/* Notes why a stage cannot work, before anything is rented. Checks the inputs only if l's job is
 * loaded: then the names of the rendered files are known. */
void stages_check(const struct launch *l, struct mistakes *m);
/* ERR_CONFIG names a file of the output folder that a stage would overwrite and no run has made,
 * unless the user passed --force. l's job is loaded. */
int stages_check_output(const struct launch *l, struct err *err);

/* What each stage would rent now from l's open providers (perhaps none), and what it took before.
 * Returns the number of stages; free *out with free(). */
size_t stages_plan(struct launch *l, struct plan_stage **out);

/* For l->finish: runs each stage that has not succeeded with the same command and inputs, in order,
 * as runs of their own, and stops at the first failure. All segments must be local or durable, and
 * l's output folder is lent to them. l->run.id may be empty: nothing was rendered. l->stages gets
 * their objects for --json. Returns the exit status; *err is set if it is not 0. */
int stages_run(struct launch *l, struct err *err);
/* Finds the run to watch or to resume. Without a name, it may be a stage of a run: then that run,
 * or the stage if only the stage is alive. ERR_USAGE: a stage is not resumed by itself. */
int stage_find_run(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err);
/* Sets the error that says what to do instead of resuming a stage. Returns -1. */
int stage_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

/* ---- stage work ----
 * The state of a stage that runs. Only stage_run.c changes it; launch.c reads its name and input.
 */

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
	struct pod_row pod;               /* the last one that path_on_volume() looked up */
	bool pod_counts;       /* the volume that the stage's pods get has files of `pod` */
	bool pod_commands;     /* files of `pod` are in the folders of a command's outputs */
	char tree[SHA256_HEX]; /* the job's code on that volume; "": it is not there */
	char *dir;        /* the pods' code folder: the list, and files that the volume lacks */
	bool as_rendered; /* the code on that volume is the one that this process rendered with */
	char input[SHA256_HEX]; /* hash of its command and inputs */
};

#endif
