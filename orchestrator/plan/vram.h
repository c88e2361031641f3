/* vram.h - decides what fits into the memory of a GPU. Pure. Sizes are GiB (2^30 bytes) unless a
 * name says GB as sold. */
#ifndef BURST_PLAN_VRAM_H
#define BURST_PLAN_VRAM_H

#include <stdbool.h>

/* Memory of an engine: weights and all that is there once, and what each segment of a batch adds.
 */
struct vram_need {
	double base_gib;
	double each_gib;
};

/* What a program can use of a card sold with so many GB: the least that a card reports of its label
 * (93 %), less 1 GiB for the driver's context and fragmentation. */
double vram_usable_gib(double label_gb);
/* The largest batch that fits; 0: not even one segment does. INT_MAX where a segment needs nothing.
 */
int vram_batch_max(const struct vram_need *need, double label_gb);
bool vram_fits(double need_gib, double label_gb);

/* "fp32" 4, "fp16" and "bf16" 2, "int8" and "fp8" 1, "int4" 0.5 bytes a parameter; 0: no such
 * precision. */
double vram_precision_bytes(const char *precision);
/* Before anything was measured: weights plus 30 % for activations and caches. billions: 7 for a 7B
 * model. */
double vram_model_gib(double billions, double bytes_each);

#endif
