/* card_needs.c - reads the needs of a job, and compares them with the catalogue of GPUs */
#include "card_needs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gpus.h"
#include "mem.h"
#include "str.h"

/* The text behind "NAME >= " if the word is one; NULL: it is not. */
static const char *text_behind(const char *word, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(word, name, len) != 0)
		return NULL;
	word += len + strspn(word + len, " ");
	if (!starts_with(word, ">="))
		return NULL;
	word += 2;
	return word + strspn(word, " ");
}

/* Whether the text is two numbers of at most `most` digits with a point between them. */
static bool is_version(const char *text, size_t most)
{
	size_t major = strspn(text, "0123456789");
	size_t minor = text[major] == '.' ? strspn(text + major + 1, "0123456789") : 0;

	return major && minor && major <= most && minor <= most && !text[major + 1 + minor];
}

static int add_number(struct card_needs *to, const char *word)
{
	const char *text;

	if ((text = text_behind(word, "compute")) && is_version(text, 2)) {
		const char *minor = strchr(text, '.') + 1;
		to->least_capability = atoi(text) * 10 + atoi(minor);
		to->gpu = true;
		return minor[1] ? -1 : 0;
	}
	if ((text = text_behind(word, "cuda")) && is_version(text, 3)) {
		COPY_TEXT(to->cuda, text);
		return 0;
	}
	if ((text = text_behind(word, "vram")) && *text && strlen(text) <= 4 &&
	    !text[strspn(text, "0123456789")] && atoi(text) > 0) {
		to->vram_gb = atoi(text);
		to->gpu = true;
		return 0;
	}
	return -1;
}

int card_needs_add(struct card_needs *needs, const char *word)
{
	struct card_needs with = *needs;

	if (!strcmp(word, "nvenc"))
		with.nvenc = true;
	else if (!strcmp(word, "bf16"))
		with.bf16 = true;
	else if (strcmp(word, "gpu") != 0) {
		if (add_number(&with, word) < 0)
			return -1;
		*needs = with;
		return 0;
	}
	with.gpu = true;
	*needs = with;
	return 0;
}

/* Compute capability times 10 of "sm_89"; 0: another maker's, or unknown. */
static int capability_of(const char *gpu)
{
	const char *architecture = gpu_architecture(gpu);

	return starts_with(architecture, "sm_") ? atoi(architecture + 3) : 0;
}

bool card_needs_lack(const struct card_needs *needs, const char *gpu, bool named, const char **why)
{
	const struct gpu *known = gpu_find(gpu);
	bool asks = needs->nvenc || needs->bf16 || needs->least_capability;

	*why = needs->gpu && gpu_is_none(gpu)  ? "a GPU"
	       : !asks                         ? NULL
	       : !known && !gpu_is_none(gpu)   ? (named ? NULL : "a row in `burst gpus`")
	       : needs->nvenc && !known->nvenc ? "NVENC"
	       : needs->bf16 && !known->bf16   ? "BF16"
	       : capability_of(gpu) < needs->least_capability ? "compute capability"
							      : NULL;
	return *why != NULL;
}

bool card_cuda_is_newer(const char *a, const char *b)
{
	int major_a = atoi(a), major_b = atoi(b);
	const char *minor_a = strchr(a, '.'), *minor_b = strchr(b, '.');

	if (major_a != major_b)
		return major_a > major_b;
	return (minor_a ? atoi(minor_a + 1) : 0) > (minor_b ? atoi(minor_b + 1) : 0);
}
