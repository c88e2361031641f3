/* fuzz_local.c - any bytes as what the local vendor's own process answers, and as what it finds in
 * a pod's record: an operation ends, done or failed with words, and what it believes keeps the
 * contract's bounds.
 *
 * Input: a byte for the operation (the last: a record), one for the exit status, then the answer.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/jsonx.h"
#include "base/str.h"
#include "providers/local/local.h"
#include "providers/local/vendor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct provider *open_once(void)
{
	static struct provider *p;
	static struct section *conf; /* it lives as long */
	struct err err;

	if (conf)
		return p;
	conf = section_new(provider_local.options, "fuzz");
	if (provider_local.open(&p, conf, "/nowhere", &err) < 0)
		abort();
	return p;
}

static void fill_want(struct op_want *want)
{
	static const char *const gpus[] = {"RTX 4090", "none", NULL};

	COPY_TEXT(want->id, "local-1");
	want->offers.gpus = gpus;
	want->volume.name = "cache";
	want->volume.create = true;
	COPY_TEXT(want->rent.offer.id, "local");
	COPY_TEXT(want->rent.name, "burst-a");
	want->rent.start_script = "true";
	want->file.volume = (struct volume){.id = "cache", .name = "cache"};
	want->file.path = "a";
	want->file.local = "/nowhere";
}

static void check_result(const struct op_result *r)
{
	for (size_t i = 0; i < r->pod_count; i++) {
		assert(r->pods[i].id[0] && r->pods[i].port >= 0 && r->pods[i].port <= 65535);
		assert(pod_state_name(r->pods[i].state));
	}
	for (size_t i = 0; i < r->entry_count; i++)
		assert(r->entries[i].name[0] &&
		       strlen(r->entries[i].name) < sizeof(r->entries[i].name));
}

static void one_operation(enum op_kind kind, int status, const char *bytes, size_t len)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct reply reply = {.status = status, .failed = status == 255, .was_sent = true};
	struct err err = {0};
	enum op_next next = OP_CALL;
	bool have = false;

	fill_want(&want);
	if (reply.failed)
		err_set(&reply.err, ERR_LOCAL, "no such program");
	str_addn(&reply.body, bytes, len);
	str_addn(&reply.head, bytes, len);
	struct op *op = provider_local.begin(open_once(), kind, &want);
	for (int turns = 0; next == OP_CALL || next == OP_WAIT; turns++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		assert(turns < 20);
		next = provider_local.next(op, have ? &reply : NULL, &call, &wait_ms, &result,
					   &err);
		have = next == OP_CALL;
		assert(!have || call.kind == CALL_CHILD);
		call_free(&call);
	}
	if (next == OP_FAILED)
		assert(err.kind != ERR_NONE && err.msg[0]);
	else
		check_result(&result);
	op_result_free(&result);
	provider_local.op_free(op);
	reply_free(&reply);
}

/* What was read of a record and written again is the same record. */
static void one_record(const char *bytes, size_t len)
{
	struct err err = {0};
	struct pod_record record = {0}, again = {0};
	CLEANUP(json_decref) json_t *json = jsonx_parse(bytes, len, &err);

	if (!json || record_from_json(json, &record, &err) < 0) {
		assert(err.msg[0]);
		return;
	}
	CLEANUP(json_decref) json_t *written = record_to_json(&record);
	assert(written && record_from_json(written, &again, &err) == 0);
	assert(!strcmp(again.view.id, record.view.id) && again.created_ms == record.created_ms &&
	       again.init.pid == record.init.pid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	int kind = data[0] % (OP_IMAGE + 2);
	if (kind > OP_IMAGE)
		one_record((const char *)data + 2, len - 2);
	else
		one_operation((enum op_kind)kind, data[1], (const char *)data + 2, len - 2);
	return 0;
}
