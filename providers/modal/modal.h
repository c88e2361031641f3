/* modal.h - sandboxes at Modal: a translator to the gRPC API of Modal's own clients. No I/O here:
 * see provider.h. */
#ifndef BURST_PROVIDERS_MODAL_H
#define BURST_PROVIDERS_MODAL_H

#include "provider.h"

extern const struct provider_ops provider_modal;

#endif
