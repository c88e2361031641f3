/* http_trace.c - prints HTTP for --trace, without secrets. */
#include "http_trace.h"

#include <stdlib.h>
#include <strings.h>

#include "base/jsonx.h"
#include "base/err.h"
#include "http.h"

enum { SHOWN_MOST = 4096, TEXT_MOST = 1024, DEPTH_MOST = 64 };

static const char hidden[] = "[secret]";

static bool contains_any(const char *text, size_t len, const char *const *words)
{
	for (; *words; words++)
		for (size_t i = 0; i + strlen(*words) <= len; i++)
			if (!strncasecmp(text + i, *words, strlen(*words)))
				return true;
	return false;
}

/* Whether a header, query key or JSON key of this name has a secret value. */
static bool is_secret_name(const char *name, size_t len)
{
	static const char *const words[] = {"auth",     "token",     "secret",     "cookie",
					    "password", "signature", "credential", "api-key",
					    "apikey",   "api_key",   "private",    NULL};
	return contains_any(name, len, words);
}

bool http_trace_hides(const char *name)
{
	return is_secret_name(name, strlen(name));
}

const char **http_trace_secrets(const char *const *names)
{
	const char **found = NULL;
	size_t count = 0, cap = 0;

	for (; names && *names; names++)
		if (http_trace_hides(*names)) {
			GROW(found, count, cap);
			found[count++] = *names;
		}
	GROW(found, count, cap);
	found[count] = NULL;
	return found;
}

char *http_trace_url(const char *url)
{
	struct str out = STR_INIT;
	size_t base = strcspn(url, "?");

	str_addn(&out, url, base);
	for (const char *at = url + base; *at;) {
		size_t part = 1 + strcspn(at + 1, "&");
		size_t key = strcspn(at, "=");
		bool hide = key < part && is_secret_name(at, key);
		str_addn(&out, at, hide ? key + 1 : part);
		if (hide)
			str_add(&out, hidden);
		at += part;
	}
	log_redact(&out);
	CLEANUP(str_free) struct str raw = out;
	struct str shown = STR_INIT;
	str_add_printable(&shown, str_text(&raw), raw.len, SHOWN_MOST);
	return shown.s ? str_detach(&shown) : xstrdup("");
}

/* ---- bodies ---- */

/* Hides the values in an object or array of variables, whose names stay. Returns the JSON to put in
 * place of another kind of env; NULL: none. */
static json_t *hide_values(json_t *env)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	if (json_is_object(env))
		json_object_foreach_safe(env, next, key, item)
			json_object_set_new(env, key, json_string(hidden));
	else if (json_is_array(env))
		json_array_foreach (env, i, item) {
			if (json_is_object(item) && json_object_get(item, "value"))
				json_object_set_new(item, "value", json_string(hidden));
			else
				json_array_set_new(env, i, json_string(hidden));
		}
	else if (!json_is_null(env))
		return json_string(hidden);
	return NULL;
}

/* "env", or "extra_env": Vast.ai repeats there what an instance was created with. */
static bool is_env_name(const char *key)
{
	const char *last = strrchr(key, '_');

	return !strcasecmp(last ? last + 1 : key, "env");
}

/* Replaces the values of environments and of secret keys; hides all that is deeper than DEPTH_MOST.
 */
static void hide_secrets(json_t *value, int depth)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	if (json_is_array(value))
		json_array_foreach (value, i, item)
			hide_secrets(item, depth + 1);
	if (!json_is_object(value))
		return;
	json_object_foreach_safe(value, next, key, item)
	{
		json_t *instead = NULL;
		if (depth > DEPTH_MOST ||
		    (is_secret_name(key, strlen(key)) && json_is_string(item)))
			instead = json_string(hidden);
		else if (is_env_name(key))
			instead = hide_values(item);
		else
			hide_secrets(item, depth + 1);
		if (instead)
			json_object_set_new(value, key, instead);
	}
}

/* Texts inside JSON, such as GraphQL queries, can hold an environment in a syntax of their own. */
static bool mentions_env(const char *text, size_t len)
{
	static const char *const words[] = {"env", NULL};

	return contains_any(text, len, words);
}

/* The JSON to show in place of a text; NULL: the text itself. */
static json_t *instead_of_text(const json_t *text)
{
	char words[64];

	if (mentions_env(json_string_value(text), json_string_length(text)))
		return json_string("[text that mentions env]");
	if (json_string_length(text) <= TEXT_MOST)
		return NULL;
	/* a start script would fill the line and hide what follows */
	snprintf(words, sizeof(words), "[text of %zu bytes]", json_string_length(text));
	return json_string(words);
}

static void hide_env_texts(json_t *value)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach (value, i, item) {
			json_t *instead = json_is_string(item) ? instead_of_text(item) : NULL;
			if (instead)
				json_array_set_new(value, i, instead);
			else
				hide_env_texts(item);
		}
	} else if (json_is_object(value)) {
		json_object_foreach_safe(value, next, key, item)
		{
			json_t *instead = json_is_string(item) ? instead_of_text(item) : NULL;
			if (instead)
				json_object_set_new(value, key, instead);
			else
				hide_env_texts(item);
		}
	}
}

/* Appends JSON as one line without its secrets. Returns false if the bytes are not JSON. */
static bool add_json(struct str *to, const char *bytes, size_t len)
{
	json_t *value = jsonx_has_too_many_values(bytes, len)
				? NULL
				: json_loadb(bytes, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	if (!value)
		return false;
	hide_secrets(value, 0);
	hide_env_texts(value);
	char *line = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	str_add(to, line ? line : "");
	free(line);
	json_decref(value);
	return true;
}

static bool is_text(const char *bytes, size_t len)
{
	return !memchr(bytes, '\0', len) && utf8_valid(bytes, len);
}

void http_trace_body(struct str *to, const void *bytes, size_t len)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!len)
		return;
	if (!add_json(&text, bytes, len)) {
		if (!is_text(bytes, len) || mentions_env(bytes, len)) {
			str_addf(to, "[%zu bytes]", len);
			return;
		}
		str_addn(&text, bytes, len);
	}
	log_redact(&text);
	str_add_printable(to, str_text(&text), text.len, SHOWN_MOST);
	if (text.len > SHOWN_MOST)
		str_addf(to, "... [%zu bytes in all]", len);
}

/* ---- calls and replies ---- */

static void trace_header(char mark, const char *line, size_t len)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : len;
	bool hide = colon && is_secret_name(line, name);

	str_add_printable(&shown, line, hide ? name : len, TEXT_MOST);
	log_line(LOG_TRACE, "%c %s%s%s", mark, str_text(&shown), hide ? ": " : "",
		 hide ? hidden : "");
}

static void trace_body(char mark, const struct str *body)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	http_trace_body(&shown, body->s, body->len);
	if (shown.len)
		log_line(LOG_TRACE, "%c %s", mark, str_text(&shown));
}

void http_trace_call(const struct call *call, const char *shown_url)
{
	if (!log_wants(LOG_TRACE))
		return;
	log_line(LOG_TRACE, "> %s %s", call->method ? call->method : "GET", shown_url);
	for (size_t i = 0; i < call->header_count; i++)
		trace_header('>', call->headers[i], strlen(call->headers[i]));
	if (call->body_from && call->body_from_bytes)
		log_line(LOG_TRACE, "> [%lld bytes of file %s, from %lld on]",
			 (long long)call->body_from_bytes, call->body_from,
			 (long long)call->body_from_offset);
	else if (call->body_from)
		log_line(LOG_TRACE, "> [file %s]", call->body_from);
	else
		trace_body('>', &call->body);
}

void http_trace_reply(const char *method, const char *shown_url, const struct reply *reply,
		      int64_t to_bytes)
{
	if (!log_wants(LOG_TRACE))
		return;
	log_line(LOG_TRACE, "< %s %s: %d in %lld ms", method, shown_url, reply->status,
		 (long long)reply->wall_ms);
	for (const char *line = str_text(&reply->head); *line;) {
		size_t len = strcspn(line, "\r\n");
		trace_header('<', line, len);
		line += len;
		line += strspn(line, "\r\n");
	}
	trace_body('<', &reply->body);
	if (to_bytes)
		log_line(LOG_TRACE, "< [%lld bytes to a file]", (long long)to_bytes);
	if (reply->failed)
		log_line(LOG_TRACE, "< failed: %s", reply->err.msg);
}
