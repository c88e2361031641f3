/* rehearsal.c - a provider outside the tree, for tests and for rehearsals at home: the pods of the
 * local provider, which boot late, are sold out, taken away or claim to have a GPU. It passes every
 * operation on to the local provider and changes what goes in and what comes out. Unlike a real
 * provider it keeps a count in a file.
 *
 * Compiled with QUEUES=1 it is another provider: its pods wait in a queue that costs nothing, and a
 * name works once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider.h"

#include "base/clock.h"
#include "base/gpus.h"

enum { CARDS_MOST = 32, OPTIONS_MOST = 32, WISHES_SHOWN = 4, TAKEN_AWAY = 117 /* exit code */ };

#ifndef QUEUES
#define QUEUES 0
#endif

extern struct provider_ops burst_provider;
static const struct provider_ops *local;

struct card { /* an entry of gpu_prices */
	char gpu[GPU_MAX];
	int64_t price_microusd_h;
	int vram_gb;
};

struct provider {
	struct provider *local;
	const struct section *conf;
	char *state_dir;
	struct card cards[CARDS_MOST];
	size_t card_count; /* 0: pods have what the local provider offers */
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *asked;
	struct op_want want; /* what the local provider is asked */
	char *script;
	struct op *local;
	bool begun;
	struct err refused; /* RENT: the name has been used, so its pod is looked up */
};

/* ---- the keys ---- */

static const struct option_spec own_options[] = {
	{"spot_price_per_hour", OPTION_MONEY, 0, NULL,
	 "price of an hour of a spot pod; without it none are offered", NULL},
	{"gpu_prices", OPTION_TEXTS, 0, NULL,
	 "GPUs that pods pretend to have, with dollars an hour, as in [\"T4=0.59\", \"L4=0.80\"]",
	 NULL},
	{"egress_price", OPTION_MONEY, 0, "0", "price of a GB fetched from a pod, in plans", NULL},
	{"region", OPTION_TEXT, 0, "here", "region that offers show", NULL},
	{"boot_delay", OPTION_DURATION, 0, "0", "how long a pod takes to boot", NULL},
	{"fail_rents", OPTION_INT, 0, "0",
	 "how many rents fail for lack of capacity before one succeeds", NULL},
	{"preempt_after", OPTION_DURATION, 0, "0",
	 "a spot pod is taken away after this time; 0: never", NULL},
	{"preempt", OPTION_TEXT, 0, "spot", "which pods preempt_after takes: \"spot\" or \"all\"",
	 NULL},
	{"carrier", OPTION_TEXTS, 0, NULL,
	 "a program and its arguments: it gets the host and port of a pod's sshd as two more, and "
	 "its stdin and stdout are the connection to it",
	 NULL},
	{"release_delay", OPTION_DURATION, 0, "0", "how long a release takes to be sent", NULL},
	{"storage", OPTION_BOOL, 0, "false",
	 "pods cost something: they are released before their files are fetched", NULL},
#if QUEUES
	{"queue", OPTION_DURATION, 0, "0", "how long a pod waits in the queue", NULL},
	{"lose_creates", OPTION_INT, 0, "0", "of how many creates the reply is lost", NULL},
#endif
};
static struct option_spec options[OPTIONS_MOST]; /* the local provider's, then these */

static bool is_set_to(const struct section *conf, const char *key, const char *word)
{
	return !strcmp(section_text(conf, key), word);
}

static int check_preempt(const struct section *conf, struct err *err)
{
	if (is_set_to(conf, "preempt", "spot") || is_set_to(conf, "preempt", "all"))
		return 0;
	return err_set(err, ERR_CONFIG, "%s: preempt = \"%s\": must be \"spot\" or \"all\"",
		       section_where(conf, "preempt"), section_text(conf, "preempt"));
}

/* Reads "L4=0.80". -1: not a GPU that burst knows with a price. */
static int read_card(const char *text, struct card *card)
{
	const char *equals = strchr(text, '=');
	char name[GPU_MAX];
	int count;

	if (!equals || (size_t)(equals - text) >= sizeof(name) ||
	    money_parse(equals + 1, &card->price_microusd_h, NULL) < 0)
		return -1;
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	const struct gpu *known =
		gpu_parse(name, card->gpu, sizeof(card->gpu), &count) && count == 1 ? gpu_find(name)
										    : NULL;
	card->vram_gb = known ? known->vram_gb : 0;
	return known ? 0 : -1;
}

static int read_cards(const struct section *conf, struct card *cards, size_t *count,
		      struct err *err)
{
	size_t n = section_count(conf, "gpu_prices");

	if (n > CARDS_MOST)
		return err_set(err, ERR_CONFIG, "%s: gpu_prices has %zu GPUs: at most %d",
			       section_where(conf, "gpu_prices"), n, CARDS_MOST);
	for (size_t i = 0; i < n; i++)
		if (read_card(section_item(conf, "gpu_prices", i), &cards[i]) < 0)
			return err_set(err, ERR_CONFIG,
				       "%s: gpu_prices: \"%.40s\" must be a GPU that burst knows "
				       "and dollars an hour, as \"L4=0.80\"",
				       section_where(conf, "gpu_prices"),
				       section_item(conf, "gpu_prices", i));
	*count = n;
	return 0;
}

static int rehearsal_check_conf(const struct section *conf, struct mistakes *m, struct err *err)
{
	struct card cards[CARDS_MOST];
	size_t count;

	if (local->check_conf(conf, m, err) < 0)
		return -1;
	if (check_preempt(conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	if (read_cards(conf, cards, &count, err) < 0 && mistakes_note(m, NULL, err) < 0)
		return -1;
	return 0;
}

static int rehearsal_open(struct provider **out, const struct section *conf, const char *state_dir,
			  struct err *err)
{
	if (rehearsal_check_conf(conf, NULL, err) < 0)
		return -1;
	struct provider *p = xcalloc(1, sizeof(*p));
	/* pods of its own, so that it can be used beside the local provider */
	p->state_dir = QUEUES ? xasprintf("%s/queue_play", state_dir) : xstrdup(state_dir);
	if (QUEUES)
		(void)mkdir(p->state_dir, 0700);
	if (local->open(&p->local, conf, p->state_dir, err) < 0) {
		free(p->state_dir);
		free(p);
		return -1;
	}
	p->conf = conf;
	(void)read_cards(conf, p->cards, &p->card_count, NULL);
	*out = p;
	return 0;
}

static void rehearsal_close(struct provider *p)
{
	if (!p)
		return;
	local->close(p->local);
	free(p->state_dir);
	free(p);
}

static const char *rehearsal_account(const struct provider *p)
{
	return local->account(p->local);
}

static bool rehearsal_pods_are_free(const struct provider *p)
{
	return !section_bool(p->conf, "storage");
}

/* ---- wishes ---- */

/* Index of the first wish that this GPU fulfils, 0 without wishes; -1: none. */
static int index_of_wish(const char *gpu, const char *const *wishes)
{
	char name[GPU_MAX];
	int count;

	for (int i = 0; wishes && wishes[i]; i++)
		if (!strcasecmp(wishes[i], "none") ||
		    (gpu_parse(wishes[i], name, sizeof(name), &count) && count == 1 &&
		     (gpu_satisfies(name, gpu) || !strcmp(name, gpu))))
			return i;
	return wishes && wishes[0] ? -1 : 0;
}

/* The wishes as the local provider gets them: it has no spot pods, and none of the cards. */
static struct op_want plain_wishes(const struct op_want *want, size_t card_count)
{
	struct op_want plain = *want;

	plain.offers.spot = false;
	if (card_count) {
		plain.offers.gpus = NULL;
		plain.offers.vram_gb = 0;
	}
	return plain;
}

/* Whether the cards fulfil a wish and have the memory that is wanted. */
static int check_cards(const struct card *cards, size_t count, const struct op_want *want,
		       struct mistakes *m, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *const *wishes = want->offers.gpus;
	int most_gb = 0, fulfilled = -1;

	for (size_t i = 0; i < count; i++) {
		most_gb = MAX(most_gb, cards[i].vram_gb);
		fulfilled = MAX(fulfilled, index_of_wish(cards[i].gpu, wishes));
	}
	for (size_t i = 0; fulfilled < 0 && wishes[i] && i < WISHES_SHOWN; i++)
		str_addf(&shown, "%s\"%.40s\"", i ? ", " : "", wishes[i]);
	if (fulfilled < 0) {
		err_set(err, ERR_CONFIG, "gpu = [%s]: none of these is in gpu_prices",
			str_text(&shown));
		err_about(err, "gpu");
		if (mistakes_note(m, NULL, err) < 0)
			return -1;
	}
	if (most_gb >= want->offers.vram_gb)
		return 0;
	err_set(err, ERR_CONFIG,
		"the job needs a GPU with %d GB of memory, and the largest of gpu_prices has %d GB",
		want->offers.vram_gb, most_gb);
	err_about(err, "job.vram_gb");
	return mistakes_note(m, NULL, err);
}

static int rehearsal_check_wishes(const struct section *conf, const struct op_want *want,
				  struct mistakes *m, struct err *err)
{
	struct card cards[CARDS_MOST];
	size_t count = 0;

	(void)read_cards(conf, cards, &count, NULL);
	struct op_want plain = plain_wishes(want, count);
	if (count && check_cards(cards, count, want, m, err) < 0)
		return -1;
	if (want->offers.spot && !section_has(conf, "spot_price_per_hour")) {
		err_set(err, ERR_CONFIG,
			"spot = true: there are no spot pods without spot_price_per_hour");
		err_about(err, "spot");
		if (mistakes_note(m, NULL, err) < 0)
			return -1;
	}
	return local->check_wishes(conf, &plain, m, err);
}

/* ---- what goes in ---- */

static int64_t queue_ms(const struct provider *p)
{
	return QUEUES ? section_int(p->conf, "queue") : 0;
}

/* The start script with a delay, and an end by TAKEN_AWAY if that is wished. A new string. */
static char *rehearsed_script(const struct provider *p, const struct rent_request *rent)
{
	int64_t boot_ms = queue_ms(p) + section_int(p->conf, "boot_delay"),
		after_ms = section_int(p->conf, "preempt_after");
	bool mortal = after_ms && (rent->offer.spot || is_set_to(p->conf, "preempt", "all"));
	CLEANUP(free_text)
	char *boot = boot_ms ? xasprintf("[ -n \"$REHEARSED\" ] || sleep %lld.%03lld\n",
					 (long long)(boot_ms / 1000), (long long)(boot_ms % 1000))
			     : xstrdup("");
	CLEANUP(free_text)
	char *end = mortal ? xasprintf("if [ -z \"$REHEARSED\" ]; then\n"
				       "\ttrap 'exit %d' USR2\n"
				       "\t(sleep %lld.%03lld; kill -USR2 $$) &\n"
				       "\tREHEARSED=1 sh \"$0\" &\n"
				       "\twait $!\n"
				       "\texit\n"
				       "fi\n"
				       "unset REHEARSED\n",
				       TAKEN_AWAY, (long long)(after_ms / 1000),
				       (long long)(after_ms % 1000))
			   : xstrdup("");

	return xasprintf("%s%s%s", boot, end, rent->start_script);
}

static struct op *rehearsal_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.provider = p, .kind = kind, .asked = want};
	if (kind == OP_OFFERS)
		op->want = plain_wishes(want, p->card_count);
	else if (want)
		op->want = *want;
	if (kind == OP_RENT)
		op->want.rent.start_script = op->script = rehearsed_script(p, &want->rent);
	op->local = local->begin(p->local, kind, want ? &op->want : NULL);
	return op;
}

static void rehearsal_op_free(struct op *op)
{
	if (!op)
		return;
	local->op_free(op->local);
	free(op->script);
	free(op);
}

/* Counts in a file how often what this key bounds was done. 0: often enough; else which time it is.
 */
static long long count_once_more(const struct provider *p, const char *key)
{
	CLEANUP(free_text) char *path = xasprintf("%s/%s", p->state_dir, key);
	long long wanted = section_int(p->conf, key), done = 0;

	if (!wanted)
		return 0;
	CLEANUP(file_close) FILE *count = fopen(path, "a+e");
	if (!count || (fscanf(count, "%lld", &done), done >= wanted))
		return 0;
	if (ftruncate(fileno(count), 0) < 0 || fprintf(count, "%lld\n", done + 1) < 0)
		return 0;
	return done + 1;
}

/* True, with *err: one of the first fail_rents rents. */
static bool fails_on_purpose(const struct provider *p, struct err *err)
{
	long long nth = count_once_more(p, "fail_rents");

	if (nth)
		err_set(err, ERR_NO_CAPACITY, "no capacity, as fail_rents says (%lld of %lld)", nth,
			(long long)section_int(p->conf, "fail_rents"));
	return nth > 0;
}

/* Where a name works once: the create of a name that has been used answers with its pod, and the
 * reply to one of the first lose_creates is lost. */
static enum op_next end_rent(struct op *op, enum op_next step, struct op_result *result,
			     struct err *err)
{
	if (step == OP_FAILED && err->kind == ERR_REFUSED && !op->refused.kind) {
		op->refused = *err;
		snprintf(op->want.id, sizeof(op->want.id), "local-%s",
			 op->asked->rent.marker.attempt);
		local->op_free(op->local);
		op->local = local->begin(op->provider->local, OP_INSPECT, &op->want);
		*err = (struct err){0};
		return OP_WAIT;
	}
	if (op->refused.kind && (step == OP_FAILED || (step == OP_DONE && !result->pod_count))) {
		*err = op->refused;
		return OP_FAILED;
	}
	if (step != OP_DONE || !count_once_more(op->provider, "lose_creates"))
		return step;
	op_result_free(result);
	err_set(err, ERR_AMBIGUOUS, "no reply, as lose_creates says");
	return OP_FAILED;
}

/* ---- what comes out ---- */

/* Shows the pod in the queue, or when it left that. Its start script sleeps as long. */
static void pretend_queue(const struct provider *p, struct pod_view *view)
{
	int64_t starts_s = view->created_at_s + queue_ms(p) / 1000;

	if ((view->ended_at_s ? view->ended_at_s : clock_wall_ms() / 1000) >= starts_s) {
		view->started_at_s = starts_s;
		return;
	}
	view->started_at_s = 0;
	view->port = 0;
	if (view->state == POD_STATE_GONE)
		view->end = POD_END_QUEUED;
	else
		view->state = POD_STATE_QUEUED;
}

/* Shows the pod as preempted, or as still booting, where the keys say so. */
static void pretend_pod_state(const struct provider *p, struct pod_view *view)
{
	int64_t up_ms =
		view->created_at_s * 1000 + queue_ms(p) + section_int(p->conf, "boot_delay");
	char taken[60];

	snprintf(taken, sizeof(taken), "the start script ended with code %d", TAKEN_AWAY);
	if (!strcmp(view->detail, taken)) {
		view->preempted = true;
		COPY_TEXT(view->detail, "preempted");
	}
	if (view->state == POD_STATE_RUNNING && clock_wall_ms() < up_ms) {
		view->state = POD_STATE_CREATING;
		view->port = 0;
		view->started_at_s = 0;
	}
	if (QUEUES)
		pretend_queue(p, view);
	if (view->port && section_count(p->conf, "carrier"))
		view->reach = REACH_DIAL;
}

static int rehearsal_dial(const struct provider *p, const struct pod_view *pod, struct call *call,
			  struct err *err)
{
	CLEANUP(free_text) char *port = xasprintf("%d", pod->port);

	(void)err;
	for (size_t i = 0; i < section_count(p->conf, "carrier"); i++)
		call_arg(call, section_item(p->conf, "carrier", i));
	call_arg(call, pod->host);
	call_arg(call, port);
	return 0;
}

/* Replaces the local provider's one offer by one for each wanted card. */
static void replace_offer_by_cards(const struct op *op, struct op_result *result)
{
	const struct provider *p = op->provider;
	const struct op_want *want = op->asked;
	struct offer *all = xcalloc(p->card_count + 1, sizeof(*all));
	size_t count = 0;

	result->floor_microusd_h = INT64_MAX;
	for (size_t k = 0; k < p->card_count; k++) {
		const struct card *card = &p->cards[k];
		int wish = index_of_wish(card->gpu, want->offers.gpus);
		if (wish < 0)
			continue;
		result->floor_microusd_h = MIN(result->floor_microusd_h, card->price_microusd_h);
		if (!result->offer_count || card->vram_gb < want->offers.vram_gb)
			continue;
		struct offer *offer = &all[count++];
		*offer = result->offers[0];
		COPY_TEXT(offer->gpu, card->gpu);
		offer->gpus = 1;
		offer->vram_gb = card->vram_gb;
		offer->price_microusd_h = card->price_microusd_h;
		offer->wish = wish;
	}
	free(result->offers);
	result->offers = all;
	result->offer_count = count;
}

/* Adds a spot offer before the only offer. */
static void add_spot_offer(const struct provider *p, struct op_result *result)
{
	int64_t price = section_int(p->conf, "spot_price_per_hour");

	result->floor_microusd_h = MIN(result->floor_microusd_h, price);
	if (!result->offer_count)
		return;
	result->offers = xrealloc(result->offers, 2 * sizeof(*result->offers));
	result->offers[1] = result->offers[0];
	result->offers[0].spot = true;
	result->offers[0].price_microusd_h = price;
	COPY_TEXT(result->offers[0].id, "spot");
	result->offer_count = 2;
}

/* The local provider bills from the create. */
static void leave_out_queue(const struct provider *p, struct op_bill *bill)
{
	int64_t left_ms = MAX(bill->billed_ms - queue_ms(p), 0);

	if (bill->billed_ms)
		bill->cost_microusd = bill->cost_microusd * left_ms / bill->billed_ms;
	bill->billed_ms = left_ms;
}

/* Changes the local provider's result to what this provider pretends. */
static void change_result(const struct op *op, struct op_result *result)
{
	const struct provider *p = op->provider;

	for (size_t i = 0; i < result->pod_count; i++)
		pretend_pod_state(p, &result->pods[i]);
	for (size_t i = 0; i < result->volume_count; i++)
		COPY_TEXT(result->volumes[i].provider, burst_provider.name);
	if (op->kind == OP_BILLING)
		leave_out_queue(p, &result->billing);
	if (op->kind != OP_OFFERS)
		return;
	if (p->card_count)
		replace_offer_by_cards(op, result);
	else if (op->asked->offers.spot && section_has(p->conf, "spot_price_per_hour"))
		add_spot_offer(p, result);
	for (size_t i = 0; i < result->offer_count; i++) {
		COPY_TEXT(result->offers[i].provider, burst_provider.name);
		COPY_TEXT(result->offers[i].region, section_text(p->conf, "region"));
	}
}

static enum op_next rehearsal_next(struct op *op, const struct reply *reply, struct call *call,
				   int64_t *wait_ms, struct op_result *result, struct err *err)
{
	if (op->kind == OP_RELEASE && !op->begun &&
	    section_int(op->provider->conf, "release_delay")) {
		op->begun = true;
		*wait_ms = section_int(op->provider->conf, "release_delay");
		return OP_WAIT;
	}
	if (!reply && op->kind == OP_RENT && fails_on_purpose(op->provider, err))
		return OP_FAILED;
	if (!reply && op->kind == OP_OFFERS &&
	    rehearsal_check_wishes(op->provider->conf, op->asked, NULL, err) < 0)
		return OP_FAILED;
	enum op_next step = local->next(op->local, reply, call, wait_ms, result, err);
	if (QUEUES && op->kind == OP_RENT)
		step = end_rent(op, step, result, err);
	if (step == OP_DONE)
		change_result(op, result);
	return step;
}

struct provider_ops burst_provider = {
	.abi = PROVIDER_ABI,
	.name = QUEUES ? "queue_play" : "local_play",
	.summary = QUEUES ? "pods on this machine that wait for free in a pretended queue"
			  : "pods on this machine that pretend to be late, sold out or another GPU",
	.waits_free = QUEUES,
	.create_once = QUEUES,
	.options = options,
	.open = rehearsal_open,
	.close = rehearsal_close,
	.account = rehearsal_account,
	.begin = rehearsal_begin,
	.next = rehearsal_next,
	.op_free = rehearsal_op_free,
	.pods_are_free = QUEUES ? NULL : rehearsal_pods_are_free,
	.dial = rehearsal_dial,
	.check_conf = rehearsal_check_conf,
	.check_wishes = rehearsal_check_wishes,
};

/* Runs when the object is loaded. */
__attribute__((constructor)) static void copy_settings_of_local(void)
{
	size_t count = 0;

	local = provider_find("local");
	burst_provider.end_script = local->end_script;
	burst_provider.shares_machine = local->shares_machine;
	burst_provider.can_stage = local->can_stage;
	burst_provider.can_fetch = local->can_fetch;
	burst_provider.can_tidy = local->can_tidy;
	for (; local->options[count].key; count++)
		options[count] = local->options[count];
	memcpy(options + count, own_options, sizeof(own_options));
}
