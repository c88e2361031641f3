/* vast.h - pods at Vast.ai, a market of other people's machines: a translator to its REST API. No
 * I/O here: see provider.h. */
#ifndef BURST_PROVIDERS_VAST_H
#define BURST_PROVIDERS_VAST_H

#include "provider.h"

extern const struct provider_ops provider_vast;

#endif
