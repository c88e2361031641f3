/* pages.c - reads lists in pages:
 * {"pods":[..],"pagination":{"hasNextPage":true,"nextCursor":".."}}, as other clients of v2 do. */
#include "impl.h"

#include <ctype.h>

enum { PAGES_MOST = 200 };

/* A page's reference to the next one. */
struct further {
	const char *cursor; /* NULL: none */
	/* a reference that burst cannot follow; NULL: none */
	const char *word;
	bool none;    /* explicitly the last page */
	int64_t rows; /* on all pages, by the vendor's count */
};

void api_first_page(struct op *op)
{
	op->cursor[0] = '\0';
	op->pages = 0;
	op->rows = 0;
}

static bool is_one_of(const char *key, const char *const *words)
{
	for (; *words; words++)
		if (!strcasecmp(key, *words))
			return true;
	return false;
}

/* Whether the value refers to the next page: an address, a number, or an object with either. */
static bool refers_to_page(const json_t *value)
{
	return json_string_length(value) || json_number_value(value) > 0 || json_object_size(value);
}

static void find_next_page(const json_t *in, struct further *to)
{
	static const char *const where[] = {
		"cursor",     "next",        "nextpagetoken", "next_page_token", "nextpage",
		"next_page",  "pagetoken",   "page_token",    "nexttoken",       "next_token",
		"nextoffset", "next_offset", "nexturl",       "next_url",        NULL};
	static const char *const whether[] = {
		"hasnextpage", "has_next_page", "hasnext",      "has_next",  "hasmore", "has_more",
		"more",        "istruncated",   "is_truncated", "truncated", NULL};
	static const char *const totals[] = {"total",      "totalcount",  "total_count",
					     "totalitems", "total_items", NULL};
	static const char *const groups[] = {"page",      "pagination", "paging", "pageinfo",
					     "page_info", "metadata",   "meta",   "links",
					     "_links",    NULL};
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)in, key, value) {
		if ((!strcasecmp(key, "nextcursor") || !strcasecmp(key, "next_cursor")) &&
		    json_string_length(value))
			to->cursor = json_string_value(value);
		if (is_one_of(key, whether)) {
			to->none = json_is_false(value);
			to->word = json_is_true(value) ? key : to->word;
		}
		if (is_one_of(key, where) && refers_to_page(value))
			to->word = key;
		if (is_one_of(key, totals))
			to->rows = MAX(to->rows, json_integer_value(value));
		if (is_one_of(key, groups) && json_is_object(value))
			find_next_page(value, to);
	}
}

/* Reads Link: <https://...?page=2>; rel="next" */
static bool is_linked(const struct reply *r)
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

static int64_t rows_of(const json_t *page)
{
	size_t most = 0;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)page, key, value)
		most = MAX(most, json_array_size(value));
	return (int64_t)most;
}

static int lost_in_pages(struct turn *t, const char *what, const char *why)
{
	api_first_page(t->op);
	return err_set(t->err, ERR_BUG,
		       "RunPod's list of %s has further pages (%s), which this version cannot "
		       "read: check RunPod's console, and update burst",
		       what, why);
}

int api_further_pages(struct turn *t, const json_t *page, const char *what)
{
	struct further further = {0};
	struct op *op = t->op;

	find_next_page(page, &further);
	op->rows += rows_of(page);
	if (!further.cursor || further.none) {
		CLEANUP(free_text)
		char *word = further.word ? xasprintf("\"%.40s\"", further.word) : NULL;
		CLEANUP(free_text)
		char *total = xasprintf("%lld in all, %lld here", (long long)further.rows,
					(long long)op->rows);
		if (!further.none && (word || is_linked(t->reply) || further.rows > op->rows))
			return lost_in_pages(t, what,
					     word                      ? word
					     : further.rows > op->rows ? total
								       : "by its Link header");
		api_first_page(op);
		return 0;
	}
	if (strlen(further.cursor) >= sizeof(op->cursor))
		return lost_in_pages(t, what, "its cursor is too long");
	if (!strcmp(further.cursor, op->cursor))
		return lost_in_pages(t, what, "its cursor leads to the same page");
	if (++op->pages == PAGES_MOST)
		return lost_in_pages(t, what, "it does not end");
	COPY_TEXT(op->cursor, further.cursor);
	return 1;
}
