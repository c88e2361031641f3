/* json.h - reads and writes JSON. Reading is strict: no NUL in texts; of equal keys the last
 * counts. Writing replaces invalid bytes. */
#ifndef BURST_JOBS_AGENT_JSON_H
#define BURST_JOBS_AGENT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { J_DEPTH = 64 };

enum json_type { J_NULL, J_TRUE, J_FALSE, J_INT, J_REAL, J_TEXT, J_LIST, J_OBJECT };

struct json {
	enum json_type type;
	char *text; /* J_TEXT, NUL-terminated */
	size_t len;
	int64_t integer; /* J_INT */
	double number;   /* J_INT and J_REAL */
	const char *raw; /* as in the input */
	size_t raw_len;
	char *key; /* set in members of an object */
	struct json *first, *last, *next;
};

struct chunk;

/* Owns all nodes and texts of one document; json_free() frees them together. */
struct json_doc {
	struct chunk *chunks;
	const char *p, *end;
	int depth;
};

void json_free(struct json_doc *doc);

/* Reads one value with nothing after it. Returns NULL if the text is not JSON. Nodes point into
 * `text`. Call json_free(doc) in either case. */
struct json *json_read(struct json_doc *doc, const char *text, size_t len);
/* Each of these accepts NULL for the object. json_get() returns NULL, and those with `absent`
 * return that, if the key is missing or its value has another type. */
const struct json *json_get(const struct json *object, const char *key);
/* The first item of a list; NULL: there is none. */
const struct json *json_items(const struct json *object, const char *key);
const char *json_text(const struct json *object, const char *key, const char *absent);
double json_number(const struct json *object, const char *key, double absent);
int64_t json_int(const struct json *object, const char *key, int64_t absent);
bool json_yes(const struct json *object, const char *key);

/* Appends a quoted text. Counts a NUL as an invalid byte. */
void js_quote(struct str *b, const char *text, size_t len);
/* Each of these appends a member, with a comma if needed; key NULL: an item of a list. js_key()
 * alone expects its value next. */
void js_key(struct str *b, const char *key);
void js_textn(struct str *b, const char *key, const char *text, size_t len);
void js_text(struct str *b, const char *key, const char *text);
void js_int(struct str *b, const char *key, int64_t value);
void js_real(struct str *b, const char *key, double value);
void js_bool(struct str *b, const char *key, bool value);

#endif
