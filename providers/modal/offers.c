/* offers.c - Modal's offers and prices, and what a sandbox used */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/section.h"
#include "impl.h"

/* ---- published prices, for accounts that may not read their own rates ---- */

#define MODAL_LIST_DAY "2026-09-01"

/* Dollars an hour for one GPU; modal.com/pricing has dollars a second. */
static const struct {
	const char *gpu;
	int64_t microusd_h;
} published_prices[] = {
	{"T4", 590400},         {"L4", 799200},
	{"A10", 1101600},       {"A10G", 1101600},
	{"L40S", 1951200},      {"A100-40GB", 2098800},
	{"A100-80GB", 2498400}, {"RTX-PRO-6000", 3031200},
	{"H100", 3949200},      {"H200", 4539600},
	{"B200", 6249600},      {"B300", 7099200},
};

/* micro-dollars an hour on MODAL_LIST_DAY; 0: Modal had none. */
static int64_t published_rate(const char *gpu)
{
	for (size_t i = 0; i < ARRAY_LEN(published_prices); i++)
		if (!strcmp(published_prices[i].gpu, gpu))
			return published_prices[i].microusd_h;
	return 0;
}

/* ---- offers: every GPU that Modal has, since it lists no stock ---- */

enum {
	ASKED_RATES = 1,
	CORES_MOST = 256,
	MEMORY_GB_MOST = 4096,
	RATE_MOST_MICROUSD = 1000 * 1000000
};

/* ---- rates ---- */

/* Micro-dollars an hour, by the config, else Modal's rates (said; NULL: unknown). Borrows both. */
struct modal_rates {
	const struct section *conf;
	const Modal__Client__WorkspaceBillingRatesResponse *said;
	int64_t core, gib;
};
/* A price for caps must not be too low. */
enum rate_use { RATES_FOR_CAPS, RATES_FOR_BILL };

/* Whether the key of a rate has these words in this order: "gpu_a100_80gb" has those of
 * "A100-80GB", but "gpu_l40s" does not have the word "L4". */
static bool has_words(const char *key, const char *words)
{
	for (const char *from = key; *from; from++) {
		const char *k = from, *w = words;
		if (from > key && isalnum((unsigned char)from[-1]))
			continue;
		while (*w && *k &&
		       (tolower((unsigned char)*k) == tolower((unsigned char)*w) ||
			(!isalnum((unsigned char)*k) && !isalnum((unsigned char)*w))))
			k++, w++;
		if (!*w && !isalnum((unsigned char)*k))
			return true;
	}
	return false;
}

/* The highest of the account's rates for a key with these words: never too low. 0: none. */
static int64_t account_rate(const Modal__Client__WorkspaceBillingRatesResponse *said,
			    const char *words)
{
	int64_t most = 0, price;

	for (size_t i = 0; said && i < said->n_rates; i++)
		if (has_words(modal_text(said->rates[i]->key), words) &&
		    money_parse(modal_text(said->rates[i]->value), &price, NULL) == 0 &&
		    price > most && price <= RATE_MOST_MICROUSD)
			most = price;
	return most;
}

/* Price of one GPU by Modal's name: the config's, else the account's rate, else the published one
 * if Modal withholds rates. 0: unknown. */
static int64_t gpu_rate(const struct modal_rates *rates, const char *gpu)
{
	int64_t own = provider_price_of(rates->conf, "gpu_prices", gpu);

	return own ? own : rates->said ? account_rate(rates->said, gpu) : published_rate(gpu);
}

static bool is_published_rate(const struct modal_rates *rates, const char *gpu)
{
	return !rates->said && !provider_price_of(rates->conf, "gpu_prices", gpu) &&
	       published_rate(gpu);
}

/* The price of a core or GiB: the config's value, else the account's rate, else the key's default.
 * The names of rates may change: a function's core costs a third of a sandbox's, and a rate may not
 * say which it is for. So a price for caps is no lower than the default. */
static int64_t core_or_memory_rate(const struct modal_rates *rates, const char *key,
				   const char *words, enum rate_use use)
{
	int64_t own = section_int(rates->conf, key), said = account_rate(rates->said, words);

	if (section_has(rates->conf, key) || !said)
		return own;
	return use == RATES_FOR_CAPS ? MAX(own, said) : said;
}

static struct modal_rates make_rates(const struct section *conf,
				     const Modal__Client__WorkspaceBillingRatesResponse *said,
				     enum rate_use use)
{
	struct modal_rates rates = {.conf = conf, .said = said};

	rates.core = core_or_memory_rate(&rates, "core_price", "cpu", use);
	rates.gib = core_or_memory_rate(&rates, "memory_price", "memory", use);
	return rates;
}

/* ---- offers ---- */

void modal_sandbox_size(int64_t cpu_wanted, int64_t memory_gb_wanted, int64_t *cores,
			int64_t *memory_gb)
{
	*cores = MIN(cpu_wanted ? cpu_wanted : MODAL_CORES, (int64_t)CORES_MOST);
	*memory_gb =
		MIN(memory_gb_wanted ? memory_gb_wanted : MODAL_MEMORY_GB, (int64_t)MEMORY_GB_MOST);
}

/* Adds `count` of a GPU (NULL: none) as an offer, unless an earlier wish has added the same. price:
 * micro-dollars an hour for all of the sandbox. */
static void add_offer(struct turn *t, const struct gpu *gpu, int count, int wish, int64_t price)
{
	struct op_result *got = &t->op->got;
	int64_t cores, memory_gb;

	modal_sandbox_size(t->op->want->offers.cpu, t->op->want->offers.memory_gb, &cores,
			   &memory_gb);
	for (size_t i = 0; i < got->offer_count; i++)
		if (!strcmp(got->offers[i].gpu, gpu ? gpu->name : "none") &&
		    got->offers[i].gpus == count)
			return; /* an earlier wish has it already */
	struct offer *o = op_result_add_offer(got);
	*o = (struct offer){.gpus = count,
			    .vram_gb = gpu ? gpu->vram_gb : 0,
			    .price_microusd_h = price,
			    .wish = wish};
	COPY_TEXT(o->provider, "modal");
	COPY_TEXT(o->gpu, gpu ? gpu->name : "none");
	snprintf(o->with, sizeof(o->with), "%lld core%s, %lld GB", (long long)cores,
		 cores == 1 ? "" : "s", (long long)memory_gb);
	if (!gpu)
		COPY_TEXT(o->id, "CPU");
	else if (count == 1)
		COPY_TEXT(o->id, gpu->modal);
	else
		snprintf(o->id, sizeof(o->id), "%s:%d", gpu->modal, count);
}

/* Price an hour of the wanted cores and memory: a sandbox is billed for them, used or not. */
static int64_t cpu_and_memory_price(const struct turn *t, const struct modal_rates *rates)
{
	int64_t cores, memory_gb;

	modal_sandbox_size(t->op->want->offers.cpu, t->op->want->offers.memory_gb, &cores,
			   &memory_gb);
	return rates->core * cores + rates->gib * memory_gb;
}

/* Adds the offers for the nth wish (NULL: any GPU), and to unpriced the GPUs without a price. */
static void add_offers_for_wish(struct turn *t, const struct modal_rates *rates, const char *wish,
				int nth, struct str *unpriced)
{
	int64_t rest = cpu_and_memory_price(t, rates);
	char name[GPU_MAX] = "";
	int count = 1;
	size_t rows;
	const struct gpu *row = gpu_catalog(&rows);

	if (wish && (!gpu_parse(wish, name, sizeof(name), &count) || count > MODAL_GPUS_MOST))
		return;
	if (!strcasecmp(name, "none") && rest && !t->op->want->offers.vram_gb)
		add_offer(t, NULL, 1, nth, rest);
	for (; rows--; row++) {
		if (!row->modal || row->vram_gb < t->op->want->offers.vram_gb ||
		    (wish && !gpu_satisfies(wish, row->name)))
			continue;
		int64_t price = gpu_rate(rates, row->modal);
		if (price)
			add_offer(t, row, count, nth, price * count + rest);
		else if (!strstr(str_text(unpriced), row->modal))
			str_addf(unpriced, "%s%s", unpriced->len ? ", " : "", row->modal);
	}
}

/* The name of Modal's that a misspelt wish is close to. NULL: none, or the wish is a known GPU. */
static const char *nearest_modal_gpu(const char *wish)
{
	size_t rows, n = 0;
	const struct gpu *row = gpu_catalog(&rows);
	const char **names = xcalloc(rows + 1, sizeof(*names));

	for (; rows--; row++)
		if (row->modal)
			names[n++] = row->modal;
	const char *near = gpu_find(wish) ? NULL : nearest_word(wish, names);
	free(names);
	return near;
}

/* Whether some GPU of Modal with this much memory satisfies the wish. Ignores the count. */
static bool has_gpu_for_wish(const char *wish, int vram_gb)
{
	size_t rows;
	const struct gpu *row = gpu_catalog(&rows);

	for (; rows--; row++)
		if (row->modal && row->vram_gb >= vram_gb && gpu_satisfies(wish, row->name))
			return true;
	return !strcasecmp(wish, "none") && !vram_gb;
}

/* Whether Modal has this many of such a GPU with this much memory in one sandbox. */
static bool can_satisfy_wish(const char *wish, int vram_gb)
{
	char name[GPU_MAX];
	int count;

	return gpu_parse(wish, name, sizeof(name), &count) && count <= MODAL_GPUS_MOST &&
	       has_gpu_for_wish(wish, vram_gb);
}

/* Appends that Modal has no GPU called `wished` (quoted names), and one that is near `first`. */
static void add_unknown_gpu(struct str *to, const char *wished, const char *first)
{
	const char *near = nearest_modal_gpu(first);

	str_addf(to, "Modal has no GPU called %s", wished);
	if (near)
		str_addf(to, "; did you mean \"%s\"?", near);
}

/* Always fails: Modal never has any of the wanted GPUs. ERR_CONFIG, about the key "gpu". */
static int fail_no_gpu_fits(const struct op_want *want, struct err *err)
{
	CLEANUP(str_free) struct str wished = STR_INIT;
	CLEANUP(str_free) struct str unknown = STR_INIT;
	bool any = false;

	for (int i = 0; want->offers.gpus[i]; i++) {
		str_addf(&wished, "%s\"%.40s\"", i ? ", " : "", want->offers.gpus[i]);
		any = any || has_gpu_for_wish(want->offers.gpus[i], 0);
	}
	add_unknown_gpu(&unknown, str_text(&wished), want->offers.gpus[0]);
	if (!any)
		err_set(err, ERR_CONFIG, "%s", str_text(&unknown));
	else if (!want->offers.vram_gb)
		err_set(err, ERR_CONFIG,
			"gpu = [%s]: no sandbox of Modal's has so many (%d at most)",
			str_text(&wished), MODAL_GPUS_MOST);
	else
		err_set(err, ERR_CONFIG,
			"gpu = [%s]: Modal has none of these with the %d GB that this job needs",
			str_text(&wished), want->offers.vram_gb);
	return err_about(err, "gpu");
}

static int check_gpus(const struct section *conf, const struct op_want *want, struct err *err)
{
	const char *const *wishes = want->offers.gpus;

	(void)conf;
	for (int i = 0; wishes && wishes[i]; i++)
		if (can_satisfy_wish(wishes[i], want->offers.vram_gb))
			return 0;
	return wishes && wishes[0] ? fail_no_gpu_fits(want, err) : 0;
}

static int check_cores(const struct section *conf, const struct op_want *want, struct err *err)
{
	(void)conf;
	if (want->offers.cpu <= CORES_MOST)
		return 0;
	err_set(err, ERR_CONFIG, "no sandbox of Modal's has %lld cores: lower pod.cpu",
		(long long)want->offers.cpu);
	return err_about(err, "pod.cpu");
}

static int check_memory(const struct section *conf, const struct op_want *want, struct err *err)
{
	(void)conf;
	if (want->offers.memory_gb <= MEMORY_GB_MOST)
		return 0;
	err_set(err, ERR_CONFIG,
		"no sandbox of Modal's has %lld GiB of memory: lower pod.memory_gb",
		(long long)want->offers.memory_gb);
	return err_about(err, "pod.memory_gb");
}

int modal_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
		       struct err *err)
{
	static want_check *const checks[] = {check_gpus, check_cores, check_memory, NULL};

	return provider_judge_wishes(checks, conf, want, m, err);
}

/* Notes misspelt wishes beside valid ones. A GPU that only Modal lacks is no mistake. */
static void add_misspelt_wishes(struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		CLEANUP(free_text) char *wished = xasprintf("\"%.40s\"", wishes[i]);
		if (has_gpu_for_wish(wishes[i], 0) || gpu_find(wishes[i]))
			continue;
		add_unknown_gpu(&op->got.text, wished, wishes[i]);
		str_addc(&op->got.text, '\n');
	}
}

/* Notes which offers have a published price, which may not be the account's: caps depend on it. */
static void add_published_prices(struct op *op, const struct modal_rates *rates)
{
	CLEANUP(str_free) struct str prices = STR_INIT;
	char price[32];

	for (size_t i = 0; i < op->got.offer_count; i++) {
		const struct gpu *gpu = gpu_find(op->got.offers[i].gpu);
		if (!gpu || !gpu->modal || !is_published_rate(rates, gpu->modal) ||
		    strstr(str_text(&prices), gpu->modal))
			continue;
		str_addf(&prices, "%s%s %s", prices.len ? ", " : "", gpu->modal,
			 money_show(price, sizeof(price), published_rate(gpu->modal)));
	}
	if (prices.len)
		str_addf(&op->got.text,
			 "Modal does not report this account's rates: using its list prices "
			 "of " MODAL_LIST_DAY " "
			 "(%s an hour); set providers.modal.gpu_prices where yours differ\n",
			 str_text(&prices));
}

/* Makes the offers from the rates and ends the operation. */
static enum op_next finish_offers(struct turn *t, const struct modal_rates *rates)
{
	const char *const *wishes = t->op->want->offers.gpus;
	CLEANUP(str_free) struct str unpriced = STR_INIT;

	if (!wishes)
		add_offers_for_wish(t, rates, NULL, 0, &unpriced);
	for (int i = 0; wishes && wishes[i]; i++)
		add_offers_for_wish(t, rates, wishes[i], i, &unpriced);
	if (t->op->got.offer_count) {
		/* Modal lists what it has, not what is free */
		t->op->got.floor_microusd_h = INT64_MAX;
		for (size_t i = 0; i < t->op->got.offer_count; i++)
			t->op->got.floor_microusd_h = MIN(t->op->got.floor_microusd_h,
							  t->op->got.offers[i].price_microusd_h);
		add_misspelt_wishes(t->op);
		add_published_prices(t->op, rates);
		return modal_done(t);
	}
	if (!unpriced.len && wishes && wishes[0]) {
		fail_no_gpu_fits(t->op->want, t->err);
		return OP_FAILED;
	}
	if (!unpriced.len)
		return modal_done(t);
	return turn_fail(
		t, ERR_CONFIG,
		"Modal does not say what %s costs on this account: set providers.modal.gpu_prices, "
		"as [\"L40S=1.95\"] (dollars an hour)",
		str_text(&unpriced));
}

enum op_next modal_offers_next(struct turn *t)
{
	Modal__Client__WorkspaceBillingRatesRequest request =
		MODAL__CLIENT__WORKSPACE_BILLING_RATES_REQUEST__INIT;

	if (!t->op->step) {
		if (check_cores(NULL, t->op->want, t->err) < 0 ||
		    check_memory(NULL, t->op->want, t->err) < 0)
			return OP_FAILED;
		t->op->step = ASKED_RATES;
		return modal_call(t, CALL_POLL, "WorkspaceBillingRates", &request.base, 0);
	}
	MODAL_MESSAGE(Modal__Client__WorkspaceBillingRatesResponse, answer, t,
		      "asking what it costs",
		      modal__client__workspace_billing_rates_response__descriptor);
	/* the plan or token may not see rates: use the config's and published ones */
	if (!answer && t->err->kind != ERR_REFUSED && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	struct modal_rates rates = make_rates(t->op->provider->conf, answer, RATES_FOR_CAPS);
	return finish_offers(t, &rates);
}

/* ---- billing: a sandbox's time by its container's clock, and its amounts ---- */

enum { ASKED_TASK = 1, ASKED_INFO, ASKED_USAGE, BILLING_ASKED_RATES };
#define HOUR_NS 3600e9
/* Sanity limit: the largest sandbox uses less than half of this in its 24 hours. */
#define USE_NS_MOST  1e18
#define EPOCH_S_MOST 1e11

/* In seconds; Modal sends 0 for a time that has not come. */
static bool is_plausible_epoch(double at)
{
	return at > 0 && at < EPOCH_S_MOST;
}

/* Whether Modal lacks the call, denies it to this token, or has no figure for this sandbox. */
static bool is_withheld(const struct reply *r)
{
	return !r->failed &&
	       (r->grpc_status == STATUS_NOT_FOUND || r->grpc_status == STATUS_PERMISSION_DENIED ||
		r->grpc_status == STATUS_UNIMPLEMENTED);
}

/* ---- how long ---- */

/* Requests the times of the sandbox's task. One that ended without a task used nothing: done. */
static enum op_next on_task_id_reply(struct turn *t)
{
	Modal__Client__TaskGetInfoRequest request = MODAL__CLIENT__TASK_GET_INFO_REQUEST__INIT;
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t,
		      "asking what a sandbox used",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_text(answer->task_id)[0]) {
		t->op->got.billing.reported = answer->task_result && answer->task_result->status;
		if (t->op->got.billing.reported)
			return modal_done(
				t); /* it ended before it had a machine, so it used nothing */
		return turn_fail(t, ERR_NOT_FOUND, "sandbox %s has no machine yet",
				 t->op->want->id);
	}
	request.task_id = answer->task_id;
	t->op->step = ASKED_INFO;
	return modal_call(t, CALL_POLL, "TaskGetInfo", &request.base, 0);
}

/* Sets the billed time, 0 if its container never started. ERR_NOT_FOUND: it has not ended yet. */
static int read_task_info_reply(struct turn *t)
{
	struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__TaskGetInfoResponse, answer, t, "asking what a sandbox used",
		      modal__client__task_get_info_response__descriptor);
	const Modal__Client__TaskInfo *task = answer ? answer->info : NULL;

	if (!answer)
		return -1;
	bool over = task && ((task->result && task->result->status) ||
			     is_plausible_epoch(task->finished_at));
	if (over && !is_plausible_epoch(task->started_at)) {
		t->op->got.billing.reported = true; /* its container never started */
		return 0;
	}
	if (!over || !is_plausible_epoch(task->finished_at) || task->finished_at < task->started_at)
		return err_set(t->err, ERR_NOT_FOUND, "Modal has no end of sandbox %s's time yet",
			       t->op->want->id);
	use->gpus = task->gpu_config ? task->gpu_config->count : 0;
	t->op->got.billing.billed_ms = (int64_t)((task->finished_at - task->started_at) * 1000);
	t->op->got.billing.reported = true;
	return 0;
}

/* ---- how much ---- */

static enum op_next request_usage(struct turn *t)
{
	Modal__Client__SandboxGetResourceUsageRequest request =
		MODAL__CLIENT__SANDBOX_GET_RESOURCE_USAGE_REQUEST__INIT;

	request.sandbox_id = (char *)t->op->want->id;
	t->op->step = ASKED_USAGE;
	return modal_call(t, CALL_POLL, "SandboxGetResourceUsage", &request.base, 0);
}

/* Sets op->use as far as Modal tells. */
static int read_usage_reply(struct turn *t)
{
	struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__SandboxGetResourceUsageResponse, answer, t,
		      "asking what a sandbox used",
		      modal__client__sandbox_get_resource_usage_response__descriptor);

	if (!answer) {
		bool withheld = is_withheld(t->reply);
		if (withheld)
			err_clear(t->err);
		return withheld ? 0 : -1;
	}
	use->core_ns = (double)answer->cpu_core_nanosecs;
	use->gib_ns = (double)answer->mem_gib_nanosecs;
	use->gpu_ns = (double)answer->gpu_nanosecs;
	COPY_TEXT(use->gpu, modal_text(answer->gpu_type));
	use->counted = use->core_ns + use->gib_ns + use->gpu_ns > 0 &&
		       use->core_ns + use->gib_ns + use->gpu_ns < USE_NS_MOST;
	return 0;
}

static enum op_next request_rates(struct turn *t)
{
	Modal__Client__WorkspaceBillingRatesRequest request =
		MODAL__CLIENT__WORKSPACE_BILLING_RATES_REQUEST__INIT;

	t->op->step = BILLING_ASKED_RATES;
	return modal_call(t, CALL_POLL, "WorkspaceBillingRates", &request.base, 0);
}

/* The GPU whose price counts, by Modal's name: the offered one, even if Modal gave a better one. */
static const char *billed_gpu(const struct turn *t)
{
	const char *offered = t->op->want->bill.gpu;
	const struct gpu *gpu = gpu_find(*offered ? offered : t->op->use.gpu);

	return gpu && gpu->modal ? gpu->modal : t->op->use.gpu;
}

/* rate: micro-dollars an hour. */
static int64_t cost_microusd(int64_t rate, double ns)
{
	return (int64_t)((double)rate * ns / HOUR_NS + 0.5);
}

/* Sets bill->beside_microusd if the bill is more than the offer's price for its time explains.
 * Modal bills cores and memory by use if that exceeds the request, and rates may change; only the
 * part for a GPU that counted for longer than its container ran is left out, as Modal's error. */
static void set_unexplained_cost(struct turn *t, int64_t gpu_rate)
{
	struct op_bill *bill = &t->op->got.billing;
	const struct use *use = &t->op->use;
	int64_t price = t->op->want->bill.price_microusd_h,
		fair = money_for(price, bill->billed_ms);
	double gpu_fair_ns = (double)bill->billed_ms * 1e6 * use->gpus;
	int64_t unfair = use->gpus && use->gpu_ns > gpu_fair_ns
				 ? cost_microusd(gpu_rate, use->gpu_ns - gpu_fair_ns)
				 : 0;
	int64_t beside = bill->cost_microusd - fair - unfair;

	if (price > 0 && beside > fair / 100 + money_for(price, 1000))
		bill->beside_microusd = beside;
}

/* Sets the cost of op->use; without a price for its GPU, a note instead. */
static int read_billing_rates_reply(struct turn *t)
{
	struct op_bill *bill = &t->op->got.billing;
	const struct section *conf = t->op->provider->conf;
	const struct use *use = &t->op->use;
	MODAL_MESSAGE(Modal__Client__WorkspaceBillingRatesResponse, answer, t,
		      "asking what it costs",
		      modal__client__workspace_billing_rates_response__descriptor);

	if (!answer && !is_withheld(t->reply))
		return -1;
	err_clear(t->err);
	struct modal_rates rates = make_rates(conf, answer, RATES_FOR_BILL);
	int64_t gpu = use->gpu_ns > 0 ? gpu_rate(&rates, billed_gpu(t)) : 0;
	if (use->gpu_ns > 0 && !gpu) {
		snprintf(bill->note, sizeof(bill->note),
			 "the price of its GPU per second is unknown: set "
			 "providers.modal.gpu_prices");
		return 0;
	}
	bill->cost_microusd = cost_microusd(rates.core, use->core_ns) +
			      cost_microusd(rates.gib, use->gib_ns) +
			      cost_microusd(gpu, use->gpu_ns);
	set_unexplained_cost(t, gpu);
	return 0;
}

enum op_next modal_billing_next(struct turn *t)
{
	switch (t->op->step) {
	case 0: t->op->step = ASKED_TASK; return modal_call_task(t, t->op->want->id);
	case ASKED_TASK: return on_task_id_reply(t);
	case ASKED_INFO:
		if (read_task_info_reply(t) < 0)
			return OP_FAILED;
		return t->op->got.billing.billed_ms ? request_usage(t) : modal_done(t);
	case ASKED_USAGE:
		if (read_usage_reply(t) < 0)
			return OP_FAILED;
		return t->op->use.counted ? request_rates(t) : modal_done(t);
	case BILLING_ASKED_RATES:
		return read_billing_rates_reply(t) < 0 ? OP_FAILED : modal_done(t);
	}
	return turn_fail(t, ERR_BUG, "billing: no such step");
}
