/* gpu_list.h - the catalog of GPUs with list prices, ranked, as a table and as JSON. */
#ifndef BURST_CMD_SHOW_GPU_LIST_H
#define BURST_CMD_SHOW_GPU_LIST_H

#include <jansson.h>

#include "base/gpus.h"
#include "plan/cost.h"

enum gpu_order {
	GPUS_BY_NAME,
	GPUS_BY_VRAM,
	GPUS_BY_BANDWIDTH,
	GPUS_BY_COMPUTE,
	GPUS_BY_PRICE,
	GPUS_BY_BANDWIDTH_PER_DOLLAR,
	GPUS_BY_COMPUTE_PER_DOLLAR,
	GPU_ORDERS
};

extern const char *const gpu_order_names[GPU_ORDERS];

struct gpu_row {
	const struct gpu *gpu;
	double price_h; /* 0: unknown */
	enum market market;
	double rank; /* higher first */
};

void gpu_list_print(const struct gpu_row *rows, size_t count, double need_gib);
/* The caller frees the array. */
struct gpu_row *gpu_list_ranked(enum market wanted, enum gpu_order order, size_t *count);
json_t *gpu_list_json(const struct gpu_row *rows, size_t count, double need_gib);

#endif
