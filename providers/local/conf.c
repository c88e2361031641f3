/* conf.c - reads and checks the config of the local provider. */
#include "translator.h"

#include "base/clock.h"
#include "base/gpus.h"
#include "local.h"

static int bad_word(const struct section *s, const char *key, const char *allowed, struct err *err)
{
	return err_set(err, ERR_CONFIG, "%s: %s = \"%s\": must be %s", section_where(s, key), key,
		       section_text(s, key), allowed);
}

static int one_of(const struct section *s, const char *key, const char *a, const char *b,
		  bool *is_b, struct err *err)
{
	*is_b = !strcmp(section_text(s, key), b);
	if (*is_b || !strcmp(section_text(s, key), a))
		return 0;
	CLEANUP(free_text) char *allowed = xasprintf("\"%s\" or \"%s\"", a, b);
	return bad_word(s, key, allowed, err);
}

static int check_capacity(const struct section *s, struct err *err)
{
	if (section_int(s, "capacity") >= 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: capacity must not be negative",
		       section_where(s, "capacity"));
}

static int check_isolation(const struct section *s, struct err *err)
{
	enum isolation isolation;

	return local_isolation(section_text(s, "isolation"), &isolation) < 0
		       ? bad_word(s, "isolation", "\"auto\", \"namespaces\" or \"process\"", err)
		       : 0;
}

static int check_preempt(const struct section *s, struct err *err)
{
	bool all;

	return one_of(s, "preempt", "spot", "all", &all, err);
}

static int check_network(const struct section *s, struct err *err)
{
	bool shared;

	return one_of(s, "network", "private", "host", &shared, err);
}

/* "L4=0.80" */
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

static int check_cards(const struct section *s, struct err *err)
{
	size_t count = section_count(s, "gpu_prices");
	struct card card;

	if (count > CARDS_MOST)
		return err_set(err, ERR_CONFIG, "%s: gpu_prices has %zu GPUs: at most %d",
			       section_where(s, "gpu_prices"), count, CARDS_MOST);
	for (size_t i = 0; i < count; i++)
		if (read_card(section_item(s, "gpu_prices", i), &card) < 0)
			return err_set(err, ERR_CONFIG,
				       "%s: gpu_prices: \"%.40s\" must be a GPU that burst knows "
				       "and dollars an hour, as \"L4=0.80\"",
				       section_where(s, "gpu_prices"),
				       section_item(s, "gpu_prices", i));
	return 0;
}

void local_read_cards(const struct section *s, struct provider *p)
{
	for (size_t i = 0; i < section_count(s, "gpu_prices") && i < CARDS_MOST; i++)
		(void)read_card(section_item(s, "gpu_prices", i), &p->cards[p->card_count++]);
}

int local_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static int (*const checks[])(const struct section *s, struct err *err) = {
		check_capacity, check_isolation, check_preempt, check_network, check_cards};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](s, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

void local_read_conf(const struct section *s, struct local_conf *conf)
{
	*conf = (struct local_conf){
		.price_microusd_h = section_int(s, "price_per_hour"),
		.spot_price_microusd_h = section_has(s, "spot_price_per_hour")
						 ? section_int(s, "spot_price_per_hour")
						 : -1,
		.boot_delay_ms = section_int(s, "boot_delay"),
		.preempt_after_ms = section_int(s, "preempt_after"),
		.round_trip_ms = section_int(s, "round_trip"),
		.capacity = section_int(s, "capacity"),
		.vram_gb = section_int(s, "vram_gb"),
		.fail_rents = section_int(s, "fail_rents"),
	};
	COPY_TEXT(conf->gpu, section_text(s, "gpu"));
	COPY_TEXT(conf->region, section_text(s, "region"));
	(void)local_isolation(section_text(s, "isolation"), &conf->isolation);
	conf->preempt_all = !strcmp(section_text(s, "preempt"), "all");
	conf->shared_network = !strcmp(section_text(s, "network"), "host");
	conf->private_network = section_has(s, "network") && !conf->shared_network;
}
