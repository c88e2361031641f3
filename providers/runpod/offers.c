/* offers.c - where a pod can run: RunPod's offers with and without a GPU, and why none of them
 * fits */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- placement: an offer's id, names of GPUs, data centres, images, disks ---- */

enum { DISK_GB_MICROUSD_MONTH = 100000, MONTH_H = 730 };
enum { GPUS_MOST = 64, VCPUS_IN_ID_MOST = 1024, NAMES_MOST = 120, WISHES_SHOWN = 6 };
enum cloud { CLOUD_SECURE, CLOUD_COMMUNITY };

void set_gpu_name(char to[GPU_MAX], const char *type, const char *name)
{
	const struct gpu *known = gpu_find(type);

	copy_text(to, GPU_MAX, known ? known->name : name[0] ? name : type);
}

bool gpu_is_meant(const char *wish, const char *type, const char *name)
{
	CLEANUP(free_text) char *longer = xasprintf("RTX %s", wish); /* "3090 Ti" */

	return gpu_satisfies(wish, type) || gpu_satisfies(wish, name) ||
	       gpu_satisfies(longer, type) || gpu_satisfies(longer, name);
}

/* Writes what placement_read() reads. -1: it does not fit. */
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
	if (end == at || *end != '/' || count < 1 ||
	    count > (p.cpu ? VCPUS_IN_ID_MOST : GPUS_MOST) || (p.cpu && p.community) || !end[1] ||
	    strlen(end + 1) >= sizeof(p.type))
		return -1;
	p.count = (int)count;
	COPY_TEXT(p.type, end + 1);
	*out = p;
	return 0;
}

const char *image_or_default(const struct provider *p, const char *wanted)
{
	return wanted ? wanted : section_text(p->conf, "image");
}

const char *least_cuda_version(const struct op *op, const char *image)
{
	bool own = !strcmp(image_or_default(op->provider, image), RUNPOD_IMAGE);

	return web_least_cuda(op->provider->conf, own ? RUNPOD_IMAGE_CUDA : NULL,
			      op->want->least_cuda);
}

bool datacenter_is_wanted(const struct section *conf, const char *id)
{
	size_t count = section_count(conf, "datacenters");

	for (size_t i = 0; i < count; i++)
		if (!strcmp(section_item(conf, "datacenters", i), id))
			return true;
	return !count;
}

static bool is_sold_out(const json_t *from)
{
	return !strcmp(jsonx_text(from, "availability", ""), "NONE");
}

/* Keeps the lowest price of what is wanted, even sold out: a cap below it leaves no offer. */
static void note_lowest_price(struct op *op, int64_t price_microusd_h)
{
	int64_t *least = &op->got.floor_microusd_h;

	if (price_microusd_h > 0)
		*least = *least ? MIN(*least, price_microusd_h) : price_microusd_h;
}

/* An offer with an absurd price is left out. */
static void add_offer(struct op *op, const struct offer *offer)
{
	note_lowest_price(op, offer->price_microusd_h);
	if (offer->price_microusd_h > VENDOR_MOST_MICROUSD)
		return; /* one mistake does not spoil the rest of the catalog */
	*op_result_add_offer(&op->got) = *offer;
}

/* The catalog's stock: "high", "medium", "low", or "": none. */
static const char *stock_word(const json_t *from)
{
	const char *word = jsonx_text(from, "availability", "");

	if (!strcmp(word, "HIGH"))
		return "high";
	if (!strcmp(word, "MEDIUM"))
		return "medium";
	return !strcmp(word, "LOW") ? "low" : "";
}

/* Completes and adds the offer in this data centre ("": any) if `stock` shows it available. */
static void add_offer_in_datacenter(struct op *op, struct offer *offer, struct placement *where,
				    const char *datacenter, const json_t *stock)
{
	if (is_sold_out(stock) || strlen(datacenter) >= sizeof(where->datacenter) ||
	    strchr(datacenter, '/'))
		return;
	COPY_TEXT(where->datacenter, datacenter);
	COPY_TEXT(offer->region, datacenter);
	COPY_TEXT(offer->stock, stock_word(stock));
	if (placement_write(where, offer->id, sizeof(offer->id)) == 0)
		add_offer(op, offer);
}

/* Notes in result.text a data centre that has stock but is not allowed, for an error message. */
static void note_datacenter_elsewhere(struct op *op, const char *datacenter)
{
	if (!strstr(str_text(&op->got.text), datacenter) && op->got.text.len < NAMES_MOST)
		str_addf(&op->got.text, "%s%s", op->got.text.len ? ", " : "", datacenter);
}

/* Adds the offer for each allowed data centre where `from`, a catalog entry, is available. */
static void add_offers_where_free(struct op *op, const json_t *from, struct offer *offer,
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
			add_offer_in_datacenter(op, offer, where, "", from);
		return;
	}
	json_array_foreach (list, i, item) {
		const char *id = jsonx_text(item, "id", "");
		if (!id[0] || is_sold_out(item))
			continue;
		if ((volume->region[0] && strcmp(volume->region, id)) ||
		    !datacenter_is_wanted(op->provider->conf, id))
			note_datacenter_elsewhere(op, id);
		else
			add_offer_in_datacenter(op, offer, where, id, item);
	}
}

/* Limits the disk of a pod without a GPU to what it may have. */
static int64_t cpu_disk_gb(int64_t wanted_gb, int vcpus)
{
	return MIN(wanted_gb, (int64_t)vcpus * RUNPOD_DISK_GB_PER_VCPU);
}

int64_t disk_gb_or_default(int64_t wanted_gb, const struct placement *where)
{
	/* RunPod refuses less as if GPUs were sold out */
	int64_t gb = MAX(wanted_gb ? wanted_gb : RUNPOD_DISK_GB, (int64_t)RUNPOD_DISK_LEAST_GB);

	return where->cpu ? cpu_disk_gb(gb, where->count) : gb;
}

int64_t disk_microusd_h(int64_t wanted_gb, const struct placement *where)
{
	return (disk_gb_or_default(wanted_gb, where) * DISK_GB_MICROUSD_MONTH + MONTH_H - 1) /
	       MONTH_H;
}

/* ---- pods without a GPU: a CPU flavour and vCPUs, which decide memory and disk ---- */

/* vCPUs are powers of two. No catalog lists a flavour's disk, but every flavour allows this much
 * for each vCPU. */
enum { VCPUS_LEAST = 2, VCPUS_MOST = 256 };

bool cpu_is_meant(const char *wish)
{
	return !strcasecmp(wish, "none");
}

/* Index of the wish "none" among the wishes; -1: a pod without a GPU is not wanted. */
static int index_of_cpu_wish(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (cpu_is_meant(wishes[i]))
			return i;
	return -1;
}

static bool wants_cpu_only(const struct op_want *want)
{
	const char *const *wishes = want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (!cpu_is_meant(wishes[i]))
			return false;
	return wishes && wishes[0];
}

/* ---- size ---- */

static bool is_enough_vcpus(const struct op *op, int vcpus)
{
	return vcpus >= op->want->offers.cpu &&
	       (int64_t)vcpus * RUNPOD_DISK_GB_PER_VCPU >= op->want->offers.disk_gb;
}

/* The least vCPUs that give the wanted cores and disk, whatever the flavour. */
static int vcpus_wanted(const struct op *op)
{
	int n = VCPUS_LEAST;

	while (n < VCPUS_MOST && !is_enough_vcpus(op, n))
		n *= 2;
	return n;
}

/* The least vCPUs of this flavour for the wanted size; 0: it has no pod so large. */
static int vcpus_of_flavour(const struct op *op, const json_t *flavour)
{
	const json_t *range = json_object_get(flavour, "vcpu");
	int64_t least = jsonx_int(range, "min", VCPUS_LEAST),
		most = jsonx_int(range, "max", VCPUS_LEAST);
	double ram_gb = jsonx_number(flavour, "ramGbPerVcpu", 0);
	int n = vcpus_wanted(op);

	while (n <= most && n <= VCPUS_MOST &&
	       (n < least || n * ram_gb < (double)op->want->offers.memory_gb))
		n *= 2;
	return n <= most && n <= VCPUS_MOST && is_enough_vcpus(op, n) ? n : 0;
}

/* Keeps the reason in op->first, for a result without offers. */
static void note_no_cpu_pod_so_large(struct op *op)
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

static enum op_next request_cpu_catalog(struct turn *t)
{
	return api_request(t, CALL_POLL, "GET", NULL,
			   "/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount=%d",
			   vcpus_wanted(t->op));
}

/* Adds an offer for each data centre with the flavour. False: it has no pod so large. */
static bool add_flavour(struct op *op, const json_t *flavour)
{
	const char *id = jsonx_text(flavour, "id", "");
	struct placement where = {.cpu = true, .count = vcpus_of_flavour(op, flavour)};
	struct offer offer = {.wish = index_of_cpu_wish(op)};

	if (!where.count || !id[0] || strlen(id) >= sizeof(where.type))
		return where.count > 0;
	offer.price_microusd_h =
		web_microusd(json_object_get(flavour, "price"), "securePerVcpu") * where.count;
	note_lowest_price(op, offer.price_microusd_h);
	if (offer.price_microusd_h <= 0 || is_sold_out(flavour))
		return true;
	offer.price_microusd_h += disk_microusd_h(op->want->offers.disk_gb, &where);
	COPY_TEXT(where.type, id);
	COPY_TEXT(offer.provider, "runpod");
	COPY_TEXT(offer.gpu, "none");
	snprintf(offer.with, sizeof(offer.with), "%d vCPUs, memory, disk", where.count);
	add_offers_where_free(op, flavour, &offer, &where);
	return true;
}

static int read_cpu_catalog(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = api_read_object(t, "offers of CPU pods");
	const json_t *list = json_object_get(whole, "cpus"), *flavour;
	bool any_is_large_enough = false;
	size_t i;

	if (!whole)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "offers: the catalog has no list of CPUs");
	json_array_foreach (list, i, flavour)
		any_is_large_enough |= add_flavour(t->op, flavour);
	if (json_array_size(list) && !any_is_large_enough)
		note_no_cpu_pod_so_large(t->op);
	return 0;
}

/* ---- why no offer fits: misspelt names, GPUs that are sold out or out of reach ---- */

/* Appends that the catalog has no such GPU, with the nearest name in it. */
static void append_unknown_gpu(struct str *to, const struct op *op, const char *wish)
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

/* Always -1: the catalog has none of the wanted GPUs. */
static int fail_unknown_gpu(struct turn *t)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	append_unknown_gpu(&text, t->op, t->op->want->offers.gpus[index_of_cpu_wish(t->op) == 0]);
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
			if (gpu_is_meant(wishes[w], jsonx_text(gpu, "id", ""),
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

/* Appends the data centres with stock of the GPU. False: the catalog lacks the GPU. */
static bool find_stock(const struct op *op, const char *wish, struct str *places)
{
	const json_t *gpu, *item;
	bool known = false;
	size_t i, k;

	json_array_foreach (op->kept, i, gpu) {
		if (!gpu_is_meant(wish, jsonx_text(gpu, "id", ""), jsonx_text(gpu, "name", "")))
			continue;
		known = true;
		json_array_foreach (json_object_get(gpu, "dataCenters"), k, item) {
			const char *id = jsonx_text(item, "id", "");
			if (id[0] && !is_sold_out(item) && !strstr(str_text(places), id) &&
			    places->len < NAMES_MOST)
				str_addf(places, "%s%.40s", places->len ? ", " : "", id);
		}
	}
	return known;
}

/* Adds lines to result.text about wishes that are misspelt, and about those available only where
 * the volume is not. For a result with offers. */
static void add_remarks(struct op *op)
{
	const struct volume *volume = &op->want->offers.volume;
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		CLEANUP(str_free) struct str places = STR_INIT;
		if (is_offered(op, i) || cpu_is_meant(wishes[i]))
			continue;
		bool known = find_stock(op, wishes[i], &places);
		if (!known && !gpu_find(wishes[i])) /* else it may be another vendor's */
			append_unknown_gpu(&op->got.text, op, wishes[i]);
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

/* Always -1, ERR_NO_CAPACITY: names what is wanted and where. */
static int fail_nothing_free(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct volume *volume = &want->offers.volume;
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; want->offers.gpus && want->offers.gpus[i] && i < WISHES_SHOWN; i++)
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

/* Always -1, with the reason. op->tries is the number of wanted GPUs that exist. */
static int fail_without_offers(struct turn *t)
{
	const struct op *op = t->op;
	bool named = op->want->offers.gpus && op->want->offers.gpus[0];
	int64_t most_gb = most_vram_gb(op);

	if (named && !op->tries && json_array_size(op->kept))
		return fail_unknown_gpu(t);
	if (named && op->tries && most_gb < op->want->offers.vram_gb) {
		err_set(t->err, ERR_CONFIG,
			"this job needs a GPU with %d GB of memory; those in gpu have %lld at most",
			op->want->offers.vram_gb, (long long)most_gb);
		return err_about(t->err, "gpu");
	}
	return fail_nothing_free(t);
}

/* ---- offers: RunPod's offers, from its live catalog, with spot floors through GraphQL ---- */

/* ---- the requests: one for each number of GPUs and each cloud, then one for CPU pods ---- */

/* One request for prices. */
struct price_question {
	int gpus; /* 0: CPU pods */
	bool community;
};

/* How many GPUs the wish is for: 0 for "none"; -1: it is not the name of a GPU. */
static int count_of_wish(const char *wish)
{
	char name[GPU_MAX];
	int count = 1;

	if (cpu_is_meant(wish))
		return 0;
	return gpu_parse(wish, name, sizeof(name), &count) ? count : -1;
}

/* Whether one of the first i wishes is for so many GPUs, too: one request serves both. */
static bool count_is_asked_before(const char *const *wishes, size_t i, int count)
{
	for (size_t k = 0; k < i; k++)
		if (count_of_wish(wishes[k]) == count)
			return true;
	return false;
}

static bool cloud_is_wanted(const struct section *conf, enum cloud cloud)
{
	return strcmp(section_text(conf, "cloud"),
		      cloud == CLOUD_COMMUNITY ? "SECURE" : "COMMUNITY") != 0;
}

/* The index-th request for prices, the last one for CPU pods if wanted. False: no more. */
static bool find_question(const struct op *op, int index, struct price_question *out)
{
	static const char *const any[] = {"", NULL};
	const char *const *wishes =
		op->want->offers.gpus && op->want->offers.gpus[0] ? op->want->offers.gpus : any;
	const struct section *conf = op->provider->conf;
	bool volume = op->want->offers.volume.name[0];

	for (size_t i = 0; wishes[i]; i++) {
		int count = wishes == any ? 1 : count_of_wish(wishes[i]);
		if (count < 1 || (wishes != any && count_is_asked_before(wishes, i, count)))
			continue;
		for (int cloud = CLOUD_SECURE; cloud <= CLOUD_COMMUNITY; cloud++) {
			/* only SECURE has volumes */
			if (!cloud_is_wanted(conf, cloud) || (cloud == CLOUD_COMMUNITY && volume))
				continue;
			if (index-- == 0) {
				*out = (struct price_question){count, cloud == CLOUD_COMMUNITY};
				return true;
			}
		}
	}
	*out = (struct price_question){0};
	return index == 0 && index_of_cpu_wish(op) >= 0 && cloud_is_wanted(conf, CLOUD_SECURE) &&
	       !op->want->offers.vram_gb;
}

static int check_gpu_names(const struct section *conf, const struct op_want *want, struct err *err)
{
	const char *const *wishes = want->offers.gpus;

	(void)conf;
	for (size_t i = 0; wishes && wishes[i]; i++)
		if (count_of_wish(wishes[i]) < 0) {
			err_set(err, ERR_CONFIG,
				"gpu \"%s\": a name, or a name and how many as in \"L40S:2\"",
				wishes[i]);
			return err_about(err, "gpu");
		}
	return 0;
}

/* Refuses "none" alone if the job needs a GPU, or the config excludes the cloud with CPU pods. */
static int check_cpu_wish(const struct section *conf, const struct op_want *want, struct err *err)
{
	if (wants_cpu_only(want) && want->offers.vram_gb) {
		err_set(err, ERR_CONFIG,
			"gpu = [\"none\"], but this job needs a GPU with %d GB of memory: name one "
			"in gpu",
			want->offers.vram_gb);
		return err_about(err, "gpu");
	}
	if (wants_cpu_only(want) && !cloud_is_wanted(conf, CLOUD_SECURE))
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
	if (!cloud_is_wanted(conf, CLOUD_SECURE))
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
	static want_check *const checks[] = {check_gpu_names, check_cpu_wish, check_volume, NULL};

	return provider_judge_wishes(checks, conf, want, m, err);
}

/* ---- the catalog ---- */

/* The first wish that this type satisfies, 0 without wishes; -1: none. */
static int index_of_wish(const struct op *op, const char *type, const char *name, int gpus)
{
	const char *const *wishes = op->want->offers.gpus;

	if (!wishes || !wishes[0])
		return 0;
	for (int i = 0; wishes[i]; i++)
		if (count_of_wish(wishes[i]) == gpus && gpu_is_meant(wishes[i], type, name))
			return i;
	return -1;
}

/* Adds the offers of a GPU type of the catalog if it is wanted and fits the request q. */
static void add_gpu_type(struct op *op, const json_t *gpu, const struct price_question *q)
{
	const char *type = jsonx_text(gpu, "id", ""), *name = jsonx_text(gpu, "name", "");
	const char *cloud = q->community ? "community" : "secure";
	struct placement where = {.community = q->community, .count = q->gpus};
	struct offer offer = {.gpus = q->gpus, .vram_gb = (int)jsonx_int(gpu, "memory", 0)};
	bool any = !op->want->offers.gpus || !op->want->offers.gpus[0];

	offer.wish = index_of_wish(op, type, name, q->gpus);
	if (!type[0] || strlen(type) >= sizeof(where.type) || offer.wish < 0)
		return;
	op->tries++; /* it exists, free or not */
	/* burst's images are built for CUDA: another maker's GPU must be requested by name */
	if (any && !strcmp(jsonx_text(gpu, "manufacturer", "NVIDIA"), "AMD"))
		return;
	offer.price_microusd_h = web_microusd(json_object_get(gpu, "price"), cloud) * q->gpus;
	if (!jsonx_bool(gpu, cloud, true) || offer.price_microusd_h <= 0 ||
	    offer.vram_gb < op->want->offers.vram_gb ||
	    jsonx_int(json_object_get(gpu, "maxCount"), cloud, q->gpus) < q->gpus)
		return;
	note_lowest_price(op, offer.price_microusd_h);
	if (is_sold_out(gpu)) {
		op->sold_out_spot = op->sold_out_spot || op->want->offers.spot;
		return;
	}
	COPY_TEXT(where.type, type);
	COPY_TEXT(offer.provider, "runpod");
	offer.price_microusd_h += disk_microusd_h(op->want->offers.disk_gb, &where);
	COPY_TEXT(offer.with, "cores, memory, disk"); /* as many as the host has for each GPU */
	set_gpu_name(offer.gpu, type, name);
	add_offers_where_free(op, gpu, &offer, &where);
}

/* Adds the offers of the catalog, and keeps its GPUs in op->kept for messages. */
static int read_gpu_catalog(struct turn *t, const struct price_question *q)
{
	CLEANUP(json_decref) json_t *whole = api_read_object(t, "offers");
	const json_t *list = json_object_get(whole, "gpus"), *gpu;
	size_t i;

	if (!whole)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "offers: the catalog has no list of GPUs");
	json_array_foreach (list, i, gpu)
		add_gpu_type(t->op, gpu, q);
	if (!t->op->kept)
		t->op->kept = json_array();
	json_array_extend(t->op->kept, (json_t *)list);
	return 0;
}

static enum op_next request_gpu_catalog(struct turn *t, const struct price_question *q)
{
	const char *cuda = least_cuda_version(t->op, t->op->want->offers.image);

	return api_request(t, CALL_POLL, "GET", NULL,
			   "/catalog/gpus?include=AVAILABILITY&product=POD&count=%d&cloud=%s%s%s",
			   q->gpus, q->community ? "COMMUNITY" : "SECURE",
			   cuda ? "&minCudaVersion=" : "", cuda ? cuda : "");
}

/* ---- spot ---- */

static enum op_next request_spot_floors(struct turn *t, const struct price_question *q)
{
	CLEANUP(free_text)
	char *query = xasprintf(
		"query{gpuTypes{id lowestPrice(input:{gpuCount:%d,secureCloud:%s}){minimumBidPrice "
		"uninterruptablePrice stockStatus}}}",
		q->gpus, q->community ? "false" : "true");

	return api_request_graphql(t, CALL_POLL, query, NULL);
}

/* Bid for one GPU with this floor, at most its price on demand; 0: the config's bid is too low. */
static int64_t bid_for(const struct op *op, int64_t floor, int64_t on_demand)
{
	int64_t bid = section_has(op->provider->conf, "bid")
			      ? section_int(op->provider->conf, "bid")
			      : floor + floor / 10;

	if (floor <= 0 || bid < floor)
		return 0;
	return on_demand > 0 ? MIN(bid, MAX(on_demand, floor)) : bid;
}

/* Adds a spot offer beside each offer of this GPU type. */
static void add_spot_offers(struct op *op, const json_t *type, const struct price_question *q)
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
		int64_t bid = bid_for(op, web_microusd(lowest, "minimumBidPrice"),
				      (offer.price_microusd_h - disk) / q->gpus);
		if (!bid)
			continue;
		offer.spot = true;
		offer.price_microusd_h = bid * q->gpus + disk;
		add_offer(op, &offer);
	}
}

static int read_spot_floors(struct turn *t, const struct price_question *q)
{
	CLEANUP(json_decref) json_t *whole = NULL;
	const json_t *data = api_read_data(t, "spot prices", &whole), *type;
	size_t i;

	if (!data)
		return -1;
	json_array_foreach (json_object_get(data, "gpuTypes"), i, type)
		add_spot_offers(t->op, type, q);
	return 0;
}

/* ---- the result ---- */

/* Ends the operation: with the offers, or with the reason why there are none. */
static enum op_next finish_offers(struct turn *t)
{
	struct op *op = t->op;

	if (!op->got.offer_count && op->first.kind && wants_cpu_only(op->want)) {
		*t->err = op->first;
		return OP_FAILED;
	}
	if (!op->got.offer_count) {
		fail_without_offers(t);
		return OP_FAILED;
	}
	if (op->sold_out_spot)
		op->got.floor_microusd_h = 0;
	str_free(&op->got.text);
	add_remarks(op);
	return api_done(t);
}

/* Steps 1, 2, ...: the catalog, one request each; then, for spot, -1, -2, ...: the floors of the
 * same requests. The request for CPU pods comes last; it has no floors. */
enum op_next offers_next(struct turn *t)
{
	struct op *op = t->op;
	struct price_question q;

	if (op->step == 0 && offers_check_wishes(op->provider->conf, op->want, NULL, t->err) < 0)
		return OP_FAILED;
	if (op->step > 0) {
		find_question(op, op->step - 1, &q);
		if ((q.gpus ? read_gpu_catalog(t, &q) : read_cpu_catalog(t)) < 0)
			return OP_FAILED;
	} else if (op->step < 0) {
		find_question(op, -op->step - 1, &q);
		/* GraphQL may be gone: pods at full price are still offers */
		if (read_spot_floors(t, &q) < 0 && t->err->kind == ERR_CREDENTIALS)
			return OP_FAILED;
		err_clear(t->err);
	}
	if (op->step >= 0 && find_question(op, op->step, &q)) {
		op->step++;
		return q.gpus ? request_gpu_catalog(t, &q) : request_cpu_catalog(t);
	}
	if (op->step > 0)
		op->step = 0;
	if (op->want->offers.spot && op->got.offer_count && find_question(op, -op->step, &q) &&
	    q.gpus) {
		op->step--;
		return request_spot_floors(t, &q);
	}
	return finish_offers(t);
}
