/* keys.c - brings what is secret to pods that run, over `kubectl exec`: it must not stand in a
 * Pod's specification, which others in the namespace may read.
 *
 * The texts live in the memory of the handle that rented, and nowhere else. If burst dies before a
 * pod has its keys, that pod ends itself when its first lease would end (end.sh). */
#include <stdlib.h>

#include "impl.h"

struct kube_key {
	char pod[POD_ID_MAX];
	char *text;
	int tries; /* that failed */
};

struct kube_keys {
	struct kube_key *list;
	size_t count, cap;
};

static struct kube_keys *keys_of(const struct provider *p)
{
	return p->own;
}

struct kube_keys *kube_keys_new(void)
{
	return xcalloc(1, sizeof(struct kube_keys));
}

void kube_keys_free(struct kube_keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		text_wipe(keys->list[i].text);
	free(keys->list);
	keys->list = NULL;
	keys->count = 0;
}

static struct kube_key *find(const struct provider *p, const char *pod)
{
	struct kube_keys *keys = keys_of(p);

	for (size_t i = 0; i < keys->count; i++)
		if (!strcmp(keys->list[i].pod, pod))
			return &keys->list[i];
	return NULL;
}

void kube_keys_forget(struct provider *p, const char *pod)
{
	struct kube_keys *keys = keys_of(p);
	struct kube_key *key = find(p, pod);

	if (!key)
		return;
	text_wipe(key->text);
	*key = keys->list[--keys->count];
}

void kube_keys_add(struct provider *p, const char *pod, char *text)
{
	struct kube_keys *keys = keys_of(p);

	kube_keys_forget(p, pod);
	GROW(keys->list, keys->count, keys->cap);
	keys->list[keys->count] = (struct kube_key){.text = text};
	COPY_TEXT(keys->list[keys->count++].pod, pod);
}

const char *kube_keys_next(const struct provider *p, const struct op_result *pods)
{
	const struct kube_key *next = NULL;

	for (size_t i = 0; i < pods->pod_count; i++) {
		const struct kube_key *key = find(p, pods->pods[i].id);
		if (key && pods->pods[i].state == POD_STATE_RUNNING &&
		    (!next || key->tries < next->tries))
			next = key;
	}
	return next ? next->pod : NULL;
}

void kube_keys_hold_back(const struct provider *p, struct op_result *pods)
{
	for (size_t i = 0; i < pods->pod_count; i++)
		if (pods->pods[i].state == POD_STATE_RUNNING && find(p, pods->pods[i].id))
			pods->pods[i].state = POD_STATE_CREATING;
}

/* kubectl may drop a part of its input and succeed (kubernetes/kubernetes#112834), so the pod
 * compares the last line. A pod that has its keys already says so as well. */
static const char take_keys[] =
	"umask 077; h=" KUBERNETES_HOME "; mkdir -p $h; cat >$h/keys.new; "
	"if [ ! -s $h/host_key ]; then "
	"[ \"$(tail -n 1 $h/keys.new)\" = '# whole' ] && mv -f $h/keys.new $h/keys || exit 1; fi; "
	"rm -f $h/keys.new; echo taken";

enum op_next kube_keys_bring(const struct op *op, struct call *call, const char *pod)
{
	kube_arguments(op->provider->section, call);
	kube_exec_arguments(call, pod);
	call_arg(call, "sh");
	call_arg(call, "-c");
	call_arg(call, take_keys);
	str_add(&call->body, find(op->provider, pod)->text);
	call->class = CALL_CREATE; /* before polls: a pod waits for it and costs money */
	call->timeout_ms = 15000;
	return OP_CALL;
}

bool kube_keys_brought(struct provider *p, const char *pod, const struct reply *reply)
{
	struct kube_key *key = find(p, pod);

	if (!reply->failed && strstr(str_text(&reply->body), "taken")) {
		kube_keys_forget(p, pod);
		return true;
	}
	if (key)
		key->tries++;
	return false;
}
