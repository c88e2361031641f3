/* web.h - any bytes as the replies of a vendor's HTTP API: an operation ends, done or failed with
 * words, never asks for ever, and what it believes keeps the contract's bounds. It is included
 * once, by the fuzzer of one vendor.
 *
 * Input: one byte for the operation, one for the flavour (spot, wishes ...), then replies: a byte
 * for the status, two for the length, the body. When the replies run out, the connection breaks. */
#ifndef BURST_FUZZ_WEB_H
#define BURST_FUZZ_WEB_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "provider.h"

#define WEB_SECRET "fuzzfuzz" /* ends each key of web_vendor.config() */

struct web_vendor {
	const struct provider_ops *ops;
	const int *statuses;
	size_t status_count;
	enum op_kind last_kind;
	bool has_heads; /* a head and an empty line may stand in front of a body */
	const char *id_letters;
	/* By the bits of the flavour. */
	const struct section *(*config)(uint8_t flavour);
	void (*fill_want)(struct op_want *want, uint8_t flavour);
	/* What is so of this vendor alone. */
	void (*check)(const struct op_result *r);
	int (*most_turns)(enum op_kind kind);
};

static void web_add_body(const struct web_vendor *v, struct reply *r, const uint8_t *bytes,
			 size_t len)
{
	const uint8_t *gap = v->has_heads ? memmem(bytes, len, "\n\n", 2) : NULL;
	size_t head = gap ? (size_t)(gap - bytes) : 0;

	str_addn(&r->head, bytes, head);
	str_addn(&r->body, gap ? gap + 2 : bytes, gap ? len - head - 2 : len);
}

static void web_take_reply(const struct web_vendor *v, struct reply *r, const uint8_t **data,
			   size_t *len)
{
	*r = (struct reply){0};
	if (*len < 3) {
		r->failed = r->was_sent = true;
		err_set(&r->err, ERR_NETWORK, "cut");
		return;
	}
	size_t body = MIN((size_t)((*data)[1] | (*data)[2] << 8), *len - 3);
	r->status = v->statuses[(*data)[0] % v->status_count];
	r->failed = r->was_sent = (*data)[0] >= 250;
	if (r->failed)
		err_set(&r->err, ERR_NETWORK, "cut");
	web_add_body(v, r, *data + 3, body);
	*data += 3 + body;
	*len -= 3 + body;
}

static void web_check_result(const struct web_vendor *v, const struct op_result *r)
{
	for (size_t i = 0; i < r->pod_count; i++) {
		const struct pod_view *p = &r->pods[i];
		assert(p->id[0] && p->port >= 0 && p->port <= 65535 && p->price_microusd_h >= 0);
		assert(!p->port == !p->host[0]);
		assert(strspn(p->id, v->id_letters) == strlen(p->id));
	}
	for (size_t i = 0; i < r->offer_count; i++)
		assert(r->offers[i].price_microusd_h > 0 && r->offers[i].gpu[0] &&
		       r->offers[i].id[0]);
	assert(r->billing.cost_microusd >= 0 && r->billing.billed_ms >= 0);
	assert(r->billing.beside_microusd >= 0 &&
	       r->billing.beside_microusd <= r->billing.cost_microusd);
	v->check(r);
}

/* Returns how the operation ended. */
static enum op_next web_play(const struct web_vendor *v, struct op *op, enum op_kind kind,
			     const uint8_t *data, size_t len, struct op_result *result,
			     struct err *err)
{
	/* the server may say it by chance; then it may come back */
	bool told = memmem(data, len, WEB_SECRET, strlen(WEB_SECRET)), have = false;
	struct reply reply = {0};
	enum op_next next = OP_CALL;

	for (int turns = 0; next == OP_CALL || next == OP_WAIT; turns++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		assert(turns < v->most_turns(kind));
		next = v->ops->next(op, have ? &reply : NULL, &call, &wait_ms, result, err);
		reply_free(&reply);
		have = next == OP_CALL;
		if (have) {
			assert(call.url && starts_with(call.url, "https://") &&
			       (told || !strstr(call.url, WEB_SECRET)));
			web_take_reply(v, &reply, &data, &len);
		}
		assert(next != OP_WAIT || wait_ms > 0);
		call_free(&call);
	}
	reply_free(&reply);
	return next;
}

/* What LLVMFuzzerTestOneInput() does. */
static int web_fuzz(const struct web_vendor *v, const uint8_t *data, size_t len)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct provider *p = NULL;
	struct err err = {0};

	if (len < 2)
		return 0;
	enum op_kind kind = data[0] % (v->last_kind + 1);
	v->fill_want(&want, data[1]);
	if (v->ops->open(&p, v->config(data[1]), "/", &err) < 0)
		abort();
	struct op *op = v->ops->begin(p, kind, &want);
	if (web_play(v, op, kind, data + 2, len - 2, &result, &err) == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else
		web_check_result(v, &result);
	op_result_free(&result);
	v->ops->op_free(op);
	v->ops->close(p);
	return 0;
}

#endif
