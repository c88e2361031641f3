/* offers.c - RunPod's offers, from its live catalog, with spot floors through GraphQL. */
#include "impl.h"

#include "base/gpus.h"
#include "base/jsonx.h"

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

/* Fills *out with the index-th question for prices. Returns false after the last one, unless
 * pods without a GPU are wanted: then *out is empty. */
static bool question_at(const struct op *op, int index, struct question *out)
{
	static const char *const any[] = {"", NULL};
	const char *const *wishes =
		op->want->offers.gpus && op->want->offers.gpus[0] ? op->want->offers.gpus : any;
	const struct provider *p = op->provider;
	bool volume = op->want->offers.volume.name[0];

	for (size_t i = 0; wishes[i]; i++) {
		int count = wishes == any ? 1 : gpus_wished(wishes[i]);
		if (count < 1 || (wishes != any && asked_before(wishes, i, count)))
			continue;
		for (int community = 0; community < 2; community++) {
			/* only SECURE has volumes */
			if (community ? !p->community || volume : !p->secure)
				continue;
			if (index-- == 0) {
				*out = (struct question){count, community};
				return true;
			}
		}
	}
	*out = (struct question){0};
	return index == 0 && cpu_wish(op) >= 0 && p->secure && !op->want->offers.vram_gb;
}

static int check_names(const struct op *op, struct err *err)
{
	const char *const *wishes = op->want->offers.gpus;

	for (size_t i = 0; wishes && wishes[i]; i++)
		if (gpus_wished(wishes[i]) < 0) {
			err_set(err, ERR_CONFIG,
				"gpu \"%s\": a name, or a name and how many as in \"L40S:2\"",
				wishes[i]);
			return err_about(err, "gpu");
		}
	return 0;
}

static int check_none(const struct op *op, struct err *err)
{
	const struct op_want *want = op->want;

	if (cpu_alone_is_wished(op) && want->offers.vram_gb) {
		err_set(err, ERR_CONFIG,
			"gpu = [\"none\"], but this job needs a GPU with %d GB of memory: name one "
			"in gpu",
			want->offers.vram_gb);
		return err_about(err, "gpu");
	}
	if (cpu_alone_is_wished(op) && !op->provider->secure)
		return err_set(err, ERR_CONFIG,
			       "%s: providers.runpod.cloud = \"COMMUNITY\", but CPU pods (gpu "
			       "\"none\") are only in the SECURE cloud: change one of them",
			       section_where(op->provider->conf, "cloud"));
	return 0;
}

static int check_volume(const struct op *op, struct err *err)
{
	const struct volume *volume = &op->want->offers.volume;

	if (!volume->name[0])
		return 0;
	if (!op->provider->secure)
		return err_set(err, ERR_CONFIG,
			       "%s: providers.runpod.cloud = \"COMMUNITY\", but volume \"%s\" can "
			       "only be attached in the SECURE "
			       "cloud: change one of them",
			       section_where(op->provider->conf, "cloud"), volume->name);
	if (volume->region[0] && !datacenter_is_wanted(op->provider, volume->region))
		return err_set(err, ERR_CONFIG,
			       "%s: volume \"%s\" is in %s, which providers.runpod.datacenters "
			       "does not name: a volume cannot "
			       "leave its data centre",
			       section_where(op->provider->conf, "datacenters"), volume->name,
			       volume->region);
	return 0;
}

int offers_check_wishes(const struct op *op, struct mistakes *m, struct err *err)
{
	static int (*const checks[])(const struct op *op,
				     struct err *err) = {check_names, check_none, check_volume};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](op, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
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

	if (!op->got.offer_count && op->first.kind && cpu_alone_is_wished(op)) {
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

	if (op->step == 0 && offers_check_wishes(op, NULL, t->err) < 0)
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
