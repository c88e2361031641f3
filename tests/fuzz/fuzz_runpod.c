/* fuzz_runpod.c - any bytes as RunPod's replies; web.h says in which form. Build: clang
 * -fsanitize=fuzzer,address,undefined with the library's sources. */
#include "providers/runpod/runpod.h"
#include "web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const int statuses[] = {200, 201, 204, 206, 400, 401, 402, 403,
			       404, 409, 410, 416, 422, 429, 500, 502};

/* What the flavour's bits ask for, beside what they mean to single operations. */
enum {
	WISHES = 1, /* by name, else any GPU */
	SPOT = 2,
	LARGE = 4,     /* much memory, many cores, a large disk */
	ALONE = 8,     /* one wish only: a CPU pod, or with SPOT a GPU */
	VOLUME = 16,   /* that has to be reached */
	CHOOSY = 32,   /* data centres, a bid and so on in the config */
	MUCH_VRAM = 64 /* a GPU with much memory */
};

static const struct section *config(uint8_t flavour)
{
	bool choosy = flavour & CHOOSY;
	static const char *const places[] = {"EU-RO-1", "EU-CZ-1", NULL};
	static struct section *made[2];

	if (!made[choosy]) {
		struct section *conf = made[choosy] = section_new(provider_runpod.options, "fuzz");
		section_set_text(conf, "api_key", "rpa_" WEB_SECRET, "fuzz");
		section_set_text(conf, "s3_access_key", "user_1", "fuzz");
		section_set_text(conf, "s3_secret_key", "rps_" WEB_SECRET, "fuzz");
		section_set_text(conf, "cloud", "ANY", "fuzz");
		for (size_t i = 0; choosy && places[i]; i++)
			section_add_item(conf, "datacenters", places[i], "fuzz");
		if (choosy) {
			section_set_text(conf, "min_cuda", "none", "fuzz");
			section_set_int(conf, "bid", 200000, "fuzz");
			section_set_bool(conf, "placement_filters", true, "fuzz");
			section_add_item(conf, "registry", "nvidia=cred1", "fuzz");
		}
	}
	return made[choosy];
}

static void fill_want(struct op_want *want, uint8_t flavour)
{
	static const char *const gpus[] = {"RTX 4090", "L40S:2", "RTX 5091", "none", NULL},
				 *const cpu[] = {"none", NULL}, *const gpu[] = {"L40S", NULL};

	COPY_TEXT(want->id, "pod1");
	want->since_s = flavour;
	want->offers.gpus = !(flavour & WISHES)  ? NULL
			    : !(flavour & ALONE) ? gpus
			    : flavour & SPOT     ? gpu
						 : cpu;
	want->offers.spot = flavour & SPOT;
	if (flavour & LARGE) {
		want->offers.memory_gb = 64;
		want->offers.cpu = 4;
		want->offers.disk_gb = 100;
	}
	want->offers.vram_gb = flavour & MUCH_VRAM ? 48 : 0;
	if (flavour & VOLUME)
		want->offers.volume =
			(struct volume){.id = "vol1", .name = "cache", .region = "EU-RO-1"};
	want->volume.name = "cache";
	want->volume.create = flavour & 1;
	want->volume.gpus = flavour & 2 ? gpus : NULL;
	COPY_TEXT(want->rent.offer.id,
		  flavour & 6 ? "SECURE/EU-RO-1/1/NVIDIA L40S" : "SECURE/EU-RO-1/2 vCPU/cpu3c");
	want->rent.offer.spot = flavour & 2;
	want->rent.offer.price_microusd_h = 860000;
	COPY_TEXT(want->rent.name, "burst-a");
	want->rent.start_script = "true";
	want->file.volume = (struct volume){.id = "vol1", .region = "EU-RO-1"};
	want->file.path = "a";
	want->file.local = "/nowhere";
	want->file.offset = flavour & 1;
}

static void check(const struct op_result *r)
{
	for (size_t i = 0; i < r->offer_count; i++)
		assert((r->offers[i].gpus > 0) == (strcmp(r->offers[i].gpu, "none") != 0));
	for (size_t i = 0; i < r->volume_count; i++)
		assert(r->volumes[i].id[0] && r->volumes[i].price_microusd_month >= 0);
	assert(r->bytes >= 0 && !r->billing.hours == !r->billing.hour_count);
	for (size_t i = 1; i < r->billing.hour_count; i++)
		assert(r->billing.hours[i - 1].start_s <= r->billing.hours[i].start_s);
}

static int most_turns(enum op_kind kind)
{
	return kind > OP_FETCH ? 70000 : 80;
}

static const struct web_vendor runpod = {
	.ops = &provider_runpod,
	.statuses = statuses,
	.status_count = ARRAY_LEN(statuses),
	.last_kind = OP_VOLUME_SIZE,
	.has_heads = true,
	.id_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
	.config = config,
	.fill_want = fill_want,
	.check = check,
	.most_turns = most_turns,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return web_fuzz(&runpod, data, len);
}
