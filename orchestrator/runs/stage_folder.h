/* stage_folder.h - makes the code folder of a stage's pods: the list of their input files, what
 * its volume lacks, and the script that puts all files under their own names. All is below
 * .burst-stage/, so that the job's code cannot collide with it. */
#ifndef BURST_RUNS_STAGE_FOLDER_H
#define BURST_RUNS_STAGE_FOLDER_H

#include "base/crypto.h"
#include "base/err.h"

struct stage_input {
	char *name, *path; /* path on the volume; NULL: the volume lacks it, so it is sent */
	char sha256[SHA256_HEX];
};

struct stage_folder {
	const char *dir;        /* a new folder */
	const char *output_dir; /* local folder of the outputs and manifest.jsonl */
	const struct stage_input *inputs;
	size_t count;
	const char *code_path; /* the job's code; NULL: none */
	const char *tree;      /* its tree on the volume, code/TREE; "": none, so it is sent */
	/* NULL: use that tree; else the last scan of the current local code */
	const char *scan_path;
	bool reports_always; /* the pod writes STAGE_ABSENT in any case */
};

/* The start of the script, in the shell of the stage's command. */
#define STAGE_BEGIN ". \"$BURST_CODE/.burst-stage/begin.sh\"\n"
/* With the pod's index behind it, the output of a pod that lacks files on its volume and did not
 * start the command: one number a line, of an input in the list (from 1), or 0 for the code. */
#define STAGE_ABSENT ".burst-absent-"

int stage_folder_make(const struct stage_folder *f, struct err *err);

#endif
