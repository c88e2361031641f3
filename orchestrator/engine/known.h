/* known.h - reads in the ledger what volumes and images hold. */
#ifndef BURST_ENGINE_KNOWN_H
#define BURST_ENGINE_KNOWN_H

#include <jansson.h>

#include "store/facts.h"
#include "sync/tree.h"
#include "setup.h"

struct epod;

/* What a script left on the pod's volume. kind: FACT_MADE_ENV or FACT_MADE_DEBS; card: see
 * known_env_card(); "": any. False: not known, or the pod has no volume. */
bool known_made(const struct engine *e, int pod, enum fact kind, const char *script,
		const char *card, char *value, size_t room);
/* Records it; value "": the volume does not have it. */
void known_made_put(struct engine *e, int pod, enum fact kind, const char *script, const char *card,
		    const char *value);

/* The architecture of the pod's card if the job's environment depends on it; else "". */
const char *known_env_card(const struct engine *e, int pod);
/* Finds the environment that this pod's image or volume has for the job; false: none is known. */
bool known_env(struct engine *e, int pod);
/* Records the environment that the pod reports it made. */
void known_env_made(struct engine *e, int pod, const json_t *event);
/* Names the environment that this pod is about to make. */
void known_env_name(struct engine *e, int pod);
/* Sets the environment of a pod that another run has prepared, from its row; "": none. */
void known_env_of(struct epod *p, const char *env);

/* Records what the pod's agent reports of its image. */
void known_image_seen(struct engine *e, int pod, const json_t *hello);
void known_image_put(struct engine *e, int pod, bool there);

/* Whether the pod's volume last got this tree. kind: FACT_KIT or FACT_TREE (code). */
bool known_tree_is(const struct engine *e, int pod, enum fact kind, const char *id);
void known_tree_put(struct engine *e, int pod, enum fact kind, const char *id);
void known_code_put(struct engine *e, int pod);
/* Whether a volume has this code tree. */
bool known_code(const struct engine *e, int provider, const struct volume *v,
		const struct tree *tree);
bool known_has_tree(const struct engine *e, int provider, const struct volume *volume);
/* The code tree that a volume last got; NULL: not known. */
const struct tree *known_base(const struct engine *e, int provider, const struct volume *volume);

/* The code tree that pods of this job (the row's config and job) last had on a volume, code/TREE
 * there; false: none is known. */
bool engine_code_there(struct store *store, const struct run_row *job, const char *provider,
		       const char *volume_id, char tree[SHA256_HEX]);
/* Whether a volume has what needs->setup makes for the job of setup->run (the row's config and job)
 * with setup->image, for pods with this card, by the ledger. */
bool engine_env_there(const struct engine_setup *setup, const struct job_needs *needs,
		      const char *gpu, const char *provider, const char *volume_id);
/* Whether pods of setup->image at this provider had it in their image, by the ledger. */
bool engine_env_in_image(const struct engine_setup *setup, const struct job_needs *needs,
			 const char *provider);
/* The set-up as pod_row.setup has it; "" for NULL. */
void engine_setup_key(const char *script, char key[20]);

#endif
