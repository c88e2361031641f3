/* card_needs.h - what a job needs of a pod's card and host beside its memory, as `needs` of
 * burst.cfg lists it: "nvenc", "bf16", "compute >= 8.9", "cuda >= 12.8" */
#ifndef BURST_BASE_CARD_NEEDS_H
#define BURST_BASE_CARD_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

struct card_needs {
	bool gpu; /* a pod without one does not do; set by all that follows, except cuda */
	bool nvenc, bf16;
	int least_capability; /* compute capability times 10: 89; 0: any */
	int vram_gb;          /* as sold, of all cards of a pod; 0: any */
	char cuda[12];        /* least version that the host's driver supports; "": any */
};

/* The needs that card_needs_add() knows, for messages. */
#define CARD_NEEDS_KNOWN                                                                           \
	"\"gpu\", \"nvenc\", \"bf16\", \"compute >= 8.9\", \"vram >= 24\", \"cuda >= 12.8\""

/* Adds one need of the list. Returns -1, and changes nothing, if there is no such need. */
int card_needs_add(struct card_needs *needs, const char *word);
/* Whether a card (GPU_NONE: a pod without one) lacks something of needs; *why is then what, as in
 * "NVENC". A card that burst does not know lacks all of it, unless the user named it. cuda and
 * vram_gb are facts of an offer, and are not checked. */
bool card_needs_lack(const struct card_needs *needs, const char *gpu, bool named, const char **why);
/* Whether version a is newer than b: "12.10" is newer than "12.8". "": older than any. */
bool card_cuda_is_newer(const char *a, const char *b);

#endif
