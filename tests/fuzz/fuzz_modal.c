/* fuzz_modal.c - any bytes as Modal's replies: an operation ends, done or failed with words, never
 * asks for ever, and what it believes keeps the contract's bounds.
 *
 * Input: one byte for the operation, one for the flavour, then replies: a byte for the status, two
 * for the length, the body (of a plain HTTP call: its head). When the replies run out, the
 * connection breaks. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/section.h"
#include "base/str.h"
#include "providers/modal/impl.h"
#include "providers/modal/modal.h"

enum { UNAUTHENTICATED = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What two of the flavour's bits ask for, whatever the operation is. */
enum {
	ALONE = 64, /* one wish only: a CPU pod, or with 1 a GPU */
	OWN = 128 /* prices, an image of one's own behind a registry's password, packages, an agent
		   */
};

static const struct section *config(bool own)
{
	static struct section *made[2];

	if (!made[own]) {
		struct section *conf = made[own] = section_new(provider_modal.options, "fuzz");
		section_set_text(conf, "token_id", "ak-fuzzfuzz", "fuzz");
		section_set_text(conf, "token_secret", "as-fuzzfuzz", "fuzz");
		if (own) {
			section_add_item(conf, "gpu_prices", "L40S=1.95", "fuzz");
			section_add_item(conf, "registry_secrets", "ghcr.io/me=mine", "fuzz");
			section_set_text(conf, "environment", "dev", "fuzz");
		}
	}
	return made[own];
}

static struct provider *open_provider(uint8_t flavour)
{
	struct provider *p = NULL;
	struct err err;

	if (provider_modal.open(&p, config(flavour & OWN), "/", &err) < 0)
		abort();
	return p;
}

/* What OP_IMAGE says where all goes well: such an image is known to the next operation. */
static void know_image(struct provider *p, const struct op_want *want, char image[IMAGE_MAX])
{
	static const char *const ours[] = {"\n\1t", "\n\4ap-1", "\n\4st-1", "\n\4im-1\22\2\10\1"};
	static const char *const public[] = {"\n\1t", "\n\4ap-1", "\n\4im-1\22\2\10\1"};
	const char *const *good = want->rent.image ? ours : public;
	size_t count = want->rent.image ? ARRAY_LEN(ours) : ARRAY_LEN(public);
	struct op_result result = {0};
	struct op *op = provider_modal.begin(p, OP_IMAGE, want);
	struct err err;

	COPY_TEXT(p->builder_version, "2025.06");
	for (size_t i = 0; i <= count; i++) {
		struct reply reply = {.status = 200};
		struct call call = {0};
		int64_t wait_ms;
		if (i)
			str_add(&reply.body, good[i - 1]);
		if (provider_modal.next(op, i ? &reply : NULL, &call, &wait_ms, &result, &err) !=
		    (i < count ? OP_CALL : OP_DONE))
			abort();
		reply_free(&reply);
		call_free(&call);
	}
	copy_text(image, IMAGE_MAX, result.image);
	op_result_free(&result);
	provider_modal.op_free(op);
}

static void check_said(const struct op_result *r)
{
	for (size_t i = 0; i < r->text.len; i++)
		assert(r->text.s[i] == '\n' || (unsigned char)r->text.s[i] >= ' ');
}

static void fill_want(struct op_want *want, uint8_t flavour)
{
	static const char *const gpus[] = {"RTX 4090", "L40S:2", "none", NULL},
				 *const cpu[] = {"none", NULL}, *const gpu[] = {"L40S:3", NULL};
	static const char *const packages[] = {"espeak-ng", "ffmpeg", NULL};
	static struct env_pair env = {(char *)"BURST_RUN", (char *)"r1", false};

	COPY_TEXT(want->id, flavour & 8 ? "vo-1" : "sb-1");
	want->offers.gpus = !(flavour & ALONE) ? (flavour & 1 ? gpus : NULL)
			    : flavour & 1      ? gpu
					       : cpu;
	want->volume.name = "cache";
	want->volume.create = flavour & 1;
	COPY_TEXT(want->rent.offer.id, flavour & 2 ? "L40S:2" : "CPU");
	COPY_TEXT(want->rent.name, "burst-a");
	want->rent.start_script = "true";
	want->rent.env = &env;
	want->rent.env_count = 1;
	want->file.volume = (struct volume){.id = "vo-1"};
	want->file.path = "a";
	want->file.local = "/nowhere";
	want->file.max_bytes = flavour & 4 ? 1000 : 0;
	static struct file_block row[] = {{"A", 8388608}, {"B", 8388607}, {"A", 8388608}, {"", 0}};
	if (flavour & 1)
		want->file.blocks = (struct file_blocks){row, 4, 3 * 8388608 + 1};
	want->offers.cpu = flavour & 16 ? 2 : 0;
	want->offers.memory_gb = flavour & 32 ? 64 : 0;
	want->offers.vram_gb = flavour & 32 ? 48 : 0;
	if (flavour & OWN) {
		want->rent.image = "ghcr.io/me/voice:1";
		want->rent.packages = packages;
		want->rent.agent = "agent";
		want->rent.agent_len = 5;
		want->rent.agent_path = "/opt/agent";
	}
}

static void take_reply(struct reply *r, const struct call *call, const uint8_t **data, size_t *len)
{
	static const int statuses[] = {200, 206, 403, 404, 500};
	bool http = call->kind == CALL_HTTP;

	*r = (struct reply){.failed = true, .was_sent = true, .grpc_status = 14};
	err_set(&r->err, ERR_NETWORK, "cut");
	if (*len < 3)
		return;
	uint8_t code = (*data)[0];
	size_t body = MIN((size_t)((*data)[1] | (*data)[2] << 8), *len - 3);
	if (code < 240) {
		r->failed = false;
		r->status = http ? statuses[code % ARRAY_LEN(statuses)] : 200;
		r->grpc_status = code < 160 ? 0 : code % 17;
		err_clear(&r->err);
		if (r->grpc_status)
			err_set(&r->err, r->grpc_status == 5 ? ERR_NOT_FOUND : ERR_TRANSIENT, "no");
	}
	str_addn(http && call->body_to ? &r->head : &r->body, *data + 3, body);
	r->to_bytes = http && call->body_to && !r->failed && r->status < 300 ? (int64_t)body : 0;
	*data += 3 + body;
	*len -= 3 + body;
}

static void check_result(const struct op_result *r)
{
	for (size_t i = 0; i < r->pod_count; i++) {
		const struct pod_view *v = &r->pods[i];
		assert(modal_id_is_sound(v->id, "sb-") && v->port >= 0 && v->port <= 65535);
		assert(!v->port == !v->host[0] && (!v->port || v->state == POD_STATE_RUNNING));
	}
	for (size_t i = 0; i < r->offer_count; i++)
		assert(r->offers[i].price_microusd_h > 0 && r->offers[i].gpus > 0 &&
		       r->offers[i].id[0]);
	for (size_t i = 0; i < r->volume_count; i++)
		assert(modal_id_is_sound(r->volumes[i].id, "vo-") &&
		       r->volumes[i].price_microusd_month >= 0 && r->volumes[i].used_bytes >= -1);
	for (size_t i = 0; i < r->entry_count; i++)
		assert(!strchr(r->entries[i].name, '/') && r->entries[i].name[0] &&
		       r->entries[i].bytes >= -1 && r->entries[i].changed_s >= 0);
	assert(r->billing.billed_ms >= 0 && r->bytes >= 0);
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
	enum op_kind kind = data[0] % (OP_IMAGE + 1);
	uint8_t flavour = data[1];
	fill_want(&want, flavour);
	data += 2;
	len -= 2;
	struct provider *p = open_provider(flavour);
	char image[IMAGE_MAX];
	if (flavour & 16) {
		know_image(p, &want, image);
		want.rent.known_image = image;
	}
	struct op *op = provider_modal.begin(p, kind, &want);
	enum op_next next = OP_CALL;
	/* a reply of three bytes and more each, and pauses between */
	size_t turns = 0, most = len + 300;
	int creates = 0;
	while (next == OP_CALL || next == OP_WAIT) {
		struct call call = {0};
		int64_t wait_ms = 0;
		assert(turns++ < most);
		next = provider_modal.next(op, have ? &reply : NULL, &call, &wait_ms, &result,
					   &err);
		reply_free(&reply);
		have = next == OP_CALL;
		if (have || next == OP_WAIT) {
			check_said(&result);
			op_result_free(&result);
		}
		if (have) {
			assert(call.url && starts_with(call.url, "https://"));
			assert(call.kind == CALL_HTTP ||
			       starts_with(call.url,
					   "https://api.modal.com/modal.client.ModalClient/"));
			assert(call.kind == CALL_GRPC || !call.header_count ||
			       !strcmp(call.headers[0], "Content-Type: application/octet-stream"));
			assert(call.header_count < 2 || call.kind == CALL_GRPC);
			assert(call.body_from_offset + call.body_from_bytes <=
			       want.file.blocks.bytes);
			take_reply(&reply, &call, &data, &len);
			/* who is not let in has made nothing, and asks once more with a new token
			 */
			creates += call.kind == CALL_GRPC &&
				   ends_with(call.url, "/SandboxCreate") &&
				   reply.grpc_status != UNAUTHENTICATED;
		}
		assert(next != OP_WAIT || wait_ms > 0);
		call_free(&call);
	}
	reply_free(&reply);
	/* again only if the image was gone: then nothing was made */
	assert(creates <= 1 + (want.rent.known_image != NULL));
	if (next == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else
		check_result(&result);
	op_result_free(&result);
	provider_modal.op_free(op);
	provider_modal.close(p);
	return 0;
}
