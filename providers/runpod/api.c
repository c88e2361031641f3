/* api.c - builds requests to RunPod and interprets its replies, in pages too */
#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

enum {
	LIST_MS = 15000,
	REPLY_MOST = 8 << 20,
	LIST_MOST = 64 << 20,
	WORDS_MOST = 300,
	ERRORS_SHOWN = 4,
	DAY_S = 86400
};

/* ---- requests ---- */

enum op_next api_request(struct turn *t, enum call_class class, const char *method, json_t *body,
			 const char *path, ...)
{
	CLEANUP(str_free) struct str whole = STR_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, path);
	if (vasprintf(&text, path, ap) < 0)
		abort();
	va_end(ap);
	str_addf(&whole, "/v2%s", text);
	free(text);
	return web_request(t, t->op->provider, class, method, body, str_text(&whole), REPLY_MOST);
}

/* Requests the page of the list at op->cursor. */
static enum op_next request_page(struct turn *t, const char *path)
{
	CLEANUP(str_free) struct str cursor = STR_INIT;

	web_escape(&cursor, t->op->cursor, "-_.~");
	return api_request(t, CALL_POLL, "GET", NULL, "%s%s%s", path, cursor.len ? "?cursor=" : "",
			   str_text(&cursor));
}

enum op_next api_request_volumes(struct turn *t)
{
	return request_page(t, "/network-volumes");
}

/* The reply may be large: up to a thousand pods, each with its start command of 20 kB. */
enum op_next api_request_pods(struct turn *t)
{
	enum op_next next = request_page(t, "/pods");

	t->call->max_bytes = LIST_MOST;
	t->call->timeout_ms = LIST_MS; /* soon retried: no pod is visible without the list */
	return next;
}

enum op_next api_request_graphql(struct turn *t, enum call_class class, const char *query,
				 json_t *variables)
{
	json_t *body = json_object();

	json_object_set_new(body, "query", json_string(query));
	if (variables)
		json_object_set_new(body, "variables", variables);
	return web_request(t, t->op->provider, class, "POST", body, "/graphql", REPLY_MOST);
}

enum op_next api_done(struct turn *t)
{
	*t->result = t->op->got;
	t->op->got = (struct op_result){0};
	return OP_DONE;
}

/* ---- replies ---- */

/* Whether the text means "sold out". RunPod has no code for a lack of capacity, only texts that
 * change (runpod/containers matches the same). */
static bool means_sold_out(const char *text)
{
	static const char *const words[] = {
		"no longer any instances available",
		"no instances currently available",
		"no instances available",
		"no machines available",
		"no gpus available",
		"no hosts available",
		"no capacity available",
		"does not have the resources",
		"try a different machine",
		"insufficient capacity",
		"not enough free gpus",
		"out of stock",
		"sold out",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(text, words[i]))
			return true;
	return false;
}

/* Whether the text is about a fault that a retry may not meet again. */
static bool may_pass(const char *text)
{
	return strcasestr(text, "something went wrong") || strcasestr(text, "try again later") ||
	       strcasestr(text, "please try again");
}

/* Whether the text means that what was wanted is not there now. Only valid for a request that the
 * server read and did not carry out; a failing server's text means nothing. */
static bool means_unavailable(const char *text)
{
	return strcasestr(text, "unavailable") || strcasestr(text, "refresh and try again");
}

/* Appends the server's message: problem+json's detail and errors, else the body unless HTML. */
static void append_server_message(struct str *to, const struct reply *reply)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&reply->body), reply->body.len, NULL);
	const json_t *list = json_object_get(body, "errors"), *item;
	const char *detail = jsonx_text(body, "detail", NULL);
	CLEANUP(str_free) struct str words = STR_INIT;
	size_t i;

	if (!detail)
		detail = jsonx_text(body, "message",
				    jsonx_text(body, "error", jsonx_text(body, "title", NULL)));
	if (detail)
		str_add(&words, detail);
	json_array_foreach (list, i, item) {
		const char *text = json_is_string(item) ? json_string_value(item)
							: jsonx_text(item, "message", NULL);
		/* a missing field causes further errors, so name it first, as the server does */
		if (text && i < ERRORS_SHOWN)
			str_addf(&words, "%s%s", words.len ? (i ? "; " : ": ") : "", text);
	}
	if (!body && reply->body.len && !memchr(reply->body.s, '<', reply->body.len))
		str_addn(&words, reply->body.s, MIN(reply->body.len, (size_t)WORDS_MOST));
	str_add_printable(to, str_text(&words), words.len, WORDS_MOST);
}

/* Reads a RateLimit header like "minute";r=0;t=44: how long until no window is exhausted. */
static int64_t rate_limit_wait_s(const char *header)
{
	int64_t most = 0;

	while (*header) {
		size_t len = strcspn(header, ",");
		long left = -1, seconds = 0;
		for (const char *p = header; p < header + len; p++) {
			if (*p == ';' && !strncmp(p, ";r=", 3))
				left = strtol(p + 3, NULL, 10);
			if (*p == ';' && !strncmp(p, ";t=", 3))
				seconds = strtol(p + 3, NULL, 10);
		}
		if (left == 0 && seconds > most)
			most = seconds;
		header += len + (header[len] == ',');
	}
	return MIN(most, (int64_t)DAY_S);
}

/* Always -1, with the wait that the reply's headers ask for. */
static int fail_rate_limited(struct turn *t, const char *doing, const char *words)
{
	char header[512] = "", wait[24];

	reply_header(t->reply, "RateLimit", header, sizeof(header));
	int64_t after_ms = MAX(t->reply->retry_after_ms, rate_limit_wait_s(header) * 1000);
	err_set(t->err, ERR_RATE_LIMITED, "%s: %s%s%s%s", doing,
		*words ? words : "too many requests", after_ms ? " (to be asked again in " : "",
		after_ms ? duration_show(wait, sizeof(wait), after_ms) : "", after_ms ? ")" : "");
	t->err->retry_after_ms = after_ms;
	return -1;
}

/* Whether the reply is that of a call which makes something that costs money. */
static bool may_have_created(const struct turn *t)
{
	return t->op->kind == OP_RENT ||
	       (t->op->kind == OP_VOLUME && t->op->want->volume.create && t->op->kept);
}

/* A create gets a 400 for its own mistakes and for lack of capacity (OpenAPI file, POST /v2/pods);
 * after either the next offer follows. */
static enum err_kind kind_of_400(bool rent, const char *words)
{
	if (means_sold_out(words))
		return ERR_NO_CAPACITY;
	if (may_pass(words))
		return ERR_TRANSIENT;
	if (rent && means_unavailable(words))
		return ERR_NO_CAPACITY;
	return rent ? ERR_REFUSED : ERR_CONFIG;
}

static enum err_kind kind_of_status(const struct turn *t, int status, const char *words)
{
	bool rent = t->op->kind == OP_RENT;

	/* if GraphQL has changed or is gone, spot is unavailable and all else works */
	if (rent && t->op->want->rent.offer.spot &&
	    (status == 404 || status == 410 || status == 422))
		return ERR_REFUSED;
	switch (status) {
	case 400: return kind_of_400(rent, words);
	case 401: return ERR_CREDENTIALS;
	case 402: return ERR_BALANCE;
	case 403:
		return rent ? ERR_REFUSED
			    : ERR_CREDENTIALS; /* a pool that the account may not use */
	case 404: return ERR_NOT_FOUND;
	case 408: return may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT;
	case 409: return ERR_REFUSED;
	case 410: return ERR_CONFIG;
	case 422: return ERR_CONFIG;
	}
	if (status >= 500)
		return may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT;
	return ERR_BUG;
}

/* What the user can do, with a blank before; "": nothing. */
static const char *hint_for_user(int status)
{
	switch (status) {
	case 401:
		return " (is the API key correct and not expired? RunPod's console makes "
		       "one: Settings, API Keys)";
	case 402: return " (the account cannot pay: add credit at RunPod's console)";
	case 403: return " (the API key or the account has no access to this)";
	case 410: return " (this API no longer exists: is RUNPOD_API_URL the server's root?)";
	}
	return "";
}

int api_check(struct turn *t, const char *doing)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	const struct reply *r = t->reply;

	if (r->failed) {
		*t->err = r->err;
		if (r->was_sent && may_have_created(t))
			t->err->kind = ERR_AMBIGUOUS;
		return err_wrap(t->err, "%s", doing);
	}
	if (r->status >= 200 && r->status < 300)
		return 0;
	append_server_message(&words, r);
	if (r->status == 429)
		return fail_rate_limited(t, doing, str_text(&words));
	return err_set(t->err, kind_of_status(t, r->status, str_text(&words)),
		       "%s: HTTP %d from RunPod%s%s%s", doing, r->status, words.len ? ": " : "",
		       str_text(&words), hint_for_user(r->status));
}

json_t *api_read_object(struct turn *t, const char *doing)
{
	struct err why = {0};

	if (api_check(t, doing) < 0)
		return NULL;
	json_t *object = jsonx_parse(str_text(&t->reply->body), t->reply->body.len, &why);
	if (!object)
		err_set(t->err, may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT,
			"%s: the answer cannot be read: %s", doing, why.msg);
	return object;
}

/* GraphQL's errors have no codes, only messages. */
static enum err_kind kind_of_graphql_message(const struct turn *t, const char *words)
{
	if (means_sold_out(words))
		return ERR_NO_CAPACITY;
	if (strcasestr(words, "unauthorized") || strcasestr(words, "not authenticated"))
		return ERR_CREDENTIALS;
	if (strcasestr(words, "balance") || strcasestr(words, "funds"))
		return ERR_BALANCE;
	if (may_pass(words) || strcasestr(words, "internal server error"))
		return may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT;
	return ERR_REFUSED;
}

/* GraphQL reports errors with HTTP 200. */
json_t *api_read_data(struct turn *t, const char *doing, json_t **whole)
{
	CLEANUP(str_free) struct str words = STR_INIT;

	*whole = api_read_object(t, doing);
	if (!*whole)
		return NULL;
	json_t *data = json_object_get(*whole, "data");
	if (json_array_size(json_object_get(*whole, "errors"))) {
		append_server_message(&words, t->reply);
		err_set(t->err, kind_of_graphql_message(t, str_text(&words)), "%s: %s", doing,
			words.len ? str_text(&words) : "refused without a message");
		return NULL;
	}
	if (!json_is_object(data)) {
		err_set(t->err, may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT,
			"%s: an answer without data", doing);
		return NULL;
	}
	return data;
}

/* ---- helpers ---- */

bool api_id_is_sound(const char *id)
{
	size_t len = strlen(id);

	for (const char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-')
			return false;
	return len && len < POD_ID_MAX;
}

/* ---- pages: {"pods":[..],"pagination":{"hasNextPage":true,"nextCursor":".."}} ---- */

enum { PAGES_MOST = 200 };

/* What a page tells about further pages. */
struct further {
	const char *cursor; /* of the next one; NULL: none */
	/* key of a reference that burst cannot follow; NULL: none */
	const char *unknown_key;
	bool is_last; /* the page says so */
	int64_t rows; /* on all pages, by the vendor's count */
};

void api_first_page(struct op *op)
{
	op->cursor[0] = '\0';
	op->pages = 0;
	op->rows = 0;
}

/* Whether the value refers to the next page: an address, a number, or an object with either. */
static bool refers_to_page(const json_t *value)
{
	return json_string_length(value) || json_number_value(value) > 0 || json_object_size(value);
}

static bool contains_one_of(const char *key, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(key, *words))
			return true;
	return false;
}

/* Collects what the page, and objects in it ("pagination", "links"), tell about further pages. */
static void find_next_page(const json_t *in, struct further *to)
{
	static const char *const whether[] = {"hasnext", "has_next", "more", "truncated", NULL},
				 *const where[] = {"next", "cursor", "token", NULL};
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)in, key, value) {
		if ((!strcasecmp(key, "nextcursor") || !strcasecmp(key, "next_cursor")) &&
		    json_string_length(value))
			to->cursor = json_string_value(value);
		else if (contains_one_of(key, whether)) {
			to->is_last = json_is_false(value);
			to->unknown_key = json_is_true(value) ? key : to->unknown_key;
		} else if (contains_one_of(key, where) && refers_to_page(value))
			to->unknown_key = key;
		else if (strcasestr(key, "total"))
			to->rows = MAX(to->rows, json_integer_value(value));
		if (json_is_object(value))
			find_next_page(value, to);
	}
}

/* Whether the reply has a header like Link: <https://...?page=2>; rel="next". */
static bool has_link_to_next_page(const struct reply *r)
{
	char link[1024];

	if (!reply_header(r, "Link", link, sizeof(link)))
		return false;
	for (char *p = link; (p = strcasestr(p, "rel=")); p++)
		if ((!strncasecmp(p + 4, "next", 4) && !isalnum((unsigned char)p[8])) ||
		    !strncasecmp(p + 4, "\"next\"", 6))
			return true;
	return false;
}

/* The length of the page's longest array, which is the list. */
static int64_t count_rows(const json_t *page)
{
	size_t most = 0;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)page, key, value)
		most = MAX(most, json_array_size(value));
	return (int64_t)most;
}

/* Always -1. Restarts the list. */
static int fail_unreadable_pages(struct turn *t, const char *what, const char *why)
{
	api_first_page(t->op);
	return err_set(t->err, ERR_BUG,
		       "RunPod's list of %s has further pages (%s), which this version cannot "
		       "read: check RunPod's console, and update burst",
		       what, why);
}

int api_next_page(struct turn *t, const json_t *page, const char *what)
{
	struct further further = {0};
	struct op *op = t->op;

	find_next_page(page, &further);
	op->rows += count_rows(page);
	if (!further.cursor || further.is_last) {
		CLEANUP(free_text)
		char *word =
			further.unknown_key ? xasprintf("\"%.40s\"", further.unknown_key) : NULL;
		CLEANUP(free_text)
		char *total = xasprintf("%lld in all, %lld here", (long long)further.rows,
					(long long)op->rows);
		if (!further.is_last &&
		    (word || has_link_to_next_page(t->reply) || further.rows > op->rows))
			return fail_unreadable_pages(t, what,
						     word ? word
						     : further.rows > op->rows
							     ? total
							     : "by its Link header");
		api_first_page(op);
		return 0;
	}
	if (strlen(further.cursor) >= sizeof(op->cursor))
		return fail_unreadable_pages(t, what, "its cursor is too long");
	if (!strcmp(further.cursor, op->cursor))
		return fail_unreadable_pages(t, what, "its cursor leads to the same page");
	if (++op->pages == PAGES_MOST)
		return fail_unreadable_pages(t, what, "it does not end");
	COPY_TEXT(op->cursor, further.cursor);
	return 1;
}
