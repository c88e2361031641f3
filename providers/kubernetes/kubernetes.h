/* kubernetes.h - pods on a user's Kubernetes cluster, one bare Pod for each attempt. kubectl is the
 * child: it has the contexts, the credentials and the way to the API server. */
#ifndef BURST_PROVIDERS_KUBERNETES_H
#define BURST_PROVIDERS_KUBERNETES_H

#include "provider.h"

extern const struct provider_ops provider_kubernetes;

#endif
