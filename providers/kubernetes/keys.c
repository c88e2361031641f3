/* keys.c - brings what is secret to pods that run, over `kubectl exec`: it must not stand in a
 * Pod's specification, which others in the namespace may read.
 *
 * The texts live in the memory of the handle that rented, and nowhere else. If burst dies before a
 * pod has its keys, that pod ends itself when its first lease would end (end.sh). */
#include <stdlib.h>

#include "impl.h"

/* The list waits for a delivery: the first try is a short one. */
enum { DELIVERY_MS = 5000 };

struct kube_key {
	char pod[POD_ID_MAX];
	char *text;
	int tries;      /* that failed */
	bool forbidden; /* no further try can help */
	char why[160];  /* the last one failed */
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
	for (size_t i = 0; i < pods->pod_count; i++) {
		struct pod_view *pod = &pods->pods[i];
		const struct kube_key *key = find(p, pod->id);
		if (!key || pod->state != POD_STATE_RUNNING)
			continue;
		pod->state = key->forbidden ? POD_STATE_FAILED : POD_STATE_CREATING;
		if (key->why[0])
			format_text(pod->detail, sizeof(pod->detail),
				    "its keys cannot be brought: %s", key->why);
	}
}

/* kubectl may drop a part of its input and succeed (kubernetes/kubernetes#112834), or never pass
 * its end on, so the last line says that the file is whole. A pod that has its keys already says so
 * as well. */
static const char take_keys[] =
	"umask 077; h=" KUBERNETES_HOME "; mkdir -p $h; "
	"while IFS= read -r l; do printf '%s\\n' \"$l\"; [ \"$l\" != '# whole' ] || break; done "
	">$h/keys.new; "
	"if [ ! -s $h/host_key ]; then "
	"[ \"$l\" = '# whole' ] && mv -f $h/keys.new $h/keys || exit 1; fi; "
	"rm -f $h/keys.new; echo taken";

enum op_next kube_keys_bring(const struct op *op, struct call *call, const char *pod)
{
	kube_arguments(op->provider->section, call);
	kube_exec_arguments(call, pod);
	call_arg(call, "sh");
	call_arg(call, "-c");
	call_arg(call, take_keys);
	const struct kube_key *key = find(op->provider, pod);
	str_add(&call->body, key->text);
	call->class = CALL_CREATE; /* before polls: a pod waits for it and costs money */
	call->may_repeat = false;  /* the next list does */
	call->timeout_ms = DELIVERY_MS * (int64_t)MIN(key->tries + 1, 3);
	return OP_CALL;
}

bool kube_keys_brought(const struct op *op, const char *pod, const struct reply *reply)
{
	struct kube_key *key = find(op->provider, pod);
	struct err err;

	if (strstr(str_text(&reply->body), "taken")) {
		kube_keys_forget(op->provider, pod);
		return true;
	}
	if (!key)
		return false;
	key->tries++;
	if (reply->err.kind)
		err = reply->err; /* not done in time */
	else
		(void)kube_failed(op, reply, &err);
	key->forbidden = strstr(str_text(&reply->head), "(Forbidden)") != NULL;
	COPY_TEXT(key->why, err.kind == ERR_CREDENTIALS
				    ? "no right to create pods/exec: burst doctor --rights prints "
				      "the Role that burst needs"
				    : err.msg);
	return false;
}
