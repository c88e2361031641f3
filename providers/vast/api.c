/* api.c - builds requests to Vast.ai and interprets its replies, in pages too */
#include <math.h>
#include <stdlib.h>

#include "base/jsonx.h"
#include "impl.h"

enum { REPLY_MOST = 32 << 20, WORDS_MOST = 300, PAGES_MOST = 200 };
/* How long to wait after a 429. Vast sends no Retry-After: its limits are least intervals between
 * two requests to one endpoint, which its text may name in seconds ("threshold=4.5"). */
#define INTERVAL_S      5.0
#define INTERVAL_MOST_S 60.0

/* ---- requests ---- */

enum op_next vast_request(struct turn *t, enum call_class class, const char *method, json_t *body,
			  const char *path, ...)
{
	CLEANUP(str_free) struct str whole = STR_INIT;
	CLEANUP(free_text) char *below = NULL;
	va_list ap;

	va_start(ap, path);
	if (vasprintf(&below, path, ap) < 0)
		abort();
	va_end(ap);
	str_addf(&whole, "/api%s", below);
	return web_request(t, t->op->provider, class, method, body, str_text(&whole), REPLY_MOST);
}

enum op_next vast_done(struct turn *t)
{
	*t->result = t->op->got;
	t->op->got = (struct op_result){0};
	return OP_DONE;
}

/* ---- replies ---- */

/* What a refusal says: the code in "error" and the text for people. */
struct refusal {
	char code[60];
	struct str words;
};

/* Some endpoints omit "error", some have "message" or "detail" in place of "msg", and a rate limit
 * is plain text. A page of HTML says nothing. */
static void read_refusal(const struct reply *reply, struct refusal *out)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&reply->body), reply->body.len, NULL);
	const char *text =
		jsonx_text(body, "msg",
			   jsonx_text(body, "message",
				      jsonx_text(body, "detail", jsonx_text(body, "error", NULL))));

	*out = (struct refusal){0};
	COPY_TEXT(out->code, jsonx_text(body, "error", ""));
	if (text)
		str_add_printable(&out->words, text, strlen(text), WORDS_MOST);
	else if (!body && reply->body.len && !memchr(reply->body.s, '<', reply->body.len))
		str_add_printable(&out->words, reply->body.s, reply->body.len, WORDS_MOST);
}

/* Whether the reply is that of a call which makes an instance. */
static bool may_have_created(const struct turn *t)
{
	return t->op->kind == OP_RENT && t->op->step == 1;
}

static bool is_about_the_key(const struct refusal *why)
{
	return !strcmp(why->code, "auth_error") ||
	       strcasestr(str_text(&why->words), "invalid user key") ||
	       strcasestr(str_text(&why->words), "requires login");
}

static bool is_about_money(const struct refusal *why)
{
	const char *words = str_text(&why->words);

	return strcasestr(words, "insufficient") || strcasestr(words, "balance") ||
	       strcasestr(words, "credit");
}

/* A create: the next offer may be given where this one is not. */
static enum err_kind kind_of_refused_create(int status, const struct refusal *why)
{
	if (is_about_money(why))
		return ERR_BALANCE;
	if (status == 404 || status == 410 || !strcmp(why->code, "invalid_price") ||
	    !strcmp(why->code, "no_such_ask"))
		return ERR_NO_CAPACITY;
	return ERR_REFUSED;
}

static enum err_kind kind_of_refusal(const struct turn *t, int status, const struct refusal *why)
{
	if (is_about_the_key(why) || status == 401)
		return ERR_CREDENTIALS;
	if (status == 402)
		return ERR_BALANCE;
	if (status == 408 || status >= 500)
		return may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT;
	if (may_have_created(t))
		return kind_of_refused_create(status, why);
	if (status == 404 || !strcmp(why->code, "no_such_instance"))
		return ERR_NOT_FOUND;
	if (status == 403)
		return ERR_CREDENTIALS;
	if (!strcmp(why->code, "invalid_token")) /* the list is read again from its first page */
		return ERR_TRANSIENT;
	if (status < 300)
		return ERR_REFUSED;
	return status == 400 || status == 410 || status == 422 ? ERR_CONFIG : ERR_BUG;
}

/* What the user can do, with a blank before; "": nothing. */
static const char *hint_for_user(enum err_kind kind, int status)
{
	if (kind == ERR_CREDENTIALS && status == 403)
		return " (has the API key the rights misc, user_read, instance_read and "
		       "instance_write?)";
	if (kind == ERR_CREDENTIALS)
		return " (is the API key correct and not revoked? Vast's console makes one: Keys)";
	if (kind == ERR_BALANCE)
		return " (the account cannot pay: add credit at Vast's console)";
	return "";
}

/* Always -1. */
static int fail_rate_limited(struct turn *t, const char *doing, const struct refusal *why)
{
	const char *at = strstr(str_text(&why->words), "threshold=");
	double seconds = at ? strtod(at + strlen("threshold="), NULL) : 0;

	if (!(seconds > 0 && seconds <= INTERVAL_MOST_S))
		seconds = INTERVAL_S;
	err_set(t->err, ERR_RATE_LIMITED, "%s: %s", doing,
		why->words.len ? str_text(&why->words) : "too many requests");
	t->err->retry_after_ms = MAX(t->reply->retry_after_ms, (int64_t)llround(seconds * 1000));
	return -1;
}

/* Always -1: the reply with this status is a refusal. */
static int fail_refused(struct turn *t, const char *doing)
{
	const struct reply *r = t->reply;
	struct refusal why;

	read_refusal(r, &why);
	CLEANUP(str_free) struct str words = why.words;
	if (r->status == 429)
		return fail_rate_limited(t, doing, &why);
	enum err_kind kind = kind_of_refusal(t, r->status, &why);
	return err_set(t->err, kind, "%s: HTTP %d from Vast.ai%s%s%s", doing, r->status,
		       words.len ? ": " : "", str_text(&words), hint_for_user(kind, r->status));
}

int vast_check(struct turn *t, const char *doing)
{
	const struct reply *r = t->reply;

	if (r->failed) {
		*t->err = r->err;
		if (r->was_sent && may_have_created(t))
			t->err->kind = ERR_AMBIGUOUS;
		return err_wrap(t->err, "%s", doing);
	}
	return r->status >= 200 && r->status < 300 ? 0 : fail_refused(t, doing);
}

json_t *vast_read_object(struct turn *t, const char *doing)
{
	struct err why = {0};

	if (vast_check(t, doing) < 0)
		return NULL;
	json_t *object = jsonx_parse(str_text(&t->reply->body), t->reply->body.len, &why);
	if (!object) {
		err_set(t->err, may_have_created(t) ? ERR_AMBIGUOUS : ERR_TRANSIENT,
			"%s: the answer cannot be read: %s", doing, why.msg);
		return NULL;
	}
	if (!jsonx_bool(object, "success", true)) {
		json_decref(object);
		fail_refused(t, doing);
		return NULL;
	}
	return object;
}

/* ---- pages: {"instances":[..],"next_token":"..","total_instances":30} ---- */

int vast_next_page(struct turn *t, const json_t *page, const char *what, size_t rows, int64_t total)
{
	struct op *op = t->op;
	const char *token = jsonx_text(page, "next_token", "");
	const char *fault = NULL;

	op->rows += (int64_t)rows;
	if (!token[0]) {
		if (total <= op->rows)
			return 0;
		return err_set(t->err, ERR_TRANSIENT,
			       "Vast.ai's list of %s is not whole: %lld in all, %lld here", what,
			       (long long)total, (long long)op->rows);
	}
	if (strlen(token) >= sizeof(op->token))
		fault = "its token is too long";
	else if (!strcmp(token, op->token))
		fault = "its token leads to the same page";
	else if (++op->pages == PAGES_MOST)
		fault = "it does not end";
	if (fault)
		return err_set(t->err, ERR_BUG,
			       "Vast.ai's list of %s cannot be read: %s: check Vast's console, and "
			       "update burst",
			       what, fault);
	COPY_TEXT(op->token, token);
	return 1;
}

/* ---- helpers ---- */

bool vast_id_is_sound(const char *id)
{
	size_t len = strlen(id);

	return len && len < 19 && strspn(id, "0123456789") == len;
}
