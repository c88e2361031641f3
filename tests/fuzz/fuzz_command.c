/* fuzz_command.c - any bytes as what the command of a vendor prints (Slurm's on a login node,
 * kubectl, burst-host behind ssh): an operation ends, done or failed with words, and what it
 * believes keeps the contract's bounds.
 *
 * Input: a byte for the provider, one for the operation, one for the exit status, then the output
 * of each child in turn, with \x1e between. A zero status puts Slurm's between the two lines of
 * ours, so that its readers see it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "providers/kubernetes/kubernetes.h"
#include "providers/slurm/slurm.h"
#include "providers/ssh/ssh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CHILDREN_MOST = 40 };

static const struct vendor {
	const struct provider_ops *ops;
	const char *key, *item, *text; /* a key of its section and its value, a list or a text */
	const char *id, *offer;        /* of a pod, and of an offer */
	const char *volume;
} vendors[] = {
	{&provider_slurm, "gpus", "main=A100", NULL, "20.0011223344556677", "main gpu:l40s:1",
	 "cache"},
	{&provider_kubernetes, "context", NULL, "work", "burst-0011223344556677", "on-demand",
	 "cache"},
	{&provider_ssh, "hosts", "box1", NULL, "box1:0011223344556677", "box1:1,NVIDIA L40S",
	 "box1:cache"},
};

static struct provider *open_once(size_t n)
{
	static struct provider *opened[ARRAY_LEN(vendors)];
	static struct section *conf[ARRAY_LEN(vendors)]; /* they live as long */
	const struct vendor *v = &vendors[n];
	struct err err;

	if (opened[n])
		return opened[n];
	conf[n] = section_new(v->ops->options, "fuzz");
	if (v->item)
		section_add_item(conf[n], v->key, v->item, "fuzz");
	else
		section_set_text(conf[n], v->key, v->text, "fuzz");
	if (v->ops == &provider_slurm) /* so that weights of partitions are read */
		section_set_int(conf[n], "price_per_billing_hour", 10000, "fuzz");
	if (v->ops->open(&opened[n], conf[n], "/nowhere", &err) < 0)
		abort();
	return opened[n];
}

static void fill_want(const struct vendor *v, struct op_want *want)
{
	static const char *const gpus[] = {"L40S", "A100:2", "none", NULL};

	COPY_TEXT(want->id, v->id);
	want->offers.gpus = gpus;
	want->volume.name = "cache";
	COPY_TEXT(want->rent.offer.id, v->offer);
	COPY_TEXT(want->rent.offer.gpu, "L40S");
	COPY_TEXT(want->rent.name, "burst-0011223344556677");
	want->rent.start_script = "true";
	want->file.volume = (struct volume){.name = "cache"};
	COPY_TEXT(want->file.volume.id, v->volume);
	want->file.path = "a";
	want->file.local = "/nowhere";
}

static void fill_reply(struct reply *reply, bool framed, int status, const char *bytes, size_t len)
{
	framed = framed && status == 0;
	reply->status = status;
	if (framed)
		str_add(&reply->body, "\nburst: begin\n");
	str_addn(&reply->body, bytes, len);
	if (framed)
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

/* Runs the operation, with a part of the text as the output of each child. */
static enum op_next run(const struct vendor *v, struct op *op, int status, const char *text,
			size_t len, struct op_result *result, struct err *err)
{
	struct reply reply = {0};
	enum op_next next = OP_CALL;

	for (int child = 0; next == OP_CALL && child < CHILDREN_MOST; child++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		next = v->ops->next(op, child ? &reply : NULL, &call, &wait_ms, result, err);
		call_free(&call);
		reply_free(&reply);
		reply = (struct reply){0};
		const char *end = len ? memchr(text, '\x1e', len) : NULL;
		size_t part = end ? (size_t)(end - text) : len;
		fill_reply(&reply, v->ops == &provider_slurm, status, text, part);
		text += end ? part + 1 : 0; /* the last one is printed by all that follow */
		len -= end ? part + 1 : 0;
	}
	reply_free(&reply);
	return next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct err err = {0};

	if (len < 3)
		return 0;
	size_t n = data[0] % ARRAY_LEN(vendors);
	const struct vendor *v = &vendors[n];
	fill_want(v, &want);
	struct op *op = v->ops->begin(open_once(n), data[1] % (OP_IMAGE + 1), &want);
	enum op_next next = run(v, op, data[2], (const char *)data + 3, len - 3, &result, &err);
	if (next == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else if (next == OP_DONE)
		check_result(&result);
	op_result_free(&result);
	v->ops->op_free(op);
	return 0;
}
