/* price.c - what an hour of a pod costs: by the user's price of its GPU, or by the units that Slurm
 * bills for it
 *
 * Slurm bills a job the weights of its partition (TRESBillingWeights) times its resources, as a
 * whole number; without weights, its CPUs (slurm.conf(5), tres.html). */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"

/* ---- units ---- */

/* The resources of the job that is to run there. */
struct resources {
	double cpus, mb;
	const struct slurm_kind *kind;
};

/* "10.0", or for memory "0.25G": per GB, where the unit is otherwise MB. */
static double read_weight(const char *text)
{
	static const char scales[] = "MGTP";
	char *end;
	double weight = strtod(text, &end);
	const char *scale = *end ? strchr(scales, toupper((unsigned char)*end)) : NULL;

	if (toupper((unsigned char)*end) == 'K')
		weight *= 1024;
	for (; scale && scale > scales; scale--)
		weight /= 1024;
	return weight >= 0 && weight <= SLURM_UNITS_MOST ? weight : 0; /* nor NaN */
}

/* What one item of the weights adds, "GRES/gpu=10.0". Licenses and the like: a pod has none. */
static double weigh(const char *item, const struct resources *job)
{
	static const char gres[] = "gres/gpu";
	const char *equals = strchr(item, '='), *type = job->kind->type;
	CLEANUP(free_text) char *name = equals ? xstrndup(item, (size_t)(equals - item)) : NULL;

	if (!name)
		return 0;
	double weight = read_weight(equals + 1);
	if (!strcasecmp(name, "cpu"))
		return weight * job->cpus;
	if (!strcasecmp(name, "mem"))
		return weight * job->mb;
	if (!strcasecmp(name, "node"))
		return weight;
	if (!type || strncasecmp(name, gres, strlen(gres)) != 0)
		return 0;
	const char *of_type = name + strlen(gres);
	return !of_type[0] || (of_type[0] == ':' && !strcasecmp(of_type + 1, type))
		       ? weight * job->kind->count
		       : 0;
}

/* Where the config gives no memory it is the partition's default, "DefMemPerCPU=4000", or else all
 * of the node. */
static double memory_mb(const struct op *op, const struct slurm_kind *kind, const char *standard,
			double cpus)
{
	const char *value = strchr(standard, '=');
	double mb = value ? (double)atoll(value + 1) : 0;

	if (op->want->offers.memory_gb)
		return (double)op->want->offers.memory_gb * 1024;
	if (mb <= 0)
		return (double)kind->node_mb;
	return starts_with(standard, "DefMemPerCPU") ? mb * cpus : mb;
}

/* The flag MAX_TRES: the largest item alone counts. */
static bool largest_counts(const char *text, size_t len)
{
	CLEANUP(free_text) char *copy = NULL;
	char *fields[SLURM_FIELDS_MOST], *save = NULL;

	if (slurm_find_line(text, len, "=flags", NULL, &copy, fields) < 2)
		return false;
	for (char *flag = strtok_r(fields[1], ",", &save); flag; flag = strtok_r(NULL, ",", &save))
		if (!strcmp(flag, "MAX_TRES"))
			return true;
	return false;
}

static int64_t units_of(const struct op *op, const struct slurm_kind *kind, const char *text,
			size_t len)
{
	CLEANUP(free_text) char *copy = NULL;
	char *fields[SLURM_FIELDS_MOST], *save = NULL;
	struct resources job = {.cpus = (double)MAX(op->want->offers.cpu, INT64_C(1)),
				.kind = kind};
	bool largest = largest_counts(text, len);
	double sum = 0;

	if (slurm_find_line(text, len, "=weights", kind->partition, &copy, fields) < 4)
		return (int64_t)job.cpus;
	job.mb = memory_mb(op, kind, fields[2], job.cpus);
	for (char *item = strtok_r(fields[3], ",", &save); item;
	     item = strtok_r(NULL, ",", &save)) {
		double units = weigh(item, &job);
		sum = largest ? MAX(sum, units) : sum + units;
	}
	return (int64_t)MIN(sum > 0 ? sum : job.cpus, (double)SLURM_UNITS_MOST);
}

/* ---- prices ---- */

int64_t slurm_price_of_units(const struct section *conf, int64_t units)
{
	int64_t each = section_int(conf, "price_per_billing_hour"), price;

	return __builtin_mul_overflow(each, units, &price) ? VENDOR_MOST_MICROUSD
							   : MIN(price, VENDOR_MOST_MICROUSD);
}

int64_t slurm_price(const struct op *op, const struct slurm_kind *kind, const char *text,
		    size_t len, struct str *notes)
{
	const struct section *conf = op->provider->section;
	int64_t by_gpu =
		provider_price_of(conf, "price_per_gpu_hour", kind->gpu) * MAX(kind->count, 1);
	char first[32], second[32];

	if (!section_has(conf, "price_per_billing_hour"))
		return by_gpu;
	int64_t units = units_of(op, kind, text, len), by_units = slurm_price_of_units(conf, units);
	if (!by_gpu)
		return by_units;
	if (llabs(by_gpu - by_units) > by_gpu / 100)
		str_addf(notes,
			 "%.60s in partition %.60s: price_per_gpu_hour says %s an hour, "
			 "price_per_billing_hour %s for %lld units: the first one counts\n",
			 kind->gpu, kind->partition, money_show(first, sizeof(first), by_gpu),
			 money_show(second, sizeof(second), by_units), (long long)units);
	return by_gpu;
}
