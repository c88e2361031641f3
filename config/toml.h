/* toml.h - reads the TOML files that the vendors' own tools write, line by line: [table], key =
 * "text", key = true, numbers and comments. Values of other kinds are skipped if they end on their
 * line; what spans lines is refused.
 *
 * secrets.c reads api_key and apikey of ~/.runpod/config.toml (runpodctl, RunPod's Python CLI), and
 * active, token_id, token_secret, server_url and environment of ~/.modal.toml (`modal token new`).
 * These tools also write keys that burst never reads, and profiles may have any name. So a reader
 * of the keys alone would not do: it could take a "#" or "[" within a quoted text for syntax, and
 * an escape that it skipped would change a key. */
#ifndef BURST_CONFIG_TOML_H
#define BURST_CONFIG_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Called for each key. table is "" at the top; value is the text, "true", "false" or the number as
 * written. Return false to stop. */
typedef bool toml_each(void *ctx, const char *table, const char *key, const char *value);

/* ERR_CREDENTIALS with "shown:line: ..." (never with the line's text: it may hold a secret). */
int toml_read(const char *text, size_t len, const char *shown, toml_each *each, void *ctx,
	      struct err *err);

#endif
