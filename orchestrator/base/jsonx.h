/* jsonx.h - short ways to read what may or may not be in a JSON object. Wrong types read as absent.
 */
#ifndef BURST_BASE_JSONX_H
#define BURST_BASE_JSONX_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* These return the member's value, or `absent` if it is missing or of another type. object may be
 * NULL. The text is borrowed from the object. */
const char *jsonx_text(const json_t *object, const char *key, const char *absent);
int64_t jsonx_int(const json_t *object, const char *key, int64_t absent); /* of 3 or 3.7: 3 */
/* jsonx_int() cut to the range from 0 to most: for foreign numbers */
int64_t jsonx_bounded(const json_t *object, const char *key, int64_t absent, int64_t most);
double jsonx_number(const json_t *object, const char *key, double absent);
bool jsonx_bool(const json_t *object, const char *key, bool absent);
/* A list of a thousand pods has a tenth of these. */
enum { JSONX_VALUES_MOST = 500000 };
/* Whether a text has too many values: one may take a hundred times the memory of its text ("[]").
 */
bool jsonx_has_too_many_values(const char *bytes, size_t len);
/* Parses a text that is exactly one object. The caller json_decref()s it. NULL (ERR_BUG with the
 * place): it is not one, or has too many values. */
json_t *jsonx_parse(const char *bytes, size_t len, struct err *err);
/* The value as one compact line without newline, keys in insertion order. The caller frees it. */
char *jsonx_line(const json_t *value);

static inline void json_decref_cleanup(json_t **value)
{
	json_decref(*value);
}

#endif
