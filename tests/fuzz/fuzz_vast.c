/* fuzz_vast.c - any bytes as Vast.ai's replies: an operation ends, done or failed with words, never
 * asks for ever, and what it believes keeps the contract's bounds. Build: clang
 * -fsanitize=fuzzer,address,undefined with the library's sources.
 *
 * Input: one byte for the operation, one for the flavour (spot, wishes ...), then replies: a byte
 * for the status, two for the length, the body. When the replies run out, the connection breaks. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "providers/vast/vast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SECRET "fuzzfuzz"

static const int statuses[] = {200, 201, 204, 400, 401, 402, 403,
			       404, 408, 410, 422, 429, 500, 502};

/* What the flavour's bits ask for. */
enum { WISHES = 1, SPOT = 2, LARGE = 4, CHOOSY = 8, MUCH_VRAM = 16 };

static const struct section *config(bool choosy)
{
	static struct section *made[2];

	if (!made[choosy]) {
		struct section *conf = made[choosy] = section_new(provider_vast.options, "fuzz");
		section_set_text(conf, "api_key", "va_" SECRET, "fuzz");
		if (choosy) {
			section_add_item(conf, "countries", "DE", "fuzz");
			section_set_text(conf, "min_cuda", "none", "fuzz");
			section_set_int(conf, "bid", 200000, "fuzz");
			section_set_bool(conf, "verified", false, "fuzz");
		}
	}
	return made[choosy];
}

static struct provider *open_provider(uint8_t flavour)
{
	struct provider *p = NULL;
	struct err err;

	if (provider_vast.open(&p, config(flavour & CHOOSY), "/", &err) < 0)
		abort();
	return p;
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
	str_addn(&r->body, *data + 3, body);
	*data += 3 + body;
	*len -= 3 + body;
}

static void check_result(const struct op_result *r)
{
	for (size_t i = 0; i < r->pod_count; i++) {
		const struct pod_view *v = &r->pods[i];
		assert(v->id[0] && v->port >= 0 && v->port <= 65535 && v->price_microusd_h >= 0);
		assert(!v->port == !v->host[0]);
		assert(strspn(v->id, "0123456789") == strlen(v->id));
	}
	for (size_t i = 0; i < r->offer_count; i++)
		assert(r->offers[i].price_microusd_h > 0 && r->offers[i].gpus > 0 &&
		       r->offers[i].gpu[0] && r->offers[i].id[0]);
	assert(r->billing.cost_microusd >= 0 && r->billing.billed_ms >= 0);
	assert(r->billing.beside_microusd >= 0 &&
	       r->billing.beside_microusd <= r->billing.cost_microusd);
	assert(r->balance_microusd >= -1);
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
	enum op_kind kind = data[0] % (OP_LOGS + 1);
	/* the server may say it by chance; then it may come back */
	bool told = memmem(data, len, SECRET, strlen(SECRET));
	uint8_t flavour = data[1];
	fill_want(&want, flavour);
	data += 2;
	len -= 2;
	struct provider *p = open_provider(flavour);
	struct op *op = provider_vast.begin(p, kind, &want);
	enum op_next next = OP_CALL;
	int turns = 0;
	while (next == OP_CALL || next == OP_WAIT) {
		struct call call = {0};
		int64_t wait_ms = 0;
		assert(turns++ < (300));
		next = provider_vast.next(op, have ? &reply : NULL, &call, &wait_ms, &result, &err);
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
	provider_vast.op_free(op);
	provider_vast.close(p);
	return 0;
}
