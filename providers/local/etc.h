/* etc.h - makes the /etc of a pod in namespaces. */
#ifndef BURST_PROVIDERS_LOCAL_ETC_H
#define BURST_PROVIDERS_LOCAL_ETC_H

#include "ids.h"

struct etc {
	const struct pod_ids *ids;
	const char *hostname;
	bool shared_network; /* use this machine's resolver and host table */
};

/* Fills the empty folder ROOT/etc: made-up accounts and names, and copies of what programs look up
 * (libraries, certificates, fonts, time zone, ...). Copies only files that every user of this
 * machine can read. */
int etc_fill(const struct etc *etc, const char *root, struct err *err);

#endif
