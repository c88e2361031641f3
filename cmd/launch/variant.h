/* variant.h - what the engine's other model would cost: a larger or a smaller one */
#ifndef BURST_CMD_LAUNCH_VARIANT_H
#define BURST_CMD_LAUNCH_VARIANT_H

#include "decide.h"

/* Sets *out->engine if the job's engine has another model, and then whether a card on offer holds
 * it, and its plan for the same offers and wishes. e, pick: of the job as it is; nothing of it has
 * been rendered yet. Reads the job again; a job that the other model refuses has no variant. */
void variant_find(struct variant *out, struct launch *l, const struct estimate *e,
		  const struct plan *pick);

#endif
