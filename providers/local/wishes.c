/* wishes.c - decides whether pods of this machine can fulfil a job's wishes. */
#include "local.h"

#include <unistd.h>

#include "base/gpus.h"
#include "translator.h"

static bool is_no_gpu(const char *wish)
{
	return !strcasecmp(wish, "none");
}

/* A local pod has no GPU, or that of providers.local.gpu: this machine's own, or a pretended one.
 */
static bool fulfils(const char *gpu, const char *wish)
{
	char name[GPU_MAX];
	int count;

	if (is_no_gpu(wish))
		return true;
	return gpu_parse(wish, name, sizeof(name), &count) && count == 1 &&
	       (gpu_satisfies(name, gpu) || !strcmp(name, gpu));
}

int local_wish_of(const char *gpu, const char *const *wishes)
{
	for (int i = 0; wishes && wishes[i]; i++)
		if (fulfils(gpu, wishes[i]))
			return i;
	return wishes && wishes[0] ? -1 : 0;
}

static bool any_card_fulfils(const struct provider *p, const char *const *wishes)
{
	for (size_t i = 0; i < p->card_count; i++)
		if (local_wish_of(p->cards[i].gpu, wishes) >= 0)
			return true;
	return !p->card_count && local_wish_of(p->conf.gpu, wishes) >= 0;
}

static int check_gpu(const struct provider *p, const struct op_want *want, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const struct local_conf *conf = &p->conf;
	const char *const *wishes = want->offers.gpus;

	if (any_card_fulfils(p, wishes))
		return 0;
	for (size_t i = 0; wishes[i] && i < 4; i++)
		str_addf(&shown, "%s\"%.40s\"", i ? ", " : "", wishes[i]);
	if (p->card_count) {
		err_set(err, ERR_CONFIG,
			"gpu = [%s]: none of these is in providers.local.gpu_prices",
			str_text(&shown));
		return err_about(err, "gpu");
	}
	err_set(err, ERR_CONFIG,
		"gpu = [%s]: pods on this machine have %s%s: name the GPU in providers.local.gpu "
		"(if the machine has none, pods "
		"run without it), or run without a GPU: --gpu none",
		str_text(&shown), is_no_gpu(conf->gpu) ? "no GPU" : "the GPU ",
		is_no_gpu(conf->gpu) ? "" : conf->gpu);
	return err_about(err, "gpu");
}

static int check_vram(const struct provider *p, const struct op_want *want, struct err *err)
{
	const struct local_conf *conf = &p->conf;
	int wanted_gb = want->offers.vram_gb, most_gb = 0;

	for (size_t i = 0; i < p->card_count; i++)
		most_gb = MAX(most_gb, p->cards[i].vram_gb);
	if (p->card_count && most_gb < wanted_gb) {
		err_set(err, ERR_CONFIG,
			"the job needs a GPU with %d GB of memory, and the largest of "
			"providers.local.gpu_prices has %d GB",
			wanted_gb, most_gb);
		return err_about(err, "job.vram_gb");
	}
	if (p->card_count)
		return 0;
	const struct gpu *known = gpu_find(conf->gpu);
	int64_t has_gb = conf->vram_gb ? conf->vram_gb : known ? known->vram_gb : 0;

	if (!wanted_gb || has_gb >= wanted_gb || (!has_gb && !is_no_gpu(conf->gpu)))
		return 0;
	CLEANUP(free_text) char *less = xasprintf("%lld GB on %s", (long long)has_gb, conf->gpu);
	err_set(err, ERR_CONFIG,
		"the job needs a GPU with %d GB of memory, and pods on this machine have %s: see "
		"providers.local.gpu and providers.local.vram_gb",
		wanted_gb, is_no_gpu(conf->gpu) ? "no GPU" : less);
	return err_about(err, "job.vram_gb");
}

static int check_spot(const struct provider *p, const struct op_want *want, struct err *err)
{
	if (!want->offers.spot || p->conf.spot_price_microusd_h >= 0)
		return 0;
	err_set(err, ERR_CONFIG,
		"spot = true: this machine has no spot pods unless "
		"providers.local.spot_price_per_hour is set");
	return err_about(err, "spot");
}

/* Pods share this machine, so no pod has more than the machine. */
static int check_cpu(const struct provider *p, const struct op_want *want, struct err *err)
{
	int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)p;
	if (cpus <= 0 || want->offers.cpu <= cpus)
		return 0;
	err_set(err, ERR_CONFIG, "pod.cpu = %lld: this machine has %lld cores",
		(long long)want->offers.cpu, (long long)cpus);
	return err_about(err, "pod.cpu");
}

/* Allows for memory that the kernel keeps: machines are sold with round numbers. */
static int check_memory(const struct provider *p, const struct op_want *want, struct err *err)
{
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
		has_gb = (bytes + 999999999) / 1000000000;

	(void)p;
	if (bytes <= 0 || want->offers.memory_gb <= has_gb)
		return 0;
	err_set(err, ERR_CONFIG, "pod.memory_gb = %lld: this machine has %lld GB",
		(long long)want->offers.memory_gb, (long long)has_gb);
	return err_about(err, "pod.memory_gb");
}

int local_judge_wishes(const struct provider *p, const struct op_want *want, struct mistakes *m,
		       struct err *err)
{
	static int (*const checks[])(const struct provider *p, const struct op_want *want,
				     struct err *err) = {check_gpu, check_vram, check_spot,
							 check_cpu, check_memory};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](p, want, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

int local_check_wishes(const struct section *s, const struct op_want *want, struct mistakes *m,
		       struct err *err)
{
	struct provider p = {0};

	local_read_conf(s, &p.conf);
	local_read_cards(s, &p);
	return local_judge_wishes(&p, want, m, err);
}
