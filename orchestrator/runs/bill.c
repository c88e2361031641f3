/* bill.c - compares our count of a pod's cost with its vendor's bill and explains the difference.
 */
#include "bill.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/pod_cost.h"

enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 60 * MINUTE_MS,
	DAY_MS = 24 * HOUR_MS
};
enum {
	/* after the end of an hour: vendors charge accounts every 5 minutes */
	LAG_MS = 15 * MINUTE_MS,
	/* how late a start may be seen, or how far a vendor's clock may be off */
	START_OFF_MS = 5000,
	CALL_MOST_MS = 10 * SECOND_MS, /* of a call: a longer one was found later, or repeated */
	GONE_OFF_MS = 2 * MINUTE_MS,
	CENT_MICROUSD = 10000,
	GRAIN_MICROUSD = 100, /* dollars have at least four decimals */
};

const char *bill_state_name(enum bill_state state)
{
	switch (state) {
	case BILL_NOT_YET: return "not_yet";
	case BILL_AGREES: return "agrees";
	case BILL_EXPLAINED: return "explained";
	case BILL_EXCESS: return "excess";
	}
	return "";
}

/* ---- times ---- */

static int64_t round_up(int64_t ms, int64_t to)
{
	return (ms + to - 1) / to * to;
}

static int64_t released_ms(const struct pod_row *pod)
{
	return pod->released_ms > 0 ? pod->released_ms : pod->gone_ms;
}

/* When the bill should include the whole hour of the release. */
static int64_t complete_ms(const struct pod_row *pod)
{
	return round_up(released_ms(pod) + 1, HOUR_MS) + LAG_MS;
}

static int64_t started_ms(const struct pod_row *pod)
{
	return pod->vendor_started_ms > 0 ? pod->vendor_started_ms : pod->running_ms;
}

/* "14:15 UTC", with the day if it is another one. */
static char *minute_show(char *to, size_t room, int64_t at_ms, int64_t now_ms)
{
	char at[32], now[32];

	clock_rfc3339(at, sizeof(at), at_ms);
	clock_rfc3339(now, sizeof(now), now_ms);
	if (strncmp(at, now, 10))
		snprintf(to, room, "%.10s %.5s UTC", at, at + 11);
	else
		snprintf(to, room, "%.5s UTC", at + 11);
	return to;
}

bool bill_is_known(const struct pod_row *pod)
{
	return pod->billed_vendor_ms > 0 || pod->cost_vendor_microusd > 0 || pod->vendor_reported;
}

bool bill_has_dollars(const struct pod_row *pod)
{
	return bill_is_known(pod) &&
	       (pod->cost_vendor_microusd > 0 || !pod->billed_vendor_ms || !pod->price_microusd_h);
}

bool bill_is_final(const struct pod_row *pod)
{
	return bill_is_known(pod) && pod->vendor_asked_ms >= released_ms(pod) + DAY_MS;
}

int64_t bill_ours_between(const struct pod_row *pod, int64_t start_s, int64_t end_s)
{
	int64_t from = MAX(pod->create_ms, start_s * 1000);
	int64_t until = MIN(pod->create_ms + pod->billed_ms, end_s * 1000);

	return until > from ? money_for(pod->price_microusd_h, until - from) : 0;
}

/* ---- a pod that several runs held ---- */

struct pod_row bill_whole(const struct pod_row *shares, size_t count)
{
	struct pod_row whole = shares[count - 1];

	if (count == 1)
		return whole;
	whole.create_ms = shares[0].create_ms;
	whole.rented_ms = shares[0].rented_ms;
	whole.running_ms = shares[0].running_ms;
	whole.vendor_started_ms = shares[0].vendor_started_ms;
	whole.billed_ms = whole.cost_microusd = 0;
	whole.billed_vendor_ms = whole.cost_vendor_microusd = whole.cost_beside_microusd = 0;
	for (size_t i = 0; i < count; i++) {
		whole.billed_vendor_ms += shares[i].billed_vendor_ms;
		whole.cost_vendor_microusd += shares[i].cost_vendor_microusd;
		whole.cost_beside_microusd += shares[i].cost_beside_microusd;
	}
	/* each share is rounded up by itself, but the vendor rounds once */
	pod_row_bill(&whole, released_ms(&whole));
	return whole;
}

/* The part of an amount that falls into [from, until) of `all` ms. Consecutive parts sum to the
 * amount. */
static int64_t part_of(int64_t amount, int64_t from, int64_t until, int64_t all)
{
	return (int64_t)((__int128)amount * until / all) - (int64_t)((__int128)amount * from / all);
}

void bill_split(const struct pod_row *whole, struct pod_row *shares, size_t count)
{
	int64_t all = 0, from = 0;

	for (size_t i = 0; i < count; i++)
		all += shares[i].billed_ms;
	all = MAX(all, INT64_C(1)); /* if the pod was never billed, the last run has all */
	for (size_t i = 0; i < count; i++) {
		struct pod_row *s = &shares[i];
		int64_t until = i + 1 < count ? from + s->billed_ms : all;
		s->billed_vendor_ms = part_of(whole->billed_vendor_ms, from, until, all);
		s->cost_vendor_microusd = part_of(whole->cost_vendor_microusd, from, until, all);
		s->cost_beside_microusd = part_of(whole->cost_beside_microusd, from, until, all);
		s->vendor_reported = whole->vendor_reported;
		s->vendor_asked_ms = whole->vendor_asked_ms;
		from = until;
	}
}

int64_t bill_hour_of(const struct pod_row *shares, size_t count, const struct pod_row *share,
		     const struct bill_hour *hour)
{
	int64_t before = 0, own = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t ours = bill_ours_between(&shares[i], hour->start_s, hour->end_s);
		before += &shares[i] < share ? ours : 0;
		own += &shares[i] == share ? ours : 0;
		all += ours;
	}
	if (!all) /* an hour in which no run held it belongs to the last one */
		return share == &shares[count - 1] ? hour->cost_microusd : 0;
	return part_of(hour->cost_microusd, before, before + own, all);
}

char *bill_money(char *to, size_t room, int64_t microusd)
{
	if (microusd <= 0 || microusd >= CENT_MICROUSD)
		return money_show(to, room, microusd);
	snprintf(to, room, "$0.%06d", (int)microusd);
	return to;
}

/* ---- the difference ---- */

struct bill_view {
	const struct pod_row *pod;
	const struct op_bill *told;
	int64_t now_ms;
	struct str *why;
	struct bill_verdict *out;
};

static void clause(struct bill_view *l, const char *fmt, ...) PRINTF(2, 3);
static void clause(struct bill_view *l, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_addf(l->why, "%s%s", l->why->len ? "; " : "", text);
}

static void schedule_query(struct bill_view *l, const char *because)
{
	int64_t at = complete_ms(l->pod);
	char when[40];

	if (at <= l->now_ms)
		at = l->now_ms + HOUR_MS;
	l->out->ask_again_ms = round_up(at, MINUTE_MS);
	clause(l, "%s: ask again after %s", because,
	       minute_show(when, sizeof(when), l->out->ask_again_ms, l->now_ms));
}

/* An hour's dollars are rounded, and a vendor's first and last moments differ from ours. */
static int64_t tolerance_ms(const struct bill_view *l)
{
	int64_t ms = SECOND_MS + l->pod->billed_ms / 100;

	if (!l->pod->vendor_reported && l->pod->price_microusd_h > 0)
		ms += GRAIN_MICROUSD * (int64_t)MAX(l->told->hour_count, (size_t)1) * HOUR_MS /
		      l->pod->price_microusd_h;
	return ms;
}

static int64_t lived_ms(const struct pod_row *pod)
{
	return MAX(pod->gone_ms - pod->create_ms, pod->billed_ms);
}

/* Returns whether the bill has this fault, and adds the sentence on it. So does
 * billed_too_long(). */
static bool billed_after_its_end(struct bill_view *l)
{
	for (size_t i = 0; i < l->told->hour_count; i++) {
		const struct bill_hour *h = &l->told->hours[i];
		char money[32], hour[40], gone[40];
		if (h->cost_microusd <= 0 || h->start_s * 1000 < l->pod->gone_ms + GONE_OFF_MS)
			continue;
		clause(l,
		       "%s is billed for the hour from %s, but the pod was confirmed gone at "
		       "%s",
		       bill_money(money, sizeof(money), h->cost_microusd),
		       minute_show(hour, sizeof(hour), h->start_s * 1000, l->now_ms),
		       minute_show(gone, sizeof(gone), l->pod->gone_ms, l->now_ms));
		return true;
	}
	return false;
}

static bool billed_too_long(struct bill_view *l)
{
	const struct pod_row *pod = l->pod;
	char billed[32], lived[32], price[32];

	if (pod->billed_vendor_ms <= round_up(lived_ms(pod), MINUTE_MS) + tolerance_ms(l))
		return false;
	clause(l, "billed for %s at %s per hour, but from create to gone the pod lived %s",
	       duration_show(billed, sizeof(billed), pod->billed_vendor_ms),
	       money_show(price, sizeof(price), pod->price_microusd_h),
	       duration_show(lived, sizeof(lived), lived_ms(pod)));
	return true;
}

/* Only if the vendor reports the time: implied seconds match the cost by definition. */
static bool billed_too_much(struct bill_view *l)
{
	const struct pod_row *pod = l->pod;
	int64_t dollars = pod->cost_vendor_microusd - pod->cost_beside_microusd;
	int64_t fair = money_for(pod->price_microusd_h, pod->billed_vendor_ms);
	char more[32], price[32];

	if (!pod->vendor_reported || !pod->price_microusd_h ||
	    dollars <= fair + fair / 100 + money_for(pod->price_microusd_h, SECOND_MS) +
			       GRAIN_MICROUSD)
		return false;
	clause(l, "%s more than its seconds cost at %s per hour",
	       bill_money(more, sizeof(more), dollars - fair),
	       money_show(price, sizeof(price), pod->price_microusd_h));
	return true;
}

static void explain_longer(struct bill_view *l)
{
	const struct pod_row *pod = l->pod;
	char text[32];

	if (pod->billed_vendor_ms <= lived_ms(pod) + tolerance_ms(l))
		clause(l,
		       "the vendor bills until the pod is gone, %s after it accepted the release",
		       duration_show(text, sizeof(text), pod->gone_ms - released_ms(pod)));
	else
		clause(l, "the vendor rounds up to the minute");
}

static void explain_shorter(struct bill_view *l)
{
	const struct pod_row *pod = l->pod;
	int64_t missing = pod->billed_ms - pod->billed_vendor_ms,
		queue = started_ms(pod) - pod->create_ms;
	int64_t off = tolerance_ms(l) + START_OFF_MS;
	char text[32];

	if (started_ms(pod) > 0 && queue > 0 && missing >= queue - off && missing <= queue + off)
		clause(l, "the vendor bills from the container's start, %s after the create call",
		       duration_show(text, sizeof(text), queue));
	else if (l->out->final || pod->vendor_reported)
		clause(l, "the vendor bills %s less than burst counted",
		       duration_show(text, sizeof(text), missing));
	else if (l->now_ms >= complete_ms(pod))
		schedule_query(l, "the vendor bills less than burst counted; its record may be "
				  "incomplete");
	else
		clause(l, "only part of it is billed so far");
}

/* We count from before the create call to after the release; the vendor's own moments lie between.
 */
static int64_t within_calls_ms(const struct pod_row *pod)
{
	int64_t most = CALL_MOST_MS, none = 0;
	int64_t create = pod->rented_ms - pod->create_ms,
		release = pod->released_ms - pod->release_ms;

	return MIN(MAX(create, none), most) + MIN(MAX(release, none), most);
}

static void explain_time(struct bill_view *l)
{
	const struct pod_row *pod = l->pod;
	int64_t more = pod->billed_vendor_ms - pod->billed_ms;

	l->out->state = BILL_EXPLAINED;
	if (!pod->billed_vendor_ms && pod->vendor_reported && !pod->cost_vendor_microusd) {
		clause(l, "it never ran; nothing is billed");
	} else if (!pod->billed_vendor_ms) {
		clause(l, "its price is unknown, so the cost implies no seconds");
	} else if (more > tolerance_ms(l)) {
		explain_longer(l);
	} else if (-more > tolerance_ms(l) + within_calls_ms(pod)) {
		explain_shorter(l);
	} else {
		l->out->state = BILL_AGREES;
		clause(l, "agrees");
	}
}

static void judge_known(struct bill_view *l)
{
	char money[32];
	const char *what = l->told->beside_for;

	if (billed_after_its_end(l) || billed_too_long(l) || billed_too_much(l)) {
		l->out->state = BILL_EXCESS;
		return;
	}
	explain_time(l);
	if (l->pod->cost_beside_microusd > 0)
		clause(l, "%s of it is %s%s%sbilled beside the price",
		       bill_money(money, sizeof(money), l->pod->cost_beside_microusd),
		       *what ? "for " : "", what, *what ? ", " : "");
	if (!bill_has_dollars(l->pod))
		clause(l, "the vendor reports no cost per pod");
	if (l->told->note[0])
		clause(l, "%s", l->told->note);
	if (l->told->hour_count && l->now_ms < complete_ms(l->pod))
		schedule_query(l, "its last hour is incomplete");
}

static void judge_unknown(struct bill_view *l)
{
	int64_t since = l->now_ms - released_ms(l->pod);
	char text[32];

	l->out->state = BILL_NOT_YET;
	if (since < DAY_MS)
		schedule_query(l, "no record yet");
	else
		clause(l, "no record %s after its release: check the vendor's console",
		       duration_show(text, sizeof(text), since));
}

void bill_judge(const struct pod_row *pod, const struct op_bill *told, struct bill_verdict *out)
{
	static const struct op_bill nothing;
	CLEANUP(str_free) struct str why = STR_INIT;
	struct bill_view l = {pod, told ? told : &nothing, pod->vendor_asked_ms, &why, out};

	*out = (struct bill_verdict){.final = bill_is_final(pod)};
	if (bill_is_known(pod))
		judge_known(&l);
	else
		judge_unknown(&l);
	COPY_TEXT(out->why, str_text(&why));
}
