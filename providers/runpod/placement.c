/* placement.c - where a pod runs: an offer's id, names of GPUs, data centres, images, disks. */
#include "impl.h"

#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"

enum { DISK_GB_MICROUSD = 100000, MONTH_H = 730 }; /* a month */

void gpu_shown(char to[GPU_MAX], const char *type, const char *name)
{
	const struct gpu *known = gpu_find(type);

	copy_text(to, GPU_MAX, known ? known->name : name[0] ? name : type);
}

bool gpu_meant(const char *wish, const char *type, const char *name)
{
	CLEANUP(free_text) char *longer = xasprintf("RTX %s", wish); /* "3090 Ti" */

	return gpu_satisfies(wish, type) || gpu_satisfies(wish, name) ||
	       gpu_satisfies(longer, type) || gpu_satisfies(longer, name);
}

/* -1: it does not fit. */
static int placement_write(const struct placement *p, char *to, size_t room)
{
	int n = snprintf(to, room, "%s/%s/%d%s/%s", p->community ? "COMMUNITY" : "SECURE",
			 p->datacenter, p->count, p->cpu ? " vCPU" : "", p->type);

	return n > 0 && (size_t)n < room ? 0 : -1;
}

int placement_read(const char *id, struct placement *out)
{
	struct placement p = {0};
	const char *at = id;

	if (starts_with(at, "COMMUNITY/"))
		p.community = true;
	else if (!starts_with(at, "SECURE/"))
		return -1;
	at += strcspn(at, "/") + 1;
	size_t len = strcspn(at, "/");
	if (!at[len] || len >= sizeof(p.datacenter))
		return -1;
	memcpy(p.datacenter, at, len);
	at += len + 1;
	char *end;
	long count = strtol(at, &end, 10);
	if (end != at && starts_with(end, " vCPU/")) {
		p.cpu = true;
		end += strlen(" vCPU");
	}
	if (end == at || *end != '/' || count < 1 || count > (p.cpu ? 1024 : 64) ||
	    (p.cpu && p.community) || !end[1] || strlen(end + 1) >= sizeof(p.type))
		return -1;
	p.count = (int)count;
	COPY_TEXT(p.type, end + 1);
	*out = p;
	return 0;
}

const char *image_of(const struct provider *p, const char *wanted)
{
	return wanted ? wanted : section_text(p->conf, "image");
}

const char *cuda_floor(const struct provider *p, const char *wanted)
{
	const char *set = section_text(p->conf, "min_cuda");

	if (set)
		return strcmp(set, "none") ? set : NULL;
	return !strcmp(image_of(p, wanted), RUNPOD_IMAGE) ? RUNPOD_IMAGE_CUDA : NULL;
}

bool datacenter_is_wanted(const struct provider *p, const char *id)
{
	size_t count = section_count(p->conf, "datacenters");

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section_item(p->conf, "datacenters", i), id))
			return true;
	return !count;
}

bool offers_sold_out(const json_t *from)
{
	return !strcmp(jsonx_text(from, "availability", ""), "NONE");
}

void offers_floor(struct op *op, int64_t price_microusd_h)
{
	int64_t *least = &op->got.floor_microusd_h;

	if (price_microusd_h > 0)
		*least = *least ? MIN(*least, price_microusd_h) : price_microusd_h;
}

void add_offer(struct op *op, const struct offer *offer)
{
	offers_floor(op, offer->price_microusd_h);
	op->got.offers = xrealloc(op->got.offers, (op->got.offer_count + 1) * sizeof(*offer));
	op->got.offers[op->got.offer_count++] = *offer;
}

/* The catalog's stock: "high", "medium", "low", or "": none. */
static const char *stock_of(const json_t *from)
{
	const char *word = jsonx_text(from, "availability", "");

	if (!strcmp(word, "HIGH"))
		return "high";
	if (!strcmp(word, "MEDIUM"))
		return "medium";
	return !strcmp(word, "LOW") ? "low" : "";
}

static void add_placed(struct op *op, struct offer *offer, struct placement *where,
		       const char *datacenter, const json_t *stock)
{
	if (offers_sold_out(stock) || strlen(datacenter) >= sizeof(where->datacenter) ||
	    strchr(datacenter, '/'))
		return;
	COPY_TEXT(where->datacenter, datacenter);
	COPY_TEXT(offer->region, datacenter);
	COPY_TEXT(offer->stock, stock_of(stock));
	if (placement_write(where, offer->id, sizeof(offer->id)) == 0)
		add_offer(op, offer);
}

/* Notes a data centre where it is free but not allowed, for the message if no offer remains. */
static void note_elsewhere(struct op *op, const char *datacenter)
{
	if (!strstr(str_text(&op->got.text), datacenter) && op->got.text.len < 120)
		str_addf(&op->got.text, "%s%s", op->got.text.len ? ", " : "", datacenter);
}

void offers_place(struct op *op, const json_t *from, struct offer *offer, struct placement *where)
{
	const struct volume *volume = &op->want->offers.volume;
	const json_t *list = json_object_get(from, "dataCenters"), *item;
	bool fixed = section_count(op->provider->conf, "datacenters") || volume->region[0];
	size_t i;

	/* naming data centres usually prevents a COMMUNITY pod; a list missing from the catalog
	 * means anywhere */
	if (where->community || (!json_array_size(list) && !fixed)) {
		if (!where->community || !section_count(op->provider->conf, "datacenters"))
			add_placed(op, offer, where, "", from);
		return;
	}
	json_array_foreach (list, i, item) {
		const char *id = jsonx_text(item, "id", "");
		if (!id[0] || offers_sold_out(item))
			continue;
		if ((volume->region[0] && strcmp(volume->region, id)) ||
		    !datacenter_is_wanted(op->provider, id))
			note_elsewhere(op, id);
		else
			add_placed(op, offer, where, id, item);
	}
}

/* Limits the disk of a pod without a GPU to what it may have. */
static int64_t cpu_disk_gb(int64_t wanted_gb, int vcpus)
{
	return MIN(wanted_gb, (int64_t)vcpus * RUNPOD_DISK_GB_PER_VCPU);
}

int64_t disk_gb_of(int64_t wanted_gb, const struct placement *where)
{
	/* RunPod refuses less as if GPUs were sold out */
	int64_t gb = MAX(wanted_gb ? wanted_gb : RUNPOD_DISK_GB, (int64_t)RUNPOD_DISK_LEAST_GB);

	return where->cpu ? cpu_disk_gb(gb, where->count) : gb;
}

int64_t disk_microusd_h(int64_t wanted_gb, const struct placement *where)
{
	return (disk_gb_of(wanted_gb, where) * DISK_GB_MICROUSD + MONTH_H - 1) / MONTH_H;
}
