/* list.c - which pods there are, page by page; what a list finds to do is done with it: keys are
 * brought to pods that wait for them, and objects of pods that have ended are removed */
#include <ctype.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

/* op->step: the pages of the list, or the pod; then deliveries of keys, at most so many, since a
 * list must not take long; then the removal of pod number step - REMOVALS of op->found */
enum { SEE_PODS, DELIVERIES_MOST = 8, REMOVALS = 100 };

/* A Pod has the start script in it, some 16 kB: a page is below 5 MB. */
#define PAGE "200"

enum { TOKEN_MOST = 1000 }; /* of the next page; real ones have some 150 characters */

int kube_next_page(const json_t *list, struct str *token, struct err *err)
{
	const char *text = jsonx_text(json_object_get(list, "metadata"), "continue", "");

	for (const char *p = text; *p; p++)
		if ((!isalnum((unsigned char)*p) && !strchr("-_=.", *p)) || p - text >= TOKEN_MOST)
			return err_set(err, ERR_TRANSIENT, "a list with an odd next page");
	if (*text && !json_array_size(json_object_get(list, "items")))
		return err_set(err, ERR_TRANSIENT, "a list with an empty page");
	str_add(token, text);
	return 0;
}

/* Adds what a reply shows to op->found. */
static int read_pods(struct op *op, const struct reply *reply, struct err *err)
{
	int64_t now_s = clock_wall_ms() / 1000;
	CLEANUP(json_decref) json_t *object = kube_object(reply, err);

	if (!object)
		return -1;
	if (op->kind == OP_INSPECT)
		return kube_read_pod(object, now_s, op_result_add_pod(&op->found), err);
	if (kube_read_pods(object, now_s, &op->found, err) < 0)
		return -1;
	str_reset(&op->kept);
	return kube_next_page(object, &op->kept, err);
}

/* The pods of the run that lists; NULL: none. */
static char *const *ids_of(const struct op *op)
{
	return op->kind == OP_LIST && op->want ? op->want->ids : NULL;
}

/* The next of these pods, from number `from` on, that has ended and is this run's: its object stays
 * until it is deleted, and holds nothing but the reason of its end. -1: none. */
static int next_ended(const struct op *op, int from)
{
	char *const *ids = ids_of(op);

	for (int i = from; i < (int)op->found.pod_count; i++)
		for (size_t k = 0; ids && ids[k]; k++)
			if (op->found.pods[i].state == POD_STATE_GONE &&
			    !strcmp(op->found.pods[i].id, ids[k]))
				return i;
	return -1;
}

/* Keeps the pod's name: it may be released, and its keys be forgotten, while they are on their way.
 */
static enum op_next bring_keys(struct op *op, struct call *call)
{
	str_reset(&op->kept);
	str_add(&op->kept, kube_keys_next(op->provider, &op->found, ids_of(op)));
	return kube_keys_bring(op, call, str_text(&op->kept));
}

enum op_next kube_list_ask(struct op *op, struct call *call)
{
	if (op->step >= REMOVALS) {
		call->class = CALL_RELEASE;
		return kube_request_in_namespace(op, call, "delete", NULL, "pods/%s",
						 op->found.pods[op->step - REMOVALS].id);
	}
	if (op->step > SEE_PODS)
		return bring_keys(op, call);
	if (op->kind == OP_INSPECT)
		return kube_request_in_namespace(op, call, "get", NULL, "pods/%s", op->want->id);
	return kube_request_in_namespace(
		op, call, "get", NULL, "pods?labelSelector=burst.dev%%2Fmachine&limit=" PAGE "%s%s",
		op->kept.len ? "&continue=" : "", str_text(&op->kept));
}

enum op_next kube_list_take(struct op *op, const struct reply *reply, struct op_result *result,
			    struct err *err)
{
	struct provider *p = op->provider;
	bool delivered = true;
	int ended = 0;

	if (op->step == SEE_PODS) {
		if (reply->status != 0)
			return kube_failed(op, reply, err);
		if (read_pods(op, reply, err) < 0)
			return OP_FAILED;
		if (op->kept.len)
			return OP_CALL;
	}
	if (op->step >= REMOVALS) {
		ended = op->step - REMOVALS + 1;
	} else {
		if (op->step > SEE_PODS)
			delivered = kube_keys_brought(op, str_text(&op->kept), reply);
		if (delivered && op->step++ < DELIVERIES_MOST &&
		    kube_keys_next(p, &op->found, ids_of(op)))
			return OP_CALL;
	}
	ended = next_ended(op, ended);
	if (ended >= 0) {
		op->step = REMOVALS + ended;
		return OP_CALL;
	}
	kube_keys_hold_back(p, &op->found);
	result->pods = op->found.pods;
	result->pod_count = op->found.pod_count;
	op->found = (struct op_result){0};
	return OP_DONE;
}
