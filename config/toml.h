/* toml.h - the lines that the vendors' own tools write into their TOML files: [table], key =
 * "text", key = true, numbers and comments. Values of other kinds are passed over when they end on
 * their line; what spans lines is refused. */
#ifndef BURST_CONFIG_TOML_H
#define BURST_CONFIG_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* table is "" at the top; value is the text, "true", "false" or the number as written. Return false
 * to stop. */
typedef bool toml_each(void *ctx, const char *table, const char *key, const char *value);

/* ERR_CREDENTIALS with "shown:line: ..." (never with the line's text: it may hold a secret). */
int toml_read(const char *text, size_t len, const char *shown, toml_each *each, void *ctx,
	      struct err *err);

#endif
