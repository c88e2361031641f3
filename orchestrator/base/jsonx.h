/* jsonx.h - short ways to read what may or may not be in a JSON object. Wrong types read as absent.
 */
#ifndef BURST_BASE_JSONX_H
#define BURST_BASE_JSONX_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

const char *jsonx_text(const json_t *object, const char *key, const char *absent); /* borrowed */
/* takes 3 and 3.0 */
int64_t jsonx_int(const json_t *object, const char *key, int64_t absent);
/* like jsonx_int(), but brought into the range from 0 to most: for foreign numbers */
int64_t jsonx_bounded(const json_t *object, const char *key, int64_t absent, int64_t most);
double jsonx_number(const json_t *object, const char *key, double absent);
bool jsonx_bool(const json_t *object, const char *key, bool absent);
/* A list of a thousand pods has a tenth of this. */
enum { JSONX_VALUES_MOST = 500000 };
/* A parsed value may take a hundred times the memory of its text ("[]"), so a text with more than
 * JSONX_VALUES_MOST is not parsed. */
bool jsonx_has_too_many_values(const char *bytes, size_t len);
/* Parses exactly one object of at most len bytes (ERR_BUG with the place on a mistake, or too many
 * values); json_decref() it. NULL on error. */
json_t *jsonx_parse(const char *bytes, size_t len, struct err *err);
/* One compact line without newline, keys in insertion order; free() it. */
char *jsonx_line(const json_t *value);

static inline void json_decref_cleanup(json_t **value)
{
	json_decref(*value);
}

#endif
