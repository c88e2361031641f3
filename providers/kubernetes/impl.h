/* impl.h - shared by the files of the Kubernetes translator. */
#ifndef BURST_PROVIDERS_KUBERNETES_IMPL_H
#define BURST_PROVIDERS_KUBERNETES_IMPL_H

#include <jansson.h>

#include "providers/child.h"

#define KUBERNETES_NAME  "kubernetes"
#define KUBERNETES_IMAGE "nvidia/cuda:12.8.1-base-ubuntu24.04"
/* BURST_HOME of its pods: dial() must know it */
#define KUBERNETES_HOME "/tmp/burst"
#define LABEL_MACHINE   "burst.dev/machine"
#define LABEL_RUN       "burst.dev/run"
#define LABEL_ATTEMPT   "burst.dev/attempt"
#define LABEL_VOLUME    "burst.dev/volume"
#define NOTE_HARD_END   "burst.dev/hard-end"
#define NOTE_GPU        "burst.dev/gpu"
#define NOTE_PRICE      "burst.dev/price-microusd-h"
#define NOTE_SPOT       "burst.dev/spot"

/* A reply's body as one object; NULL: it is none (ERR_TRANSIENT). The caller json_decref()s it. */
json_t *kube_object(const struct reply *reply, struct err *err);
/* Whether Kubernetes takes this as the name of a pod, a volume claim or a namespace. Such a name is
 * safe in a URL and in an argument. */
bool kube_is_name(const char *text);
/* The condition of this type among status.conditions, borrowed; NULL: it has none. */
const json_t *kube_condition(const json_t *object, const char *type);
/* Appends the arguments that every kubectl gets: which cluster, and which namespace. */
void kube_arguments(const struct section *conf, struct call *call);
/* The same of `kubectl exec` in this pod, before the command. */
void kube_exec_arguments(struct call *call, const char *pod);
/* `kubectl VERB --raw`: one request, without those by which kubectl finds out what a server has.
 * path: from /api on. Takes over body (NULL: none). OP_CALL. */
enum op_next kube_request(const struct op *op, struct call *call, const char *verb, json_t *body,
			  const char *path, ...) PRINTF(5, 6);
/* A path below the namespace: "pods/NAME". OP_CALL. */
enum op_next kube_request_in_namespace(const struct op *op, struct call *call, const char *verb,
				       json_t *body, const char *path, ...) PRINTF(5, 6);
extern const struct child_word kube_words[];
/* OP_FAILED: by stderr's words. A rent is ERR_AMBIGUOUS unless these words say that no pod was
 * made.
 */
enum op_next kube_failed(const struct op *op, const struct reply *reply, struct err *err);

/* ---- selectors.c: "key=value" and tolerations of the config ---- */

int kube_check_selector(const struct section *s, const char *group, const char *key,
			struct err *err);
int kube_check_tolerations(const struct section *s, const char *group, const char *key,
			   struct err *err);
/* Adds the items of a checked list to an object of labels, or to a list of tolerations. */
void kube_add_selector(json_t *to, const struct section *s, const char *key);
void kube_add_tolerations(json_t *to, const struct section *s, const char *key);
/* Whether a pod for this kind of offer may go to this node, as far as taints and the selectors of
 * the config say. */
bool kube_node_suits(const struct section *s, const json_t *node, bool spot);

/* ---- spec.c: the Pod that is created ---- */

/* A new object. */
json_t *kube_pod_spec(const struct section *conf, const struct rent_request *rent);
/* The file of keys that is brought to the pod: what is secret in the rent's environment, as lines
 * of sh, and a last line by which the pod knows that it is whole. NULL: nothing is secret. A new
 * string; wipe it. */
char *kube_keys_text(const struct rent_request *rent);

/* ---- pods.c: a Pod as a pod_view ---- */

/* ERR_TRANSIENT: no object of a pod with a usable name. */
int kube_read_pod(const json_t *pod, int64_t now_s, struct pod_view *out, struct err *err);
/* Whether its end was asked for, and its node has not confirmed it although its grace is long over.
 */
bool kube_is_silent(const json_t *pod, int64_t now_s);
/* Adds every pod of a PodList that has the label. */
int kube_read_pods(const json_t *list, int64_t now_s, struct op_result *result, struct err *err);

/* ---- list.c: OP_LIST and OP_INSPECT ---- */

/* Appends the token of the next page to an empty text, which stays empty if there is none. The
 * token is safe in a URL. ERR_TRANSIENT: this page cannot be part of a list. */
int kube_next_page(const json_t *list, struct str *token, struct err *err);
enum op_next kube_list_ask(struct op *op, struct call *call);
enum op_next kube_list_take(struct op *op, const struct reply *reply, struct op_result *result,
			    struct err *err);

/* ---- release.c: OP_RELEASE ---- */

enum op_next kube_release_ask(struct op *op, struct call *call, struct err *err);
/* result->text: that the object was deleted by force. */
enum op_next kube_release_take(struct op *op, const struct reply *reply, struct op_result *result,
			       struct err *err);

/* ---- nodes.c: offers ---- */

/* The next page of nodes, of which op->found.text keeps what is needed. OP_CALL. */
enum op_next kube_nodes_ask(const struct op *op, struct call *call);
/* Reads such a page. spot: nodes for spot pods. 1: there is another page; -1: ERR_TRANSIENT. */
int kube_nodes_take(struct op *op, const struct reply *reply, bool spot, struct err *err);
/* Adds an offer for each GPU that the nodes have and the job wishes for, and lines about wishes
 * that none has. listed: all pages were read; else nodes may not be listed. */
void kube_read_offers(const struct op *op, bool listed, struct op_result *result);
/* What a pod on such an offer asks for, "nvidia.com/gpu"; points into id or a literal. */
const char *kube_resource_of(const char *id);
/* The pod's affinity to the offer's nodes, a new object; NULL: any node will do. */
json_t *kube_affinity(const char *id);

/* ---- keys.c: brings secrets to pods that run ---- */

/* Of a provider handle (provider.own): secrets of pods that it has rented, until they have got
 * them, and which pods have them. kube_keys_free() wipes them; the struct itself is freed by
 * child_close(). */
struct kube_keys;
struct kube_keys *kube_keys_new(void);
void kube_keys_free(struct kube_keys *keys);
void kube_keys_add(struct provider *p, const char *pod, char *text); /* takes over text */
void kube_keys_forget(struct provider *p, const char *pod);
/* One of these pods that runs and waits for its keys, or, among ids (NULL: none), was rented by
 * another client and has not been asked whether it has its keys; the one with the fewest failures
 * first; NULL: none. */
const char *kube_keys_next(struct provider *p, const struct op_result *pods, char *const *ids);
/* Shows those that wait as pods that boot: none of them can be reached. One to which no keys may be
 * brought has failed, and one whose client died with its keys has stopped. */
void kube_keys_hold_back(const struct provider *p, struct op_result *pods);
/* The call that brings them to this pod, or asks it. OP_CALL. */
enum op_next kube_keys_bring(const struct op *op, struct call *call, const char *pod);
/* Reads its reply (reply->err: it was not done in time). True: the pod has answered. */
bool kube_keys_brought(const struct op *op, const char *pod, const struct reply *reply);

/* ---- volumes.c: a volume is a PersistentVolumeClaim ---- */

enum op_next kube_volume_ask(struct op *op, struct call *call, struct op_result *result,
			     struct err *err);
enum op_next kube_volume_take(struct op *op, const struct reply *reply, struct op_result *result,
			      struct err *err);

/* ---- check.c: the findings of `burst doctor` ---- */

enum op_next kube_check_ask(struct op *op, struct call *call, struct op_result *result,
			    struct err *err);
enum op_next kube_check_take(struct op *op, const struct reply *reply, struct op_result *result,
			     struct err *err);
/* As provider_ops.rights: a Role and a RoleBinding, as YAML. A new string. */
char *kube_rights(const struct section *conf);

#endif
