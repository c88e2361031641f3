/* impl.h - what the files of the Slurm provider share.
 *
 * A pod is a batch job named "burst-ATTEMPT". Its id is "JOB.ATTEMPT", so that no command can name
 * a job of the user's own, even where a cluster counts its jobs anew. Each operation is one run of
 * a shell on the login node, whose program (login.sh and what script.c puts around it) comes on
 * stdin: nothing of it is in any argument list. */
#ifndef BURST_PROVIDERS_SLURM_IMPL_H
#define BURST_PROVIDERS_SLURM_IMPL_H

#include "provider.h"
#include "providers/child.h"

#define SLURM_NAME "slurm"

/* ---- lines.c: lines and fields ---- */

/* What login.sh printed between its two lines: *text (borrowed from the reply) and its length.
 * Returns its exit status, -1 if the lines are not both there. */
int slurm_find_answer(const struct reply *reply, const char **text, size_t *len);
/* Splits a line in place. The last field keeps what is left. Returns how many there are. */
enum { SLURM_FIELDS_MOST = 13, SLURM_SEPARATOR = '\037' };
size_t slurm_split_line(char *line, char *fields[SLURM_FIELDS_MOST]);
/* The fields of the first line that begins with these (second NULL: any); they point into *copy, a
 * new string. Returns how many there are; 0: there is no such line, and *copy is NULL. */
size_t slurm_find_line(const char *text, size_t len, const char *first, const char *second,
		       char **copy, char *fields[SLURM_FIELDS_MOST]);

/* ---- read.c: what Slurm's commands print ---- */

/* Adds a pod for each line of squeue about a pod of burst's; other jobs are skipped. conf names the
 * GPUs of partitions whose GPUs have no type. ERR_BUG: a line about a pod that cannot be read. */
int slurm_read_jobs(const struct section *conf, const char *text, size_t len,
		    struct op_result *result, struct err *err);
/* Adds what partitions offer, in the words of sinfo. ERR_CONFIG: the config names one that does not
 * exist. */
int slurm_read_offers(const struct op *op, const char *text, size_t len, struct op_result *result,
		      struct err *err);
/* The bill in the words of sacct, or of squeue, which knows no dollars. ERR_NOT_FOUND: neither
 * knows the pod's end. */
int slurm_read_bill(const struct op *op, const char *text, size_t len, struct op_result *result,
		    struct err *err);
/* Splits a pod's id; job and name may be NULL. False: no pod has this id. */
enum { SLURM_JOB_MAX = 20 };
bool slurm_split_id(const char *id, char job[SLURM_JOB_MAX], char name[POD_NAME_MAX]);

/* ---- price.c: what an hour of a pod costs ---- */

enum { SLURM_UNITS_MOST = 1000000000 };
/* Micro-dollars for an hour of so many billing units. 0: the config has no such price. */
int64_t slurm_price_of_units(const struct section *conf, int64_t units);

/* One kind of pod. */
struct slurm_kind {
	const char *partition;
	const char *type; /* of its GPUs, as Slurm calls it; "": they have none; NULL: no GPU */
	const char *gpu;  /* the same for people */
	int count;
	int64_t node_mb; /* memory of the node */
};
/* Micro-dollars for an hour of it, by the config and by the answer to OFFERS; 0: no price is known.
 * price_per_gpu_hour comes before price_per_billing_hour; where they disagree, *notes gets a line
 * for people. */
int64_t slurm_price(const struct op *op, const struct slurm_kind *kind, const char *text,
		    size_t len, struct str *notes);

/* ---- script.c: what runs on the login node ---- */

/* Fills the call with a shell there, which does this operation. ERR_REFUSED: no id of ours. */
int slurm_ask(const struct op *op, struct call *call, struct err *err);
/* provider_ops.dial */
int slurm_dial(const struct provider *p, const struct pod_view *pod, struct call *call,
	       struct err *err);

#endif
