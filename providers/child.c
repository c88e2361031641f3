/* child.c - operations that are child processes: their limits, and what their failures mean */
#include "child.h"

#include <stdlib.h>

#include "base/gpus.h"

enum { KILLED_BY = 128, SIGNAL_MOST = 64, STDERR_SHOWN = 200, ANSWER_MOST_BYTES = 16 << 20 };

/* A child that hangs must not hang burst, so each has a limit. Those of a release, a removal and a
 * listing are long: they may delete a full disk's worth of files. */
static const struct verb {
	const char *word;
	enum call_class class;
	bool may_repeat;
	int64_t timeout_ms;
} verbs[] = {
	[OP_CHECK] = {"check", CALL_POLL, true, 20000},
	[OP_OFFERS] = {"offers", CALL_POLL, true, 60000},
	[OP_VOLUME] = {"volume", CALL_CREATE, true, 20000},
	[OP_VOLUMES] = {"volumes", CALL_POLL, true, 120000},
	[OP_VOLUME_REMOVE] = {"volume-remove", CALL_POLL, true, 600000},
	[OP_RENT] = {"rent", CALL_CREATE, false, 60000},
	[OP_INSPECT] = {"inspect", CALL_POLL, true, 60000},
	[OP_LIST] = {"list", CALL_POLL, true, 60000},
	[OP_RELEASE] = {"release", CALL_RELEASE, true, 120000},
	[OP_BILLING] = {"billing", CALL_POLL, true, 60000},
	[OP_BALANCE] = {"balance", CALL_POLL, true, 20000},
	[OP_LOGS] = {"logs", CALL_POLL, true, 20000},
	[OP_STAGE] = {"stage", CALL_POLL, true, 3600000},
	[OP_FETCH] = {"fetch", CALL_POLL, false, 3600000},
	[OP_VOLUME_LS] = {"volume-ls", CALL_POLL, true, 600000},
	[OP_VOLUME_DELETE] = {"volume-delete", CALL_POLL, true, 600000},
	[OP_VOLUME_SIZE] = {"volume-size", CALL_POLL, true, 600000},
	[OP_IMAGE] = {"image", CALL_CREATE, true, 600000},
};

const char *child_verb(enum op_kind kind)
{
	return verbs[kind].word;
}

struct provider *child_open(const struct child_vendor *vendor, const struct section *section,
			    const char *state_dir, const char *account)
{
	struct provider *p = xcalloc(1, sizeof(*p));

	*p = (struct provider){.vendor = vendor,
			       .section = section,
			       .state_dir = xstrdup(state_dir),
			       .account = xstrdup(account)};
	return p;
}

void child_close(struct provider *p)
{
	if (!p)
		return;
	free(p->own);
	free(p->state_dir);
	free(p->account);
	free(p);
}

const char *child_account(const struct provider *p)
{
	return p->account;
}

struct op *child_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.provider = p, .kind = kind, .want = want, .kept = STR_INIT};
	return op;
}

void child_op_free(struct op *op)
{
	if (!op)
		return;
	str_free(&op->kept);
	op_result_free(&op->found);
	free(op);
}

/* ---- failures ---- */

enum op_next child_no_answer(const struct op *op, const char *what, struct err *err)
{
	char why[sizeof(err->msg)];

	COPY_TEXT(why, what);
	err_set(err, op->kind == OP_RENT ? ERR_AMBIGUOUS : ERR_TRANSIENT, "%s %s: no answer: %s",
		op->provider->vendor->name, child_verb(op->kind), why);
	return OP_FAILED;
}

static const struct child_word *find_word(const struct child_word *words, const char *text)
{
	for (; words && words->text; words++)
		if (strcasestr(text, words->text))
			return words;
	return NULL;
}

enum op_next child_failed(const struct op *op, const struct reply *reply, struct err *err)
{
	const struct child_word *word =
		find_word(op->provider->vendor->words, str_text(&reply->head));
	CLEANUP(str_free) struct str shown = STR_INIT;

	if (word) {
		size_t len;
		const char *line = str_last_line(&reply->head, &len);
		str_add_printable(&shown, line, len, STDERR_SHOWN);
		err_set(err, word->kind, "%s %s: %s%s%s", op->provider->vendor->name,
			child_verb(op->kind), str_text(&shown), word->advice ? ": " : "",
			word->advice ? word->advice : "");
		return OP_FAILED;
	}
	if (reply->status > KILLED_BY && reply->status <= KILLED_BY + SIGNAL_MOST) {
		str_addf(&shown, "killed by signal %d", reply->status - KILLED_BY);
	} else {
		str_addf(&shown, "exit code %d: ", reply->status);
		str_add_printable(&shown, str_text(&reply->head), reply->head.len, STDERR_SHOWN);
	}
	return child_no_answer(op, str_text(&shown), err);
}

/* ---- one step ---- */

static enum op_next make_call(struct op *op, struct call *call, struct op_result *result,
			      struct err *err)
{
	const struct verb *verb = &verbs[op->kind];

	*call = (struct call){
		.kind = CALL_CHILD,
		.class = verb->class,
		.may_repeat = verb->may_repeat,
		.timeout_ms = verb->timeout_ms,
		.max_bytes = ANSWER_MOST_BYTES,
	};
	enum op_next next = op->provider->vendor->ask(op, call, result, err);
	if (next != OP_CALL)
		call_free(call);
	return next;
}

static enum op_next read_reply(struct op *op, const struct reply *reply, struct op_result *result,
			       struct err *err)
{
	if (!reply->failed)
		return op->provider->vendor->take(op, reply, result, err);
	if (op->kind == OP_RENT && reply->was_sent)
		return child_no_answer(op, reply->err.msg, err);
	*err = reply->err;
	err_wrap(err, "%s %s", op->provider->vendor->name, child_verb(op->kind));
	return OP_FAILED;
}

static void set_forgotten_pod(const struct op *op, struct op_result *result)
{
	struct pod_view *pod = op_result_add_pod(result);

	COPY_TEXT(pod->id, op->want->id);
	pod->state = POD_STATE_GONE;
	COPY_TEXT(pod->detail, "no such pod");
}

enum op_next child_next(struct op *op, const struct reply *reply, struct call *call,
			struct op_result *result, struct err *err)
{
	struct op_result got = {.balance_microusd = -1};
	enum op_next next = reply ? read_reply(op, reply, &got, err) : OP_CALL;

	if (next == OP_CALL)
		next = make_call(op, call, &got, err);
	if (next == OP_FAILED && err->kind == ERR_NOT_FOUND &&
	    (op->kind == OP_RELEASE || op->kind == OP_INSPECT)) {
		op_result_free(&got);
		got = (struct op_result){.balance_microusd = -1};
		if (op->kind == OP_INSPECT)
			set_forgotten_pod(op, &got);
		next = OP_DONE;
	}
	if (next == OP_DONE)
		*result = got;
	else
		op_result_free(&got);
	return next;
}

/* ---- offers ---- */

static bool is_fulfilled(const char *wish, const char *gpu, int gpus)
{
	char name[GPU_MAX];
	int count;

	if (!strcasecmp(wish, GPU_NONE))
		return true;
	return gpu_parse(wish, name, sizeof(name), &count) && count == gpus &&
	       (gpu_satisfies(wish, gpu) || !strcmp(name, gpu));
}

int child_wish(const struct op_want *want, const char *gpu, int gpus)
{
	const char *const *wishes = want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++)
		if (is_fulfilled(wishes[i], gpu, gpus))
			return i;
	return wishes && wishes[0] ? -1 : 0;
}

struct offer *child_offer(const struct op *op, const char *gpu, int gpus, int vram_gb,
			  int64_t price_microusd_h, struct op_result *result)
{
	const struct gpu *known = gpu_is_none(gpu) ? NULL : gpu_find(gpu);
	int wish = child_wish(op->want, gpu, gpus);

	if (!vram_gb)
		vram_gb = known ? known->vram_gb : gpu_slice_gb(gpu);
	if (wish < 0 || ((vram_gb || gpu_is_none(gpu)) && vram_gb < op->want->offers.vram_gb))
		return NULL;
	struct offer *offer = op_result_add_offer(result);
	*offer = (struct offer){.gpus = gpu_is_none(gpu) ? 0 : gpus,
				.vram_gb = vram_gb,
				.price_microusd_h = price_microusd_h,
				.wish = wish};
	COPY_TEXT(offer->provider, op->provider->vendor->name);
	COPY_TEXT(offer->gpu, gpu);
	return offer;
}
