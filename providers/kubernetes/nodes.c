/* nodes.c - offers: which GPUs and slices of GPUs the cluster's nodes have, by their labels, and
 * what the config says they cost */
#include <ctype.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

#define NVIDIA_GPU   "nvidia.com/gpu"
#define NVIDIA_SLICE "nvidia.com/mig-" /* a resource of NVIDIA's strategy "mixed": "...1g.5gb" */
/* GKE's: how a node's cards are cut ("1g.5gb"; the resource stays nvidia.com/gpu), and that pods
 * share them. The label of the card is that of a whole one. */
#define GKE_CARD   "cloud.google.com/gke-accelerator"
#define GKE_SLICE  "cloud.google.com/gke-gpu-partition-size"
#define GKE_SHARED "cloud.google.com/gke-gpu-sharing-strategy"

/* Labels that name a node's GPU, the most exact one first: NVIDIA's GPU Feature Discovery, GKE,
 * Karpenter, CoreWeave, Nebius, SkyPilot. */
static const struct family {
	const char *label;
	const char *memory; /* a label with the memory of each GPU; NULL: none */
	int per_gb;         /* of its number */
} families[] = {
	{NVIDIA_GPU ".product", NVIDIA_GPU ".memory", 1024},
	{GKE_CARD, NULL, 0},
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

/* The same of a slice of this card. */
static void name_slice(const char *card, int card_gb, const char *profile, char *name, size_t room)
{
	char whole[GPU_MAX], slice[2 * GPU_MAX];

	name_gpu(card, card_gb, whole, sizeof(whole));
	format_text(slice, sizeof(slice), "%s MIG %s", whole, profile);
	name_gpu(slice, 0, name, room);
}

/* Several pods share the card or slice: not what its name promises. */
static bool is_shared(const char *value)
{
	return strstr(value, "-SHARED") != NULL;
}

/* A slice whose label tells no profile, as "-MIG-INVALID". */
static bool is_odd_slice(const char *value)
{
	return strstr(value, "-MIG-") && !gpu_slice_gb(value);
}

static const json_t *labels_of(const json_t *node)
{
	return json_object_get(json_object_get(node, "metadata"), "labels");
}

static const json_t *allocatable(const json_t *node)
{
	return json_object_get(json_object_get(node, "status"), "allocatable");
}

static int64_t count_of(const json_t *node, const char *resource)
{
	return strtoll(jsonx_text(allocatable(node), resource, "0"), NULL, 10);
}

/* GB of memory by a label that counts in units of 1/per_gb GB; 0: unknown. */
static int memory_gb_of(const json_t *labels, const char *label, int per_gb)
{
	long memory = label ? strtol(jsonx_text(labels, label, "0"), NULL, 10) : 0;

	return memory > 0 && memory < 1 << 24 ? (int)((memory + per_gb / 2) / per_gb) : 0;
}

/* ---- pages of nodes ---- */

/* A node has some 15 kB, mostly names of images: a page is below 4 MB. */
#define PAGE "200"

/* op->found.text keeps what is needed of the pages that were read: the token of the next page, and
 * a line of JSON for each node with GPUs. */
enum op_next kube_nodes_ask(const struct op *op, struct call *call)
{
	const char *token = str_text(&op->found.text);
	int len = (int)strcspn(token, "\n");

	return kube_request(op, call, "get", NULL, "/api/v1/nodes?limit=" PAGE "%s%.*s",
			    len ? "&continue=" : "", len, token);
}

static bool is_needed(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (!strcmp(key, families[i].label) ||
		    (families[i].memory && !strcmp(key, families[i].memory)))
			return true;
	return starts_with(key, "nvidia.com/") || !strcmp(key, GKE_SLICE) ||
	       !strcmp(key, GKE_SHARED);
}

/* The members of an object that tell of GPUs; a new object. */
static json_t *needed_of(const json_t *object)
{
	json_t *kept = json_object(), *value;
	const char *key;

	json_object_foreach ((json_t *)object, key, value)
		if (is_needed(key))
			json_object_set(kept, key, value);
	return kept;
}

static void keep_node(struct str *to, const json_t *node)
{
	json_t *resources = needed_of(allocatable(node));

	if (!json_object_size(resources)) {
		json_decref(resources);
		return;
	}
	CLEANUP(json_decref)
	json_t *kept = json_pack("{s:{s:o},s:{s:o}}", "metadata", "labels",
				 needed_of(labels_of(node)), "status", "allocatable", resources);
	CLEANUP(free_text) char *line = jsonx_line(kept);
	str_add(to, line ? line : "{}");
	str_addc(to, '\n');
}

int kube_nodes_take(struct op *op, const struct reply *reply, bool spot, struct err *err)
{
	CLEANUP(json_decref) json_t *list = kube_object(reply, err);
	CLEANUP(str_free) struct str all = STR_INIT;
	const char *before = strchr(str_text(&op->found.text), '\n');
	const json_t *node;
	size_t i;

	if (!list || kube_next_page(list, &all, err) < 0)
		return -1;
	bool more = all.len > 0;
	str_add(&all, before ? before : "\n");
	json_array_foreach (json_object_get(list, "items"), i, node)
		if (kube_node_suits(op->provider->section, node, spot))
			keep_node(&all, node);
	str_reset(&op->found.text);
	str_addn(&op->found.text, all.s, all.len);
	return more;
}

/* ---- kinds of cards and slices ---- */

/* Cards or slices of one kind, on any number of nodes. */
struct kind {
	char gpu[GPU_MAX];
	char key[128]; /* the label by which its nodes are found; "": the config alone knows it */
	char values[160]; /* of this label, "VALUE,VALUE" */
	char slice[64];   /* the resource of a slice, or GKE's partition size; "": neither */
	int memory_gb;    /* the least that a node reports; 0: none does */
	int64_t most;     /* on one node */
};

enum { KINDS_MOST = 64 };

struct kinds {
	struct kind list[KINDS_MOST];
	size_t count;
};

/* What a node has of one kind. */
struct piece {
	const char *gpu, *key, *value, *slice;
	int memory_gb;
	int64_t count;
};

/* Whether the text can be part of an offer's id. */
static bool is_word(const char *text)
{
	size_t len = strlen(text);

	return len == strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-_./");
}

/* Whether the list "VALUE,VALUE" has this value. */
static bool has_value(const char *values, const char *value)
{
	size_t len = strlen(value);

	for (const char *at = values; *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, value, len) && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* The kind of this piece; a new one if there is none. NULL: there are too many. */
static struct kind *find_kind(struct kinds *kinds, const struct piece *piece)
{
	for (size_t i = 0; i < kinds->count; i++)
		if (!strcmp(kinds->list[i].gpu, piece->gpu) &&
		    !strcmp(kinds->list[i].key, piece->key) &&
		    !strcmp(kinds->list[i].slice, piece->slice))
			return &kinds->list[i];
	if (kinds->count == KINDS_MOST)
		return NULL;
	struct kind *made = &kinds->list[kinds->count++];
	*made = (struct kind){0};
	COPY_TEXT(made->gpu, piece->gpu);
	COPY_TEXT(made->key, piece->key);
	COPY_TEXT(made->slice, piece->slice);
	return made;
}

static void add_piece(struct kinds *kinds, const struct piece *piece)
{
	const size_t room = sizeof(((struct offer *)0)->id);
	struct kind *kind;

	if (piece->count <= 0 || !is_word(piece->key) || !is_word(piece->value) ||
	    !is_word(piece->slice) || strlen(piece->slice) >= sizeof(kind->slice) ||
	    !(kind = find_kind(kinds, piece)))
		return;
	if (!has_value(kind->values, piece->value)) {
		size_t len = strlen(kind->values);
		if (strlen(kind->key) + len + strlen(piece->value) + strlen(kind->slice) + 4 > room)
			return;
		format_text(kind->values + len, sizeof(kind->values) - len, "%s%s", len ? "," : "",
			    piece->value);
	}
	kind->most = MAX(kind->most, piece->count);
	if (piece->memory_gb && (!kind->memory_gb || piece->memory_gb < kind->memory_gb))
		kind->memory_gb = piece->memory_gb;
}

/* Cards, or the slices into which all cards of the node are cut: NVIDIA's label says so itself, and
 * GKE's in a second one. */
static void add_cards(struct kinds *kinds, const struct family *f, const json_t *node)
{
	const json_t *labels = labels_of(node);
	const char *value = jsonx_text(labels, f->label, "");
	const bool gke = !strcmp(f->label, GKE_CARD);
	const char *slice = gke ? jsonx_text(labels, GKE_SLICE, "") : "";
	int memory_gb = memory_gb_of(labels, f->memory, f->per_gb);
	char gpu[GPU_MAX];

	if (is_shared(value) || is_odd_slice(value) ||
	    (gke && jsonx_text(labels, GKE_SHARED, NULL)))
		return;
	if (slice[0])
		name_slice(value, memory_gb, slice, gpu, sizeof(gpu));
	else
		name_gpu(value, memory_gb, gpu, sizeof(gpu));
	add_piece(kinds, &(struct piece){gpu, f->label, value, slice, slice[0] ? 0 : memory_gb,
					 count_of(node, NVIDIA_GPU)});
}

/* Slices that are a resource of their own beside others of the node. f: the family that names the
 * card, for nodes without NVIDIA's labels of slices; NULL: none does. */
static void add_slices(struct kinds *kinds, const struct family *f, const json_t *node,
		       const char *resource)
{
	const json_t *labels = labels_of(node);
	char product[128], memory[128], gpu[GPU_MAX];

	format_text(product, sizeof(product), "%s.product", resource);
	format_text(memory, sizeof(memory), "%s.memory", resource);
	struct piece piece = {.gpu = gpu,
			      .key = product,
			      .value = jsonx_text(labels, product, ""),
			      .slice = resource,
			      .memory_gb = memory_gb_of(labels, memory, 1024),
			      .count = count_of(node, resource)};
	if (piece.value[0]) {
		name_gpu(piece.value, piece.memory_gb, gpu, sizeof(gpu));
	} else if (f) {
		piece.key = f->label;
		piece.value = jsonx_text(labels, f->label, "");
		name_slice(piece.value, memory_gb_of(labels, f->memory, f->per_gb),
			   resource + strlen(NVIDIA_SLICE), gpu, sizeof(gpu));
	} else {
		return;
	}
	if (!is_shared(piece.value) && !is_odd_slice(piece.value))
		add_piece(kinds, &piece);
}

static const struct family *family_of(const json_t *node)
{
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (*jsonx_text(labels_of(node), families[i].label, ""))
			return &families[i];
	return NULL;
}

static void add_node(struct kinds *kinds, const json_t *node)
{
	const struct family *f = family_of(node);
	const char *resource;
	json_t *count;

	if (f)
		add_cards(kinds, f, node);
	json_object_foreach ((json_t *)allocatable(node), resource, count)
		if (starts_with(resource, NVIDIA_SLICE) && !ends_with(resource, ".shared"))
			add_slices(kinds, f, node, resource);
}

/* ---- an offer's id ---- */

/* "LABEL=VALUE,VALUE", and for a slice " RESOURCE" or, at GKE, " SIZE". "any": no node was seen,
 * and the config's selector finds it. */
static void write_id(const struct kind *kind, char *to, size_t room)
{
	if (kind->key[0])
		format_text(to, room, "%s=%s%s%s", kind->key, kind->values,
			    kind->slice[0] ? " " : "", kind->slice);
	else
		copy_text(to, room, "any");
}

/* What follows the values; "": nothing. */
static const char *slice_in_id(const char *id)
{
	const char *blank = strchr(id, ' ');

	return blank ? blank + 1 : "";
}

const char *kube_resource_of(const char *id)
{
	const char *slice = slice_in_id(id);

	return starts_with(slice, NVIDIA_SLICE) ? slice : NVIDIA_GPU;
}

/* values: a list of texts, taken over; NULL: the node must not have the label. */
static void add_expression(json_t *to, json_t *key, json_t *values)
{
	json_array_append_new(to, json_pack("{s:o,s:s,s:o*}", "key", key, "operator",
					    values ? "In" : "DoesNotExist", "values", values));
}

json_t *kube_affinity(const char *id)
{
	size_t key = strcspn(id, "="), end = strcspn(id, " ");
	const char *slice = slice_in_id(id);
	json_t *values = json_array(), *expressions = json_array();

	for (size_t at = key, len; at < end; at += len + 1) {
		len = strcspn(id + at + 1, ", ");
		json_array_append_new(values, json_stringn(id + at + 1, len));
	}
	if (!json_array_size(values)) {
		json_decref(values);
		json_decref(expressions);
		return NULL;
	}
	add_expression(expressions, json_stringn(id, key), values);
	if (starts_with(id, GKE_CARD "=")) {
		bool cut = slice[0] && !starts_with(slice, NVIDIA_SLICE);
		add_expression(expressions, json_string(GKE_SLICE),
			       cut ? json_pack("[s]", slice) : NULL);
		add_expression(expressions, json_string(GKE_SHARED), NULL);
	}
	return json_pack("{s:{s:{s:[{s:o}]}}}", "nodeAffinity",
			 "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
			 "matchExpressions", expressions);
}

/* ---- offers ---- */

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
	write_id(kind, offer->id, sizeof(offer->id));
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
		*made = (struct kind){.most = 64};
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

void kube_read_offers(const struct op *op, bool listed, struct op_result *result)
{
	const struct kind none = {.gpu = GPU_NONE, .most = 1};
	const char *at = str_text(&op->found.text), *line;
	bool spot = op->want->offers.spot;
	struct kinds *kinds = xcalloc(1, sizeof(*kinds));
	size_t len;

	(void)str_next_line(&at, &len); /* the token of the next page: there is none */
	while (listed && (line = str_next_line(&at, &len))) {
		struct err unreadable;
		CLEANUP(json_decref) json_t *node = jsonx_parse(line, len, &unreadable);
		add_node(kinds, node);
	}
	add_kinds_of_config(op->provider->section, spot, listed, kinds);
	for (size_t i = 0; i < kinds->count; i++)
		add_offers_of(op, &kinds->list[i], result);
	add_offers_of(op, &none, result);
	add_lines_about_missing(op, kinds, result, &result->text);
	free(kinds);
}
