/* secrets.h - finds a provider's keys, and reads the TOML files of the vendors' own tools */
#ifndef BURST_CONFIG_SECRETS_H
#define BURST_CONFIG_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/section.h"
#include "provider.h"

/* ---- toml ----
 * Reads the TOML files of the vendors' own tools, line by line: [table], key = "text", key =
 * true, numbers and comments. The only escapes are \" and \\. Skips other values that end on their
 * line; refuses values of several lines.
 *
 * secrets.c reads api_key and apikey of ~/.runpod/config.toml (runpodctl, RunPod's Python CLI),
 * and active, token_id, token_secret, server_url and environment of ~/.modal.toml (`modal token
 * new`). A search for these keys alone would not be safe: it could take a "#" or "[" inside a
 * quoted text for syntax, and an unhandled escape would change a key. */

struct toml {
	struct toml_pair {
		char *table; /* "": at the top */
		char *key;
		char *value; /* the text, "true", "false" or the number as written */
	} * list;
	size_t count, cap;
};

/* For secrets.c and the fuzzer. ERR_CREDENTIALS with "shown:line: ...", never with the line's text,
 * which may hold a secret. Free *out with toml_free() after an error, too. */
int toml_read(struct toml *out, const char *text, size_t len, const char *shown, struct err *err);
/* Wipes the values. */
void toml_free(struct toml *toml);

/* ---- secrets ----
 * Finds a provider's keys, in this order: the environment (RUNPOD_API_KEY for `api_key` of
 * "runpod"), the user's file (the key itself, or KEY_command: a shell command that prints it),
 * the vendor's own file.
 *
 * Each key is registered with log_secret() before use. None is ever an argument of a program. */

/* Fills empty OPTION_SECRET keys of the provider's section, and other keys that the vendor's file
 * has. ERR_NO_ACCOUNT if a required one is in no place. ERR_CREDENTIALS if only some exist or one
 * cannot be read: its command fails, its file is unreadable, or the value is no key. user_shown:
 * name of the user's file in messages. */
int secrets_fill(const char *provider, struct section *s, const char *user_shown, struct err *err);

/* "RUNPOD_API_KEY" for "runpod" and "api_key". The caller frees it. */
char *secret_env_name(const char *provider, const char *key);

/* Removes the keys of these providers (NULL-terminated) from the environment, so that no child
 * process gets them. Call once, at the start. */
void secrets_hide(const struct provider_ops *const *providers);
/* Paths of the vendors' own files with keys. NULL: no home. The caller frees each. */
size_t secrets_file_count(void);
char *secrets_file(size_t index);

/* ---- for tests ---- */

/* Runs `command` by /bin/sh for at most limit_ms. *out is the first line of its output, trimmed.
 * The caller frees it. */
int secret_from_command(char **out, const char *command, int64_t limit_ms, struct err *err);
/* Reads a key of a vendor's file. profile NULL: the active one, else "default", else the only one.
 * *out is NULL if the file or the key is missing. */
int secret_from_file(char **out, const char *path, const char *profile, const char *key,
		     struct err *err);

#endif
