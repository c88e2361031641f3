/* vram.c - decides whether a model and a batch fit into a GPU's memory. */
#include "vram.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define GIB ((double)(1 << 30))

double vram_usable_gib(double label_gb)
{
	return label_gb * 0.93 - 1.0;
}

bool vram_fits(double need_gib, double label_gb)
{
	return need_gib <= vram_usable_gib(label_gb);
}

int vram_batch_max(const struct vram_need *need, double label_gb)
{
	double room = vram_usable_gib(label_gb) - need->base_gib;

	if (room < need->each_gib)
		return room < 0 || need->each_gib > 0 ? 0 : INT_MAX;
	if (need->each_gib <= 0)
		return INT_MAX;
	double b = floor(room / need->each_gib + 1e-9);
	return b >= INT_MAX ? INT_MAX : (int)b;
}

double vram_precision_bytes(const char *precision)
{
	static const struct {
		const char *name;
		double bytes;
	} known[] = {{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"fp8", 1}, {"int8", 1}, {"int4", 0.5}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcasecmp(known[i].name, precision))
			return known[i].bytes;
	return 0;
}

double vram_model_gib(double billions, double bytes_each)
{
	return billions * 1e9 * bytes_each / GIB * 1.3;
}
