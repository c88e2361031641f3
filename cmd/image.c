/* image.c - `burst image`: makes an image with what pods would otherwise set up. */
#include "cmd.h"

#include "cmd/launch/volume.h"
#include "cmd/launch/launch.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = opt_has(ctx, "modal") ? image_make_at_modal(&l, err)
					   : image_make_dockerfile(&l, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{0, "with-weights", NULL, "put the weights and voices into the image, too", NULL, false},
	{0, "modal", NULL, "build the image at Modal, and use it in later runs of this job there",
	 NULL, false},
	{0, "from", "IMAGE", "base image (default: the one that the job's pods use now)", NULL,
	 false},
	{0},
};

const struct cmd cmd_image = {
	.name = "image",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "make an image whose pods need no set-up: a Dockerfile, or at Modal",
	.details = "The image has sshd, the job's Debian packages and its Python packages, "
		   "locked by their hashes, and with --with-weights the weights. Build it "
		   "(`burst image | docker build -t YOU/NAME:1 -`, with Docker 23 or later), "
		   "push it, and name it in burst.cfg: pod = { image = \"YOU/NAME:1\"; }. A pod "
		   "that finds its job's environment in its image skips the set-up, whatever "
		   "its volume has. An image made for another set-up (another engine, another "
		   "version of burst) is used like any other image. With --modal, Modal builds "
		   "the image and keeps it; nothing is printed, pushed or named.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
