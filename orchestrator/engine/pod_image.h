/* pod_image.h - has a provider that builds images build the one for this run's pods. */
#ifndef BURST_ENGINE_POD_IMAGE_H
#define BURST_ENGINE_POD_IMAGE_H

#include "provider.h"

struct engine;
struct request;

void pod_image_get(struct engine *e, int provider);
/* Fills in what the pod's image is made of, if the provider builds one. */
void pod_image_recipe(struct engine *e, int provider, struct rent_request *r);
/* Gives a request to rent the image that is known. */
void pod_image_hand(struct request *a);
/* Records the provider's answer about its image; "": nothing. */
void pod_image_keep(struct engine *e, int provider, const char *image);

/* "modal: image: ...", "" while none is built. */
const char *pod_image_doing(const struct engine *e);

struct pod_images *pod_images_new(void);
void pod_images_free(struct pod_images *p);

#endif
