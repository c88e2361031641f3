/* provider_conformance.c - the suite that every provider must pass. */
#include "provider_conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/blocks.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "scratch.h"

enum { STEPS_MAX = 1000, DEADLINE_MS = 30000 };

/* What happens to the reply of the last call on its way. */
enum mishap { NO_MISHAP, LOST_REPLY };

static enum op_next carry_op(const struct conformance *c, enum op_kind kind,
			     const struct op_want *want, enum mishap mishap,
			     struct op_result *result, struct err *err)
{
	struct op *op = c->ops->begin(c->provider, kind, want);
	struct reply reply = {0};
	bool have_reply = false;
	enum op_next next = OP_FAILED;

	*result = (struct op_result){0};
	*err = (struct err){0};
	for (int step = 0; step < STEPS_MAX; step++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		next = c->ops->next(op, have_reply ? &reply : NULL, &call, &wait_ms, result, err);
		reply_free(&reply);
		have_reply = next == OP_CALL;
		if (next == OP_DONE || next == OP_FAILED)
			break;
		if (next == OP_CALL) {
			c->carry(c->ctx, &call, &reply);
			if (mishap == LOST_REPLY && call.class == CALL_CREATE) {
				reply_free(&reply);
				reply = (struct reply){.failed = true, .was_sent = true};
				err_set(&reply.err, ERR_NETWORK, "the line was cut");
			}
		}
		call_free(&call);
	}
	c->ops->op_free(op);
	return next;
}

enum op_next conformance_do(const struct conformance *c, enum op_kind kind,
			    const struct op_want *want, struct op_result *result, struct err *err)
{
	return carry_op(c, kind, want, NO_MISHAP, result, err);
}

static void must(const struct conformance *c, enum op_kind kind, const struct op_want *want,
		 struct op_result *result)
{
	struct err err;

	if (conformance_do(c, kind, want, result, &err) != OP_DONE)
		fail_msg("%s: operation %d failed: %s", c->ops->name, (int)kind, err.msg);
}

static void must_fail(const struct conformance *c, enum op_kind kind, const struct op_want *want,
		      enum err_kind expected)
{
	struct op_result result;
	struct err err;

	if (conformance_do(c, kind, want, &result, &err) != OP_FAILED)
		fail_msg("%s: operation %d should have failed", c->ops->name, (int)kind);
	if (err.kind != expected)
		fail_msg("%s: operation %d: got %s (%s), want %s", c->ops->name, (int)kind,
			 err_kind_name(err.kind), err.msg, err_kind_name(expected));
}

/* ---- what is rented ---- */

static struct offer first_offer(const struct conformance *c)
{
	static const char *const gpus[] = {"RTX 4090", "L40S", NULL};
	struct op_want want = {.offers.gpus = gpus};
	struct op_result result;

	must(c, OP_OFFERS, &want, &result);
	assert_true(result.offer_count > 0);
	for (size_t i = 0; i < result.offer_count; i++) {
		const struct offer *offer = &result.offers[i];
		assert_string_equal(offer->provider, c->ops->name);
		assert_true(offer->id[0] && offer->gpu[0]);
		assert_in_range(offer->wish, 0, 1);
		assert_true(offer->price_microusd_h >= 0);
		assert_false(offer->spot); /* none were asked for */
	}
	struct offer offer = result.offers[0];
	op_result_free(&result);
	return offer;
}

static void fill_attempt(const struct conformance *c, struct op_want *want, const char *attempt)
{
	static char name[] = "BURST_SSH_PORT", value[] = "22";
	static struct env_pair env[] = {{name, value, false}};
	struct rent_request *rent = &want->rent;

	*want = (struct op_want){0};
	rent->offer = first_offer(c);
	rent->start_script = c->start_script;
	rent->mount = "/workspace";
	rent->env = env;
	rent->env_count = ARRAY_LEN(env);
	rent->marker.hard_end_s = clock_wall_ms() / 1000 + 600;
	snprintf(rent->name, sizeof(rent->name), "burst-%s", attempt);
	COPY_TEXT(rent->marker.machine, "00000000000000aa");
	COPY_TEXT(rent->marker.run, "r1");
	COPY_TEXT(rent->marker.attempt, attempt);
}

static struct pod_view rent(const struct conformance *c, const char *attempt)
{
	struct op_want want;
	struct op_result result;

	fill_attempt(c, &want, attempt);
	must(c, OP_RENT, &want, &result);
	assert_int_equal(result.pod_count, 1);
	struct pod_view view = result.pods[0];
	op_result_free(&result);
	assert_true(view.id[0]);
	return view;
}

static struct op_want of_pod(const char *id)
{
	struct op_want want = {0};

	COPY_TEXT(want.id, id);
	return want;
}

static struct pod_view inspect(const struct conformance *c, const char *id)
{
	struct op_want want = of_pod(id);
	struct op_result result;

	must(c, OP_INSPECT, &want, &result);
	assert_int_equal(result.pod_count, 1);
	struct pod_view view = result.pods[0];
	op_result_free(&result);
	return view;
}

static void wait_for_state(const struct conformance *c, const char *id, enum pod_state state)
{
	int64_t until = clock_boot_ms() + DEADLINE_MS;
	enum pod_state got;

	while ((got = inspect(c, id).state) != state) {
		if (clock_boot_ms() > until)
			fail_msg("%s: pod is %s, want %s", c->ops->name, pod_state_name(got),
				 pod_state_name(state));
		usleep(20000);
	}
}

static bool find_listed(const struct conformance *c, const char *attempt, struct pod_view *view)
{
	struct op_want want = {0};
	struct op_result result;
	bool found = false;

	must(c, OP_LIST, &want, &result);
	for (size_t i = 0; i < result.pod_count; i++)
		if (!strcmp(result.pods[i].marker.attempt, attempt) &&
		    result.pods[i].state != POD_STATE_GONE) {
			*view = result.pods[i];
			found = true;
		}
	op_result_free(&result);
	return found;
}

static void release(const struct conformance *c, const char *id)
{
	struct op_want want = of_pod(id);
	struct op_result result;

	must(c, OP_RELEASE, &want, &result);
	op_result_free(&result);
}

/* ---- the promises ---- */

static void rents_lists_and_releases(const struct conformance *c)
{
	struct pod_view listed, view = rent(c, "00000000000000f1");
	struct op_want want = of_pod(view.id);
	struct op_result result;
	struct err err;

	wait_for_state(c, view.id, POD_STATE_RUNNING);
	assert_true(find_listed(c, "00000000000000f1", &listed));
	assert_string_equal(listed.id, view.id);
	assert_string_equal(listed.marker.machine, "00000000000000aa");
	assert_string_equal(listed.marker.run, "r1");
	assert_true(listed.marker.hard_end_s > 0);
	release(c, view.id);
	wait_for_state(c, view.id, POD_STATE_GONE);
	assert_false(find_listed(c, "00000000000000f1", &listed));
	release(c, view.id); /* gone already: success */
	/* its bill may take a while */
	if (conformance_do(c, OP_BILLING, &want, &result, &err) == OP_FAILED &&
	    err.kind != ERR_NOT_FOUND)
		fail_msg("%s: billing: %s", c->ops->name, err.msg);
	assert_true(result.billing.billed_ms >= 0 && result.billing.cost_microusd >= 0);
	op_result_free(&result);
}

static void one_name_makes_one_pod(const struct conformance *c)
{
	struct pod_view listed, view = rent(c, "00000000000000f2");
	struct op_want want;
	struct op_result result;
	struct err err;

	fill_attempt(c, &want, "00000000000000f2");
	/* refused, or the same pod again: never a second one */
	if (conformance_do(c, OP_RENT, &want, &result, &err) == OP_DONE)
		assert_string_equal(result.pods[0].id, view.id);
	op_result_free(&result);
	release(c, view.id);
	wait_for_state(c, view.id, POD_STATE_GONE);
	assert_false(find_listed(c, "00000000000000f2", &listed));
}

static void a_lost_rent_is_ambiguous_and_found(const struct conformance *c)
{
	struct op_want want;
	struct op_result result;
	struct pod_view listed;
	struct err err;

	fill_attempt(c, &want, "00000000000000f3");
	assert_int_equal(carry_op(c, OP_RENT, &want, LOST_REPLY, &result, &err), OP_FAILED);
	if (err.kind != ERR_AMBIGUOUS)
		fail_msg("%s: a lost rent is %s (%s)", c->ops->name, err_kind_name(err.kind),
			 err.msg);
	assert_true(find_listed(c, "00000000000000f3", &listed));
	release(c, listed.id);
	wait_for_state(c, listed.id, POD_STATE_GONE);
}

static void strangers_are_gone(const struct conformance *c)
{
	const char *id = c->stranger ? c->stranger : "never-was-there";
	struct op_want want = of_pod(id);

	assert_int_equal(inspect(c, id).state, POD_STATE_GONE);
	release(c, id);
	must_fail(c, OP_BILLING, &want, ERR_NOT_FOUND);
}

static void volumes_come_and_go(const struct conformance *c)
{
	struct op_want want = {.volume.name = c->volume, .volume.size_gb = 1};
	struct op_result result;

	must_fail(c, OP_VOLUME, &want, ERR_NOT_FOUND);
	want.volume.create = true;
	must(c, OP_VOLUME, &want, &result);
	assert_int_equal(result.volume_count, 1);
	assert_string_equal(result.volumes[0].name, c->volume);
	struct op_want removal = of_pod(result.volumes[0].id);
	op_result_free(&result);
	must(c, OP_VOLUMES, &want, &result);
	assert_true(result.volume_count >= 1);
	op_result_free(&result);
	must(c, OP_VOLUME_REMOVE, &removal, &result);
	op_result_free(&result);
	want.volume.create = false;
	must_fail(c, OP_VOLUME, &want, ERR_NOT_FOUND);
}

/* A file on a volume, made without a pod. */
static void stage(const struct conformance *c, struct op_want *want, const char *path,
		  const char *bytes, size_t len)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *local = path_join(dir, "staged");
	struct op_result result;
	struct err err;

	put_bytes(local, bytes, len);
	want->file.path = path;
	want->file.local = local;
	want->file.max_bytes = (int64_t)len;
	if (c->ops->stage_block_bytes)
		assert_int_equal(
			blocks_of_file(&want->file.blocks, local, c->ops->stage_block_bytes, &err),
			0);
	must(c, OP_STAGE, want, &result);
	assert_int_equal(result.bytes, len);
	op_result_free(&result);
	blocks_free(&want->file.blocks);
	want->file.local = NULL;
	want->file.max_bytes = 0;
	assert_int_equal(remove_folder(dir), 0);
}

/* What is fetched, from an offset on, is what was put there. */
static void fetch(const struct conformance *c, struct op_want *want, const char *path,
		  const char *bytes, size_t len, size_t from)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *local = path_join(dir, "fetched");
	CLEANUP(str_free) struct str got = STR_INIT;
	struct op_result result;

	write_text(local, "");
	want->file.path = path;
	want->file.local = local;
	want->file.offset = (int64_t)from;
	must(c, OP_FETCH, want, &result);
	assert_int_equal(result.bytes, len - from);
	op_result_free(&result);
	assert_int_equal(path_read(local, len + 1, &got, NULL), 0);
	if (got.len != len - from || memcmp(str_text(&got), bytes + from, got.len))
		fail_msg("%s: %s from %zu on: %zu bytes, or others", c->ops->name, path, from,
			 got.len);
	want->file.local = NULL;
	want->file.offset = 0;
	assert_int_equal(remove_folder(dir), 0);
}

/* Files of several blocks, of none, and with zeros where a store may leave them out. */
static void files_travel_unchanged(const struct conformance *c, struct op_want *want)
{
	size_t block = (size_t)(c->ops->stage_block_bytes ? c->ops->stage_block_bytes : 8 << 20),
	       len = 3 * block + 1234;
	CLEANUP(free_text) char *bytes = xcalloc(1, len);

	/* the first block: a beginning and zeros */
	random_bytes(bytes, 1000);
	random_bytes(bytes + 2 * block, block + 1200); /* the second: only zeros; at the end some */
	stage(c, want, "staged/large", bytes, len);
	stage(c, want, "staged/empty", "", 0);
	fetch(c, want, "staged/large", bytes, len, 0);
	fetch(c, want, "staged/large", bytes, len, 2 * block - 7);
	fetch(c, want, "staged/large", bytes, len, len);
	fetch(c, want, "staged/empty", "", 0, 0);
	bytes[5]++; /* most of it is there already */
	stage(c, want, "staged/large", bytes, len);
	fetch(c, want, "staged/large", bytes, len, 0);
}

/* What is in a folder, asked for where the listing does not tell. */
static struct volume_entry measured(const struct conformance *c, struct op_want *want,
				    const struct volume_entry *e)
{
	CLEANUP(free_text) char *path = xasprintf("%s/%s", want->file.path, e->name);
	struct op_want folder = *want;
	struct op_result result;

	if (e->bytes >= 0)
		return *e;
	folder.file.path = path;
	must(c, OP_VOLUME_SIZE, &folder, &result);
	assert_int_equal(result.entry_count, 1);
	struct volume_entry found = result.entries[0];
	op_result_free(&result);
	return found;
}

static void a_folder_is_seen_and_deleted(const struct conformance *c, struct op_want *want)
{
	struct op_result result;
	int64_t now_s = clock_wall_ms() / 1000;

	stage(c, want, "runs/r1/a1/out/x.wav", "0123456789", 10);
	stage(c, want, "runs/r2/a2/out/y.wav", "0123456789", 10);
	want->file.path = "runs";
	must(c, OP_VOLUME_LS, want, &result);
	assert_int_equal(result.entry_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct volume_entry *e = &result.entries[i], in = measured(c, want, e);
		assert_true(e->folder && in.bytes >= 10 && in.files == 1);
		assert_true(!strcmp(e->name, "r1") || !strcmp(e->name, "r2"));
		assert_in_range(in.changed_s, now_s - 60, now_s + 60);
	}
	op_result_free(&result);
	want->file.path = "runs/r1";
	for (int twice = 0; twice < 2; twice++) { /* gone already: success */
		must(c, OP_VOLUME_DELETE, want, &result);
		op_result_free(&result);
	}
	must_fail(c, OP_VOLUME_LS, want, ERR_NOT_FOUND);
	want->file.path = "runs";
	must(c, OP_VOLUME_LS, want, &result);
	assert_int_equal(result.entry_count, 1);
	assert_string_equal(result.entries[0].name, "r2");
	op_result_free(&result);
}

static void volumes_are_tidied(const struct conformance *c)
{
	static const char *const unsafe[] = {"../x", "/runs", "runs/../../x", "", "."};
	struct op_want want = {
		.volume.name = c->volume, .volume.size_gb = 1, .volume.create = true};
	struct op_result result;

	must(c, OP_VOLUME, &want, &result);
	struct op_want file = {.file.volume = result.volumes[0]},
		       removal = of_pod(result.volumes[0].id);
	op_result_free(&result);
	if (c->ops->can_fetch)
		files_travel_unchanged(c, &file);
	a_folder_is_seen_and_deleted(c, &file);
	for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
		file.file.path = unsafe[i];
		must_fail(c, OP_VOLUME_LS, &file, ERR_REFUSED);
		must_fail(c, OP_VOLUME_DELETE, &file, ERR_REFUSED);
	}
	must(c, OP_VOLUME_REMOVE, &removal, &result);
	op_result_free(&result);
}

static void says_who_it_is(const struct conformance *c)
{
	struct op_want want = {0};
	struct op_result result;

	assert_int_equal(c->ops->abi, PROVIDER_ABI);
	assert_true(c->ops->account(c->provider)[0]);
	must(c, OP_CHECK, &want, &result);
	assert_true(starts_with(str_text(&result.text), "ok: ") ||
		    starts_with(str_text(&result.text), "warn: ") ||
		    starts_with(str_text(&result.text), "bad: "));
	op_result_free(&result);
	must(c, OP_BALANCE, &want, &result);
	assert_true(result.balance_microusd >= -1);
	op_result_free(&result);
}

void conformance_run(const struct conformance *c)
{
	says_who_it_is(c);
	strangers_are_gone(c);
	rents_lists_and_releases(c);
	if (!c->names_repeat)
		one_name_makes_one_pod(c);
	a_lost_rent_is_ambiguous_and_found(c);
	if (c->volume)
		volumes_come_and_go(c);
	if (c->volume && c->ops->can_tidy && c->ops->can_stage)
		volumes_are_tidied(c);
}
