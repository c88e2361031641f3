/* fuzz_runpod.c - any bytes as RunPod's replies: an operation ends, done or failed with words,
 * never asks for ever, and what it believes keeps the contract's bounds. Build: clang
 * -fsanitize=fuzzer,address,undefined with the library's sources.
 *
 * Input: one byte for the operation, one for the flavour (spot, create ...), then replies: a byte
 * for the status, two for the length, the body, in front of which a head with an empty line may
 * stand. When the replies run out, the connection breaks. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "providers/runpod/runpod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SECRET "fuzzfuzz"

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

static const struct section *config(bool choosy)
{
	static const char *const places[] = {"EU-RO-1", "EU-CZ-1", NULL};
	static struct section *made[2];

	if (!made[choosy]) {
		struct section *conf = made[choosy] = section_new(provider_runpod.options, "fuzz");
		section_set_text(conf, "api_key", "rpa_" SECRET, "fuzz");
		section_set_text(conf, "s3_access_key", "user_1", "fuzz");
		section_set_text(conf, "s3_secret_key", "rps_" SECRET, "fuzz");
		section_set_text(conf, "cloud", "ANY", "fuzz");
		for (size_t i = 0; choosy && places[i]; i++)
			section_add_item(conf, "datacenters", places[i], "fuzz");
		if (choosy) {
			section_set_text(conf, "min_cuda", "none", "fuzz");
			section_set_int(conf, "bid", 200000, "fuzz");
			section_set_bool(conf, "placement_filters", true, "fuzz");
			section_set_text(conf, "registry", "cred1", "fuzz");
		}
	}
	return made[choosy];
}

static struct provider *open_provider(uint8_t flavour)
{
	struct provider *p = NULL;
	struct err err;

	if (provider_runpod.open(&p, config(flavour & CHOOSY), "/", &err) < 0)
		abort();
	return p;
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

static void take_reply(struct reply *r, const uint8_t **data, size_t *len)
{
	*r = (struct reply){0};
	if (*len < 3) {
		r->failed = r->was_sent = true;
		err_set(&r->err, ERR_NETWORK, "cut");
		return;
	}
	size_t body = MIN((size_t)((*data)[1] | (*data)[2] << 8), *len - 3);
	r->status = statuses[(*data)[0] % ARRAY_LEN(statuses)];
	r->failed = r->was_sent = (*data)[0] >= 250;
	if (r->failed)
		err_set(&r->err, ERR_NETWORK, "cut");
	const uint8_t *bytes = *data + 3, *gap = memmem(bytes, body, "\n\n", 2);
	size_t head = gap ? (size_t)(gap - bytes) : 0;
	str_addn(&r->head, bytes, head);
	str_addn(&r->body, gap ? gap + 2 : bytes, gap ? body - head - 2 : body);
	*data += 3 + body;
	*len -= 3 + body;
}

static void check_result(const struct op_result *r)
{
	for (size_t i = 0; i < r->pod_count; i++) {
		const struct pod_view *v = &r->pods[i];
		assert(v->id[0] && v->port >= 0 && v->port <= 65535 && v->price_microusd_h >= 0);
		assert(!v->port == !v->host[0]);
		assert(strspn(v->id,
			      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
		       strlen(v->id));
	}
	for (size_t i = 0; i < r->offer_count; i++)
		assert(r->offers[i].price_microusd_h > 0 &&
		       (r->offers[i].gpus > 0) == (strcmp(r->offers[i].gpu, "none") != 0) &&
		       r->offers[i].id[0]);
	for (size_t i = 0; i < r->volume_count; i++)
		assert(r->volumes[i].id[0] && r->volumes[i].price_microusd_month >= 0);
	assert(r->billing.cost_microusd >= 0 && r->billing.billed_ms >= 0 && r->bytes >= 0);
	assert(r->billing.beside_microusd >= 0 &&
	       r->billing.beside_microusd <= r->billing.cost_microusd);
	assert(!r->billing.hours == !r->billing.hour_count);
	for (size_t i = 1; i < r->billing.hour_count; i++)
		assert(r->billing.hours[i - 1].start_s <= r->billing.hours[i].start_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct err err = {0};
	struct reply reply = {0};
	bool have = false;

	if (len < 2)
		return 0;
	enum op_kind kind = data[0] % (OP_VOLUME_SIZE + 1);
	/* the server may say it by chance; then it may come back */
	bool told = memmem(data, len, SECRET, strlen(SECRET));
	uint8_t flavour = data[1];
	fill_want(&want, flavour);
	data += 2;
	len -= 2;
	struct provider *p = open_provider(flavour);
	struct op *op = provider_runpod.begin(p, kind, &want);
	enum op_next next = OP_CALL;
	int turns = 0;
	while (next == OP_CALL || next == OP_WAIT) {
		struct call call = {0};
		int64_t wait_ms = 0;
		assert(turns++ < (kind > OP_FETCH ? 70000 : 80));
		next = provider_runpod.next(op, have ? &reply : NULL, &call, &wait_ms, &result,
					    &err);
		reply_free(&reply);
		have = next == OP_CALL;
		if (have) {
			assert(call.url && starts_with(call.url, "https://") &&
			       (told || !strstr(call.url, SECRET)));
			take_reply(&reply, &data, &len);
		}
		assert(next != OP_WAIT || wait_ms > 0);
		call_free(&call);
	}
	reply_free(&reply);
	if (next == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else
		check_result(&result);
	op_result_free(&result);
	provider_runpod.op_free(op);
	provider_runpod.close(p);
	return 0;
}
