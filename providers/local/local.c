/* local.c - the translator: its config, wishes of a job, operations as `burst local-cloud`
 * children, and results from their output */
#include "local.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "providers/wired.h"

/* ---- config ---- */

static int check_capacity(const struct section *s, const char *group, const char *key,
			  struct err *err)
{
	(void)group;
	if (section_int(s, key) >= 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: %s must not be negative", section_where(s, key), key);
}

static int local_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"capacity", check_capacity},
		{"isolation", wired_check_isolation},
		{"network", wired_check_network},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.local", m, err);
}

static struct wire_conf *local_read_conf(const struct section *s)
{
	struct wire_conf *conf = xcalloc(1, sizeof(*conf));

	*conf = (struct wire_conf){.capacity = section_int(s, "capacity")};
	COPY_TEXT(conf->gpu, section_text(s, "gpu"));
	(void)wire_read_isolation(section_text(s, "isolation"), &conf->isolation);
	conf->shared_network = !strcmp(section_text(s, "network"), "host");
	return conf;
}

/* ---- whether pods of this machine can fulfil a job's wishes ---- */

enum { WISHES_SHOWN = 4 };

static int check_gpu(const struct section *s, const struct op_want *want, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *gpu = section_text(s, "gpu");
	const char *const *wishes = want->offers.gpus;

	if (child_wish(want, gpu, 1) >= 0)
		return 0;
	for (size_t i = 0; wishes[i] && i < WISHES_SHOWN; i++)
		str_addf(&shown, "%s\"%.40s\"", i ? ", " : "", wishes[i]);
	err_set(err, ERR_CONFIG,
		"gpu = [%s]: pods on this machine have %s%s: name the GPU in providers.local.gpu "
		"(if the machine has none, pods "
		"run without it), or run without a GPU: --gpu none",
		str_text(&shown), gpu_is_none(gpu) ? "no GPU" : "the GPU ",
		gpu_is_none(gpu) ? "" : gpu);
	return err_about(err, "gpu");
}

static int check_vram(const struct section *s, const struct op_want *want, struct err *err)
{
	const char *gpu = section_text(s, "gpu");
	const struct gpu *known = gpu_find(gpu);
	int64_t has_gb = section_int(s, "vram_gb");
	int wanted_gb = want->offers.vram_gb;

	if (!has_gb && known)
		has_gb = known->vram_gb;
	if (!wanted_gb || has_gb >= wanted_gb || (!has_gb && !gpu_is_none(gpu)))
		return 0;
	CLEANUP(free_text) char *less = xasprintf("%lld GB on %s", (long long)has_gb, gpu);
	err_set(err, ERR_CONFIG,
		"the job needs a GPU with %d GB of memory, and pods on this machine have %s: see "
		"providers.local.gpu and providers.local.vram_gb",
		wanted_gb, gpu_is_none(gpu) ? "no GPU" : less);
	return err_about(err, "job.vram_gb");
}

static int check_spot(const struct section *s, const struct op_want *want, struct err *err)
{
	(void)s;
	if (!want->offers.spot)
		return 0;
	err_set(err, ERR_CONFIG, "spot = true: this machine has no spot pods");
	return err_about(err, "spot");
}

/* Pods share this machine, so no pod has more than the machine. */
static int check_cpu(const struct section *s, const struct op_want *want, struct err *err)
{
	int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)s;
	if (cpus <= 0 || want->offers.cpu <= cpus)
		return 0;
	err_set(err, ERR_CONFIG, "pod.cpu = %lld: this machine has %lld cores",
		(long long)want->offers.cpu, (long long)cpus);
	return err_about(err, "pod.cpu");
}

/* Allows for memory that the kernel keeps: machines are sold with round numbers. */
static int check_memory(const struct section *s, const struct op_want *want, struct err *err)
{
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
		has_gb = (bytes + 999999999) / 1000000000;

	(void)s;
	if (bytes <= 0 || want->offers.memory_gb <= has_gb)
		return 0;
	err_set(err, ERR_CONFIG, "pod.memory_gb = %lld: this machine has %lld GB",
		(long long)want->offers.memory_gb, (long long)has_gb);
	return err_about(err, "pod.memory_gb");
}

/* A wish that this machine cannot fulfil is a mistake: waiting for capacity would not help. */
static int local_check_wishes(const struct section *s, const struct op_want *want,
			      struct mistakes *m, struct err *err)
{
	static want_check *const checks[] = {check_gpu, check_vram,   check_spot,
					     check_cpu, check_memory, NULL};

	return provider_judge_wishes(checks, s, want, m, err);
}

/* ---- operations ---- */

/* Adds one offer while the machine has room for pods, and keeps whether a sandbox was built. */
static int read_offers(const struct op *op, const json_t *from, struct op_result *result,
		       struct err *err)
{
	const struct section *s = op->provider->section;
	const char *gpu = section_text(s, "gpu");
	int64_t left = jsonx_bounded(from, "left", INT64_MIN, 1000);

	if (!json_is_integer(json_object_get(from, "left")))
		return err_set(err, ERR_BUG, "offers: no count");
	((struct wire_conf *)op->provider->own)->sandbox_works =
		jsonx_bool(from, "sandbox_works", false);
	result->floor_microusd_h = section_int(s, "price_per_hour");
	if (left <= 0)
		return 0;
	struct offer *offer = child_offer(op, gpu, 1, (int)section_int(s, "vram_gb"),
					  section_int(s, "price_per_hour"), result);
	if (!offer)
		return 0;
	offer->pods_max = (int)left;
	COPY_TEXT(offer->id, "on-demand");
	COPY_TEXT(offer->region, "here");
	COPY_TEXT(offer->stock, left == 1 ? "low" : "high");
	return 0;
}

/* A pod that fetches packages has this machine's network, unless the user closes it to all pods. */
static struct wire_conf conf_for_op(const struct op *op)
{
	struct wire_conf conf = *(struct wire_conf *)op->provider->own;

	if (op->kind == OP_RENT && op->want->rent.fetches_packages &&
	    !section_has(op->provider->section, "network"))
		conf.shared_network = true;
	return conf;
}

static enum op_next local_ask(struct op *op, struct call *call, struct op_result *result,
			      struct err *err)
{
	struct wire_conf conf = conf_for_op(op);

	(void)result;
	if (op->kind == OP_BALANCE)
		return OP_DONE; /* this machine has no balance */
	if (op->kind == OP_OFFERS &&
	    local_check_wishes(op->provider->section, op->want, NULL, err) < 0)
		return OP_FAILED;
	call_arg(call, "burst");
	call_arg(call, "local-cloud");
	return wired_ask(op, &conf, op->provider->state_dir, call, err) < 0 ? OP_FAILED : OP_CALL;
}

static enum op_next local_take(struct op *op, const struct reply *reply, struct op_result *result,
			       struct err *err)
{
	return wired_take(op, reply, read_offers, result, err);
}

static const struct child_vendor local_vendor = {
	.name = LOCAL_NAME,
	.ask = local_ask,
	.take = local_take,
};

static enum op_next local_next(struct op *op, const struct reply *reply, struct call *call,
			       int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)wait_ms;
	return child_next(op, reply, call, result, err);
}

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"price_per_hour", OPTION_MONEY, 0, "0", "pretended price of an hour of a pod"},
	{"capacity", OPTION_INT, 0, "16", "largest number of pods at a time; more are refused"},
	{"gpu", OPTION_TEXT, 0, "none",
	 "GPU that pods have or pretend to have; unless \"none\", they see this machine's own"},
	{"vram_gb", OPTION_INT, 0, "0", "memory of that GPU; 0: as it is sold"},
	{"network", OPTION_TEXT, OPTION_USER_ONLY, "private",
	 "\"private\": pods reach nothing outside; \"host\": they share this machine's network; "
	 "absent: private, except a pod that fetches the packages of an engine of burst's own"},
	{"isolation", OPTION_TEXT, OPTION_USER_ONLY, "namespaces",
	 "\"namespaces\"; \"process\": pods can reach all that you can; \"auto\": process where "
	 "namespaces do not work"},
	{NULL},
};

static int local_open(struct provider **out, const struct section *s, const char *state_dir,
		      struct err *err)
{
	if (local_check_conf(s, NULL, err) < 0)
		return -1;
	*out = child_open(&local_vendor, s, state_dir, "this machine");
	(*out)->own = local_read_conf(s);
	return 0;
}

static bool local_pods_are_free(const struct provider *p)
{
	(void)p;
	return true;
}

INCBIN(local_end_script, "providers/local/end.sh");

const struct provider_ops provider_local = {
	.abi = PROVIDER_ABI,
	.name = LOCAL_NAME,
	.summary = "pods on this machine; needs no account",
	.end_script = local_end_script,
	.shares_machine = true,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.can_tidy = true,
	.open = local_open,
	.close = child_close,
	.account = child_account,
	.begin = child_begin,
	.next = local_next,
	.op_free = child_op_free,
	.pods_are_free = local_pods_are_free,
	.check_conf = local_check_conf,
	.check_wishes = local_check_wishes,
};
