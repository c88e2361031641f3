/* image_make.h - makes an image with what a job's pods would otherwise set up. */
#ifndef BURST_CMD_LAUNCH_IMAGE_MAKE_H
#define BURST_CMD_LAUNCH_IMAGE_MAKE_H

#include "launch.h"

/* Prints a Dockerfile on stdout. Flags of `burst image` choose its base and whether it holds the
 * weights. ERR_USAGE: no base is known, or its name is invalid. */
int image_make_dockerfile(struct launch *l, struct err *err);
/* Builds the image at Modal, which keeps it, and prints its id. ERR_USAGE with --from. */
int image_make_at_modal(struct launch *l, struct err *err);

#endif
