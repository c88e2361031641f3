/* offers.c - where a pod can run: RunPod's offers with and without a GPU, and why none of them
 * fits */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- placement ----
 * Where a pod runs: an offer's id, names of GPUs, data centres, images, disks. */

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

bool datacenter_is_wanted(const struct section *conf, const char *id)
{
	size_t count = section_count(conf, "datacenters");

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section_item(conf, "datacenters", i), id))
			return true;
	return !count;
}

static bool offers_sold_out(const json_t *from)
{
	return !strcmp(jsonx_text(from, "availability", ""), "NONE");
}

/* Records the price of something wanted, free or sold out: a cap below the lowest of these leaves
 * no offer. */
static void offers_floor(struct op *op, int64_t price_microusd_h)
{
	int64_t *least = &op->got.floor_microusd_h;

	if (price_microusd_h > 0)
		*least = *least ? MIN(*least, price_microusd_h) : price_microusd_h;
}

static void add_offer(struct op *op, const struct offer *offer)
{
	offers_floor(op, offer->price_microusd_h);
	if (offer->price_microusd_h > VENDOR_MOST_MICROUSD)
		return; /* the rest of the catalog is believed */
	*op_result_add_offer(&op->got) = *offer;
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

/* Adds an offer for each allowed data centre where `item` of the catalog is free. */
static void offers_place(struct op *op, const json_t *from, struct offer *offer,
			 struct placement *where)
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
		    !datacenter_is_wanted(op->provider->conf, id))
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

/* ---- cpus ----
 * Pods without a GPU: a CPU flavour and a number of vCPUs, which decide memory and disk. */

/* vCPUs are powers of two. No catalog lists a flavour's disk, but every flavour allows this much
 * for each vCPU. */
enum { VCPUS_LEAST = 2, VCPUS_MOST = 256 };

bool cpu_is_meant(const char *wish)
{
	return !strcasecmp(wish, "none");
}

/* index in the wanted list; -1: none */
static int cpu_wish(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (cpu_is_meant(wishes[i]))
			return i;
	return -1;
}

static bool cpu_alone_is_wished(const struct op_want *want)
{
	const char *const *wishes = want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (!cpu_is_meant(wishes[i]))
			return false;
	return wishes && wishes[0];
}

/* ---- size ---- */

static bool is_enough(const struct op *op, int vcpus)
{
	return vcpus >= op->want->offers.cpu &&
	       (int64_t)vcpus * RUNPOD_DISK_GB_PER_VCPU >= op->want->offers.disk_gb;
}

/* What any flavour would need. */
static int vcpus_asked(const struct op *op)
{
	int n = VCPUS_LEAST;

	while (n < VCPUS_MOST && !is_enough(op, n))
		n *= 2;
	return n;
}

/* Returns 0 if this flavour has no pod of the size. */
static int vcpus_of(const struct op *op, const json_t *flavour)
{
	const json_t *range = json_object_get(flavour, "vcpu");
	int64_t least = jsonx_int(range, "min", VCPUS_LEAST),
		most = jsonx_int(range, "max", VCPUS_LEAST);
	double ram_gb = jsonx_number(flavour, "ramGbPerVcpu", 0);
	int n = vcpus_asked(op);

	while (n <= most && n <= VCPUS_MOST &&
	       (n < least || n * ram_gb < (double)op->want->offers.memory_gb))
		n *= 2;
	return n <= most && n <= VCPUS_MOST && is_enough(op, n) ? n : 0;
}

static void none_is_so_large(struct op *op)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text, "no CPU pod of RunPod's has %lld vCPUs",
		 (long long)MAX(op->want->offers.cpu, (int64_t)VCPUS_LEAST));
	if (op->want->offers.memory_gb)
		str_addf(&text, ", %lld GB of memory", (long long)op->want->offers.memory_gb);
	if (op->want->offers.disk_gb)
		str_addf(&text, ", %lld GB of disk (%d GB for each vCPU)",
			 (long long)op->want->offers.disk_gb, RUNPOD_DISK_GB_PER_VCPU);
	err_set(&op->first, ERR_CONFIG, "%s: lower pod.cpu, pod.memory_gb or pod.disk_gb",
		str_text(&text));
}

/* ---- the catalog ---- */

static enum op_next cpus_request(struct turn *t)
{
	return api_request(t, CALL_POLL, "GET", NULL,
			   "/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount=%d",
			   vcpus_asked(t->op));
}

/* Adds an offer for each data centre where the flavour is free. Returns false only if it cannot be
 * large enough. */
static bool read_flavour(struct op *op, const json_t *flavour)
{
	const char *id = jsonx_text(flavour, "id", "");
	struct placement where = {.cpu = true, .count = vcpus_of(op, flavour)};
	struct offer offer = {.wish = cpu_wish(op)};

	if (!where.count || !id[0] || strlen(id) >= sizeof(where.type))
		return where.count > 0;
	offer.price_microusd_h =
		api_microusd(json_object_get(flavour, "price"), "securePerVcpu") * where.count;
	offers_floor(op, offer.price_microusd_h);
	if (offer.price_microusd_h <= 0 || offers_sold_out(flavour))
		return true;
	offer.price_microusd_h += disk_microusd_h(op->want->offers.disk_gb, &where);
	COPY_TEXT(where.type, id);
	COPY_TEXT(offer.provider, "runpod");
	COPY_TEXT(offer.gpu, "none");
	snprintf(offer.with, sizeof(offer.with), "%d vCPUs, memory, disk", where.count);
	offers_place(op, flavour, &offer, &where);
	return true;
}

static int cpus_read(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = api_object(t, "offers of CPU pods");
	const json_t *list = json_object_get(whole, "cpus"), *flavour;
	bool one_is_large = false;
	size_t i;

	if (!whole)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "offers: the catalog has no list of CPUs");
	json_array_foreach (list, i, flavour)
		one_is_large |= read_flavour(t->op, flavour);
	if (json_array_size(list) && !one_is_large)
		none_is_so_large(t->op);
	return 0;
}

/* ---- remarks ----
 * Explains a reply without a fitting offer: misspelt names, GPUs that are sold out or out of
 * reach. */

/* Names the nearest GPU of the catalog. */
static void add_unknown(struct str *to, const struct op *op, const char *wish)
{
	size_t count = json_array_size(op->kept), n = 0;
	const char **names = xcalloc(count + 1, sizeof(*names));

	for (size_t i = 0; i < count; i++) {
		const char *name = jsonx_text(json_array_get(op->kept, i), "name", NULL);
		if (name)
			names[n++] = name;
	}
	const char *near = nearest_word(wish, names);
	str_addf(to, "RunPod's catalog has no GPU called \"%.60s\"", wish);
	if (near)
		str_addf(to, "; did you mean \"%.60s\"?", near);
	free(names);
}

static int unknown_gpu(struct turn *t)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	add_unknown(&text, t->op, t->op->want->offers.gpus[cpu_wish(t->op) == 0]);
	err_set(t->err, ERR_CONFIG, "%s", str_text(&text));
	return err_about(t->err, "gpu");
}

/* The largest memory among the wanted GPUs; larger than any if a pod without a GPU is accepted. */
static int64_t most_vram_gb(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;
	const json_t *gpu;
	int64_t most = 0;
	size_t i;

	for (int w = 0; wishes && wishes[w]; w++) {
		if (cpu_is_meant(wishes[w]))
			return INT64_MAX;
		json_array_foreach (op->kept, i, gpu)
			if (gpu_meant(wishes[w], jsonx_text(gpu, "id", ""),
				      jsonx_text(gpu, "name", "")))
				most = MAX(most, jsonx_int(gpu, "memory", 0));
	}
	return wishes && wishes[0] ? most : INT64_MAX;
}

static bool is_offered(const struct op *op, int wish)
{
	for (size_t i = 0; i < op->got.offer_count; i++)
		if (op->got.offers[i].wish == wish)
			return true;
	return false;
}

/* Where the catalog has it in stock. Returns false if the catalog lacks it. */
static bool find_wished(const struct op *op, const char *wish, struct str *places)
{
	const json_t *gpu, *item;
	bool known = false;
	size_t i, k;

	json_array_foreach (op->kept, i, gpu) {
		if (!gpu_meant(wish, jsonx_text(gpu, "id", ""), jsonx_text(gpu, "name", "")))
			continue;
		known = true;
		json_array_foreach (json_object_get(gpu, "dataCenters"), k, item) {
			const char *id = jsonx_text(item, "id", "");
			if (id[0] && !offers_sold_out(item) && !strstr(str_text(places), id) &&
			    places->len < 120)
				str_addf(places, "%s%.40s", places->len ? ", " : "", id);
		}
	}
	return known;
}

/* Notes misspelt wishes and wishes that only the config forbids, for a list with offers. */
static void add_remarks(struct op *op)
{
	const struct volume *volume = &op->want->offers.volume;
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		CLEANUP(str_free) struct str places = STR_INIT;
		if (is_offered(op, i) || cpu_is_meant(wishes[i]))
			continue;
		bool known = find_wished(op, wishes[i], &places);
		if (!known && !gpu_find(wishes[i])) /* else it may be another vendor's */
			add_unknown(&op->got.text, op, wishes[i]);
		else if (known && places.len && volume->region[0])
			str_addf(&op->got.text,
				 "%.60s is available in %s, but not in %s, where volume \"%s\" "
				 "is: skipped",
				 wishes[i], str_text(&places), volume->region, volume->name);
		else
			continue;
		str_addc(&op->got.text, '\n');
	}
}

static int nothing_free(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct volume *volume = &want->offers.volume;
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; want->offers.gpus && want->offers.gpus[i] && i < 6; i++)
		str_addf(&text, "%s%.40s", i ? ", " : "",
			 cpu_is_meant(want->offers.gpus[i]) ? "CPU pod" : want->offers.gpus[i]);
	str_addf(&text, "%s is available at RunPod now", text.len ? "" : "GPU");
	if (volume->region[0])
		str_addf(&text, " in %s, where volume \"%s\" is", volume->region, volume->name);
	else if (section_count(t->op->provider->conf, "datacenters"))
		str_add(&text, " in the data centres of providers.runpod.datacenters");
	if (t->op->got.text.len)
		str_addf(&text, " (there is some in %s)", str_text(&t->op->got.text));
	if (volume->name[0] && !volume->id[0])
		str_addf(&text, "; volume \"%s\" is created only when there is one", volume->name);
	return err_set(t->err, ERR_NO_CAPACITY, "no %s", str_text(&text));
}

/* Returns -1 with t->err and the reason, for a list without offers. */
static int nothing_offered(struct turn *t)
{
	const struct op *op = t->op;
	bool named = op->want->offers.gpus && op->want->offers.gpus[0];
	int64_t most_gb = most_vram_gb(op);

	if (named && !op->tries && json_array_size(op->kept))
		return unknown_gpu(t);
	if (named && op->tries && most_gb < op->want->offers.vram_gb) {
		err_set(t->err, ERR_CONFIG,
			"this job needs a GPU with %d GB of memory; those in gpu have %lld at most",
			op->want->offers.vram_gb, (long long)most_gb);
		return err_about(t->err, "gpu");
	}
	return nothing_free(t);
}

/* ---- offers ----
 * RunPod's offers, from its live catalog, with spot floors through GraphQL. */

/* ---- the requests: one for each number of GPUs and each cloud, then one for CPU pods ---- */

struct question {
	int gpus; /* 0: CPU pods */
	bool community;
};

/* Returns -1 if the wish is not the name of a GPU. */
static int gpus_wished(const char *wish)
{
	char name[GPU_MAX];
	int count = 1;

	if (cpu_is_meant(wish))
		return 0;
	return gpu_parse(wish, name, sizeof(name), &count) ? count : -1;
}

static bool asked_before(const char *const *wishes, size_t i, int count)
{
	for (size_t k = 0; k < i; k++)
		if (gpus_wished(wishes[k]) == count)
			return true;
	return false;
}

static bool cloud_is_wanted(const struct section *conf, bool community)
{
	return strcmp(section_text(conf, "cloud"), community ? "SECURE" : "COMMUNITY") != 0;
}

/* Fills *out with the index-th question for prices. Returns false after the last one, unless
 * pods without a GPU are wanted: then *out is empty. */
static bool question_at(const struct op *op, int index, struct question *out)
{
	static const char *const any[] = {"", NULL};
	const char *const *wishes =
		op->want->offers.gpus && op->want->offers.gpus[0] ? op->want->offers.gpus : any;
	const struct section *conf = op->provider->conf;
	bool volume = op->want->offers.volume.name[0];

	for (size_t i = 0; wishes[i]; i++) {
		int count = wishes == any ? 1 : gpus_wished(wishes[i]);
		if (count < 1 || (wishes != any && asked_before(wishes, i, count)))
			continue;
		for (int community = 0; community < 2; community++) {
			/* only SECURE has volumes */
			if (!cloud_is_wanted(conf, community) || (community && volume))
				continue;
			if (index-- == 0) {
				*out = (struct question){count, community};
				return true;
			}
		}
	}
	*out = (struct question){0};
	return index == 0 && cpu_wish(op) >= 0 && cloud_is_wanted(conf, false) &&
	       !op->want->offers.vram_gb;
}

static int check_names(const struct section *conf, const struct op_want *want, struct err *err)
{
	const char *const *wishes = want->offers.gpus;

	(void)conf;
	for (size_t i = 0; wishes && wishes[i]; i++)
		if (gpus_wished(wishes[i]) < 0) {
			err_set(err, ERR_CONFIG,
				"gpu \"%s\": a name, or a name and how many as in \"L40S:2\"",
				wishes[i]);
			return err_about(err, "gpu");
		}
	return 0;
}

static int check_none(const struct section *conf, const struct op_want *want, struct err *err)
{
	if (cpu_alone_is_wished(want) && want->offers.vram_gb) {
		err_set(err, ERR_CONFIG,
			"gpu = [\"none\"], but this job needs a GPU with %d GB of memory: name one "
			"in gpu",
			want->offers.vram_gb);
		return err_about(err, "gpu");
	}
	if (cpu_alone_is_wished(want) && !cloud_is_wanted(conf, false))
		return err_set(err, ERR_CONFIG,
			       "%s: providers.runpod.cloud = \"COMMUNITY\", but CPU pods (gpu "
			       "\"none\") are only in the SECURE cloud: change one of them",
			       section_where(conf, "cloud"));
	return 0;
}

static int check_volume(const struct section *conf, const struct op_want *want, struct err *err)
{
	const struct volume *volume = &want->offers.volume;

	if (!volume->name[0])
		return 0;
	if (!cloud_is_wanted(conf, false))
		return err_set(err, ERR_CONFIG,
			       "%s: providers.runpod.cloud = \"COMMUNITY\", but volume \"%s\" can "
			       "only be attached in the SECURE "
			       "cloud: change one of them",
			       section_where(conf, "cloud"), volume->name);
	if (volume->region[0] && !datacenter_is_wanted(conf, volume->region))
		return err_set(err, ERR_CONFIG,
			       "%s: volume \"%s\" is in %s, which providers.runpod.datacenters "
			       "does not name: a volume cannot "
			       "leave its data centre",
			       section_where(conf, "datacenters"), volume->name, volume->region);
	return 0;
}

int offers_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
			struct err *err)
{
	static want_check *const checks[] = {check_names, check_none, check_volume, NULL};

	return provider_judge_wishes(checks, conf, want, m, err);
}

/* ---- the catalog ---- */

static int wish_of(const struct op *op, const char *type, const char *name, int gpus)
{
	const char *const *wishes = op->want->offers.gpus;

	if (!wishes || !wishes[0])
		return 0;
	for (int i = 0; wishes[i]; i++)
		if (gpus_wished(wishes[i]) == gpus && gpu_meant(wishes[i], type, name))
			return i;
	return -1;
}

static void read_type(struct op *op, const json_t *gpu, const struct question *q)
{
	const char *type = jsonx_text(gpu, "id", ""), *name = jsonx_text(gpu, "name", "");
	const char *cloud = q->community ? "community" : "secure";
	struct placement where = {.community = q->community, .count = q->gpus};
	struct offer offer = {.gpus = q->gpus, .vram_gb = (int)jsonx_int(gpu, "memory", 0)};
	bool any = !op->want->offers.gpus || !op->want->offers.gpus[0];

	offer.wish = wish_of(op, type, name, q->gpus);
	if (!type[0] || strlen(type) >= sizeof(where.type) || offer.wish < 0)
		return;
	op->tries++; /* it exists, free or not */
	/* burst's images are built for CUDA: another maker's GPU must be requested by name */
	if (any && !strcmp(jsonx_text(gpu, "manufacturer", "NVIDIA"), "AMD"))
		return;
	offer.price_microusd_h = api_microusd(json_object_get(gpu, "price"), cloud) * q->gpus;
	if (!jsonx_bool(gpu, cloud, true) || offer.price_microusd_h <= 0 ||
	    offer.vram_gb < op->want->offers.vram_gb ||
	    jsonx_int(json_object_get(gpu, "maxCount"), cloud, q->gpus) < q->gpus)
		return;
	offers_floor(op, offer.price_microusd_h);
	if (offers_sold_out(gpu)) {
		op->sold_out_spot = op->sold_out_spot || op->want->offers.spot;
		return;
	}
	COPY_TEXT(where.type, type);
	COPY_TEXT(offer.provider, "runpod");
	offer.price_microusd_h += disk_microusd_h(op->want->offers.disk_gb, &where);
	COPY_TEXT(offer.with, "cores, memory, disk"); /* as many as the host has for each GPU */
	gpu_shown(offer.gpu, type, name);
	offers_place(op, gpu, &offer, &where);
}

static int read_catalog(struct turn *t, const struct question *q)
{
	CLEANUP(json_decref) json_t *whole = api_object(t, "offers");
	const json_t *list = json_object_get(whole, "gpus"), *gpu;
	size_t i;

	if (!whole)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "offers: the catalog has no list of GPUs");
	json_array_foreach (list, i, gpu)
		read_type(t->op, gpu, q);
	if (!t->op->kept)
		t->op->kept = json_array();
	json_array_extend(t->op->kept, (json_t *)list);
	return 0;
}

static enum op_next request_catalog(struct turn *t, const struct question *q)
{
	const char *cuda = cuda_floor(t->op->provider, t->op->want->offers.image);

	return api_request(t, CALL_POLL, "GET", NULL,
			   "/catalog/gpus?include=AVAILABILITY&product=POD&count=%d&cloud=%s%s%s",
			   q->gpus, q->community ? "COMMUNITY" : "SECURE",
			   cuda ? "&minCudaVersion=" : "", cuda ? cuda : "");
}

/* ---- spot ---- */

static enum op_next request_floors(struct turn *t, const struct question *q)
{
	CLEANUP(free_text)
	char *query = xasprintf(
		"query{gpuTypes{id lowestPrice(input:{gpuCount:%d,secureCloud:%s}){minimumBidPrice "
		"uninterruptablePrice stockStatus}}}",
		q->gpus, q->community ? "false" : "true");

	return api_request_graphql(t, CALL_POLL, query, NULL);
}

/* burst's bid for a GPU with this floor; 0: no spot offer there. */
static int64_t bid_for(const struct op *op, int64_t floor, int64_t on_demand)
{
	int64_t bid = section_has(op->provider->conf, "bid")
			      ? section_int(op->provider->conf, "bid")
			      : floor + floor / 10;

	if (floor <= 0 || bid < floor)
		return 0;
	return on_demand > 0 ? MIN(bid, MAX(on_demand, floor)) : bid;
}

static void add_spot(struct op *op, const json_t *type, const struct question *q)
{
	const json_t *lowest = json_object_get(type, "lowestPrice");
	const char *id = jsonx_text(type, "id", ""), *stock = jsonx_text(lowest, "stockStatus", "");
	size_t count = op->got.offer_count;

	for (size_t i = 0; i < count; i++) {
		struct offer offer = op->got.offers[i];
		struct placement where;
		if (offer.spot || placement_read(offer.id, &where) < 0 || where.cpu ||
		    where.count != q->gpus || where.community != q->community ||
		    strcmp(where.type, id) || !strcasecmp(stock, "none"))
			continue;
		int64_t disk = disk_microusd_h(op->want->offers.disk_gb, &where);
		int64_t bid = bid_for(op, api_microusd(lowest, "minimumBidPrice"),
				      (offer.price_microusd_h - disk) / q->gpus);
		if (!bid)
			continue;
		offer.spot = true;
		offer.price_microusd_h = bid * q->gpus + disk;
		add_offer(op, &offer);
	}
}

static int read_floors(struct turn *t, const struct question *q)
{
	CLEANUP(json_decref) json_t *whole = NULL;
	const json_t *data = api_data(t, "spot prices", &whole), *type;
	size_t i;

	if (!data)
		return -1;
	json_array_foreach (json_object_get(data, "gpuTypes"), i, type)
		add_spot(t->op, type, q);
	return 0;
}

/* ---- the result ---- */

static enum op_next conclude(struct turn *t)
{
	struct op *op = t->op;

	if (!op->got.offer_count && op->first.kind && cpu_alone_is_wished(op->want)) {
		*t->err = op->first;
		return OP_FAILED;
	}
	if (!op->got.offer_count) {
		nothing_offered(t);
		return OP_FAILED;
	}
	if (op->sold_out_spot)
		op->got.floor_microusd_h = 0;
	str_free(&op->got.text);
	add_remarks(op);
	return api_done(t);
}

/* Steps 1, 2, ...: the catalog; then, for spot, -1, -2, ...: the floors. CPU pods come last and
 * have none. */
enum op_next offers_next(struct turn *t)
{
	struct op *op = t->op;
	struct question q;

	if (op->step == 0 && offers_check_wishes(op->provider->conf, op->want, NULL, t->err) < 0)
		return OP_FAILED;
	if (op->step > 0) {
		question_at(op, op->step - 1, &q);
		if ((q.gpus ? read_catalog(t, &q) : cpus_read(t)) < 0)
			return OP_FAILED;
	} else if (op->step < 0) {
		question_at(op, -op->step - 1, &q);
		/* GraphQL may be gone: pods at full price are still offers */
		if (read_floors(t, &q) < 0 && t->err->kind == ERR_CREDENTIALS)
			return OP_FAILED;
		err_clear(t->err);
	}
	if (op->step >= 0 && question_at(op, op->step, &q)) {
		op->step++;
		return q.gpus ? request_catalog(t, &q) : cpus_request(t);
	}
	if (op->step > 0)
		op->step = 0;
	if (op->want->offers.spot && op->got.offer_count && question_at(op, -op->step, &q) &&
	    q.gpus) {
		op->step--;
		return request_floors(t, &q);
	}
	return conclude(t);
}
