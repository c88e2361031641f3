/* test_prices.c - what the ledger keeps of the prices of offers. */
#include "base/mem.h"
#include "engine/prices.h"
#include "store/facts.h"
#include "store_bed.h"

#define HOUR  INT64_C(3600000)
#define START (INT64_C(497000) * HOUR)

static struct offer offer_at(int64_t microusd_h, const char *region, const char *stock)
{
	struct offer o = {.provider = "runpod", .gpu = "RTX 4090", .gpus = 1};

	o.price_microusd_h = microusd_h;
	COPY_TEXT(o.region, region);
	COPY_TEXT(o.stock, stock);
	return o;
}

static void look_at(struct store *s, int64_t microusd_h, const char *stock, int64_t wall_ms)
{
	struct offer o = offer_at(microusd_h, "EU", stock);

	prices_note(s, &o, 1, wall_ms);
}

static size_t looks_at(struct store *s, const char *region, struct forecast_price *first,
		       struct forecast_price *last)
{
	struct offer o = offer_at(0, region, "");
	size_t count;
	struct forecast_price *list = prices_read(s, &o, &count);

	if (count) {
		*first = list[0];
		*last = list[count - 1];
	}
	free(list);
	return count;
}

static void only_news_is_noted(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct forecast_price first, last;

	assert_int_equal(looks_at(s, "EU", &first, &last), 0);
	look_at(s, 340000, "high", START);
	look_at(s, 340000, "high", START + 59 * 60000); /* the same within the hour */
	assert_int_equal(looks_at(s, "EU", &first, &last), 1);
	look_at(s, 340000, "high", START + HOUR);
	look_at(s, 340000, "low", START + HOUR + 60000);
	look_at(s, 310000, "low", START + HOUR + 120000);
	look_at(s, 0, "low", START + 3 * HOUR); /* no price is none */
	assert_int_equal(looks_at(s, "EU", &first, &last), 4);
	assert_int_equal(first.microusd_h, 340000);
	assert_int_equal(last.microusd_h, 310000);
	assert_int_equal(last.local_ms - first.local_ms, HOUR + 120000);
	look_at(s, 320000, "low", START - HOUR); /* the clock was wrong before */
	assert_int_equal(looks_at(s, "EU", &first, &last), 1);
	assert_int_equal(last.microusd_h, 320000);
}

static void the_lowest_of_each_kind(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct forecast_price first, last;
	struct offer list[] = {
		offer_at(350000, "EU", ""),
		offer_at(300000, "US", ""),
		offer_at(340000, "EU", ""),
		offer_at(0, "EU", ""),
	};

	list[1].spot = true;
	prices_note(s, list, ARRAY_LEN(list), START);
	assert_int_equal(looks_at(s, "EU", &first, &last), 1);
	assert_int_equal(first.microusd_h, 340000);
	assert_int_equal(looks_at(s, "US", &first, &last), 0);
}

static void old_looks_give_way(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct forecast_price first, last;

	for (int h = 0; h < 40 * 24; h++)
		look_at(s, 340000, "high", START + h * HOUR);
	assert_int_equal(looks_at(s, "EU", &first, &last), 35 * 24 + 1);
	assert_int_equal(last.local_ms - first.local_ms, 35 * 24 * HOUR);
	/* a price that changes at each look needs more room than a fact has */
	for (int i = 0; i < 500; i++)
		look_at(s, 340000 + i, "high", START + 40 * 24 * HOUR + i * 60000);
	size_t count = looks_at(s, "EU", &first, &last);
	assert_in_range(count, 250, 500);
	assert_int_equal(last.microusd_h, 340499);
}

static void spoilt_facts_are_nothing(void **state)
{
	struct store *s = ((struct bed *)*state)->s;
	struct forecast_price first, last;
	char name[96] = "", text[4096];

	look_at(s, 340000, "high", START);
	struct fact_row *rows = NULL;
	size_t count = 0;
	ok(sqlite_find(s, TABLE_FACT, "WHERE name LIKE 'prices:%'", NULL, 0, (void **)&rows, &count,
		       NULL),
	   NULL);
	assert_int_equal(count, 1);
	COPY_TEXT(name, rows[0].name);
	COPY_TEXT(text, rows[0].value);
	free(rows);
	assert_string_equal(text, "29820000=340000/high");
	ok(store_put_fact(s, name, "5=x/9 -3 99999999999999999999=1", NULL), NULL);
	assert_in_range(looks_at(s, "EU", &first, &last), 0, 1);
	look_at(s, 340000, "high", START);
	assert_in_range(looks_at(s, "EU", &first, &last), 1, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(only_news_is_noted),
		BOTH(the_lowest_of_each_kind),
		BOTH(old_looks_give_way),
		BOTH(spoilt_facts_are_nothing),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
