/* env.c - lists of environment variables, and the file of them that the start script leaves. */
#include "env.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void env_set(struct env *env, const char *name, const char *value)
{
	size_t len = strlen(name);
	char *pair = xasprintf("%s=%s", name, value);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=') {
			free(env->list[i]);
			env->list[i] = pair;
			return;
		}
	env->list = xrealloc(env->list, (env->count + 2) * sizeof(char *));
	env->list[env->count++] = pair;
	env->list[env->count] = NULL;
}

const char *env_get(const struct env *env, const char *name, const char *absent)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			return env->list[i] + len + 1;
	return absent;
}

bool env_is_container(const struct env *env)
{
	return !strcmp(env_get(env, "BURST_CONTAINER", ""), "1");
}

void env_free(struct env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->list[i]);
	free(env->list);
	*env = (struct env){0};
}

struct env env_copy(const struct env *from)
{
	struct env to = {.list = xcalloc(1, (from->count + 1) * sizeof(char *)),
			 .count = from->count};
	for (size_t i = 0; i < from->count; i++)
		to.list[i] = xstrdup(from->list[i]);
	return to;
}

/* Reads one word in shell quoting ('..', "..", \x and plain, concatenated). Stops at the end of the
 * line. */
static const char *shell_word(const char *p, struct str *out)
{
	while (*p && *p != '\n') {
		if (*p == '\'') {
			const char *close = strchr(p + 1, '\'');
			if (!close)
				return p + strlen(p);
			str_addn(out, p + 1, (size_t)(close - p - 1));
			p = close + 1;
		} else if (*p == '"') {
			for (p++; *p && *p != '"'; p++) {
				if (*p == '\\' && p[1] && strchr("\"\\$`", p[1]))
					p++;
				str_addc(out, *p);
			}
			p += *p == '"';
		} else {
			p += *p == '\\' && p[1];
			str_addc(out, *p++);
		}
	}
	return p;
}

void env_unset(struct env *env, const char *name)
{
	size_t len = strlen(name), kept = 0;
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			free(env->list[i]);
		else
			env->list[kept++] = env->list[i];
	env->count = kept;
	if (env->list)
		env->list[kept] = NULL;
}

/* Drops the start script's own keys and those that the provider lists in BURST_HIDE. */
static void hide_keys(struct env *env)
{
	char *names = xasprintf("BURST_HOST_KEY_B64 BURST_AUTHORIZED_KEY %s",
				env_get(env, "BURST_HIDE", "")),
	     *save = NULL;
	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
		env_unset(env, name);
	free(names);
}

void env_parse(struct env *env, const char *text)
{
	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = strspn(
			p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
		if (!n || p[n] != '=') {
			p += strcspn(p, "\n");
			continue;
		}
		char *name = xstrndup(p, n);
		struct str value = {0};
		p = shell_word(p + n + 1, &value);
		env_set(env, name, str_text(&value));
		free(name);
		str_free(&value);
	}
	hide_keys(env);
}

void env_add_object(struct env *env, const struct json *object)
{
	for (const struct json *m = object && object->type == J_OBJECT ? object->first : NULL; m;
	     m = m->next)
		if (m->type == J_TEXT && *m->key && !strchr(m->key, '='))
			env_set(env, m->key, m->text);
}
