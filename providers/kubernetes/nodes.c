/* nodes.c - offers: which GPUs the cluster's nodes have, by their labels, and what the config says
 * they cost */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

/* Labels that name a node's GPU, the most exact one first: NVIDIA's GPU Feature Discovery, GKE,
 * Karpenter, CoreWeave, Nebius, SkyPilot. */
static const struct family {
	const char *label;
	const char *memory; /* a label with the memory of each GPU; NULL: none */
	int per_gb;         /* of its number */
} families[] = {
	{"nvidia.com/gpu.product", "nvidia.com/gpu.memory", 1024},
	{"cloud.google.com/gke-accelerator", NULL, 0},
	{"karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory", 1024},
	{"gpu.nvidia.com/class", "gpu.nvidia.com/vram", 1},
	{"nebius.com/gpu-name", NULL, 0},
	{"skypilot.co/accelerator", NULL, 0},
};

/* Names of GKE's that the catalogue reads as another card, or not at all. */
static const char *const spellings[][2] = {
	{"nvidia-tesla-a100", "A100 40GB"}, {"nvidia-a100-80gb", "A100 80GB SXM"},
	{"nvidia-h100-80gb", "H100 SXM"},   {"nvidia-h100-mega-80gb", "H100 SXM"},
	{"nvidia-h200-141gb", "H200 SXM"},  {"nvidia-rtx-pro-6000", "RTX PRO 6000"},
};

static const char *price_key(bool spot)
{
	return spot ? "spot_prices" : "prices";
}

/* ---- which GPU a node has ---- */

/* The member of this family whose memory comes nearest, or the smallest one where memory_gb is 0: a
 * guess must never promise more than there is. NULL: no such family. */
static const struct gpu *member_of(const char *family, int memory_gb)
{
	size_t count;
	const struct gpu *all = gpu_catalog(&count), *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!all[i].family || strcasecmp(all[i].family, family) != 0)
			continue;
		if (!best || abs(all[i].vram_gb - memory_gb) < abs(best->vram_gb - memory_gb))
			best = &all[i];
	}
	return best;
}

/* Writes the GPU's name as burst shows it; one that the catalogue lacks as the label has it. */
static void name_gpu(const char *value, int memory_gb, char *name, size_t room)
{
	const struct gpu *gpu =
		member_of(starts_with(value, "nvidia-") ? value + 7 : value, memory_gb);

	for (size_t i = 0; !gpu && i < ARRAY_LEN(spellings); i++)
		if (!strcmp(value, spellings[i][0]))
			gpu = gpu_find(spellings[i][1]);
	if (!gpu)
		gpu = gpu_find(value);
	/* the label's card and its memory must agree */
	if (gpu && gpu->family && memory_gb && memory_gb < gpu->vram_gb * 3 / 4)
		gpu = member_of(gpu->family, memory_gb);
	copy_text(name, room, gpu ? gpu->name : value);
}

/* A part of a card (MIG), or one that several pods share: not what its name promises. */
static bool is_part(const char *value)
{
	return strstr(value, "-SHARED") || strstr(value, "-MIG-");
}

static int64_t allocatable(const json_t *node, const char *resource)
{
	const json_t *status = json_object_get(node, "status");

	return strtoll(jsonx_text(json_object_get(status, "allocatable"), resource, "0"), NULL, 10);
}

static int memory_of(const struct family *f, const json_t *labels)
{
	long memory = f->memory ? strtol(jsonx_text(labels, f->memory, "0"), NULL, 10) : 0;

	return memory > 0 && memory < 1 << 24 ? (int)((memory + f->per_gb / 2) / f->per_gb) : 0;
}

/* ---- offers ---- */

/* Cards of one kind, on any number of nodes. */
struct kind {
	char id[sizeof((struct offer *)0)->id]; /* "LABEL=VALUE,VALUE" */
	char gpu[GPU_MAX];
	int memory_gb; /* the least that a node reports; 0: none does */
	int64_t most;  /* cards on one node */
};

enum { KINDS_MOST = 64 };

struct kinds {
	struct kind list[KINDS_MOST];
	size_t count;
};

/* Whether the id names this value of this label. */
static bool has_value(const char *id, const char *value)
{
	size_t len = strlen(value);

	for (const char *at = strchr(id, '='); at && *at; at = strchr(at + 1, ','))
		if (!strncmp(at + 1, value, len) && (!at[1 + len] || at[1 + len] == ','))
			return true;
	return false;
}

/* The kind with this label and GPU; a new one if there is none. NULL: there are too many. */
static struct kind *find_kind(struct kinds *kinds, const char *label, const char *gpu)
{
	size_t len = strlen(label);

	for (size_t i = 0; i < kinds->count; i++)
		if (!strcmp(kinds->list[i].gpu, gpu) && !strncmp(kinds->list[i].id, label, len) &&
		    kinds->list[i].id[len] == '=')
			return &kinds->list[i];
	if (kinds->count == KINDS_MOST)
		return NULL;
	struct kind *made = &kinds->list[kinds->count++];
	*made = (struct kind){0};
	COPY_TEXT(made->gpu, gpu);
	format_text(made->id, sizeof(made->id), "%s=", label);
	return made;
}

static void add_card(struct kinds *kinds, const struct family *f, const json_t *node)
{
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
	const char *value = jsonx_text(labels, f->label, "");
	int memory_gb = memory_of(f, labels);
	char gpu[GPU_MAX];

	name_gpu(value, memory_gb, gpu, sizeof(gpu));
	struct kind *kind = find_kind(kinds, f->label, gpu);
	if (!kind)
		return;
	bool known = has_value(kind->id, value), first = kind->id[strlen(f->label) + 1] == '\0';
	if (!known && strlen(kind->id) + strlen(value) + 2 > sizeof(kind->id))
		return;
	if (!known)
		format_text(kind->id + strlen(kind->id), sizeof(kind->id) - strlen(kind->id),
			    "%s%s", first ? "" : ",", value);
	kind->most = MAX(kind->most, allocatable(node, "nvidia.com/gpu"));
	if (memory_gb && (!kind->memory_gb || memory_gb < kind->memory_gb))
		kind->memory_gb = memory_gb;
}

static void add_node(struct kinds *kinds, const json_t *node)
{
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");

	if (allocatable(node, "nvidia.com/gpu") <= 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		const char *value = jsonx_text(labels, families[i].label, "");
		if (!value[0])
			continue;
		if (!is_part(value) && !strchr(value, ','))
			add_card(kinds, &families[i], node);
		return;
	}
}

static void add_offer(const struct op *op, const struct kind *kind, int gpus,
		      struct op_result *result)
{
	const struct section *conf = op->provider->section;
	bool spot = op->want->offers.spot;
	const struct gpu *known = gpu_find(kind->gpu);
	/* drivers keep some of a card's memory, so a label shows less than is sold */
	int vram_gb = known ? known->vram_gb : kind->memory_gb;
	struct offer *offer =
		child_offer(op, kind->gpu, gpus, vram_gb,
			    gpus * provider_price_of(conf, price_key(spot), kind->gpu), result);

	if (!offer)
		return;
	offer->spot = spot;
	COPY_TEXT(offer->id, kind->id);
	COPY_TEXT(offer->region, section_text(conf, "namespace"));
}

/* How many cards of this kind the job wishes for at a time: the wishes that name it. */
static void add_offers_of(const struct op *op, const struct kind *kind, struct op_result *result)
{
	const char *const *wishes = op->want->offers.gpus;
	bool offered[65] = {0};
	char name[GPU_MAX];
	int count;

	if (!wishes || !wishes[0])
		add_offer(op, kind, 1, result);
	for (size_t i = 0; wishes && wishes[i]; i++) {
		if (!gpu_parse(wishes[i], name, sizeof(name), &count) || offered[count] ||
		    count > kind->most || gpu_is_none(wishes[i]) != gpu_is_none(kind->gpu))
			continue;
		offered[count] = true;
		add_offer(op, kind, count, result);
	}
}

/* GPUs that only the config knows: those among its prices, where its node_selector finds their
 * nodes (a group of nodes that an autoscaler makes from nothing has no labels yet), or where nodes
 * may not be listed. */
static void add_kinds_of_config(const struct section *conf, bool spot, bool nodes_known,
				struct kinds *kinds)
{
	const char *key = price_key(spot);
	char name[GPU_MAX];

	if (nodes_known && !section_count(conf, "node_selector"))
		return;
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i);
		const struct gpu *known;
		bool seen = false;
		format_text(name, sizeof(name), "%.*s", (int)strcspn(item, "="), item);
		known = gpu_find(name);
		if (gpu_is_none(name))
			continue;
		for (size_t k = 0; k < kinds->count; k++)
			seen = seen || gpu_is_same(kinds->list[k].gpu, name);
		if (seen || kinds->count == KINDS_MOST)
			continue;
		struct kind *made = &kinds->list[kinds->count++];
		*made = (struct kind){.id = "any", .most = 64};
		COPY_TEXT(made->gpu, known ? known->name : name);
	}
}

static void add_lines_about_missing(const struct op *op, const struct kinds *kinds,
				    const struct op_result *got, struct str *to)
{
	const char *const *wishes = op->want->offers.gpus;

	for (size_t i = 0; wishes && wishes[i]; i++) {
		bool offered = gpu_is_none(wishes[i]);
		for (size_t k = 0; k < got->offer_count; k++)
			offered = offered || got->offers[k].wish == (int)i;
		if (offered)
			continue;
		str_addf(to, "no node of the cluster has %s for burst; its nodes have", wishes[i]);
		for (size_t k = 0; k < kinds->count; k++)
			str_addf(to, "%s %s", k ? "," : "", kinds->list[k].gpu);
		str_add(to, kinds->count ? "\n" : " no GPU with a known label\n");
	}
}

void kube_read_offers(const struct op *op, const json_t *nodes, struct op_result *result)
{
	const struct section *conf = op->provider->section;
	const struct kind none = {.id = "any", .gpu = GPU_NONE, .most = 1};
	bool spot = op->want->offers.spot;
	struct kinds *kinds = xcalloc(1, sizeof(*kinds));
	const json_t *node;
	size_t i;

	json_array_foreach (json_object_get(nodes, "items"), i, node)
		if (kube_node_suits(conf, node, spot))
			add_node(kinds, node);
	add_kinds_of_config(conf, spot, nodes != NULL, kinds);
	for (i = 0; i < kinds->count; i++)
		add_offers_of(op, &kinds->list[i], result);
	add_offers_of(op, &none, result);
	add_lines_about_missing(op, kinds, result, &result->text);
	free(kinds);
}
