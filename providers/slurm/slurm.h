/* slurm.h - pods as jobs of a Slurm cluster, from its login node or over ssh to it. A translator;
 * no I/O here: see provider.h. */
#ifndef BURST_PROVIDERS_SLURM_H
#define BURST_PROVIDERS_SLURM_H

#include "provider.h"

extern const struct provider_ops provider_slurm;

#endif
