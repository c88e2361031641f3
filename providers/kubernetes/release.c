/* release.c - ends a pod. Its object goes when its node has confirmed the end. Where the node is
 * lost, the object is deleted by force. */
#include <ctype.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

/* DELETE_POD, and only where an earlier deletion is unconfirmed long after its grace: SEE_NODE,
 * FORCE. */
enum { DELETE_POD, SEE_NODE, FORCE };

/* Whether Kubernetes takes this as a node's name. Such a name is safe in a URL. */
static bool is_node_name(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && !strchr("-.", *p))
			return false;
	return *text && strlen(text) < 254;
}

enum op_next kube_release_ask(struct op *op, struct call *call, struct err *err)
{
	(void)err;
	if (op->step == SEE_NODE)
		return kube_request(op, call, "get", NULL,
				    "/api/v1/nodes?fieldSelector=metadata.name%%3D%s",
				    str_text(&op->kept));
	if (op->step == FORCE)
		return kube_request_in_namespace(op, call, "delete", NULL,
						 "pods/%s?gracePeriodSeconds=0", op->want->id);
	kube_keys_forget(op->provider, op->want->id);
	return kube_request_in_namespace(op, call, "delete", NULL, "pods/%s?gracePeriodSeconds=5",
					 op->want->id);
}

/* Whether the cluster has lost this node: it is in no list, or its kubelet has told nothing for so
 * long that the cluster says "Unknown" (40 s by default). A node that answers and does not end a
 * pod still holds its GPU: then it is "True". */
static bool is_lost(const struct reply *reply)
{
	struct err unreadable;
	CLEANUP(json_decref)
	json_t *list = reply->status == 0 ? kube_object(reply, &unreadable) : NULL;
	const json_t *items = json_object_get(list, "items");

	if (!json_is_array(items))
		return false;
	return !json_array_size(items) ||
	       !strcmp(jsonx_text(kube_condition(json_array_get(items, 0), "Ready"), "status", ""),
		       "Unknown");
}

/* The reply to a deletion is the pod as it is now. Keeps its node's name if the end was asked for
 * long before, and the node has not confirmed it. */
static bool keep_silent_node(struct op *op, const struct reply *reply)
{
	struct err unreadable;
	CLEANUP(json_decref) json_t *pod = kube_object(reply, &unreadable);
	const char *node = jsonx_text(json_object_get(pod, "spec"), "nodeName", "");

	if (!pod || !kube_is_silent(pod, clock_wall_ms() / 1000) || !is_node_name(node))
		return false;
	str_add(&op->kept, node);
	return true;
}

enum op_next kube_release_take(struct op *op, const struct reply *reply, struct op_result *result,
			       struct err *err)
{
	if (op->step == DELETE_POD) {
		if (reply->status != 0)
			return kube_failed(op, reply, err);
		op->step = SEE_NODE;
		return keep_silent_node(op, reply) ? OP_CALL : OP_DONE;
	}
	if (op->step == SEE_NODE) {
		op->step = FORCE;
		return is_lost(reply) ? OP_CALL : OP_DONE;
	}
	if (reply->status == 0)
		str_addf(&result->text,
			 "pod %s: node %s is lost, so its object was deleted by force; if its "
			 "container still runs there, it ends itself when its lease is over",
			 op->want->id, str_text(&op->kept));
	return OP_DONE;
}
