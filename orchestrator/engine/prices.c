/* prices.c - notes in the ledger what offers cost, and reads it. */
#include "prices.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/facts.h"

#define MINUTE_MS INT64_C(60000)

enum {
	FACT_ROOM = 4096,
	LOOKS_MOST = FACT_ROOM / 2, /* the shortest one is a digit and a space */
	APART_MIN = 60,
	KEPT_MIN = 35 * 24 * 60
};

struct look {
	int64_t minute; /* since 1970 */
	int64_t microusd_h;
	char stock[12]; /* letters; "": the vendor does not say */
};

static void kind_key(const struct offer *o, char hex[SHA256_HEX])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%d\n%s\n%d", o->gpu, MAX(o->gpus, 1), o->region, o->spot);

	sha256_hex(text, strlen(text), hex);
}

bool prices_is_same_kind(const struct offer *a, const struct offer *b)
{
	return !strcmp(a->provider, b->provider) && !strcmp(a->gpu, b->gpu) &&
	       MAX(a->gpus, 1) == MAX(b->gpus, 1) && !strcmp(a->region, b->region) &&
	       a->spot == b->spot;
}

/* ---- looks as text: "29812345=690000/high 60 61=650000": minutes since the look before, the price
 * and the stock if they changed ---- */

static void append_look(struct str *to, const struct look *l, const struct look *before)
{
	str_addf(to, "%s%lld", before ? " " : "",
		 (long long)(l->minute - (before ? before->minute : 0)));
	if (!before || l->microusd_h != before->microusd_h)
		str_addf(to, "=%lld", (long long)l->microusd_h);
	if (!before || strcmp(l->stock, before->stock) != 0)
		str_addf(to, "/%s", l->stock);
}

/* Reads the next look, which *text is moved behind. *l is the look before. Returns false at the
 * end, or at what is none. */
static bool read_look(const char **text, struct look *l)
{
	char *end;
	long long minutes = strtoll(*text, &end, 10);

	if (end == *text || minutes < 0 || minutes > EPOCH_MOST_S / 60)
		return false;
	l->minute += minutes;
	if (*end == '=')
		l->microusd_h = MIN(strtoll(end + 1, &end, 10), MONEY_MOST);
	if (*end == '/') {
		size_t len = strspn(end + 1, "abcdefghijklmnopqrstuvwxyz");
		snprintf(l->stock, sizeof(l->stock), "%.*s", (int)len, end + 1);
		end += 1 + len;
	}
	*text = end;
	return true;
}

static size_t read_looks(struct store *store, const struct offer *o, struct look *list)
{
	char key[SHA256_HEX], text[FACT_ROOM];
	struct look l = {0};
	size_t n = 0;

	kind_key(o, key);
	if (!fact_get(store, FACT_PRICES, o->provider, key, text, sizeof(text)))
		return 0;
	for (const char *at = text; n < LOOKS_MOST && read_look(&at, &l);)
		list[n++] = l;
	return n;
}

static void write_looks(struct str *to, const struct look *list, size_t count)
{
	str_reset(to);
	for (size_t i = 0; i < count; i++)
		append_look(to, &list[i], i ? &list[i - 1] : NULL);
}

/* Whether this look says what the last one does not. */
static bool is_news(const struct look *l, const struct look *last)
{
	return l->minute - last->minute >= APART_MIN ||
	       (l->minute > last->minute &&
		(l->microusd_h != last->microusd_h || strcmp(l->stock, last->stock) != 0));
}

static void note_kind(struct store *store, const struct offer *o, int64_t microusd_h,
		      int64_t minute)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct look *list = xcalloc(LOOKS_MOST + 1, sizeof(*list)),
		    now = {.minute = minute, .microusd_h = microusd_h};
	size_t n = read_looks(store, o, list), first = 0;
	char key[SHA256_HEX];

	snprintf(now.stock, sizeof(now.stock), "%.*s",
		 (int)strspn(o->stock, "abcdefghijklmnopqrstuvwxyz"), o->stock);
	while (n && list[n - 1].minute > minute) /* from a clock that was wrong */
		n--;
	if (!n || is_news(&now, &list[n - 1])) {
		list[n++] = now;
		while (list[first].minute < minute - KEPT_MIN)
			first++;
		for (write_looks(&text, list + first, n - first); text.len >= FACT_ROOM;
		     write_looks(&text, list + first, n - first))
			first += (n - first + 15) / 16;
		kind_key(o, key);
		fact_put(store, FACT_PRICES, o->provider, key, str_text(&text), NULL);
	}
	free(list);
}

/* The lowest price of the offer's kind; 0: an offer before it is of that kind, or it has no price.
 */
static int64_t price_of_kind(const struct offer *offers, size_t count, size_t at)
{
	int64_t lowest = offers[at].price_microusd_h;

	for (size_t i = 0; i < count; i++) {
		if (!prices_is_same_kind(&offers[i], &offers[at]) ||
		    offers[i].price_microusd_h <= 0)
			continue;
		if (i < at)
			return 0;
		lowest = MIN(lowest, offers[i].price_microusd_h);
	}
	return lowest;
}

void prices_note(struct store *store, const struct offer *offers, size_t count, int64_t wall_ms)
{
	if (!count || store_begin(store, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		int64_t price = price_of_kind(offers, count, i);
		if (price > 0)
			note_kind(store, &offers[i], price, wall_ms / MINUTE_MS);
	}
	store_commit(store, NULL);
}

struct forecast_price *prices_read(struct store *store, const struct offer *offer, size_t *count)
{
	struct look *list = xcalloc(LOOKS_MOST, sizeof(*list));
	struct forecast_price *out = NULL;

	*count = read_looks(store, offer, list);
	if (*count)
		out = xcalloc(*count, sizeof(*out));
	for (size_t i = 0; i < *count; i++) {
		int64_t at_ms = list[i].minute * MINUTE_MS;
		out[i] = (struct forecast_price){at_ms + clock_local_offset_ms(at_ms),
						 list[i].microusd_h};
	}
	free(list);
	return out;
}

#define HOUR_MS INT64_C(3600000)

static int compare_prices(const void *a, const void *b)
{
	const struct forecast_price *x = a, *y = b;
	int way = (x->local_ms > y->local_ms) - (x->local_ms < y->local_ms);

	return way ? way : (x->microusd_h > y->microusd_h) - (x->microusd_h < y->microusd_h);
}

/* Makes one look of those of each hour, with their mean. Returns how many are left. */
static size_t mean_by_hour(struct forecast_price *looks, size_t count)
{
	size_t n = 0, same = 0;

	for (size_t i = 0; i < count; i++) {
		struct forecast_price l = {looks[i].local_ms - looks[i].local_ms % HOUR_MS,
					   looks[i].microusd_h};
		if (n && looks[n - 1].local_ms == l.local_ms) {
			same++;
			looks[n - 1].microusd_h +=
				(l.microusd_h - looks[n - 1].microusd_h) / (int64_t)same;
		} else {
			looks[n++] = l;
			same = 1;
		}
	}
	return n;
}

struct forecast_price *prices_read_lowest(struct store *store, const struct offer *offers,
					  size_t offer_count, size_t *count)
{
	struct forecast_price *out = NULL;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < offer_count; i++) {
		size_t looks;
		struct forecast_price *list = prices_read(store, &offers[i], &looks);
		looks = mean_by_hour(list, looks);
		out = xrealloc(out, (n + looks + 1) * sizeof(*out));
		if (looks)
			memcpy(out + n, list, looks * sizeof(*list));
		n += looks;
		free(list);
	}
	if (n)
		qsort(out, n, sizeof(*out), compare_prices);
	for (size_t i = 0; i < n; i++)
		if (!kept || out[kept - 1].local_ms != out[i].local_ms)
			out[kept++] = out[i];
	*count = kept;
	return out;
}

bool prices_cheaper(struct forecast_cheaper *out, struct store *store, const struct offer *offer)
{
	size_t count;
	struct forecast_price *looks = prices_read(store, offer, &count);
	bool found = forecast_cheaper(out, looks, count, offer->price_microusd_h);

	free(looks);
	return found;
}
