/* deliver_parts.h - the state of a delivery. Private to deliver*.c. */
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
	struct volume_row *volumes; /* all in the ledger */
	size_t volume_count;
	char provider[PROVIDER_NAME_MAX]; /* the one whose volume has the outputs; "": none */
	struct pod_row pod;               /* the last one that path_there() looked up */
	bool pod_counts;                  /* the volume has what it rendered */
	char tree[SHA256_HEX];            /* the job's code on that volume; "": it is not there */
	char *dir;        /* the pod's code folder: the list, and files that the volume lacks */
	char *config;     /* path of its config in the ledger */
	bool as_rendered; /* the code on its volume is that of this same render */
	int64_t spent_microusd; /* on a pod that could not deliver */
	char key[RUN_JOB_KEY],
		state[SHA256_HEX]; /* key of its job, and hash of what is delivered */
};

/* deliver_outputs.c. Fills d->outputs from the manifest of the output folder, in its order.
 * ERR_JOB: a file's name cannot be delivered. */
int deliver_read_outputs(struct delivery *d, struct err *err);
/* Whether the config names the provider, and it has the outputs if any provider does. */
bool deliver_may_go_to(const struct delivery *d, const char *provider);
/* Finds the provider with the newest volume of that name, and the job's code there. */
void deliver_find_code(struct delivery *d);
/* Fills d->key and d->state. The state is a hash of the command and all outputs; a change causes
 * another delivery. */
void deliver_know_state(struct delivery *d);
/* Whether the line is of a segment that the script no longer has. */
bool deliver_is_former(const struct manifest_entry *e);

/* deliver_config.c. Makes d->dir, the code folder of the delivery's pod. */
int deliver_make_folder(struct delivery *d, struct err *err);
/* Makes the delivery's config: the render's, with the delivery's own keys. The caller frees *out.
 * Writes it to d->config for the user to read. */
int deliver_make_config(const struct delivery *d, struct config **out, struct err *err);

/* deliver_manifest.c. Restores the lines of rendered files, and appends those of delivered ones.
 * The output folder is locked. */
int deliver_mend_manifest(struct delivery *d, struct err *err);

#endif
