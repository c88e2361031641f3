/* runpod.h - pods at RunPod: a translator to its REST API v2, to GraphQL for what v2 lacks (spot,
 * balance), and to the S3-compatible API for files of a volume without a pod. No I/O here: see
 * provider.h. */
#ifndef BURST_PROVIDERS_RUNPOD_H
#define BURST_PROVIDERS_RUNPOD_H

#include "provider.h"

extern const struct provider_ops provider_runpod;

#endif
