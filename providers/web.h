/* web.h - what providers share whose vendor has an HTTP API with JSON and one key: their handle,
 * requests, and the readers of values that such APIs write alike. Used by runpod and vast. Only
 * files in providers/ include this. */
#ifndef BURST_PROVIDERS_WEB_H
#define BURST_PROVIDERS_WEB_H

#include <jansson.h>

#include "provider.h"

struct provider {
	const struct section *conf; /* borrowed */
	char *root;                 /* of the API, without a slash at its end */
	char *account;
};

/* ERR_CREDENTIALS if the section has no api_key. */
int web_check_key(const char *vendor, const struct section *conf, struct err *err);
/* conf has an api_key and an api_url. */
struct provider *web_open(const char *vendor, const struct section *conf);
void web_close(struct provider *p); /* accepts NULL */
const char *web_account(const struct provider *p);

/* Fills t->call with a request that bears the key, and returns OP_CALL. path begins at the root and
 * starts with a slash. Takes over body (NULL: none). A call that must not be carried out twice has
 * the class CALL_CREATE. */
enum op_next web_request(struct turn *t, const struct provider *p, enum call_class class,
			 const char *method, json_t *body, const char *path, size_t reply_most);

/* Percent-encodes all but letters, digits and keep. */
void web_escape(struct str *to, const char *text, const char *keep);
/* A number of dollars; 0 if it is missing, negative or no number. */
int64_t web_microusd(const json_t *object, const char *key);

/* Checks of keys: a version of CUDA, or "none"; dollars above 0. */
/* Their value: the least version of CUDA that a host must support, of min_cuda in the section
 * (absent: what the image needs; NULL: nothing) and of what the job needs (op_want.least_cuda).
 * NULL: any. */
const char *web_least_cuda(const struct section *conf, const char *of_image, const char *wanted);
int web_check_cuda_version(const struct section *s, const char *group, const char *key,
			   struct err *err);
int web_check_bid(const struct section *s, const char *group, const char *key, struct err *err);

#endif
