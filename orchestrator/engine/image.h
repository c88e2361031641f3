/* image.h - describes the image of a job's pods, and what the ledger knows of such images. */
#ifndef BURST_ENGINE_IMAGE_H
#define BURST_ENGINE_IMAGE_H

#include "base/crypto.h"
#include "setup.h"

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

/* Whether needs->setup has a part that can be in the image without the rest. */
bool image_has_parts(const struct job_needs *needs);
void image_steps_make(struct image_steps *out, const struct job_needs *needs, enum image_has has);
void image_steps_free(struct image_steps *steps);
static inline void image_steps_free_cleanup(struct image_steps *steps)
{
	image_steps_free(steps);
}

/* Fills in the image that a provider should build. `steps` is borrowed until the request has been
 * used. */
void image_recipe(struct rent_request *to, const struct engine_setup *setup,
		  const struct job_needs *needs, const struct image_steps *steps);
/* Names the fact in which the ledger keeps the provider's answer about this image
 * (rent_request.known_image). */
void image_known_key(const struct rent_request *recipe, char hex[SHA256_HEX]);

/* What `burst image` chose to put into images for this set-up on this base. */
enum image_has image_wanted(const struct engine_setup *setup,
			    const struct engine_provider *provider, const struct job_needs *needs);
/* Builds it at a provider that builds images, and makes later runs use it. said() receives the
 * lines of the build. id[]: the provider's name for it. */
int image_build(const struct engine_setup *setup, const struct engine_provider *provider,
		const struct job_needs *needs, enum image_has has,
		void (*said)(void *ctx, const char *lines), void *ctx, char id[IMAGE_MAX],
		struct err *err);

#endif
