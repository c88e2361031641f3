/* embed.c - the Python workers as bytes inside burst. */
#include "embed.h"

#include "base/incbin.h"
#include "kit_sizes.h" /* made with the programs: an initializer cannot subtract two symbols */

INCBIN(embed_espeak_worker, "build/kit/espeak-worker");

const struct job_file espeak_worker_file = {
	.name = "espeak-worker",
	.data = embed_espeak_worker,
	.len = KIT_ESPEAK_WORKER_BYTES,
	.mode = 0755,
};
