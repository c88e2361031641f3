/* known.h - reads in the ledger what volumes and images hold. */
#ifndef BURST_ENGINE_KNOWN_H
#define BURST_ENGINE_KNOWN_H

#include <jansson.h>

#include "store/facts.h"
#include "sync/tree.h"
#include "setup.h"

/* The environment of the job on one pod, as far as its ledger, its row, its hello or its set-up
 * told: not known, named because this pod is about to make it (name alone), on the volume (tree),
 * or in the pod's image, which comes first. What a start finds missing is forgotten. Only known.c
 * writes it. */
struct pod_env {
	char name[64], tree[SHA256_HEX]; /* on the volume: env/NAME, and its hash; "": none yet */
	char python[32];                 /* the Python that made it; "": not known */
	bool in_image;
	bool image_logged; /* the log has reported what the image has */
};

/* Finds the environment that this pod's image or volume has for the job; false: none is known. */
bool known_env(struct engine *e, int pod);
/* Names the environment that this pod is about to make. */
void known_env_name(struct engine *e, int pod);
/* Records the environment that the pod reports it made; known_env_name() named it. */
void known_env_made(struct engine *e, int pod, const json_t *event);
/* The volume has it no longer, or another one under its name. */
void known_env_lacks(struct engine *e, int pod);
/* Of a pod that another client or run has prepared: what its row has. */
void known_env_adopt(struct engine *e, int pod, const struct pod_row *row);

/* Before the hello: whether the pod's image has the environment, by earlier pods and by what this
 * run had built. Only for a job. */
void known_image_expect(struct engine *e, int pod);
/* The pod's hello says what its image has. */
void known_image_seen(struct engine *e, int pod, const json_t *hello);
/* A start found that the image does not have it. */
void known_image_lacks(struct engine *e, int pod);

/* The packages of the job's install script that are kept on the pod's volume, by their hash; false:
 * none are known. */
bool known_debs(const struct engine *e, int pod, char sha256[SHA256_HEX]);
void known_debs_put(struct engine *e, int pod, const char *sha256);

/* Whether the pod's volume last got this tree. kind: FACT_KIT or FACT_TREE (code). */
bool known_tree_is(const struct engine *e, int pod, enum fact kind, const char *id);
void known_tree_put(struct engine *e, int pod, enum fact kind, const char *id);
void known_code_put(struct engine *e, int pod);
/* Whether a volume has this code tree. */
bool known_code(const struct engine *e, int provider, const struct volume *v,
		const struct tree *tree);
bool known_has_tree(const struct engine *e, int provider, const struct volume *volume);
/* The code tree that a volume last got; NULL: unknown. */
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
enum { SETUP_KEY_HEX = 16 };
/* The set-up as pod_row.setup has it: a hash of its text, and a mark if nothing in the pod is the
 * config's. "" without one. */
void engine_setup_key(const struct job_needs *needs, char key[20]);
/* Whether a pod with this pod_row.setup may be prepared for these needs: one that got nothing of
 * the config's may have this machine's network, and gets nothing of it later. */
bool engine_setup_fits(const char *pods, const struct job_needs *needs);

#endif
