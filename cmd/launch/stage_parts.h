/* stage_parts.h - the state of a stage that runs. Private to stage_*.c. */
#ifndef BURST_CMD_LAUNCH_STAGE_PARTS_H
#define BURST_CMD_LAUNCH_STAGE_PARTS_H

#include "jobs/manifest.h"
#include "runs/stage_folder.h"
#include "stages.h"

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

/* Fills w->inputs from the manifest of the output folder, in its order, and w->input. ERR_JOB: a
 * file's name cannot be passed on. */
int stage_read_inputs(struct stage_work *w, struct err *err);
/* Whether the config names the provider, and it has the inputs if any provider does. */
bool stage_may_go_to(const struct stage_work *w, const char *provider);
/* Finds the provider with the newest volume of that name, and the job's code there. */
void stage_find_code(struct stage_work *w);
/* Makes w->dir, the code folder of the stage's pods. */
int stage_make_folder(struct stage_work *w, struct err *err);
/* Remembers the files of this run of a stage, which has succeeded. */
int stage_note_brought(struct launch *l, struct err *err);
/* Whether a file that this run of the stage fetched is missing in the output folder. */
bool stage_lost_a_file(const struct stage_work *w, const struct run_row *run);
/* Restores the lines of the steps before, and appends those of this one, since its run has written
 * the manifest as if the output folder were its own. The output folder is locked. */
int stage_mend_manifest(struct stage_work *w, struct err *err);
/* "The volume lacks this file": the next try sends it. */
void stage_record_absent(struct stage_work *w, size_t input);

#endif
