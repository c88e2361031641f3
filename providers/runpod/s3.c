/* s3.c - files of a network volume without a pod, through RunPod's S3-compatible API: the bucket is
 * the volume, the key the path on it. Handles one file at a time by name: listings there are slow
 * and repeat entries (tidy.c handles that). */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"

/* Under load it answers 502 for a while. */
enum {
	HEAD_MS = 60000,
	TRY_MS = 20000,
	TRANSFER_MS = 3600000,
	TRIES_MOST = 12,
	LOST_MOST = 3,
	WAIT_FIRST_MS = 500,
	WAIT_MOST_MS = 10000,
	RETRY_AFTER_MOST_MS = 60000 /* longest Retry-After that is obeyed: pods wait for the file */
};

static const char *const reached[] = {"EU-CZ-1", "EU-RO-1", "EUR-IS-1", "EUR-NO-1", "US-CA-2",
				      "US-GA-2", "US-IL-1", "US-KS-2",  "US-MD-1",  "US-MO-1",
				      "US-MO-2", "US-NC-1", "US-NC-2",  "US-NE-1",  "US-WA-1"};

bool s3_is_configured(const struct provider *p)
{
	return section_text(p->conf, "s3_access_key") && section_text(p->conf, "s3_secret_key");
}

bool s3_files_ready(const struct provider *p, const struct volume *v)
{
	return s3_is_configured(p) && (!v || s3_reaches(p, v->region));
}

bool s3_reaches(const struct provider *p, const char *datacenter)
{
	if (section_text(p->conf, "s3_url"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(reached); i++)
		if (!strcmp(reached[i], datacenter))
			return true;
	return false;
}

/* ---- requests ---- */

int s3_check(const struct op *op, struct err *err)
{
	const struct volume *v = &op->want->file.volume;

	if (!s3_is_configured(op->provider))
		return err_set(err, ERR_CREDENTIALS,
			       "files of a volume without a pod need RUNPOD_S3_ACCESS_KEY and "
			       "RUNPOD_S3_SECRET_KEY (made in "
			       "RunPod's console, Settings, S3 API Keys)");
	if (!api_id_is_sound(v->id))
		return err_set(err, ERR_REFUSED, "\"%s\" is not a volume's id", v->id);
	if (!v->region[0] || !s3_reaches(op->provider, v->region))
		return err_set(err, ERR_REFUSED,
			       "volume \"%s\": data centre \"%s\" has no S3-compatible API",
			       v->name, v->region);
	if (!path_is_safe(op->want->file.path))
		return err_set(err, ERR_REFUSED, "\"%s\" is not a path on a volume",
			       op->want->file.path);
	return 0;
}

static void add_root(struct str *to, const struct provider *provider, const char *region)
{
	const char *own = section_text(provider->conf, "s3_url");

	if (own) {
		str_add(to, own);
		while (to->len && to->s[to->len - 1] == '/')
			to->s[--to->len] = '\0';
		return;
	}
	str_add(to, "https://s3api-");
	for (const char *p = region; *p; p++)
		str_addc(to, (char)tolower((unsigned char)*p));
	str_add(to, ".runpod.io");
}

/* The fixed hash is that of an empty body: a PUT does not sign its body. */
static void request_signed(struct turn *t, const struct volume *v, const char *method,
			   int64_t timeout_ms, const char *key, const char *query)
{
	const struct op *op = t->op;
	CLEANUP(str_free) struct str url = STR_INIT;
	bool put = !strcmp(method, "PUT");

	add_root(&url, op->provider, v->region);
	str_addf(&url, "/%s", v->id);
	if (key) {
		str_addc(&url, '/');
		api_escape(&url, key, "-._~/");
	}
	if (query)
		str_addf(&url, "?%s", query);
	*t->call = (struct call){
		.kind = CALL_HTTP,
		.class = CALL_POLL,
		.timeout_ms = timeout_ms,
		.max_bytes = 1 << 20,
		.method = method,
		.url = str_detach(&url),
		.sigv4 = xasprintf("aws:amz:%s:s3", v->region),
		.unlimited = true,
		.user = xstrdup(section_text(op->provider->conf, "s3_access_key")),
		.password = xstrdup(section_text(op->provider->conf, "s3_secret_key")),
	};
	call_header(t->call, "x-amz-content-sha256: %s",
		    put ? "UNSIGNED-PAYLOAD"
			: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

void s3_request(struct turn *t, const char *method, int64_t timeout_ms, const char *key,
		const char *query)
{
	request_signed(t, &t->op->want->file.volume, method, timeout_ms, key, query);
}

enum op_next s3_try_keys(struct turn *t, const struct volume *v)
{
	request_signed(t, v, "HEAD", TRY_MS, NULL, NULL);
	return OP_CALL;
}

int s3_keys_tried(const struct reply *r, const struct volume *v, struct err *err)
{
	if (r->failed || (r->status != 401 && r->status != 403))
		return 0; /* other faults may pass */
	return err_set(err, ERR_CREDENTIALS,
		       "RunPod's storage refuses RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY "
		       "(HTTP %d for volume \"%s\"): make a new pair in RunPod's console, "
		       "Settings, S3 API Keys, or unset both to continue without them; a wrong "
		       "clock is refused, too",
		       r->status, v->name);
}

static void ask(struct turn *t, const char *method, int64_t timeout_ms)
{
	s3_request(t, method, timeout_ms, t->op->want->file.path, NULL);
}

/* ---- replies ---- */

static void add_word(struct str *to, const char *body, const char *tag)
{
	CLEANUP(free_text) char *open = xasprintf("<%s>", tag);
	const char *at = strstr(body, open);

	if (at)
		str_add_printable(to, at + strlen(open), strcspn(at + strlen(open), "<"), 160);
}

bool s3_busy(struct turn *t, enum op_next *next)
{
	struct op *op = t->op;

	/* 507: the volume is full */
	bool passes =
		t->reply->status == 429 || (t->reply->status >= 500 && t->reply->status != 507);
	if (t->reply->failed || !passes || op->tries >= TRIES_MOST)
		return false;
	int64_t wait = MIN((int64_t)WAIT_FIRST_MS << MIN(op->tries, 8), (int64_t)WAIT_MOST_MS);
	op->tries++;
	*next = api_wait(t, MAX(wait, MIN(t->reply->retry_after_ms, (int64_t)RETRY_AFTER_MOST_MS)));
	return true;
}

int s3_failure(struct turn *t, const char *doing, const char *path)
{
	const struct reply *r = t->reply;
	CLEANUP(str_free) struct str words = STR_INIT;
	enum err_kind kind = r->status >= 500 ? ERR_TRANSIENT : ERR_REFUSED;

	if (r->failed) {
		*t->err = r->err;
		return err_wrap(t->err, "%s %s", doing, path);
	}
	add_word(&words, str_text(&r->body), "Code");
	if (words.len)
		str_add(&words, ": ");
	add_word(&words, str_text(&r->body), "Message");
	if (strstr(str_text(&words), "RequestTimeTooSkewed"))
		str_add(&words, " (this machine's clock is wrong)");
	if (r->status == 401 || r->status == 403)
		kind = ERR_CREDENTIALS;
	else if (r->status == 404)
		kind = ERR_NOT_FOUND;
	else if (r->status == 429)
		kind = ERR_RATE_LIMITED;
	err_set(t->err, kind, "%s %s: HTTP %d from RunPod%s%s", doing, path, r->status,
		words.len ? ": " : "", str_text(&words));
	t->err->retry_after_ms = r->retry_after_ms;
	return -1;
}

static int failure(struct turn *t, const char *doing)
{
	return s3_failure(t, doing, t->op->want->file.path);
}

static int64_t reported_length(const struct reply *r)
{
	char text[32];
	char *end;

	if (!reply_header(r, "Content-Length", text, sizeof(text)) ||
	    !isdigit((unsigned char)text[0]))
		return -1;
	long long n = strtoll(text, &end, 10);
	return *end ? -1 : (int64_t)n;
}

/* ---- to a volume: PUT, then HEAD, since an accepted upload may still be lost ---- */

static enum op_next stored(struct turn *t)
{
	const struct op *op = t->op;

	if (t->reply->failed || t->reply->status != 200) {
		failure(t, "looking at");
		if (t->err->kind == ERR_NOT_FOUND)
			err_set(t->err, ERR_TRANSIENT,
				"uploading %s: accepted, but it does not exist there",
				op->want->file.path);
		return OP_FAILED;
	}
	t->op->got.bytes = reported_length(t->reply);
	if (t->op->got.bytes < 0 ||
	    (op->want->file.max_bytes > 0 && t->op->got.bytes > op->want->file.max_bytes)) {
		err_set(t->err, ERR_TRANSIENT, "uploading %s: it has another size there",
			op->want->file.path);
		return OP_FAILED;
	}
	return api_done(t);
}

/* A busy server may close before it has read the upload and answered. */
static bool broke_off(struct turn *t, enum op_next *next)
{
	if (!t->reply->failed || t->reply->err.kind != ERR_NETWORK || t->op->tries >= LOST_MOST)
		return false;
	*next = api_wait(t, (int64_t)WAIT_FIRST_MS << t->op->tries++);
	return true;
}

/* Steps: 0 PUT is sent, 1 its reply, 2 HEAD's. */
enum op_next stage_next(struct turn *t)
{
	struct op *op = t->op;
	enum op_next next;

	if (op->step == 0 && s3_check(op, t->err) < 0)
		return OP_FAILED;
	if (t->reply && (s3_busy(t, &next) || broke_off(t, &next)))
		return next;
	if (t->reply && op->step == 2)
		return stored(t);
	if (t->reply && (t->reply->failed || t->reply->status < 200 || t->reply->status > 299)) {
		failure(t, "uploading");
		return OP_FAILED;
	}
	if (t->reply || op->step == 2) {
		op->step = 2;
		ask(t, "HEAD", HEAD_MS);
		return OP_CALL;
	}
	op->step = 1;
	ask(t, "PUT", TRANSFER_MS);
	t->call->body_from = xstrdup(op->want->file.local);
	call_header(t->call, "Content-Type: application/octet-stream");
	return OP_CALL;
}

/* ---- from a volume ---- */

static enum op_next request_fetch(struct turn *t)
{
	int64_t offset = t->op->want->file.offset, most = t->op->want->file.max_bytes;

	ask(t, "GET", TRANSFER_MS);
	t->call->body_to = xstrdup(t->op->want->file.local);
	t->call->max_bytes = most > 0 ? (size_t)most : SIZE_MAX;
	if (offset > 0 && most > 0)
		call_header(t->call, "Range: bytes=%lld-%lld", (long long)offset,
			    (long long)(offset + most - 1));
	else if (offset > 0)
		call_header(t->call, "Range: bytes=%lld-", (long long)offset);
	return OP_CALL;
}

/* What was written before a connection broke stays in the file. The caller retries from there, so
 * this does not retry. */
enum op_next fetch_next(struct turn *t)
{
	struct op *op = t->op;
	enum op_next next;

	if (s3_check(op, t->err) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_fetch(t);
	if (s3_busy(t, &next))
		return next;
	if (!t->reply->failed && t->reply->status == 416 && op->want->file.offset > 0)
		return api_done(t); /* there are no more bytes */
	if (t->reply->failed || (t->reply->status != 200 && t->reply->status != 206)) {
		failure(t, "fetching");
		return OP_FAILED;
	}
	op->got.bytes = MAX(reported_length(t->reply), (int64_t)0);
	return api_done(t);
}
