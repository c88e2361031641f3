/* fuzz_vast.c - any bytes as Vast.ai's replies; web.h says in which form. Build: clang
 * -fsanitize=fuzzer,address,undefined with the library's sources. */
#include "providers/vast/vast.h"
#include "web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const int statuses[] = {200, 201, 204, 400, 401, 402, 403,
			       404, 408, 410, 422, 429, 500, 502};

/* What the flavour's bits ask for. */
enum { WISHES = 1, SPOT = 2, LARGE = 4, CHOOSY = 8, MUCH_VRAM = 16 };

static const struct section *config(uint8_t flavour)
{
	bool choosy = flavour & CHOOSY;
	static struct section *made[2];

	if (!made[choosy]) {
		struct section *conf = made[choosy] = section_new(provider_vast.options, "fuzz");
		section_set_text(conf, "api_key", "va_" WEB_SECRET, "fuzz");
		if (choosy) {
			section_add_item(conf, "countries", "DE", "fuzz");
			section_set_text(conf, "min_cuda", "none", "fuzz");
			section_set_int(conf, "bid", 200000, "fuzz");
			section_set_bool(conf, "verified", false, "fuzz");
			section_add_item(conf, "registry", "nvidia=me", "fuzz");
			section_set_text(conf, "registry_token", "tk_" WEB_SECRET, "fuzz");
			section_set_bool(conf, "allow_secrets", true, "fuzz");
		}
	}
	return made[choosy];
}

static void fill_want(struct op_want *want, uint8_t flavour)
{
	static const char *const gpus[] = {"RTX 4090", "L40S:2", "A100", "RTX 5091", "none", NULL};

	COPY_TEXT(want->id, "30000001");
	want->since_s = flavour;
	want->bill.price_microusd_h = flavour & LARGE ? 400000 : 0;
	want->offers.gpus = flavour & WISHES ? gpus : NULL;
	want->offers.spot = flavour & SPOT;
	if (flavour & LARGE) {
		want->offers.memory_gb = 64;
		want->offers.cpu = 4;
		want->offers.disk_gb = 100;
	}
	want->offers.vram_gb = flavour & MUCH_VRAM ? 48 : 0;
	COPY_TEXT(want->rent.offer.id, flavour & SPOT ? "7000001/200000/0" : "7000001/0/0");
	want->rent.offer.spot = flavour & SPOT;
	want->rent.offer.price_microusd_h = 400000;
	COPY_TEXT(want->rent.name, "burst-a");
	want->rent.start_script = "true";
}

static void check(const struct op_result *r)
{
	for (size_t i = 0; i < r->offer_count; i++)
		assert(r->offers[i].gpus > 0);
	assert(r->balance_microusd >= -1);
}

static int most_turns(enum op_kind kind)
{
	(void)kind;
	return 300;
}

static const struct web_vendor vast = {
	.ops = &provider_vast,
	.statuses = statuses,
	.status_count = ARRAY_LEN(statuses),
	.last_kind = OP_LOGS,
	.id_letters = "0123456789",
	.config = config,
	.fill_want = fill_want,
	.check = check,
	.most_turns = most_turns,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return web_fuzz(&vast, data, len);
}
