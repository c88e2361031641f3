/* secrets.h - where a provider's keys come from. In this order: the environment (RUNPOD_API_KEY for
 * `api_key` of "runpod"), the user's file (the key itself, or KEY_command: a shell command that
 * prints it), the vendor's own file.
 *
 * Each key is registered with log_secret() before it is used; none is ever an argument of a
 * program. */
#ifndef BURST_CONFIG_SECRETS_H
#define BURST_CONFIG_SECRETS_H

#include "base/err.h"
#include "base/section.h"
#include "provider.h"

/* Fills the OPTION_SECRET keys of the provider's section that are still empty, and other keys that
 * the vendor's file has. ERR_NO_ACCOUNT if no place has a required one. ERR_CREDENTIALS if only
 * some exist, or one cannot be read: its command fails, its file is unreadable, or the value is not
 * a key. user_shown: what messages call the user's file. */
int secrets_fill(const char *provider, struct section *s, const char *user_shown, struct err *err);

/* "RUNPOD_API_KEY" for "runpod" and "api_key"; to be freed. */
char *secret_env_name(const char *provider, const char *key);

/* Keeps the keys of these providers (NULL-terminated) that are in the environment from every child
 * process. Call it once, at the start. */
void secrets_hide(const struct provider_ops *const *providers);
/* The files in which the vendors' own tools keep keys. NULL: there is no home. To be freed. */
size_t secrets_file_count(void);
char *secrets_file(size_t index);

/* Runs `command` by /bin/sh for at most limit_ms; *out (to be freed) is the first line of what it
 * prints, trimmed. */
int secret_from_command(char **out, const char *command, int64_t limit_ms, struct err *err);
/* A key of a vendor's file; profile NULL: the active one, else "default", else the only one. *out
 * is NULL if the file or the key does not exist. */
int secret_from_file(char **out, const char *path, const char *profile, const char *key,
		     struct err *err);

#endif
