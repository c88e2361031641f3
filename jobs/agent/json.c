/* json.c - reads and writes JSON. */
#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
	struct chunk *next;
	size_t used, size;
	char bytes[];
};

/* Zeroed memory that json_free() frees. */
static void *doc_alloc(struct json_doc *doc, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (!doc->chunks || doc->chunks->size - doc->chunks->used < size) {
		size_t room = MAX(size, (size_t)8000);
		struct chunk *c = xcalloc(1, sizeof(*c) + room);
		c->size = room;
		c->next = doc->chunks;
		doc->chunks = c;
	}
	void *p = doc->chunks->bytes + doc->chunks->used;
	doc->chunks->used += size;
	return p;
}

void json_free(struct json_doc *doc)
{
	while (doc->chunks) {
		struct chunk *next = doc->chunks->next;
		free(doc->chunks);
		doc->chunks = next;
	}
}

static void skip_space(struct json_doc *doc)
{
	while (doc->p < doc->end &&
	       (*doc->p == ' ' || *doc->p == '\t' || *doc->p == '\n' || *doc->p == '\r'))
		doc->p++;
}

/* The value of four hex digits; -1: they are none. */
static int hex4(const char *p)
{
	int value = 0;
	for (int i = 0; i < 4; i++) {
		int c = (unsigned char)p[i];
		int digit = c >= '0' && c <= '9'                 ? c - '0'
			    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
								 : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Reads the digits after "\u". Returns -1 for a lone surrogate, bad digits or U+0000. */
static int json_unicode(struct json_doc *doc)
{
	if (doc->end - doc->p < 4)
		return -1;
	int code = hex4(doc->p);
	doc->p += 4;
	if (code <= 0 || (code >= 0xdc00 && code <= 0xdfff))
		return -1;
	if (code < 0xd800 || code > 0xdbff)
		return code;
	if (doc->end - doc->p < 6 || doc->p[0] != '\\' || doc->p[1] != 'u')
		return -1;
	int low = hex4(doc->p + 2);
	doc->p += 6;
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Reads what follows a backslash. Returns -1 if it is no escape. */
static int json_escape_char(struct json_doc *doc, struct str *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	if (doc->p >= doc->end)
		return -1;
	char c = *doc->p++;
	if (c == 'u') {
		int code = json_unicode(doc);
		if (code < 0)
			return -1;
		str_add_utf8(to, (uint32_t)code);
		return 0;
	}
	const char *at = c ? strchr(from, c) : NULL;
	if (!at)
		return -1;
	str_addc(to, into[at - from]);
	return 0;
}

/* Reads a text; starts at the opening quote. Returns NULL if it is invalid. */
static char *json_text_at(struct json_doc *doc, size_t *out_len)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	for (doc->p++; doc->p < doc->end && *doc->p != '"';) {
		unsigned char c = (unsigned char)*doc->p;
		if (c == '\\') {
			doc->p++;
			if (json_escape_char(doc, &text) < 0)
				return NULL;
			continue;
		}
		size_t n = c < 0x20 ? 0
				    : utf8_sequence((const unsigned char *)doc->p,
						    (size_t)(doc->end - doc->p));
		if (!n)
			return NULL;
		str_addn(&text, doc->p, n);
		doc->p += n;
	}
	if (doc->p >= doc->end)
		return NULL;
	doc->p++;
	char *to = doc_alloc(doc, text.len + 1);
	memcpy(to, str_text(&text), text.len);
	*out_len = text.len;
	return to;
}

static size_t digits_at(const char *p, const char *end)
{
	size_t n = 0;
	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

/* Reads a number. Returns -1 if it is invalid or too large. */
static int json_number_at(struct json_doc *doc, struct json *node)
{
	const char *start = doc->p, *p = start, *end = doc->end;
	bool real = false;
	if (p < end && *p == '-')
		p++;
	size_t n = digits_at(p, end);
	if (!n || (n > 1 && *p == '0'))
		return -1;
	p += n;
	if (p < end && *p == '.') {
		n = digits_at(++p, end);
		if (!n)
			return -1;
		p += n;
		real = true;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		n = digits_at(p, end);
		if (!n)
			return -1;
		p += n;
		real = true;
	}
	char *text = doc_alloc(doc, (size_t)(p - start) + 1);
	memcpy(text, start, (size_t)(p - start));
	doc->p = p;
	errno = 0;
	if (!real) {
		node->integer = strtoll(text, NULL, 10);
		node->number = (double)node->integer;
		node->type = J_INT;
		return errno == ERANGE ? -1 : 0;
	}
	node->number = strtod(text, NULL);
	node->type = J_REAL;
	return isinf(node->number) ? -1 : 0;
}

static void json_append(struct json *parent, struct json *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

static struct json *json_value_at(struct json_doc *doc);

/* Reads a list or an object; starts at its opening bracket. Returns -1 if it is invalid. */
static int json_members_at(struct json_doc *doc, struct json *node, char close)
{
	doc->p++;
	skip_space(doc);
	if (doc->p < doc->end && *doc->p == close)
		return doc->p++, 0;
	for (;;) {
		char *key = NULL;
		skip_space(doc);
		if (close == '}') {
			size_t len;
			if (doc->p >= doc->end || *doc->p != '"' ||
			    !(key = json_text_at(doc, &len)))
				return -1;
			skip_space(doc);
			if (doc->p >= doc->end || *doc->p++ != ':')
				return -1;
		}
		struct json *child = json_value_at(doc);
		if (!child)
			return -1;
		child->key = key;
		json_append(node, child);
		skip_space(doc);
		if (doc->p >= doc->end)
			return -1;
		char c = *doc->p++;
		if (c == close)
			return 0;
		if (c != ',')
			return -1;
	}
}

static int json_word_at(struct json_doc *doc, struct json *node)
{
	static const struct {
		const char *word;
		enum json_type type;
	} words[] = {{"true", J_TRUE}, {"false", J_FALSE}, {"null", J_NULL}};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t len = strlen(words[i].word);
		if ((size_t)(doc->end - doc->p) >= len && !memcmp(doc->p, words[i].word, len)) {
			doc->p += len;
			node->type = words[i].type;
			return 0;
		}
	}
	return -1;
}

static int json_fill(struct json_doc *doc, struct json *node)
{
	switch (*doc->p) {
	case '"':
		node->type = J_TEXT;
		node->text = json_text_at(doc, &node->len);
		return node->text ? 0 : -1;
	case '[': node->type = J_LIST; return json_members_at(doc, node, ']');
	case '{': node->type = J_OBJECT; return json_members_at(doc, node, '}');
	case 't':
	case 'f':
	case 'n': return json_word_at(doc, node);
	default: return json_number_at(doc, node);
	}
}

static struct json *json_value_at(struct json_doc *doc)
{
	skip_space(doc);
	if (doc->p >= doc->end || doc->depth >= J_DEPTH)
		return NULL;
	struct json *node = doc_alloc(doc, sizeof(*node));
	node->raw = doc->p;
	doc->depth++;
	int failed = json_fill(doc, node);
	doc->depth--;
	node->raw_len = (size_t)(doc->p - node->raw);
	return failed ? NULL : node;
}

struct json *json_read(struct json_doc *doc, const char *text, size_t len)
{
	*doc = (struct json_doc){.p = text, .end = text + len};
	struct json *value = json_value_at(doc);
	skip_space(doc);
	return doc->p == doc->end ? value : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *found = NULL;
	if (object && object->type == J_OBJECT)
		for (const struct json *m = object->first; m; m = m->next)
			if (!strcmp(m->key, key))
				found = m;
	return found;
}

const struct json *json_items(const struct json *object, const char *key)
{
	const struct json *list = json_get(object, key);
	return list && list->type == J_LIST ? list->first : NULL;
}

const char *json_text(const struct json *object, const char *key, const char *absent)
{
	const struct json *m = json_get(object, key);
	return m && m->type == J_TEXT ? m->text : absent;
}

double json_number(const struct json *object, const char *key, double absent)
{
	const struct json *m = json_get(object, key);
	return m && (m->type == J_INT || m->type == J_REAL) ? m->number : absent;
}

int64_t json_int(const struct json *object, const char *key, int64_t absent)
{
	const struct json *m = json_get(object, key);
	if (m && m->type == J_INT)
		return m->integer;
	return m && m->type == J_REAL && fabs(m->number) < 9e15 ? (int64_t)m->number : absent;
}

bool json_yes(const struct json *object, const char *key)
{
	const struct json *m = json_get(object, key);
	return m && m->type == J_TRUE;
}

void js_quote(struct str *b, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	str_addc(b, '"');
	for (size_t i = 0; i < len;) {
		size_t n = p[i] ? utf8_sequence(p + i, len - i) : 0;
		if (p[i] == '"' || p[i] == '\\')
			str_addf(b, "\\%c", p[i]);
		else if (n == 1 && (p[i] < 0x20 || p[i] == 0x7f))
			str_addf(b, "\\u%04x", p[i]);
		else if (n)
			str_addn(b, p + i, n);
		else
			str_add(b, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	str_addc(b, '"');
}

void js_key(struct str *b, const char *key)
{
	if (b->len && b->s[b->len - 1] != '{' && b->s[b->len - 1] != '[')
		str_addc(b, ',');
	if (key) {
		js_quote(b, key, strlen(key));
		str_addc(b, ':');
	}
}

void js_textn(struct str *b, const char *key, const char *text, size_t len)
{
	js_key(b, key);
	js_quote(b, text, len);
}

void js_text(struct str *b, const char *key, const char *text)
{
	js_textn(b, key, text, strlen(text));
}

void js_int(struct str *b, const char *key, int64_t value)
{
	js_key(b, key);
	str_addf(b, "%lld", (long long)value);
}

void js_real(struct str *b, const char *key, double value)
{
	js_key(b, key);
	str_addf(b, "%.6g", isfinite(value) ? value : 0.0);
}

void js_bool(struct str *b, const char *key, bool value)
{
	js_key(b, key);
	str_add(b, value ? "true" : "false");
}
