/* deliver_folder.h - what a delivery's pod is given as its code: the list of what was rendered,
 * what its volume does not have, and the script that puts all of it under its own names. All is
 * below .deliver/, so that the job's code cannot stand in its way. */
#ifndef BURST_RUNS_DELIVER_FOLDER_H
#define BURST_RUNS_DELIVER_FOLDER_H

#include "base/crypto.h"
#include "base/err.h"

struct deliver_output {
	char *name, *path; /* path: on the volume; NULL: it is not there, and travels */
	char sha256[SHA256_HEX];
};

struct deliver_folder {
	const char *dir;        /* made anew */
	const char *output_dir; /* where the outputs and manifest.jsonl are here */
	const struct deliver_output *outputs;
	size_t count;
	const char *code_path; /* the job's code; NULL: it has none */
	const char *tree;      /* what of it the volume has, code/TREE; "": nothing, it travels */
	/* NULL: that tree is what is wanted; else the code as it is here now, and here is the last
	 * scan of it */
	const char *scan_path;
	bool tells_always; /* the pod writes DELIVER_ABSENT in any case */
};

/* What the script begins with, in the shell of the delivery's command. */
#define DELIVER_BEGIN ". \"$BURST_CODE/.deliver/begin.sh\"\n"
/* An output of the pod where its volume lacks something, and the command was not begun: a number a
 * line, of an output in the list (from 1), or 0, the code. */
#define DELIVER_ABSENT ".burst-absent"

int deliver_folder_make(const struct deliver_folder *f, struct err *err);

#endif
