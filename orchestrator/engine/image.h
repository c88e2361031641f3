/* image.h - describes the image of a job's pods, and what the ledger knows of such images and of
 * volumes. */
#ifndef BURST_ENGINE_IMAGE_H
#define BURST_ENGINE_IMAGE_H

#include "base/crypto.h"
#include "engine.h"

enum { IMAGE_STEPS_MAX = 2 };

/* The part of needs->setup that is in the image. */
enum image_has { IMAGE_HAS_NOTHING, IMAGE_HAS_PACKAGES, IMAGE_HAS_ALL };

/* The steps that put it there; their texts are borrowed from the job's needs. */
struct image_steps {
	struct image_step step[IMAGE_STEPS_MAX];
	/* the key of what each leaves in the image: IMAGE_DIR/env/KEY */
	char key[IMAGE_STEPS_MAX][SHA256_HEX];
	/* "packages", "weights"; "setup" if the set-up has no parts */
	const char *name[IMAGE_STEPS_MAX];
	size_t count;
};

/* Whether needs->setup has a part (its packages) that can be in the image without the rest. */
bool image_has_parts(const struct job_needs *needs);
/* Fills in the steps that put this into an image; image_steps_free() frees them. */
void image_steps_make(struct image_steps *out, const struct job_needs *needs, enum image_has has);
void image_steps_free(struct image_steps *steps);
static inline void image_steps_free_cleanup(struct image_steps *steps)
{
	image_steps_free(steps);
}

/* What `burst image` chose to put into images for this set-up on this base. */
enum image_has image_wanted(const struct engine_setup *setup,
			    const struct engine_provider *provider, const struct job_needs *needs);
/* Builds the image at a provider that builds images, and makes later runs use it. said() receives
 * the lines of the build. id[]: the provider's name for it. */
int image_build(const struct engine_setup *setup, const struct engine_provider *provider,
		const struct job_needs *needs, enum image_has has,
		void (*said)(void *ctx, const char *lines), void *ctx, char id[IMAGE_MAX],
		struct err *err);

/* ---- what the ledger knows ---- */

/* The code tree that pods of this job (the row's config and job) last had on a volume, code/TREE
 * there; false: none is known. */
bool engine_code_there(struct store *store, const struct run_row *job, const char *provider,
		       const char *volume_id, char tree[SHA256_HEX]);
/* Whether a volume has what needs->setup makes for the job of setup->run (the row's config and job)
 * with setup->image, for pods with this card, by the ledger. */
bool engine_env_there(const struct engine_setup *setup, const struct job_needs *needs,
		      const char *gpu, const char *provider, const char *volume_id);
/* Whether pods of setup->image at this provider had the environment of needs->setup in their image,
 * by the ledger. */
bool engine_env_in_image(const struct engine_setup *setup, const struct job_needs *needs,
			 const char *provider);
enum { SETUP_KEY_HEX = 16 };
/* Names the set-up as pod_row.setup has it: a hash of its text, and a mark if nothing in the pod is
 * the config's. "" without a set-up. */
void engine_setup_key(const struct job_needs *needs, char key[20]);
/* Whether a pod with this pod_row.setup may be prepared for these needs: one that got nothing of
 * the config's may have this machine's network, and gets nothing of it later. */
bool engine_setup_fits(const char *pods, const struct job_needs *needs);

#endif
