/* deliver_parts.h - a delivery while it is made. Private to deliver*.c. */
#ifndef BURST_CMD_LAUNCH_DELIVER_PARTS_H
#define BURST_CMD_LAUNCH_DELIVER_PARTS_H

#include "jobs/manifest.h"
#include "launch.h"
#include "runs/deliver_folder.h"

struct delivery {
	struct launch *l;
	const struct section *conf;
	struct manifest was; /* of the output folder, as the render left it */
	struct deliver_output *outputs;
	size_t count, cap, missing;
	struct volume_row *volumes; /* all that are known */
	size_t volume_count;
	char provider[PROVIDER_NAME_MAX]; /* whose volume has the outputs; "": none */
	struct pod_row pod;               /* the one that path_there() asked for last */
	bool pod_counts;                  /* the volume has what it rendered */
	char tree[SHA256_HEX];            /* the job's code on that volume; "": it is not there */
	char *dir;        /* what the pod gets as its code: the list, and what is missing there */
	char *config;     /* the path by which the ledger knows its config */
	bool as_rendered; /* the code on its volume is that of this very render */
	int64_t spent_microusd;                   /* on a pod that could not deliver */
	char key[RUN_JOB_KEY], state[SHA256_HEX]; /* which job's it is, and what is delivered */
};

/* deliver_outputs.c. Fills d->outputs from the manifest of the output folder, in its order.
 * ERR_JOB: a file's name cannot be delivered. */
int deliver_read_outputs(struct delivery *d, struct err *err);
/* Whether the provider is named by the config, and has the outputs if any does. */
bool deliver_may_go_to(const struct delivery *d, const char *provider);
/* Finds the provider with the newest volume of that name, and the job's code there. */
void deliver_find_code(struct delivery *d);
/* Fills d->key and d->state: one hash of the command and all outputs, which is delivered again when
 * any of them changes. */
void deliver_know_state(struct delivery *d);
/* The line is of a segment that the script has no more. */
bool deliver_is_former(const struct manifest_entry *e);

/* deliver_config.c. Makes d->dir, which travels as the code of the delivery's pod. */
int deliver_make_folder(struct delivery *d, struct err *err);
/* The delivery's config, to be freed: the render's, with what a delivery has of its own. Writes it
 * to d->config, for people to read. */
int deliver_make_config(const struct delivery *d, struct config **out, struct err *err);

/* deliver_manifest.c. Puts back the lines of what was rendered, and behind them those of what was
 * delivered. The output folder is locked. */
int deliver_mend_manifest(struct delivery *d, struct err *err);

#endif
