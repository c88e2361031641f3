/* calibrate_measure.c - measures GPUs one after the other, and reads the results from the ledger.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "calibrate.h"
#include "cmd/show/output.h"

static int by_size(const void *a, const void *b)
{
	const struct batch_row *x = a, *y = b;

	if (x->segments != y->segments)
		return x->segments - y->segments;
	return (x->took_ms > y->took_ms) - (x->took_ms < y->took_ms);
}

static void read_points(struct store *store, struct calibrate_card *c)
{
	struct batch_row *rows = NULL;
	size_t count = 0, first = 0;

	if (store_batches(store, c->run, &rows, &count, NULL) < 0)
		return;
	/* the first one warmed up the worker */
	first = count > 1 && rows[0].segments == 1 && rows[1].segments == 1;
	qsort(rows + first, count - first, sizeof(*rows), by_size);
	for (size_t at = first, n; at < count && c->point_count < CALIBRATE_SIZES_MOST; at += n) {
		struct calibrate_point *p = &c->points[c->point_count++];
		double predicted = 0;
		for (n = 0; at + n < count && rows[at + n].segments == rows[at].segments; n++)
			predicted += speed_batch_s(&c->before.machine.speed, rows[at + n].longest,
						   rows[at + n].sum);
		*p = (struct calibrate_point){.size = rows[at].segments,
					      .count = (int)n,
					      .seconds = (double)rows[at + n / 2].took_ms / 1000,
					      .predicted_s =
						      c->before.known ? predicted / (double)n : 0};
	}
	free(rows);
}

static void read_cold(struct store *store, struct calibrate_card *c)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(store, c->run, false, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (pods[i].ready_ms > pods[i].create_ms)
			c->cold_s = (double)(pods[i].ready_ms - pods[i].create_ms) / 1000;
	free(pods);
}

/* Whether money is left for more than a boot. */
static bool is_affordable(struct calibrate_card *c, int64_t left_microusd)
{
	char left[32], need[32];

	if ((double)left_microusd > calibrate_cold_usd(c) * 1e6)
		return true;
	c->status = err_exit_status(&(struct err){.kind = ERR_CAP});
	snprintf(c->why, sizeof(c->why),
		 "%s of --max-cost is left, but booting alone costs about %s",
		 money_show(left, sizeof(left), left_microusd),
		 money_show(need, sizeof(need), (int64_t)(calibrate_cold_usd(c) * 1e6)));
	return false;
}

/* Returns -1 with *err if it did not begin. */
static int measure(struct launch *l, struct calibrate_card *c, int64_t left_microusd,
		   struct err *err)
{
	if (!l->ctx->quiet)
		output_line(stderr, "calibrate: %s at %s", c->gpu, c->offer.provider);
	/* another GPU may have been measured meanwhile */
	calibrate_view_card(l, &c->offer, &c->before, err);
	c->status = calibrate_rent(l, c, left_microusd, err);
	return c->status < 0 ? -1 : 0;
}

static void read_result(struct launch *l, struct calibrate_card *c)
{
	struct err ignored = {0};

	read_points(l->ctx->store, c);
	read_cold(l->ctx->store, c);
	calibrate_view_card(l, &c->offer, &c->after, &ignored);
}

/* Whether to stop: something may still bill, or the user interrupted. */
static bool is_last(const struct calibrate_card *c)
{
	return c->status > 128 || c->status == 9;
}

int calibrate_measure(struct launch *l, struct calibrate_card *cards, size_t count,
		      int64_t most_microusd, struct err *err)
{
	int64_t left = most_microusd;
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		struct calibrate_card *c = &cards[i];
		struct err why = {0};
		if (!c->why[0] && is_affordable(c, left) && measure(l, c, left, &why) < 0) {
			if (count == 1) {
				*err = why;
				return -1;
			}
			c->status = err_exit_status(&why);
			COPY_TEXT(c->why, why.msg);
		}
		status = err_status_rank(c->status) > err_status_rank(status) ? c->status : status;
		left = MAX(left - c->cost_microusd, 0);
		if (c->had)
			read_result(l, c);
		if (c->why[0])
			log_line(LOG_WARN, "%s: %s%s", c->gpu, c->why,
				 i + 1 < count && c->status < 128 && c->status != 9
					 ? "; continuing with the next"
					 : "");
		if (is_last(c))
			break;
	}
	return status;
}
