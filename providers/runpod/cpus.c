/* cpus.c - pods without a GPU: a CPU flavour and a number of vCPUs, which decide memory and disk.
 */
#include "impl.h"

#include "base/jsonx.h"

/* vCPUs are powers of two. No catalog lists a flavour's disk, but every flavour allows this much
 * for each vCPU. */
enum { VCPUS_LEAST = 2, VCPUS_MOST = 256 };

bool cpu_is_meant(const char *wish)
{
	return !strcasecmp(wish, "none");
}

int cpu_wish(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (cpu_is_meant(wishes[i]))
			return i;
	return -1;
}

bool cpu_alone_is_wished(const struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

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

enum op_next cpus_request(struct turn *t)
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

int cpus_read(struct turn *t)
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
