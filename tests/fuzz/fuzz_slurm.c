/* fuzz_slurm.c - any bytes as what a login node answers: an operation ends, done or failed with
 * words, and what it believes keeps the contract's bounds.
 *
 * Input: a byte for the operation, one for the exit status, then the answer. A zero status puts the
 * answer between the two lines of ours, so that its readers see it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "providers/slurm/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct provider *open_once(void)
{
	static struct provider *p;
	static struct section *conf; /* it lives as long */
	struct err err;

	if (conf)
		return p;
	conf = section_new(provider_slurm.options, "fuzz");
	section_add_item(conf, "gpus", "main=A100", "fuzz");
	if (provider_slurm.open(&p, conf, "/nowhere", &err) < 0)
		abort();
	return p;
}

static void fill_want(struct op_want *want)
{
	static const char *const gpus[] = {"L40S", "A100:2", "none", NULL};

	COPY_TEXT(want->id, "20.0011223344556677");
	want->offers.gpus = gpus;
	want->volume.name = "cache";
	COPY_TEXT(want->rent.offer.id, "main gpu:l40s:1");
	COPY_TEXT(want->rent.name, "burst-0011223344556677");
	want->rent.start_script = "true";
	want->file.volume = (struct volume){.id = "cache", .name = "cache"};
	want->file.path = "a";
	want->file.local = "/nowhere";
}

static void fill_reply(struct reply *reply, int status, const char *bytes, size_t len)
{
	reply->status = status;
	if (status == 0)
		str_add(&reply->body, "\nburst: begin\n");
	str_addn(&reply->body, bytes, len);
	if (status == 0)
		str_add(&reply->body, "\nburst: end 0\n");
	str_addn(&reply->head, bytes, len);
}

static void check_result(struct op_result *r)
{
	struct err err;

	assert(r->billing.billed_ms >= 0);
	for (size_t i = 0; i < r->entry_count; i++)
		assert(r->entries[i].bytes >= 0 && r->entries[i].files >= 0);
	for (size_t i = 0; i < r->pod_count; i++)
		assert(pod_state_name(r->pods[i].state));
	/* no pod or offer is one that the engine would not believe; names of volumes may be any */
	r->volume_count = 0;
	assert(provider_check_answer(r, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct reply reply = {0};
	struct call call = {0};
	struct err err = {0};
	int64_t wait_ms = 0;

	if (len < 2)
		return 0;
	fill_want(&want);
	fill_reply(&reply, data[1], (const char *)data + 2, len - 2);
	struct op *op = provider_slurm.begin(open_once(), data[0] % (OP_IMAGE + 1), &want);
	enum op_next next = provider_slurm.next(op, NULL, &call, &wait_ms, &result, &err);
	if (next == OP_CALL)
		next = provider_slurm.next(op, &reply, &call, &wait_ms, &result, &err);
	call_free(&call);
	assert(next == OP_DONE || next == OP_FAILED);
	if (next == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else
		check_result(&result);
	op_result_free(&result);
	provider_slurm.op_free(op);
	reply_free(&reply);
	return 0;
}
