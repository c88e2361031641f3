/* tidy.c - lists and removes a folder of a network volume, through the S3-compatible API.
 *
 * Listings there are slow, may repeat entries and may lack some. So pages are counted, a repeated
 * token is refused, a truncated page is invalid, and an empty list proves nothing. */
#include "impl.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"

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

/* The text between <tag> and </tag>, or NULL. */
static const char *inside(const char *text, const char *end, const char *tag, size_t *len)
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

static int add_entity(struct str *to, const char *name, size_t len)
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

/* Decodes XML text; the caller frees it. NULL if it is missing or invalid. */
static char *text_of(const char *text, const char *end, const char *tag)
{
	CLEANUP(str_free) struct str out = STR_INIT;
	size_t len = 0;
	const char *from = inside(text, end, tag, &len);

	if (!from)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		const char *stop = from[i] == '&' ? memchr(from + i, ';', len - i) : NULL;
		if (from[i] == '<' ||
		    (from[i] == '&' &&
		     (!stop || add_entity(&out, from + i + 1, (size_t)(stop - from) - i - 1) < 0)))
			return NULL;
		if (stop)
			i = (size_t)(stop - from);
		else
			str_addc(&out, from[i]);
	}
	return str_detach(&out);
}

/* Whether a key is below the prefix and names the same thing after the path is cleaned on the way;
 * a slash at its end is allowed. */
static bool is_below(const char *key, const char *prefix)
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

static int strange(struct turn *t, const char *what)
{
	return err_set(t->err, ERR_UNTRUSTED, "listing %s: RunPod answers with %s",
		       t->op->want->file.path, what);
}

static int read_file(struct turn *t, const char *from, const char *end, const char *prefix,
		     struct page *page)
{
	CLEANUP(free_text) char *key = text_of(from, end, "Key");
	CLEANUP(free_text) char *size = text_of(from, end, "Size");
	CLEANUP(free_text) char *changed = text_of(from, end, "LastModified");

	if (!is_below(key, prefix))
		return strange(t, "a name that is not in it");
	long long bytes = size ? strtoll(size, NULL, 10) : 0;
	json_array_append_new(page->files,
			      json_pack("[o,I,I]", json_stringn_nocheck(key, strlen(key)),
					(json_int_t)MAX(MIN(bytes, 1LL << 50), 0LL),
					(json_int_t)(changed ? api_time(changed) : 0)));
	return 0;
}

static int read_folder(struct turn *t, const char *from, const char *end, const char *prefix,
		       struct page *page)
{
	CLEANUP(free_text) char *name = text_of(from, end, "Prefix");

	if (!is_below(name, prefix) || !ends_with(name, "/") || !strcmp(name, prefix))
		return strange(t, "a folder that is not in it");
	json_array_append_new(page->prefixes, json_stringn_nocheck(name, strlen(name)));
	return 0;
}

static int read_all(struct turn *t, const char *body, const char *tag, const char *prefix,
		    struct page *page,
		    int (*read)(struct turn *t, const char *from, const char *end,
				const char *prefix, struct page *page))
{
	const char *end = body + strlen(body), *at = body;
	size_t len = 0;

	while ((at = inside(at, end, tag, &len))) {
		if (read(t, at, at + len, prefix, page) < 0)
			return -1;
		at += len;
	}
	return 0;
}

/* Rejects a truncated reply: what it lacks would count as absent. */
static int read_page(struct turn *t, const char *prefix, struct page *page)
{
	const char *body = str_text(&t->reply->body), *end = body + strlen(body);
	CLEANUP(free_text) char *truncated = text_of(body, end, "IsTruncated");

	*page = (struct page){.files = json_array(), .prefixes = json_array()};
	if (!strstr(body, "<ListBucketResult") || !strstr(body, "</ListBucketResult>") ||
	    !truncated)
		return err_set(t->err, ERR_TRANSIENT,
			       "listing %s: RunPod's answer is not a whole list",
			       t->op->want->file.path);
	page->more = !strcmp(truncated, "true");
	page->token = text_of(body, end, "NextContinuationToken");
	if (read_all(t, body, "Contents", prefix, page, read_file) < 0)
		return -1;
	return read_all(t, body, "CommonPrefixes", prefix, page, read_folder);
}

/* ---- requesting a page ---- */

static enum op_next request_list(struct turn *t, const char *prefix, bool flat, const char *token)
{
	CLEANUP(str_free) struct str query = STR_INIT;

	if (token) {
		str_add(&query, "continuation-token=");
		api_escape(&query, token, "-._~");
		str_addc(&query, '&');
	}
	str_addf(&query, "%slist-type=2&max-keys=%d&prefix=", flat ? "" : "delimiter=%2F&",
		 PAGE_KEYS);
	api_escape(&query, prefix, "-._~");
	s3_request(t, "GET", LIST_MS, NULL, str_text(&query));
	t->call->max_bytes = PAGE_MOST_BYTES;
	return OP_CALL;
}

static int check_path(struct turn *t)
{
	const char *path = t->op->want->file.path;

	if (s3_check(t->op, t->err) < 0)
		return -1;
	return path_is_safe(path)
		       ? 0
		       : err_set(t->err, ERR_REFUSED, "\"%s\" is not a path on a volume", path);
}

/* Returns false if *next says what to do: wait for a reply, or fail. */
static bool answered(struct turn *t, enum op_next *next)
{
	if (s3_busy(t, next))
		return false;
	t->op->tries = 0;
	if (!t->reply->failed && t->reply->status == 200)
		return true;
	s3_failure(t, "listing", t->op->want->file.path);
	*next = OP_FAILED;
	return false;
}

/* ---- folder by folder: kept is {queue: prefixes still to list, the current one first; tokens: of
 * its pages} ---- */

static const char *queue_head(const struct op *op)
{
	return json_string_value(json_array_get(json_object_get(op->kept, "queue"), 0));
}

static enum op_next walk_request(struct turn *t)
{
	const json_t *tokens = json_object_get(t->op->kept, "tokens");
	size_t count = json_array_size(tokens);

	if (t->op->step++ >= CALLS_MOST) {
		err_set(t->err, ERR_REFUSED, "listing %s: more than %d pages",
			t->op->want->file.path, CALLS_MOST);
		return OP_FAILED;
	}
	return request_list(t, queue_head(t->op), false,
			    count ? json_string_value(json_array_get(tokens, count - 1)) : NULL);
}

static int walk_begin(struct turn *t)
{
	CLEANUP(free_text) char *prefix = NULL;

	if (check_path(t) < 0)
		return -1;
	prefix = xasprintf("%s/", t->op->want->file.path);
	t->op->kept = json_pack("{s:[o],s:[]}", "queue",
				json_stringn_nocheck(prefix, strlen(prefix)), "tokens");
	return 0;
}

/* Moves to the next page of this folder, or to the next folder. Returns 1 if all are listed. */
static int walk_on(struct turn *t, const struct page *page)
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
		return strange(t, "a list that continues, but not where");
	json_array_foreach (tokens, i, seen)
		if (!strcmp(json_string_value(seen), page->token))
			return strange(t, "the same page repeatedly");
	json_array_append_new(tokens, json_stringn_nocheck(page->token, strlen(page->token)));
	return 0;
}

static enum op_next walk(struct turn *t,
			 void (*take)(struct op *op, const char *prefix, const struct page *page))
{
	CLEANUP(page_free) struct page page = {0};
	enum op_next next;

	if (!t->op->kept && walk_begin(t) < 0)
		return OP_FAILED;
	if (!t->reply)
		return walk_request(t);
	if (!answered(t, &next))
		return next;
	if (read_page(t, queue_head(t->op), &page) < 0)
		return OP_FAILED;
	take(t->op, queue_head(t->op), &page);
	int over = walk_on(t, &page);
	if (over < 0)
		return OP_FAILED;
	return over ? OP_DONE : walk_request(t);
}

static void add_entry(struct op *op, const char *prefix, const char *key, bool folder,
		      int64_t bytes, int64_t changed_s)
{
	struct volume_entry e = {
		.folder = folder, .bytes = bytes, .files = folder ? -1 : 1, .changed_s = changed_s};
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

static void take_names(struct op *op, const char *prefix, const struct page *page)
{
	const json_t *item;
	size_t i;

	json_array_foreach (page->prefixes, i, item)
		add_entry(op, prefix, json_string_value(item), true, -1, 0);
	json_array_foreach (page->files, i, item) {
		const char *key = json_string_value(json_array_get(item, 0));
		bool folder = ends_with(key, "/");
		add_entry(op, prefix, key, folder,
			  folder ? -1 : json_integer_value(json_array_get(item, 1)),
			  folder ? 0 : json_integer_value(json_array_get(item, 2)));
	}
}

enum op_next volume_ls_next(struct turn *t)
{
	enum op_next next = walk(t, take_names);

	if (next != OP_DONE)
		return next;
	if (t->op->got.entry_count)
		return api_done(t);
	err_set(t->err, ERR_NOT_FOUND, "%s: nothing is listed there", t->op->want->file.path);
	return OP_FAILED;
}

static void take_sizes(struct op *op, const char *prefix, const struct page *page)
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
	enum op_next next = walk(t, take_sizes);
	return next == OP_DONE ? api_done(t) : next;
}

/* ---- removing a file or a folder ---- */

/* Always requests the first page: removed entries are no longer on it, so no token is needed.
 * Folders are listed once they are empty. kept is {files: of this page, still to remove, the
 * current one last; first: key of the previous page}. */
enum { ASK_PAGE, ASK_REMOVE, ASK_LAST };

static enum op_next delete_request(struct turn *t)
{
	const char *path = t->op->want->file.path;
	const json_t *files = json_object_get(t->op->kept, "files");
	size_t count = json_array_size(files);

	if (t->op->step == ASK_PAGE) {
		CLEANUP(free_text) char *prefix = xasprintf("%s/", path);
		return request_list(t, prefix, true, NULL);
	}
	s3_request(t, "DELETE", DELETE_MS,
		   t->op->step == ASK_LAST
			   ? path
			   : json_string_value(json_array_get(json_array_get(files, count - 1), 0)),
		   NULL);
	return OP_CALL;
}

/* Handles an entry that was removed and is still listed, which may happen for a moment. */
static bool still_there(struct turn *t, const char *first)
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

static enum op_next take_page(struct turn *t)
{
	CLEANUP(page_free) struct page page = {0};
	CLEANUP(free_text) char *prefix = xasprintf("%s/", t->op->want->file.path);
	int64_t rounds = jsonx_int(t->op->kept, "rounds", 0);

	if (read_page(t, prefix, &page) < 0)
		return OP_FAILED;
	size_t count = json_array_size(page.files);
	if (!count && page.more) {
		strange(t, "a list that continues without content");
		return OP_FAILED;
	}
	const char *first =
		count ? json_string_value(json_array_get(json_array_get(page.files, 0), 0)) : NULL;
	bool same = still_there(t, first);
	if (rounds >= ROUNDS_MOST || jsonx_int(t->op->kept, "times", 0) > STILL_THERE_MOST) {
		err_set(t->err, ERR_TRANSIENT,
			"removing %s: RunPod reports that it is gone but keeps listing it",
			t->op->want->file.path);
		return OP_FAILED;
	}
	json_object_set_new(t->op->kept, "rounds", json_integer(rounds + 1));
	json_object_set(t->op->kept, "files", page.files);
	json_object_set_new(t->op->kept, "again", json_boolean(same));
	t->op->step = count ? ASK_REMOVE : ASK_LAST;
	return same ? api_wait(t, LAG_MS) : delete_request(t);
}

static enum op_next removed(struct turn *t)
{
	json_t *files = json_object_get(t->op->kept, "files");
	size_t count = json_array_size(files);

	t->op->tries = 0;
	if (t->reply->failed ||
	    (t->reply->status != 404 && (t->reply->status < 200 || t->reply->status > 299))) {
		s3_failure(t, "removing", t->op->want->file.path);
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
	return delete_request(t);
}

enum op_next volume_delete_next(struct turn *t)
{
	enum op_next next;

	if (!t->op->kept && check_path(t) < 0)
		return OP_FAILED;
	if (!t->op->kept)
		t->op->kept = json_object();
	if (!t->reply)
		return delete_request(t);
	if (t->op->step != ASK_PAGE)
		return s3_busy(t, &next) ? next : removed(t);
	return answered(t, &next) ? take_page(t) : next;
}
