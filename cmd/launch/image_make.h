/* image_make.h - makes the image in which a job's pods find what they would otherwise set up. */
#ifndef BURST_CMD_LAUNCH_IMAGE_MAKE_H
#define BURST_CMD_LAUNCH_IMAGE_MAKE_H

#include "launch.h"

/* Prints a Dockerfile on stdout; the flags of `burst image` choose its base and whether it has
 * the weights. ERR_USAGE: no base is known, or its name is not valid. */
int image_make_dockerfile(struct launch *l, struct err *err);
/* Builds the image at Modal, which keeps it, and prints its id. ERR_USAGE with --from. */
int image_make_at_modal(struct launch *l, struct err *err);

#endif
