/* gpus.c - the table of GPUs.
 *
 * Sources, as read in November 2026: NVIDIA's and AMD's data sheets, the accelerator tables of
 * stas00/ml-engineering (August 2026), hmc-tech.com for the workstation cards; ids from RunPod's
 * published OpenAPI files and GPU page, and from modal.com's GPU guide. Where a sheet gives only a
 * figure with sparsity or FP8, the dense FP16 one was computed from it; GeForce cards run at half
 * their advertised tensor rate when sums are kept in FP32, and it is that half which stands here:
 * twice their FP32 rate. Workstation cards have four times their FP32 rate. RTX 4000 Ada: published
 * figures disagree, the smaller is used; A10G and RTX PRO 6000 are estimates.
 *
 * Cards that these tables lack:
 * A30             933 GB/s, 56 SMs of 1024 FP16 FMAs at 1.44 GHz: NVIDIA's nvbench prints of it
 * RTX A2000       288 GB/s, 63.9 TFLOPS with sparsity: NVIDIA's sheet as resellers print it; RunPod
 *                 rents the one of 6 GB (its GPU page, February 2026)
 * RTX 4000 SFF    160 bits at 16 Gbit/s, 19.2 TFLOPS FP32: as announced in March 2023
 * RTX 5000 Ada    1044.4 TFLOPS of FP8 with sparsity: NVIDIA's sheet
 * RTX 3080 Ti     384 bits at 19 Gbit/s, 34.1 TFLOPS FP32: reviews of June 2021
 * RTX 3090 Ti     1008 GB/s, 40 TFLOPS FP32: NVIDIA at CES 2022 and 2023
 * RTX 4070 Ti     504 GB/s, 40.09 TFLOPS FP32: NVIDIA at CES 2023
 * RTX 4080 SUPER  736 GB/s, 52.22 TFLOPS FP32: published specifications of January 2024
 * RTX PRO 4500    896 GB/s, 54.94 TFLOPS FP32: hmc-tech.com and technical.city
 * H200 NVL        4.8 TB/s, 1671 TFLOPS with sparsity: nvidia.com/data-center/h200, August 2026 */
#include "gpus.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "mem.h"
#include "str.h"

/* clang-format off */
static const struct gpu catalog[] = {
	{"T4", NULL, 16, 320, 65, false, true, "Tesla T4", "T4", {0}},
	{"V100 16GB", "V100", 16, 900, 112, false, true, "Tesla V100-PCIE-16GB", NULL,
	 {"Tesla V100-SXM2-16GB", "Tesla V100-FHHL-16GB"}},
	{"V100 32GB", "V100", 32, 900, 112, false, true, "Tesla V100-PCIE-32GB", NULL,
	 {"Tesla V100-SXM2-32GB"}},
	{"A2", NULL, 16, 200, 18.1, true, true, NULL, NULL, {0}},
	{"L4", NULL, 24, 300, 121, true, true, "NVIDIA L4", "L4", {0}},
	{"A10", NULL, 24, 600, 125, true, true, NULL, "A10", {0}},
	{"A10G", "A10", 24, 600, 70, true, true, NULL, "A10G", {0}},
	{"A16", NULL, 16, 200, 17.9, true, true, NULL, NULL, {0}},
	{"A30", NULL, 24, 933, 165, true, false, "NVIDIA A30", NULL, {"NVIDIA RTX A30"}},
	{"RTX A2000", NULL, 6, 288, 31.9, true, true, "NVIDIA RTX A2000", NULL, {"A2000"}},
	{"RTX A2000 12GB", "RTX A2000", 12, 288, 31.9, true, true, NULL, NULL, {"A2000 12GB"}},
	{"RTX A4000", NULL, 16, 448, 76.7, true, true, "NVIDIA RTX A4000", NULL, {"A4000"}},
	{"RTX A4500", NULL, 20, 640, 94.6, true, true, "NVIDIA RTX A4500", NULL, {"A4500"}},
	{"RTX A5000", NULL, 24, 768, 111, true, true, "NVIDIA RTX A5000", NULL, {"A5000"}},
	{"RTX A6000", NULL, 48, 768, 154.8, true, true, "NVIDIA RTX A6000", NULL, {"A6000"}},
	{"RTX 2000 Ada", NULL, 16, 224, 48, true, true, "NVIDIA RTX 2000 Ada Generation", NULL, {0}},
	{"RTX 4000 Ada", NULL, 20, 360, 81.9, true, true, "NVIDIA RTX 4000 Ada Generation", NULL, {0}},
	{"RTX 4000 SFF Ada", "RTX 4000 Ada", 20, 320, 76.7, true, true,
	 "NVIDIA RTX 4000 SFF Ada Generation", NULL, {0}},
	{"RTX 5000 Ada", NULL, 32, 576, 261.1, true, true, "NVIDIA RTX 5000 Ada Generation", NULL,
	 {"NVIDIA A5000 Ada", "5000 Ada"}},
	{"RTX 3070", NULL, 8, 448, 40.6, true, true, "NVIDIA GeForce RTX 3070", NULL, {"3070"}},
	{"RTX 3080", NULL, 10, 760, 59.5, true, true, "NVIDIA GeForce RTX 3080", NULL, {"3080"}},
	{"RTX 3080 Ti", NULL, 12, 912, 68.2, true, true, "NVIDIA GeForce RTX 3080 Ti", NULL,
	 {"3080 Ti"}},
	{"RTX 3090", NULL, 24, 936, 71, true, true, "NVIDIA GeForce RTX 3090", NULL, {"3090"}},
	{"RTX 3090 Ti", NULL, 24, 1008, 80, true, true, "NVIDIA GeForce RTX 3090 Ti", NULL,
	 {"3090 Ti"}},
	{"RTX 4070 Ti", NULL, 12, 504, 80.2, true, true, "NVIDIA GeForce RTX 4070 Ti", NULL,
	 {"4070 Ti"}},
	{"RTX 4080", NULL, 16, 717, 97.5, true, true, "NVIDIA GeForce RTX 4080", NULL, {"4080"}},
	{"RTX 4080 SUPER", NULL, 16, 736, 104.4, true, true, "NVIDIA GeForce RTX 4080 SUPER", NULL,
	 {"4080 SUPER"}},
	{"RTX 4090", NULL, 24, 1008, 165, true, true, "NVIDIA GeForce RTX 4090", NULL, {"4090"}},
	{"RTX 5080", NULL, 16, 960, 112.6, true, true, "NVIDIA GeForce RTX 5080", NULL, {"5080"}},
	{"RTX 5090", NULL, 32, 1792, 209.5, true, true, "NVIDIA GeForce RTX 5090", NULL, {"5090"}},
	{"L40", NULL, 48, 864, 181, true, true, "NVIDIA L40", NULL, {0}},
	{"L40S", NULL, 48, 864, 362, true, true, "NVIDIA L40S", "L40S", {0}},
	{"RTX 6000 Ada", NULL, 48, 960, 364, true, true, "NVIDIA RTX 6000 Ada Generation", NULL,
	 {"6000 Ada"}},
	{"RTX PRO 6000", NULL, 96, 1597, 500, true, true,
	 "NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000",
	 {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
	  "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell"}},
	{"RTX PRO 4500", NULL, 32, 896, 219.7, true, true, "NVIDIA RTX PRO 4500 Blackwell", NULL, {0}},
	{"A40", NULL, 48, 696, 149.7, true, true, "NVIDIA A40", NULL, {0}},
	{"A100 80GB SXM", "A100", 80, 2039, 312, true, false, "NVIDIA A100-SXM4-80GB", "A100-80GB",
	 {"A100 SXM"}},
	{"A100 80GB PCIe", "A100", 80, 1935, 312, true, false, "NVIDIA A100 80GB PCIe", NULL,
	 {"A100 PCIe"}},
	{"A100 40GB", "A100", 40, 1555, 312, true, false, "NVIDIA A100-SXM4-40GB", "A100-40GB",
	 {"NVIDIA A100-PCIE-40GB"}},
	{"H100 SXM", "H100", 80, 3350, 989, true, false, "NVIDIA H100 80GB HBM3", "H100",
	 {"H100!", "H100 80GB"}},
	{"H100 NVL", "H100", 94, 3938, 835, true, false, "NVIDIA H100 NVL", NULL, {0}},
	{"H100 PCIe", "H100", 80, 2000, 756, true, false, "NVIDIA H100 PCIe", NULL, {0}},
	{"H200 SXM", "H200", 141, 4800, 989, true, false, "NVIDIA H200", "H200", {0}},
	{"H200 NVL", "H200", 141, 4800, 835, true, false, "NVIDIA H200 NVL", NULL, {0}},
	{"B200", NULL, 180, 8000, 2250, true, false, "NVIDIA B200", "B200", {"B200+"}},
	{"B300", NULL, 288, 8000, 2250, true, false, "NVIDIA B300 SXM6 AC", "B300", {0}},
	{"MI300X", NULL, 192, 5300, 1307, true, false, "AMD Instinct MI300X OAM", NULL, {0}},
};
/* clang-format on */

bool gpu_is_none(const char *gpu)
{
	return !strcmp(gpu, GPU_NONE);
}

const char *gpu_called(const char *gpu)
{
	return gpu_is_none(gpu) ? "no GPU" : gpu;
}

const struct gpu *gpu_catalog(size_t *count)
{
	*count = ARRAY_LEN(catalog);
	return catalog;
}

/* CUDA's compute capability, by NVIDIA's table. The first row counts whose `begins` begins the
 * name: a longer one stands before a shorter one. */
static const struct {
	const char *begins, *architecture;
} architectures[] = {
	{"V100", "sm_70"},         {"T4", "sm_75"},           {"A100", "sm_80"},
	{"A10", "sm_86"},          {"A16", "sm_86"},          {"A2", "sm_86"},
	{"A30", "sm_80"},          {"RTX 5000 Ada", "sm_89"}, {"A40", "sm_86"},
	{"RTX A", "sm_86"},        {"RTX 30", "sm_86"},       {"L4", "sm_89"},
	{"RTX 2000 Ada", "sm_89"}, {"RTX 4000 Ada", "sm_89"}, {"RTX 6000 Ada", "sm_89"},
	{"RTX 40", "sm_89"},       {"H100", "sm_90"},         {"H200", "sm_90"},
	{"B200", "sm_100"},        {"B300", "sm_103"},        {"RTX 50", "sm_120"},
	{"RTX PRO", "sm_120"},     {"MI300X", "gfx942"},
};

const char *gpu_architecture(const char *text)
{
	const struct gpu *known = gpu_find(text);

	for (size_t i = 0; known && i < ARRAY_LEN(architectures); i++)
		if (starts_with(known->name, architectures[i].begins))
			return architectures[i].architecture;
	return text;
}

/* ---- names ---- */

#define PLAIN_MAX 80

/* Whether the word tells no cards apart, so that names with and without it are the same. */
static bool is_noise(const char *word, size_t len)
{
	static const char *const noise[] = {"NVIDIA",   "AMD",        "GEFORCE", "TESLA",
					    "INSTINCT", "GENERATION", "EDITION"};

	for (size_t i = 0; i < ARRAY_LEN(noise); i++)
		if (strlen(noise[i]) == len && !memcmp(word, noise[i], len))
			return true;
	return false;
}

/* Writes a name in capitals, without makers' words, blanks and signs: "NVIDIA GeForce RTX 5090" and
 * "rtx-5090" both become RTX5090. */
static void plain_name(char to[PLAIN_MAX], const char *text, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		char word[PLAIN_MAX];
		size_t n = 0;
		while (i < len && isalnum((unsigned char)text[i]) && n < sizeof(word))
			word[n++] = (char)toupper((unsigned char)text[i++]);
		if (n && !is_noise(word, n) && used + n < PLAIN_MAX) {
			memcpy(to + used, word, n);
			used += n;
		}
		if (i < len && !isalnum((unsigned char)text[i]))
			i++;
	}
	to[used] = '\0';
}

/* Whether the plain form of `name` (NULL: has none) is `plain`. */
static bool is_plain_of(const char *plain, const char *name)
{
	char other[PLAIN_MAX];

	if (!name)
		return false;
	plain_name(other, name, strlen(name));
	return !strcmp(plain, other);
}

/* Whether a name or id of this GPU has the plain form `plain`. Its family's name does not count. */
static bool is_named(const struct gpu *g, const char *plain)
{
	if (is_plain_of(plain, g->name) || is_plain_of(plain, g->runpod) ||
	    is_plain_of(plain, g->modal))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(g->others); i++)
		if (is_plain_of(plain, g->others[i]))
			return true;
	return false;
}

/* Names and ids come before families: Modal's "H100" is both. NULL: no GPU of this name. */
static const struct gpu *find_plain(const char *plain)
{
	if (!*plain)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(catalog); i++)
		if (is_named(&catalog[i], plain))
			return &catalog[i];
	for (size_t i = 0; i < ARRAY_LEN(catalog); i++)
		if (is_plain_of(plain, catalog[i].family))
			return &catalog[i];
	return NULL;
}

/* The length of the name in "L40S:2". */
static size_t name_length(const char *text)
{
	return strcspn(text, ":");
}

/* ---- slices (MIG) ---- */

/* Cards that NVIDIA's Multi-Instance GPU can divide, by its MIG user guide (versions 610 to 620,
 * 2026): into how many parts of memory, and from how many GB the profiles are named; 0: from what
 * the card is sold with. */
static const struct {
	const char *begins;
	int parts, named_gb;
} divisible[] = {
	{"A100", 8, 0}, {"H100", 8, 0},   {"H200", 8, 0},         {"B200", 8, 0},
	{"A30", 4, 0},  {"B300", 8, 269}, {"RTX PRO 6000", 4, 0}, {"RTX PRO 4500", 2, 0},
};

/* The profiles: parts of the compute units, of which a card with 8 parts of memory has 7, and parts
 * of the memory, by the same guide. */
static const struct {
	int card_parts, compute, memory;
} profiles[] = {{8, 1, 1}, {8, 1, 2}, {8, 2, 2}, {8, 3, 4}, {8, 4, 4}, {8, 7, 8},
		{4, 1, 1}, {4, 2, 2}, {4, 4, 4}, {2, 1, 1}, {2, 2, 2}};

/* What may follow a profile, with '+' or, in Kubernetes, '.': the slice has engines that others of
 * its size lack, of which none matters here. */
static const char *const more_engines[] = {"me.all", "me", "gfx"};
#define NO_ENGINES "-me" /* the slice cannot encode or decode video */

enum { SLICES_MOST = 160 };
static struct {
	struct gpu gpu; /* its numbers are the slice's share of the card's */
	const struct gpu *card;
	char name[GPU_SLICE_MAX];
	int compute;
	bool no_engines;
} slices[SLICES_MOST];
static size_t slice_count;

static void add_slice(const struct gpu *card, size_t profile, int named_gb, bool no_engines)
{
	const int parts = profiles[profile].card_parts, compute = profiles[profile].compute;
	const double of_memory = (double)profiles[profile].memory / parts,
		     of_compute = (double)compute / (parts == 8 ? 7 : parts);

	if (slice_count == SLICES_MOST)
		return;
	slices[slice_count].card = card;
	slices[slice_count].compute = compute;
	slices[slice_count].no_engines = no_engines;
	struct gpu *g = &slices[slice_count].gpu;
	*g = (struct gpu){.vram_gb = (int)lround((named_gb ? named_gb : card->vram_gb) * of_memory),
			  .bandwidth_gb_s = (int)lround(card->bandwidth_gb_s * of_memory),
			  .tflops = card->tflops * of_compute,
			  .bf16 = card->bf16,
			  .nvenc = card->nvenc && !no_engines,
			  .name = slices[slice_count].name};
	format_text(slices[slice_count].name, GPU_SLICE_MAX, "%s MIG %dg.%dgb%s", card->name,
		    compute, g->vram_gb, no_engines ? NO_ENGINES : "");
	slice_count++;
}

static void add_slices_of(const struct gpu *card, int parts, int named_gb)
{
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
		if (profiles[i].card_parts != parts)
			continue;
		add_slice(card, i, named_gb, false);
		if (card->nvenc) /* only these have slices without their engines */
			add_slice(card, i, named_gb, true);
	}
}

static void fill_slices(void)
{
	for (size_t i = 0; i < ARRAY_LEN(catalog); i++)
		for (size_t k = 0; k < ARRAY_LEN(divisible); k++)
			if (starts_with(catalog[i].name, divisible[k].begins))
				add_slices_of(&catalog[i], divisible[k].parts,
					      divisible[k].named_gb);
}

/* Cuts what follows the profile of a slice from a text of *len characters. Returns whether it says
 * that the slice has no engines. */
static bool cut_engines(const char *text, size_t *len)
{
	const size_t none = strlen(NO_ENGINES);

	for (size_t i = 0; i < ARRAY_LEN(more_engines); i++) {
		size_t n = strlen(more_engines[i]);
		if (*len > n && !strncasecmp(text + *len - n, more_engines[i], n) &&
		    strchr("+.", text[*len - n - 1])) {
			*len -= n + 1;
			return false;
		}
	}
	if (*len <= none || strncasecmp(text + *len - none, NO_ENGINES, none) != 0)
		return false;
	*len -= none;
	return true;
}

/* A slice's profile, "1g.10gb", at the end of a name. */
struct profile {
	size_t begin; /* where it begins in the name */
	int compute, memory_gb;
	bool no_engines;
};

/* Reads the profile from a text of `len` characters. False: it names no slice. */
static bool read_profile(const char *text, size_t len, struct profile *out)
{
	int used = 0;

	out->no_engines = cut_engines(text, &len);
	size_t dot = len;
	while (dot && isalnum((unsigned char)text[dot - 1]))
		dot--;
	if (dot < strlen("1g.") || text[dot - 1] != '.')
		return false;
	out->begin = dot - strlen("1g.");
	return sscanf(text + out->begin, "%1dg.%3dgb%n", &out->compute, &out->memory_gb, &used) ==
		       2 &&
	       (size_t)used == len - out->begin;
}

int gpu_slice_gb(const char *text)
{
	struct profile profile;

	return read_profile(text, name_length(text), &profile) ? profile.memory_gb : 0;
}

/* The slice of this name, with or without "MIG": "A100-SXM4-40GB-MIG-1g.5gb", "a100_1g.5gb",
 * "RTX PRO 6000 MIG 1g.24gb+gfx". The card may be a family ("H100"): its first member with such a
 * slice. NULL: it names none. */
static const struct gpu *find_slice(const char *text, size_t len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct profile profile;
	char plain[PLAIN_MAX];

	if (!read_profile(text, len, &profile))
		return NULL;
	pthread_once(&once, fill_slices);
	plain_name(plain, text, profile.begin);
	size_t n = strlen(plain);
	if (n > 3 && !strcmp(plain + n - 3, "MIG"))
		plain[n - 3] = '\0';
	for (int by_family = 0; by_family < 2; by_family++)
		for (size_t i = 0; i < slice_count; i++) {
			const struct gpu *card = slices[i].card;
			if (slices[i].compute == profile.compute &&
			    slices[i].gpu.vram_gb == profile.memory_gb &&
			    slices[i].no_engines == profile.no_engines &&
			    (by_family ? is_plain_of(plain, card->family) : is_named(card, plain)))
				return &slices[i].gpu;
		}
	return NULL;
}

const struct gpu *gpu_find(const char *text)
{
	size_t len = name_length(text);
	const struct gpu *slice = find_slice(text, len);
	char plain[PLAIN_MAX];

	if (slice)
		return slice;
	plain_name(plain, text, len);
	return find_plain(plain);
}

bool gpu_is_same(const char *a, const char *b)
{
	const struct gpu *known = gpu_find(a);

	return !strcmp(a, b) || (known && known == gpu_find(b));
}

const char *gpu_nearest(const char *text)
{
	const char *names[ARRAY_LEN(catalog) + 1];

	for (size_t i = 0; i < ARRAY_LEN(catalog); i++)
		names[i] = catalog[i].name;
	names[ARRAY_LEN(catalog)] = NULL;
	return nearest_word(text, names);
}

bool gpu_lacks_bf16(const char *text)
{
	const struct gpu *known = gpu_find(text);

	return known && !known->bf16;
}

bool gpu_parse(const char *text, char *name, size_t room, int *count)
{
	size_t len = name_length(text);
	const struct gpu *known = gpu_find(text);
	long n = 1;

	if (text[len]) {
		char *end;
		n = strtol(text + len + 1, &end, 10);
		if (!isdigit((unsigned char)text[len + 1]) || *end || n < 1 || n > 64)
			return false;
	}
	if (!len)
		return false;
	if (known)
		copy_text(name, room, known->name);
	else
		snprintf(name, room, "%.*s", (int)len, text);
	*count = (int)n;
	return true;
}

bool gpu_satisfies(const char *wish, const char *offered)
{
	char wanted[PLAIN_MAX], got[PLAIN_MAX];

	plain_name(wanted, wish, name_length(wish));
	plain_name(got, offered, name_length(offered));
	const struct gpu *g = find_plain(got);
	if (!strcmp(wanted, got))
		return true;
	if (!g) /* a slice is neither its card nor another slice */
		return gpu_find(wish) && gpu_find(wish) == gpu_find(offered);
	return is_named(g, wanted) || is_plain_of(wanted, g->family);
}
