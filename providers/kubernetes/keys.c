/* keys.c - brings what is secret to pods that run, over `kubectl exec`: it must not stand in a
 * Pod's specification, which others in the namespace may read.
 *
 * The texts live in the memory of the handle that rented, and nowhere else. If burst dies before a
 * pod has its keys, that pod ends itself when its first lease would end (end.sh). A later client
 * asks each pod that it adopts whether it has its keys, and takes one without for stopped. */
#include <stdlib.h>

#include "impl.h"

/* The list waits for a delivery: the first try is a short one. After some tries in vain, a pod that
 * another client rented counts as one that has its keys. */
enum { DELIVERY_MS = 5000, QUESTIONS_MOST = 3 };

struct kube_key {
	char pod[POD_ID_MAX];
	char *text; /* NULL: another client rented the pod, or it has its keys */
	enum { KEY_WAITS, KEY_THERE, KEY_LOST, KEY_FORBIDDEN } state;
	int tries;     /* that failed */
	char why[160]; /* the last one failed */
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

void kube_keys_add(struct provider *p, const char *pod, char *text)
{
	struct kube_keys *keys = keys_of(p);
	struct kube_key *key = find(p, pod);

	if (!key) {
		GROW(keys->list, keys->count, keys->cap);
		key = &keys->list[keys->count++];
		key->text = NULL;
	}
	text_wipe(key->text);
	*key = (struct kube_key){.text = text};
	COPY_TEXT(key->pod, pod);
}

/* Its entry stays: lists that still show the pod ask nothing of it. */
void kube_keys_forget(struct provider *p, const char *pod)
{
	kube_keys_add(p, pod, NULL);
	find(p, pod)->state = KEY_THERE;
}

/* What is known of a pod's keys; of one of ids that another client rented, a new entry. */
static const struct kube_key *look_up(struct provider *p, const char *pod, char *const *ids)
{
	const struct kube_key *key = find(p, pod);

	for (; !key && ids && *ids; ids++)
		if (!strcmp(*ids, pod)) {
			kube_keys_add(p, pod, NULL);
			key = find(p, pod);
		}
	return key;
}

const char *kube_keys_next(struct provider *p, const struct op_result *pods, char *const *ids)
{
	const struct kube_key *next = NULL;

	/* first all entries, since they move when one is added */
	for (size_t i = 0; i < pods->pod_count; i++)
		if (pods->pods[i].state == POD_STATE_RUNNING)
			(void)look_up(p, pods->pods[i].id, ids);
	for (size_t i = 0; i < pods->pod_count; i++) {
		const struct kube_key *key = find(p, pods->pods[i].id);
		if (key && key->state == KEY_WAITS && pods->pods[i].state == POD_STATE_RUNNING &&
		    (!next || key->tries < next->tries))
			next = key;
	}
	return next ? next->pod : NULL;
}

static void hold_back(struct pod_view *pod, const struct kube_key *key)
{
	if (key->state == KEY_LOST) {
		pod->state = POD_STATE_STOPPED;
		COPY_TEXT(pod->detail, "its client died before the pod had its keys");
	} else if (key->state == KEY_FORBIDDEN || (key->state == KEY_WAITS && key->text)) {
		pod->state = key->state == KEY_FORBIDDEN ? POD_STATE_FAILED : POD_STATE_CREATING;
		pod->reach = REACH_NONE;
		if (key->why[0])
			format_text(pod->detail, sizeof(pod->detail),
				    "its keys cannot be brought: %s", key->why);
	}
}

void kube_keys_hold_back(const struct provider *p, struct op_result *pods)
{
	for (size_t i = 0; i < pods->pod_count; i++) {
		const struct kube_key *key = find(p, pods->pods[i].id);
		if (key && pods->pods[i].state == POD_STATE_RUNNING)
			hold_back(&pods->pods[i], key);
	}
}

/* kubectl may drop a part of its input and succeed (kubernetes/kubernetes#112834), or never pass
 * its end on, so the last line says that the file is whole. A pod that has its keys says so. */
static const char take_keys[] =
	"umask 077; h=" KUBERNETES_HOME
	"; mkdir -p $h; [ ! -e $h/keyed ] || { echo taken; exit; }; "
	"while IFS= read -r l; do printf '%s\\n' \"$l\"; [ \"$l\" != '# whole' ] || break; done "
	">$h/keys.new; "
	"if [ \"$l\" = '# whole' ]; then mv -f $h/keys.new $h/keys; else rm -f $h/keys.new; fi; "
	"if [ -e $h/keys ] || [ -e $h/keyed ]; then echo taken; else echo keyless; fi";

enum op_next kube_keys_bring(const struct op *op, struct call *call, const char *pod)
{
	const struct kube_key *key = find(op->provider, pod);

	kube_arguments(op->provider->section, call);
	kube_exec_arguments(call, pod);
	call_arg(call, "sh");
	call_arg(call, "-c");
	call_arg(call, take_keys);
	str_add(&call->body, key->text ? key->text : "\n");
	call->class = CALL_CREATE; /* before polls: a pod waits for it and costs money */
	call->may_repeat = false;  /* the next list does */
	call->timeout_ms = DELIVERY_MS * (int64_t)MIN(key->tries + 1, 3);
	return OP_CALL;
}

/* Why a delivery failed, and whether another one can help. */
static void note_failure(const struct op *op, struct kube_key *key, const struct reply *reply)
{
	struct err err;

	key->tries++;
	if (reply->err.kind)
		err = reply->err; /* not done in time */
	else
		(void)kube_failed(op, reply, &err);
	if (strstr(str_text(&reply->head), "(Forbidden)"))
		key->state = KEY_FORBIDDEN;
	else if (!key->text && key->tries >= QUESTIONS_MOST)
		key->state = KEY_THERE;
	COPY_TEXT(key->why, err.kind == ERR_CREDENTIALS
				    ? "no right to create pods/exec: burst doctor --rights prints "
				      "the Role that burst needs"
				    : err.msg);
}

bool kube_keys_brought(const struct op *op, const char *pod, const struct reply *reply)
{
	struct kube_key *key = find(op->provider, pod);

	if (strstr(str_text(&reply->body), "taken")) {
		text_wipe(key->text);
		key->text = NULL;
		key->state = KEY_THERE;
		return true;
	}
	if (strstr(str_text(&reply->body), "keyless") && !key->text) {
		key->state = KEY_LOST;
		return true;
	}
	note_failure(op, key, reply);
	return false;
}
