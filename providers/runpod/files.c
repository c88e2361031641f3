/* files.c - files of a network volume without a pod, through RunPod's S3-compatible API */
#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "impl.h"

/* ---- the S3-compatible API: the bucket is the volume, the key the path on it ---- */

/* Under load the API answers 502 for a while. */
enum {
	HEAD_MS = 60000,
	TRY_MS = 20000,
	TRANSFER_MS = 3600000,
	REPLY_MOST_BYTES = 1 << 20,
	TRIES_MOST = 12,
	WORDS_MOST = 160,
	LOST_MOST = 3,
	WAIT_FIRST_MS = 500,
	WAIT_MOST_MS = 10000,
	RETRY_AFTER_MOST_MS = 60000 /* longest Retry-After that is obeyed: pods wait for the file */
};

static const char *const s3_datacenters[] = {
	"EU-CZ-1", "EU-RO-1", "EUR-IS-1", "EUR-NO-1", "US-CA-2", "US-GA-2", "US-IL-1", "US-KS-2",
	"US-MD-1", "US-MO-1", "US-MO-2",  "US-NC-1",  "US-NC-2", "US-NE-1", "US-WA-1"};

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
	for (size_t i = 0; i < ARRAY_LEN(s3_datacenters); i++)
		if (!strcmp(s3_datacenters[i], datacenter))
			return true;
	return false;
}

/* ---- requests ---- */

/* Returns -1 if there are no keys, or this volume or path cannot be reached. */
static int check_reachable(const struct op *op, struct err *err)
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

/* Appends the API's root in this data centre. */
static void append_s3_root(struct str *to, const struct provider *provider, const char *region)
{
	const char *own = section_text(provider->conf, "s3_url");

	if (own) {
		CLEANUP(free_text) char *root = provider_url_root(own);
		str_add(to, root);
		return;
	}
	str_add(to, "https://s3api-");
	for (const char *p = region; *p; p++)
		str_addc(to, (char)tolower((unsigned char)*p));
	str_add(to, ".runpod.io");
}

/* Fills t->call. key: an object's; NULL: the volume itself. query: sorted and encoded as for
 * signing; NULL: none. The body of a PUT is not signed; all others are empty, with a fixed hash. */
static void request_signed(struct turn *t, const struct volume *v, const char *method,
			   int64_t timeout_ms, const char *key, const char *query)
{
	const struct op *op = t->op;
	CLEANUP(str_free) struct str url = STR_INIT;
	bool put = !strcmp(method, "PUT");

	append_s3_root(&url, op->provider, v->region);
	str_addf(&url, "/%s", v->id);
	if (key) {
		str_addc(&url, '/');
		web_escape(&url, key, "-._~/");
	}
	if (query)
		str_addf(&url, "?%s", query);
	*t->call = (struct call){
		.kind = CALL_HTTP,
		.class = CALL_POLL,
		.timeout_ms = timeout_ms,
		.max_bytes = REPLY_MOST_BYTES,
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

/* As request_signed(), for the volume in want.file. */
static void request_on_volume(struct turn *t, const char *method, int64_t timeout_ms,
			      const char *key, const char *query)
{
	request_signed(t, &t->op->want->file.volume, method, timeout_ms, key, query);
}

enum op_next s3_try_keys(struct turn *t, const struct volume *v)
{
	request_signed(t, v, "HEAD", TRY_MS, NULL, NULL);
	return OP_CALL;
}

int s3_check_keys_reply(const struct reply *r, const struct volume *v, struct err *err)
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

static void request_file(struct turn *t, const char *method, int64_t timeout_ms)
{
	request_on_volume(t, method, timeout_ms, t->op->want->file.path, NULL);
}

/* ---- replies ---- */

/* Appends the text of the first XML element <tag>, if there is one. */
static void append_element(struct str *to, const char *body, const char *tag)
{
	CLEANUP(free_text) char *open = xasprintf("<%s>", tag);
	const char *at = strstr(body, open);

	if (at)
		str_add_printable(to, at + strlen(open), strcspn(at + strlen(open), "<"),
				  WORDS_MOST);
}

/* Returns true, with *next a wait, if the server is busy and tries are left. */
static bool wait_if_busy(struct turn *t, enum op_next *next)
{
	struct op *op = t->op;

	/* 507: the volume is full */
	bool may_pass =
		t->reply->status == 429 || (t->reply->status >= 500 && t->reply->status != 507);
	if (t->reply->failed || !may_pass || op->tries >= TRIES_MOST)
		return false;
	int64_t wait = MIN((int64_t)WAIT_FIRST_MS << MIN(op->tries, 8), (int64_t)WAIT_MOST_MS);
	op->tries++;
	*next = turn_wait(t,
			  MAX(wait, MIN(t->reply->retry_after_ms, (int64_t)RETRY_AFTER_MOST_MS)));
	return true;
}

/* Always -1, with the failure that the reply reports. */
static int fail_with_reply(struct turn *t, const char *doing)
{
	const char *path = t->op->want->file.path;
	const struct reply *r = t->reply;
	CLEANUP(str_free) struct str words = STR_INIT;
	enum err_kind kind = r->status >= 500 ? ERR_TRANSIENT : ERR_REFUSED;

	if (r->failed) {
		*t->err = r->err;
		return err_wrap(t->err, "%s %s", doing, path);
	}
	append_element(&words, str_text(&r->body), "Code");
	if (words.len)
		str_add(&words, ": ");
	append_element(&words, str_text(&r->body), "Message");
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

/* Content-Length; -1: missing or invalid. */
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

/* The reply to HEAD: the file must be there, with a size that the caller allows. */
static enum op_next check_stored_size(struct turn *t)
{
	const struct op *op = t->op;

	if (t->reply->failed || t->reply->status != 200) {
		fail_with_reply(t, "looking at");
		if (t->err->kind == ERR_NOT_FOUND)
			return turn_fail(t, ERR_TRANSIENT,
					 "uploading %s: accepted, but it does not exist there",
					 op->want->file.path);
	}
	t->op->got.bytes = reported_length(t->reply);
	if (t->op->got.bytes < 0 ||
	    (op->want->file.max_bytes > 0 && t->op->got.bytes > op->want->file.max_bytes))
		return turn_fail(t, ERR_TRANSIENT, "uploading %s: it has another size there",
				 op->want->file.path);
	return api_done(t);
}

/* Returns true, with *next a wait, if the connection broke and tries are left: a busy server may
 * close it before it has read the upload and answered. */
static bool wait_if_broken_off(struct turn *t, enum op_next *next)
{
	if (!t->reply->failed || t->reply->err.kind != ERR_NETWORK || t->op->tries >= LOST_MOST)
		return false;
	*next = turn_wait(t, (int64_t)WAIT_FIRST_MS << t->op->tries++);
	return true;
}

/* op->step: 0 nothing is sent yet, 1 PUT is or was sent, 2 HEAD is. */
enum op_next stage_next(struct turn *t)
{
	struct op *op = t->op;
	enum op_next next;

	if (op->step == 0 && check_reachable(op, t->err) < 0)
		return OP_FAILED;
	if (t->reply && (wait_if_busy(t, &next) || wait_if_broken_off(t, &next)))
		return next;
	if (t->reply && op->step == 2)
		return check_stored_size(t);
	if (t->reply && (t->reply->failed || t->reply->status < 200 || t->reply->status > 299)) {
		fail_with_reply(t, "uploading");
		return OP_FAILED;
	}
	if (t->reply || op->step == 2) {
		op->step = 2;
		request_file(t, "HEAD", HEAD_MS);
		return OP_CALL;
	}
	op->step = 1;
	request_file(t, "PUT", TRANSFER_MS);
	t->call->body_from = xstrdup(op->want->file.local);
	call_header(t->call, "Content-Type: application/octet-stream");
	return OP_CALL;
}

/* ---- from a volume ---- */

static enum op_next request_fetch(struct turn *t)
{
	int64_t offset = t->op->want->file.offset, most = t->op->want->file.max_bytes;

	request_file(t, "GET", TRANSFER_MS);
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
 * this function does not. */
enum op_next fetch_next(struct turn *t)
{
	struct op *op = t->op;
	enum op_next next;

	if (check_reachable(op, t->err) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_fetch(t);
	if (wait_if_busy(t, &next))
		return next;
	if (!t->reply->failed && t->reply->status == 416 && op->want->file.offset > 0)
		return api_done(t); /* the file ends at this offset */
	if (t->reply->failed || (t->reply->status != 200 && t->reply->status != 206)) {
		fail_with_reply(t, "fetching");
		return OP_FAILED;
	}
	op->got.bytes = MAX(reported_length(t->reply), (int64_t)0);
	return api_done(t);
}

/* ---- tidy ----
 * Lists and removes a folder of a network volume, through the S3-compatible API.
 *
 * Listings there are slow, may repeat entries and may lack some. So pages are counted, a repeated
 * token is refused, a truncated page is invalid, and an empty list proves nothing. */

enum {
	LIST_MS = 300000,
	DELETE_MS = 60000,
	PAGE_KEYS = 1000,
	PAGE_MOST_BYTES = 8 << 20,
	LAG_MS = 2000
};
enum { CALLS_MOST = 5000, ROUNDS_MOST = 20000, STILL_THERE_MOST = 5 };

/* One page of a list. */
struct page {
	json_t *files;    /* of [key, bytes, changed_s] */
	json_t *prefixes; /* of its subfolders */
	bool more;
	char *token;
};

static void page_free_cleanup(struct page *p)
{
	json_decref(p->files);
	json_decref(p->prefixes);
	free(p->token);
}

/* ---- reading a page ---- */

/* The text between <tag> and </tag>, borrowed; NULL: none. */
static const char *find_element(const char *text, const char *end, const char *tag, size_t *len)
{
	char open[40], close[40];

	snprintf(open, sizeof(open), "<%s>", tag);
	snprintf(close, sizeof(close), "</%s>", tag);
	const char *from = memmem(text, (size_t)(end - text), open, strlen(open));
	if (!from)
		return NULL;
	from += strlen(open);
	const char *to = memmem(from, (size_t)(end - from), close, strlen(close));
	if (!to)
		return NULL;
	*len = (size_t)(to - from);
	return from;
}

/* Appends the character that &NAME; stands for. -1: not one that a list can have. */
static int append_entity(struct str *to, const char *name, size_t len)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	char number[8] = "";
	char *end;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i].name) == len && !memcmp(known[i].name, name, len)) {
			str_addc(to, known[i].c);
			return 0;
		}
	if (len < 2 || len > sizeof(number) || name[0] != '#')
		return -1;
	memcpy(number, name + 1, len - 1);
	long c = number[0] == 'x' ? strtol(number + 1, &end, 16) : strtol(number, &end, 10);
	if (*end || c < 1 || c > 127)
		return -1;
	str_addc(to, (char)c);
	return 0;
}

/* The decoded text of the first element <tag>; the caller frees it. NULL: missing or invalid. */
static char *element_text(const char *text, const char *end, const char *tag)
{
	CLEANUP(str_free) struct str out = STR_INIT;
	size_t len = 0;
	const char *from = find_element(text, end, tag, &len);

	if (!from)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		const char *stop = from[i] == '&' ? memchr(from + i, ';', len - i) : NULL;
		if (from[i] == '<' ||
		    (from[i] == '&' && (!stop || append_entity(&out, from + i + 1,
							       (size_t)(stop - from) - i - 1) < 0)))
			return NULL;
		if (stop)
			i = (size_t)(stop - from);
		else
			str_addc(&out, from[i]);
	}
	return str_detach(&out);
}

/* Whether a key is below the prefix and has no empty part, "." or "..", which a server on the way
 * could resolve. A slash at its end is allowed. */
static bool is_clean_below(const char *key, const char *prefix)
{
	if (!key || !starts_with(key, prefix))
		return false;
	for (const char *at = key; *at;) {
		size_t len = strcspn(at, "/");
		if (!len || (len == 1 && at[0] == '.') ||
		    (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += len + (at[len] == '/');
	}
	return true;
}

/* Always -1: the list has something that no list of this folder can have. */
static int fail_untrusted(struct turn *t, const char *what)
{
	return err_set(t->err, ERR_UNTRUSTED, "listing %s: RunPod answers with %s",
		       t->op->want->file.path, what);
}

/* Adds the file of one <Contents> to the page. */
static int add_file(struct turn *t, const char *from, const char *end, const char *prefix,
		    struct page *page)
{
	CLEANUP(free_text) char *key = element_text(from, end, "Key");
	CLEANUP(free_text) char *size = element_text(from, end, "Size");
	CLEANUP(free_text) char *changed = element_text(from, end, "LastModified");

	if (!is_clean_below(key, prefix))
		return fail_untrusted(t, "a name that is not in it");
	long long bytes = size ? strtoll(size, NULL, 10) : 0;
	json_array_append_new(page->files,
			      json_pack("[o,I,I]", json_stringn_nocheck(key, strlen(key)),
					(json_int_t)MAX(MIN(bytes, 1LL << 50), 0LL),
					(json_int_t)(changed ? clock_read_rfc3339(changed) : 0)));
	return 0;
}

/* Adds the subfolder of one <CommonPrefixes> to the page. */
static int add_folder(struct turn *t, const char *from, const char *end, const char *prefix,
		      struct page *page)
{
	CLEANUP(free_text) char *name = element_text(from, end, "Prefix");

	if (!is_clean_below(name, prefix) || !ends_with(name, "/") || !strcmp(name, prefix))
		return fail_untrusted(t, "a folder that is not in it");
	json_array_append_new(page->prefixes, json_stringn_nocheck(name, strlen(name)));
	return 0;
}

/* Calls read for each element <tag> of the body, until it fails. */
static int for_each_element(struct turn *t, const char *body, const char *tag, const char *prefix,
			    struct page *page,
			    int (*read)(struct turn *t, const char *from, const char *end,
					const char *prefix, struct page *page))
{
	const char *end = body + strlen(body), *at = body;
	size_t len = 0;

	while ((at = find_element(at, end, tag, &len))) {
		if (read(t, at, at + len, prefix, page) < 0)
			return -1;
		at += len;
	}
	return 0;
}

/* Fills *page. Refuses a truncated reply: what it lacks would count as absent. */
static int read_page(struct turn *t, const char *prefix, struct page *page)
{
	const char *body = str_text(&t->reply->body), *end = body + strlen(body);
	CLEANUP(free_text) char *truncated = element_text(body, end, "IsTruncated");

	*page = (struct page){.files = json_array(), .prefixes = json_array()};
	if (!strstr(body, "<ListBucketResult") || !strstr(body, "</ListBucketResult>") ||
	    !truncated)
		return err_set(t->err, ERR_TRANSIENT,
			       "listing %s: RunPod's answer is not a whole list",
			       t->op->want->file.path);
	page->more = !strcmp(truncated, "true");
	page->token = element_text(body, end, "NextContinuationToken");
	if (for_each_element(t, body, "Contents", prefix, page, add_file) < 0)
		return -1;
	return for_each_element(t, body, "CommonPrefixes", prefix, page, add_folder);
}

/* ---- requesting a page ---- */

enum list_depth { LIST_ONE_LEVEL, LIST_ALL_BELOW };

/* token: of the page, as the page before it had it; NULL: the first page. */
static enum op_next request_list(struct turn *t, const char *prefix, enum list_depth depth,
				 const char *token)
{
	CLEANUP(str_free) struct str query = STR_INIT;

	if (token) {
		str_add(&query, "continuation-token=");
		web_escape(&query, token, "-._~");
		str_addc(&query, '&');
	}
	str_addf(&query, "%slist-type=2&max-keys=%d&prefix=",
		 depth == LIST_ALL_BELOW ? "" : "delimiter=%2F&", PAGE_KEYS);
	web_escape(&query, prefix, "-._~");
	request_on_volume(t, "GET", LIST_MS, NULL, str_text(&query));
	t->call->max_bytes = PAGE_MOST_BYTES;
	return OP_CALL;
}

/* Whether the reply is a list. If not, *next says what to do: wait and retry, or fail. */
static bool is_list_answered(struct turn *t, enum op_next *next)
{
	if (wait_if_busy(t, next))
		return false;
	t->op->tries = 0;
	if (!t->reply->failed && t->reply->status == 200)
		return true;
	fail_with_reply(t, "listing");
	*next = OP_FAILED;
	return false;
}

/* ---- folder by folder: op->kept is {queue: prefixes still to list, the current one first; tokens:
 * of that one's pages} ---- */

static const char *queue_head(const struct op *op)
{
	return json_string_value(json_array_get(json_object_get(op->kept, "queue"), 0));
}

/* Requests the next page of the first folder in the queue. op->step counts pages. */
static enum op_next request_walk_page(struct turn *t)
{
	const json_t *tokens = json_object_get(t->op->kept, "tokens");
	size_t count = json_array_size(tokens);

	if (t->op->step++ >= CALLS_MOST)
		return turn_fail(t, ERR_REFUSED, "listing %s: more than %d pages",
				 t->op->want->file.path, CALLS_MOST);
	return request_list(t, queue_head(t->op), LIST_ONE_LEVEL,
			    count ? json_string_value(json_array_get(tokens, count - 1)) : NULL);
}

static int begin_walk(struct turn *t)
{
	CLEANUP(free_text) char *prefix = NULL;

	if (check_reachable(t->op, t->err) < 0)
		return -1;
	prefix = xasprintf("%s/", t->op->want->file.path);
	t->op->kept = json_pack("{s:[o],s:[]}", "queue",
				json_stringn_nocheck(prefix, strlen(prefix)), "tokens");
	return 0;
}

/* Moves to the next page of this folder, or to the next folder. Returns 1 if all are listed, 0 if
 * not, -1 if the page does not tell how its list continues. */
static int advance_walk(struct turn *t, const struct page *page)
{
	json_t *tokens = json_object_get(t->op->kept, "tokens"), *seen;
	json_t *queue = json_object_get(t->op->kept, "queue");
	size_t i;

	if (!page->more) {
		json_array_clear(tokens);
		json_array_remove(queue, 0);
		return !json_array_size(queue);
	}
	if (!page->token || !page->token[0])
		return fail_untrusted(t, "a list that continues, but not where");
	json_array_foreach (tokens, i, seen)
		if (!strcmp(json_string_value(seen), page->token))
			return fail_untrusted(t, "the same page repeatedly");
	json_array_append_new(tokens, json_stringn_nocheck(page->token, strlen(page->token)));
	return 0;
}

/* Lists want.file.path, and the folders that take adds to the queue; calls take for each page.
 * OP_DONE: all are listed; the operation goes on. */
static enum op_next walk_folders(struct turn *t, void (*take)(struct op *op, const char *prefix,
							      const struct page *page))
{
	CLEANUP(page_free) struct page page = {0};
	enum op_next next;

	if (!t->op->kept && begin_walk(t) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_walk_page(t);
	if (!is_list_answered(t, &next))
		return next;
	if (read_page(t, queue_head(t->op), &page) < 0)
		return OP_FAILED;
	take(t->op, queue_head(t->op), &page);
	int over = advance_walk(t, &page);
	if (over < 0)
		return OP_FAILED;
	return over ? OP_DONE : request_walk_page(t);
}

/* Adds e under the first part of key below prefix, unless the result has that name already. */
static void add_entry(struct op *op, const char *prefix, const char *key, struct volume_entry e)
{
	size_t len = strcspn(key + strlen(prefix), "/");

	if (!len || len >= sizeof(e.name))
		return; /* the folder itself; a truncated name would be another's */
	memcpy(e.name, key + strlen(prefix), len);
	for (size_t i = 0; i < op->got.entry_count; i++)
		if (!strcmp(op->got.entries[i].name, e.name))
			return;
	op->got.entries = xrealloc(op->got.entries, (op->got.entry_count + 1) * sizeof(e));
	op->got.entries[op->got.entry_count++] = e;
}

static void add_entries_of_page(struct op *op, const char *prefix, const struct page *page)
{
	const struct volume_entry a_folder = {.folder = true, .bytes = -1, .files = -1};
	const json_t *item;
	size_t i;

	json_array_foreach (page->prefixes, i, item)
		add_entry(op, prefix, json_string_value(item), a_folder);
	json_array_foreach (page->files, i, item) {
		const char *key = json_string_value(json_array_get(item, 0));
		struct volume_entry file = {.bytes = json_integer_value(json_array_get(item, 1)),
					    .files = 1,
					    .changed_s =
						    json_integer_value(json_array_get(item, 2))};
		add_entry(op, prefix, key, ends_with(key, "/") ? a_folder : file);
	}
}

enum op_next volume_ls_next(struct turn *t)
{
	enum op_next next = walk_folders(t, add_entries_of_page);

	if (next != OP_DONE)
		return next;
	if (t->op->got.entry_count)
		return api_done(t);
	return turn_fail(t, ERR_NOT_FOUND, "%s: nothing is listed there", t->op->want->file.path);
}

/* Sums up the files of the page, and queues its subfolders. */
static void add_sizes_of_page(struct op *op, const char *prefix, const struct page *page)
{
	struct volume_entry *e = op->got.entries;
	const json_t *item;
	size_t i;

	(void)prefix;
	json_array_extend(json_object_get(op->kept, "queue"), page->prefixes);
	json_array_foreach (page->files, i, item) {
		e->bytes =
			MIN(e->bytes + json_integer_value(json_array_get(item, 1)), INT64_MAX / 4);
		e->files += !ends_with(json_string_value(json_array_get(item, 0)), "/");
		e->changed_s =
			MAX(e->changed_s, (int64_t)json_integer_value(json_array_get(item, 2)));
	}
}

enum op_next volume_size_next(struct turn *t)
{
	struct op *op = t->op;

	if (!op->got.entry_count) {
		op->got.entries = xcalloc(1, sizeof(*op->got.entries));
		op->got.entries[0] = (struct volume_entry){.folder = true};
		COPY_TEXT(op->got.entries[0].name, path_base(op->want->file.path));
		op->got.entry_count = 1;
	}
	enum op_next next = walk_folders(t, add_sizes_of_page);
	return next == OP_DONE ? api_done(t) : next;
}

/* ---- removing a file or a folder ---- */

/* Always requests the first page: removed entries are no longer on it, so no token is needed.
 * Folders are listed once they are empty. op->kept is {files: of this page, still to remove, the
 * current one last; first: the first key of the previous page; times: how often that stayed the
 * same; rounds: pages so far; again: the files of this page were removed before}. */
enum { ASK_PAGE, ASK_REMOVE, ASK_LAST /* the path itself */ };

static enum op_next request_delete_step(struct turn *t)
{
	const char *path = t->op->want->file.path;
	const json_t *files = json_object_get(t->op->kept, "files");
	size_t count = json_array_size(files);

	if (t->op->step == ASK_PAGE) {
		CLEANUP(free_text) char *prefix = xasprintf("%s/", path);
		return request_list(t, prefix, LIST_ALL_BELOW, NULL);
	}
	request_on_volume(t, "DELETE", DELETE_MS,
			  t->op->step == ASK_LAST ? path
						  : json_string_value(json_array_get(
							    json_array_get(files, count - 1), 0)),
			  NULL);
	return OP_CALL;
}

/* Whether the page begins with the same key as the previous one, whose files were removed: they may
 * stay listed for a moment. Counts how often. */
static bool note_if_still_listed(struct turn *t, const char *first)
{
	const char *before = jsonx_text(t->op->kept, "first", "");
	int64_t times = jsonx_int(t->op->kept, "times", 0);
	bool same = first && !strcmp(before, first);

	json_object_set_new(t->op->kept, "times", json_integer(same ? times + 1 : 0));
	if (first)
		json_object_set_new(t->op->kept, "first",
				    json_stringn_nocheck(first, strlen(first)));
	return same;
}

/* Removes the files of this page; none left: the path itself. */
static enum op_next on_delete_page(struct turn *t)
{
	CLEANUP(page_free) struct page page = {0};
	CLEANUP(free_text) char *prefix = xasprintf("%s/", t->op->want->file.path);
	int64_t rounds = jsonx_int(t->op->kept, "rounds", 0);

	if (read_page(t, prefix, &page) < 0)
		return OP_FAILED;
	size_t count = json_array_size(page.files);
	if (!count && page.more) {
		fail_untrusted(t, "a list that continues without content");
		return OP_FAILED;
	}
	const char *first =
		count ? json_string_value(json_array_get(json_array_get(page.files, 0), 0)) : NULL;
	bool same = note_if_still_listed(t, first);
	if (rounds >= ROUNDS_MOST || jsonx_int(t->op->kept, "times", 0) > STILL_THERE_MOST)
		return turn_fail(t, ERR_TRANSIENT,
				 "removing %s: RunPod reports that it is gone but keeps listing it",
				 t->op->want->file.path);
	json_object_set_new(t->op->kept, "rounds", json_integer(rounds + 1));
	json_object_set(t->op->kept, "files", page.files);
	json_object_set_new(t->op->kept, "again", json_boolean(same));
	t->op->step = count ? ASK_REMOVE : ASK_LAST;
	return same ? turn_wait(t, LAG_MS) : request_delete_step(t);
}

/* One file was removed: goes on with the next one, or the next page. */
static enum op_next on_removed_reply(struct turn *t)
{
	json_t *files = json_object_get(t->op->kept, "files");
	size_t count = json_array_size(files);

	t->op->tries = 0;
	if (t->reply->failed ||
	    (t->reply->status != 404 && (t->reply->status < 200 || t->reply->status > 299))) {
		fail_with_reply(t, "removing");
		return OP_FAILED;
	}
	if (t->op->step == ASK_LAST)
		return api_done(t);
	if (!jsonx_bool(t->op->kept, "again", false))
		t->op->got.bytes +=
			json_integer_value(json_array_get(json_array_get(files, count - 1), 1));
	json_array_remove(files, count - 1);
	if (count == 1)
		t->op->step = ASK_PAGE;
	return request_delete_step(t);
}

enum op_next volume_delete_next(struct turn *t)
{
	enum op_next next;

	if (!t->op->kept && check_reachable(t->op, t->err) < 0)
		return OP_FAILED;
	if (!t->op->kept)
		t->op->kept = json_object();
	if (!t->reply)
		return request_delete_step(t);
	if (t->op->step != ASK_PAGE)
		return wait_if_busy(t, &next) ? next : on_removed_reply(t);
	return is_list_answered(t, &next) ? on_delete_page(t) : next;
}
