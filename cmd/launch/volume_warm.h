/* volume_warm.h - fills a volume from a pod without a GPU, so that no GPU waits for downloads. */
#ifndef BURST_CMD_LAUNCH_VOLUME_WARM_H
#define BURST_CMD_LAUNCH_VOLUME_WARM_H

#include "launch.h"

/* Rents the cheapest pod without a GPU beside the volume, puts there what the config's job needs
 * before it can work (worker files, code, the result of its set-up, packages), and releases the
 * pod. It is a run of its own in the ledger, under the same caps. l: its providers are open; closes
 * all but the volume's. memory_gb: least memory of the pod; 0: any. `to` gets the line that the
 * volume is ready. Returns the exit status, or -1. */
int volume_warm(struct launch *l, const struct volume_row *v, int64_t memory_gb, FILE *to,
		struct err *err);
/* Memory of the pod that fills a volume for these needs, unless the user chooses it. */
int64_t volume_warm_memory_gb(const struct job_needs *needs);
/* Prices of the cheapest free pod beside the volume that could fill it, and of the dearest that
 * could be rented instead, within caps.max_price_per_hour; 0, 0: none is free. */
int volume_warm_prices(struct launch *l, const struct engine_provider *p,
		       const struct volume_row *v, int64_t memory_gb, int64_t *least, int64_t *most,
		       struct err *err);

#endif
