/* toml.h - reads the TOML files of the vendors' own tools, line by line: [table], key = "text", key
 * = true, numbers and comments. Skips other values that end on their line; refuses values of
 * several lines.
 *
 * secrets.c reads api_key and apikey of ~/.runpod/config.toml (runpodctl, RunPod's Python CLI), and
 * active, token_id, token_secret, server_url and environment of ~/.modal.toml (`modal token new`).
 * A search for these keys alone would not be safe: it could take a "#" or "[" inside a quoted text
 * for syntax, and an unhandled escape would change a key. */
#ifndef BURST_CONFIG_TOML_H
#define BURST_CONFIG_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Called for each key. table is "" at the top. value is the text, "true", "false" or the number as
 * written. Returns false to stop. */
typedef bool toml_each(void *ctx, const char *table, const char *key, const char *value);

/* ERR_CREDENTIALS with "shown:line: ...", never with the line's text, which may hold a secret. */
int toml_read(const char *text, size_t len, const char *shown, toml_each *each, void *ctx,
	      struct err *err);

#endif
