/* api.c - what kubectl is called with, and what its failures mean */
#include <ctype.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

enum { NAME_MOST = 63 };

json_t *kube_object(const struct reply *reply, struct err *err)
{
	json_t *object = jsonx_parse(str_text(&reply->body), reply->body.len, err);

	if (!object)
		err->kind = ERR_TRANSIENT;
	return object;
}

bool kube_is_name(const char *text)
{
	size_t len = strlen(text);

	for (const char *p = text; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '-')
			return false;
	return len && len <= NAME_MOST && text[0] != '-' && text[len - 1] != '-';
}

const json_t *kube_condition(const json_t *object, const char *type)
{
	const json_t *list = json_object_get(json_object_get(object, "status"), "conditions"), *one;
	size_t i;

	json_array_foreach (list, i, one)
		if (!strcmp(jsonx_text(one, "type", ""), type))
			return one;
	return NULL;
}

/* ---- requests ---- */

void kube_arguments(const struct section *conf, struct call *call)
{
	const char *file = section_text(conf, "kubeconfig");
	CLEANUP(free_text) char *context = xasprintf("--context=%s", section_text(conf, "context"));
	CLEANUP(free_text)
	char *namespace = xasprintf("--namespace=%s", section_text(conf, "namespace"));

	call_arg(call, "kubectl");
	if (file) {
		CLEANUP(free_text) char *option = xasprintf("--kubeconfig=%s", file);
		call_arg(call, option);
	}
	call_arg(call, context);
	call_arg(call, namespace);
}

void kube_exec_arguments(struct call *call, const char *pod)
{
	call_arg(call, "exec");
	call_arg(call, "-i");
	call_arg(call, pod);
	call_arg(call, "-c");
	call_arg(call, "main");
	call_arg(call, "--");
}

/* As kube_request(), with a whole path. */
static enum op_next request(const struct op *op, struct call *call, const char *verb, json_t *body,
			    const char *path)
{
	kube_arguments(op->provider->section, call);
	call_arg(call, "--request-timeout=20s");
	call_arg(call, verb);
	call_arg(call, "--raw");
	call_arg(call, path);
	if (!body)
		return OP_CALL;
	CLEANUP(free_text) char *line = jsonx_line(body);
	json_decref(body);
	call_arg(call, "--filename=-");
	str_add(&call->body, line ? line : "");
	return OP_CALL;
}

enum op_next kube_request(const struct op *op, struct call *call, const char *verb, json_t *body,
			  const char *path, ...)
{
	char whole[1400]; /* a page's token has some hundred characters */
	va_list ap;

	va_start(ap, path);
	vformat_text(whole, sizeof(whole), path, ap);
	va_end(ap);
	return request(op, call, verb, body, whole);
}

enum op_next kube_request_in_namespace(const struct op *op, struct call *call, const char *verb,
				       json_t *body, const char *path, ...)
{
	char below[1400], whole[1600];
	va_list ap;

	va_start(ap, path);
	vformat_text(below, sizeof(below), path, ap);
	va_end(ap);
	format_text(whole, sizeof(whole), "/api/v1/namespaces/%s/%s",
		    section_text(op->provider->section, "namespace"), below);
	return request(op, call, verb, body, whole);
}

/* ---- failures ---- */

/* Words of kubectl 1.32 and 1.37, and of an API server 1.37. */
const struct child_word kube_words[] = {
	{"exceeded quota", ERR_NO_CAPACITY,
	 "a ResourceQuota of the namespace is used up: see kubectl describe quota"},
	{"(NotFound): namespaces ", ERR_CONFIG,
	 "name another one in providers.kubernetes.namespace"},
	{"(NotFound)", ERR_NOT_FOUND, NULL},
	{"(AlreadyExists)", ERR_REFUSED, NULL},
	{"\" cannot ", ERR_CREDENTIALS, "burst doctor --rights prints the Role that burst needs"},
	{"(Forbidden)", ERR_REFUSED, NULL},
	{"(Invalid)", ERR_REFUSED, NULL},
	{"(BadRequest)", ERR_REFUSED, NULL},
	{"(TooManyRequests)", ERR_RATE_LIMITED, NULL},
	{"error: context ", ERR_CONFIG,
	 "name one of kubectl config get-contexts in providers.kubernetes.context"},
	{"error loading config file", ERR_CONFIG, NULL},
	{"must be logged in", ERR_CREDENTIALS,
	 "log in to the cluster again, until kubectl get pods works"},
	{"getting credentials", ERR_CREDENTIALS,
	 "log in to the cluster again, until kubectl get pods works"},
	{"x509: ", ERR_UNTRUSTED, NULL},
	{"unknown flag: --raw", ERR_LOCAL, "kubectl 1.30 or newer is needed"},
	/* these come before the request was sent */
	{"was refused", ERR_NETWORK, NULL},
	{"no such host", ERR_NETWORK, NULL},
	{"no route to host", ERR_NETWORK, NULL},
	{"network is unreachable", ERR_NETWORK, NULL},
	/* these may come after it */
	{"Unable to connect to the server", ERR_TRANSIENT, NULL},
	{NULL, ERR_NONE, NULL},
};

enum op_next kube_failed(const struct op *op, const struct reply *reply, struct err *err)
{
	(void)child_failed(op, reply, err);
	if (op->kind == OP_RENT && err->kind == ERR_TRANSIENT)
		err->kind = ERR_AMBIGUOUS;
	return OP_FAILED;
}
