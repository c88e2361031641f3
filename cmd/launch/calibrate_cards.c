/* calibrate_cards.c - chooses the GPUs to measure and their expected results. */
#include <stdlib.h>

#include "base/gpus.h"
#include "base/err.h"
#include "calibrate.h"
#include "wanted.h"

enum {
	CHEAPEST = 3,       /* GPUs to measure if the user names none */
	UNKNOWN_BATCH = 32, /* largest batch for an engine without known limits */
};

static int add_offers(struct launch *l, int provider, struct wanted *all, struct err *err)
{
	struct op_result result = {0};

	if (launch_fetch_offers(l, provider, true, LAUNCH_ASK_MS, &result, err) < 0)
		return -1;
	wanted_add(l, all, result.offers, result.offer_count);
	op_result_free(&result);
	return 0;
}

static int gather_offers(struct launch *l, struct wanted *all, struct err *err)
{
	int failed = 0;

	for (int i = 0; i < l->run.setup.provider_count; i++) {
		if (add_offers(l, i, all, err) == 0)
			continue;
		if (err->kind != ERR_NO_CAPACITY && ++failed == l->run.setup.provider_count)
			return err_wrap(err, "%s", l->run.setup.providers[i].ops->name);
		log_line(LOG_WARN, "%s: %s", l->run.setup.providers[i].ops->name, err->msg);
		err_clear(err);
	}
	wanted_end(all);
	return 0;
}

static int by_price(const void *a, const void *b)
{
	const struct offer *x = a, *y = b;

	return (x->price_microusd_h > y->price_microusd_h) -
	       (x->price_microusd_h < y->price_microusd_h);
}

static void name_card(struct calibrate_card *c, const struct offer *o)
{
	c->offer = *o;
	snprintf(c->gpu, sizeof(c->gpu), o->gpus > 1 ? "%s:%d" : "%s", o->gpu, o->gpus);
}

/* The cheapest offer for each GPU that the user names, in that order. */
static size_t cards_named(struct calibrate_card *cards, const char *const *gpus,
			  const struct offer *offers, size_t count)
{
	size_t n = 0;

	for (int wish = 0; gpus[wish] && n < CALIBRATE_CARDS_MOST; wish++) {
		struct calibrate_card *c = &cards[n++];
		COPY_TEXT(c->gpu, gpus[wish]);
		COPY_TEXT(c->why, "no provider offers it now");
		c->status = err_exit_status(&(struct err){.kind = ERR_NO_CAPACITY});
		for (size_t i = 0; i < count && c->why[0]; i++)
			if (offers[i].wish == wish) {
				name_card(c, &offers[i]);
				c->why[0] = '\0';
				c->status = 0;
			}
	}
	return n;
}

/* The cheapest GPUs that fit the job; one pod if it needs no GPU. */
static size_t cards_cheapest(struct calibrate_card *cards, const struct job_needs *needs,
			     const struct offer *offers, size_t count)
{
	size_t n = 0, most = needs->gpu ? CHEAPEST : 1;

	for (size_t i = 0; i < count && n < most; i++) {
		bool known = needs->gpu && gpu_is_none(offers[i].gpu);
		for (size_t k = 0; k < n; k++)
			known |= !strcmp(cards[k].offer.gpu, offers[i].gpu);
		if (!known)
			name_card(&cards[n++], &offers[i]);
	}
	return n;
}

int calibrate_view_card(struct launch *l, const struct offer *offer, struct calibrate_view *out,
			struct err *err)
{
	struct estimate e;
	struct plan pick;
	int status = estimate_make(&e, l, offer, 1, err);

	*out = (struct calibrate_view){0};
	if (status == 0) {
		const struct plan_wish wish = {.goal = PLAN_COST,
					       .pods = 1,
					       .canary = e.wish.canary,
					       .failing_share = e.wish.failing_share};
		out->machine = e.machines[0];
		copy_text(out->from, sizeof(out->from), e.speed_from[0]);
		out->known = e.known && e.open &&
			     plan_choose(&pick, &e.work, e.machines, 1, &wish) != PLAN_NOTHING_FITS;
		out->usd_each = out->known ? pick.cost_usd / (double)e.open : 0;
	}
	estimate_free(&e);
	return status;
}

/* 1 to warm up, then 1, 2, 4 ... up to the largest. */
static void choose_sizes(struct calibrate_card *c, const struct job_needs *needs)
{
	int most = c->before.known
			   ? c->before.machine.batch_max
			   : MAX(needs->max_batch, needs->max_batch_is_cap ? 1 : UNKNOWN_BATCH);

	c->sizes[c->size_count++] = 1;
	for (int size = 1; c->size_count < CALIBRATE_SIZES_MOST; size = MIN(size * 2, most)) {
		c->sizes[c->size_count++] = size;
		if (size >= most)
			break;
	}
}

size_t calibrate_segments(const struct calibrate_card *c, const struct job_needs *needs)
{
	size_t sum = 0;

	for (size_t i = 0; i < c->size_count; i++)
		sum += (size_t)c->sizes[i];
	return sum * (size_t)MAX(needs->workers, 1);
}

double calibrate_cold_usd(const struct calibrate_card *c)
{
	return cold_p50_s(&c->before.machine.cold) * (double)c->offer.price_microusd_h / 1e6 / 3600;
}

static int expect(struct launch *l, struct calibrate_card *c, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	size_t count = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);
	double length = 0, seconds = 0;

	if (calibrate_view_card(l, &c->offer, &c->before, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		length += list[i].weight / (double)count;
	choose_sizes(c, needs);
	if (!c->before.known)
		return 0;
	for (size_t i = 0; i < c->size_count; i++)
		seconds += speed_batch_s(&c->before.machine.speed, length, length * c->sizes[i]);
	seconds += c->before.machine.tail_s + MAX(c->before.machine.release_s, 0.0);
	c->about_usd = calibrate_cold_usd(c) + seconds * c->before.machine.price_h / 3600;
	return 0;
}

int calibrate_choose_cards(struct launch *l, struct calibrate_card *cards, size_t *count,
			   struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	struct wanted wanted = {0};
	int status = gather_offers(l, &wanted, err);
	const char *const *gpus = l->order.gpus;

	if (status == 0 && wanted.count)
		qsort(wanted.list, wanted.count, sizeof(*wanted.list), by_price);
	if (status == 0)
		*count = gpus ? cards_named(cards, gpus, wanted.list, wanted.count)
			      : cards_cheapest(cards, needs, wanted.list, wanted.count);
	for (size_t i = 0; i < *count && status == 0; i++)
		status = cards[i].why[0] ? 0 : expect(l, &cards[i], err);
	wanted_free(&wanted);
	if (status == 0 && !*count)
		return err_set(err, ERR_NO_CAPACITY,
			       "no provider offers what the job needs now (see gpu, "
			       "caps.max_price_per_hour; `burst offers`)");
	return status;
}
