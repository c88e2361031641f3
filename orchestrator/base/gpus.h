/* gpus.h - the catalogue of GPUs: their names, the vendors' ids of them, and the physical constants
 * that the planner scales by. Live offers decide about price and stock; a GPU that is missing here
 * is not refused. */
#ifndef BURST_BASE_GPUS_H
#define BURST_BASE_GPUS_H

#include <stdbool.h>
#include <stddef.h>

struct gpu {
	const char *name;   /* as burst shows it: "RTX 5090" */
	const char *family; /* a shorter name that users may ask for too ("H100"); NULL: none */
	int vram_gb;        /* as sold; less is free */
	int bandwidth_gb_s; /* peak of its memory */
	double tflops;      /* dense FP16 matmuls that add up in FP32, as PyTorch's do */

	bool bf16;
	bool nvenc;            /* can encode video */
	const char *runpod;    /* gpuTypeId; NULL: not offered there */
	const char *modal;     /* gpu=; NULL: not offered there */
	const char *others[3]; /* more ids and spellings */
};

/* The GPU's name of an offer or a pod without a GPU. */
#define GPU_NONE "none"
bool gpu_is_none(const char *gpu);
/* The name for people: "no GPU" for GPU_NONE. */
const char *gpu_called(const char *gpu);

/* Every row, for lists and completion. */
const struct gpu *gpu_catalog(size_t *count);

/* A slice of a card (MIG) is found by its card and its profile, "H100 MIG 3g.40gb". It has its
 * share of the card's memory, bandwidth and compute units, and is in no list. */
enum { GPU_SLICE_MAX = 40 };

/* The memory in GB that a slice's name tells, also of an unknown card and of a profile alone
 * ("1g.10gb"); 0: the text names no slice. */
int gpu_slice_gb(const char *text);

/* Finds a GPU by any of its names ("5090", "NVIDIA GeForce RTX 5090", "rtx-5090"); NULL: unknown. A
 * family's name ("A100") finds its most common member. */
const struct gpu *gpu_find(const char *text);
/* Whether two texts name one card. */
bool gpu_is_same(const char *a, const char *b);
/* The name nearest to a misspelled one, for "did you mean"; NULL: none is near. */
const char *gpu_nearest(const char *text);
/* True of a known GPU without BF16; false of unknown ones. */
bool gpu_lacks_bf16(const char *text);
/* What programs for this GPU are compiled for ("sm_89"); `text` if the GPU is unknown. */
const char *gpu_architecture(const char *text);
/* Splits "L40S:2" into a name (as burst shows it; unknown ones as written) and a count (1 without
 * ":2"). Returns false if the name is empty or the count is not a number from 1 to 64. */
bool gpu_parse(const char *text, char *name, size_t room, int *count);
/* Whether the offered GPU is the one asked for, or of the family asked for. Ignores counts. */
bool gpu_satisfies(const char *wish, const char *offered);

#endif
