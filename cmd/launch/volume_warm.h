/* volume_warm.h - filling a volume from a pod without a GPU, so that no GPU waits for downloads. */
#ifndef BURST_CMD_LAUNCH_VOLUME_WARM_H
#define BURST_CMD_LAUNCH_VOLUME_WARM_H

#include "launch.h"

/* Rents the cheapest pod without a GPU beside the volume, puts there what the config's job needs
 * before it can work (worker files, code, the result of its setup, packages), and gives the pod
 * back: a run of its own in the ledger, under the same caps. l: its providers are open; all but the
 * volume's are closed. memory_gb: of the pod, at least; 0: whatever it has. `to` hears that the
 * volume is ready. Returns the exit status, or -1. */
int volume_warm(struct launch *l, const struct volume_row *v, int64_t memory_gb, FILE *to,
		struct err *err);
/* Of the pod that fills a volume for a job with these needs, where the user names no other. */
int64_t volume_warm_memory_gb(const struct job_needs *needs);
/* The cheapest pod beside the volume that is free now and could fill it, and the dearest that could
 * be rented in its place, below caps.max_price_per_hour; 0, 0: none is free. */
int volume_warm_prices(struct launch *l, const struct engine_provider *p,
		       const struct volume_row *v, int64_t memory_gb, int64_t *least, int64_t *most,
		       struct err *err);

#endif
