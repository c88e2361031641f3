/* web.c - handle, requests and values of providers whose vendor has an HTTP API with one key */
#include "web.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/card_needs.h"
#include "base/jsonx.h"

enum {
	READ_MS = 30000,
	CREATE_MS = 120000,
	RELEASE_MS = 10000, /* a failed release is retried at once */
};

/* ---- handle ---- */

int web_check_key(const char *vendor, const struct section *conf, struct err *err)
{
	const char *key = section_text(conf, "api_key");

	if (key && *key)
		return 0;
	CLEANUP(free_text) char *name = xstrdup(vendor);
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return err_set(err, ERR_CREDENTIALS, "%s: no api_key: set %s_API_KEY", vendor, name);
}

struct provider *web_open(const char *vendor, const struct section *conf)
{
	struct provider *p = xcalloc(1, sizeof(*p));

	p->conf = conf;
	p->root = provider_url_root(section_text(conf, "api_url"));
	p->account = provider_account_name(vendor, section_text(conf, "api_key"));
	return p;
}

void web_close(struct provider *p)
{
	if (!p)
		return;
	free(p->root);
	free(p->account);
	free(p);
}

const char *web_account(const struct provider *p)
{
	return p->account;
}

/* ---- requests ---- */

enum op_next web_request(struct turn *t, const struct provider *p, enum call_class class,
			 const char *method, json_t *body, const char *path, size_t reply_most)
{
	CLEANUP(free_text) char *line = body ? jsonx_line(body) : NULL;
	bool unwritable = body && !line;

	json_decref(body);
	if (unwritable)
		return turn_fail(t, ERR_BUG, "the request cannot be written as JSON");
	*t->call = (struct call){
		.kind = CALL_HTTP,
		.class = class,
		.may_repeat = class != CALL_CREATE,
		.timeout_ms = class == CALL_CREATE    ? CREATE_MS
			      : class == CALL_RELEASE ? RELEASE_MS
						      : READ_MS,
		.max_bytes = reply_most,
		.method = method,
		.url = xasprintf("%s%s", p->root, path),
	};
	call_header(t->call, "Authorization: Bearer %s", section_text(p->conf, "api_key"));
	if (line) {
		call_header(t->call, "Content-Type: application/json");
		str_add(&t->call->body, line);
	}
	return OP_CALL;
}

/* ---- values ---- */

void web_escape(struct str *to, const char *text, const char *keep)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if ((*p < 0x80 && isalnum(*p)) || strchr(keep, *p))
			str_addc(to, (char)*p);
		else
			str_addf(to, "%%%02X", *p);
}

int64_t web_microusd(const json_t *object, const char *key)
{
	double dollars = jsonx_number(object, key, 0);

	return dollars > 0 ? (int64_t)llround(MIN(dollars * 1e6, (double)VENDOR_MOST_MICROUSD)) : 0;
}

/* ---- keys ---- */

static bool is_cuda_version(const char *text)
{
	size_t major = strspn(text, "0123456789");

	return major && text[major] == '.' && text[major + 1] &&
	       !text[major + 1 + strspn(text + major + 1, "0123456789")];
}

const char *web_least_cuda(const struct section *conf, const char *of_image, const char *wanted)
{
	const char *least = section_text(conf, "min_cuda");

	if (!least)
		least = of_image;
	else if (!strcmp(least, "none"))
		least = NULL;
	return wanted && card_cuda_is_newer(wanted, least ? least : "") ? wanted : least;
}

int web_check_cuda_version(const struct section *s, const char *group, const char *key,
			   struct err *err)
{
	const char *cuda = section_text(s, key);

	if (cuda && strcmp(cuda, "none") && !is_cuda_version(cuda))
		return provider_bad_value(s, group, key, "a version like \"12.8\", or \"none\"",
					  err);
	return 0;
}

int web_check_bid(const struct section *s, const char *group, const char *key, struct err *err)
{
	if (section_has(s, key) && section_int(s, key) <= 0)
		return err_set(err, ERR_CONFIG, "%s: %s.%s must be more than 0",
			       section_where(s, key), group, key);
	return 0;
}
