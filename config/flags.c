/* flags.c - sets keys from the command line over those of the files. */
#include <stdlib.h>
#include <unistd.h>

#include "config_keys.h"
#include "state.h"
#include "value.h"

/* Returns the section of the last part of "a.b.c"; *key is that part. */
static struct section *descend(struct section *s, const char **key, const char *flag)
{
	for (const char *dot; (dot = strchr(*key, '.')); *key = dot + 1) {
		CLEANUP(free_text) char *group = xstrndup(*key, (size_t)(dot - *key));
		const struct option_spec *spec = value_spec(section_table(s), group);
		if (!spec || spec->type != OPTION_GROUP)
			return NULL;
		s = section_set_group(s, group, flag);
	}
	return s;
}

static struct section *root_of(const struct config *c, const char **key)
{
	if (starts_with(*key, "job.")) {
		*key += strlen("job.");
		return c->job;
	}
	if (!starts_with(*key, "providers."))
		return c->top;
	const char *name = *key + strlen("providers.");
	size_t len = strcspn(name, ".");
	CLEANUP(free_text) char *provider = xstrndup(name, len);
	struct account *account = config_find_account(c, provider);
	*key = name + len + (name[len] == '.');
	return account ? account->section : NULL;
}

struct mistakes *config_mistakes(const struct config *c)
{
	return c->mistakes;
}

void config_place_error(const struct config *c, struct err *err)
{
	const char *key = err->key;
	const struct section *s = key[0] ? root_of(c, &key) : NULL;

	for (const char *dot; s && (dot = strchr(key, '.')); key = dot + 1) {
		CLEANUP(free_text) char *group = xstrndup(key, (size_t)(dot - key));
		const struct option_spec *spec = value_spec(section_table(s), group);
		s = spec && spec->type == OPTION_GROUP ? section_group(s, group) : NULL;
	}
	if (!s || !value_spec(section_table(s), key) || !section_has(s, key))
		return;
	err_wrap(err, "%s", section_where(s, key));
	err->key[0] = '\0';
}

void config_set_output(struct config *c, const char *path)
{
	section_set_text(c->job, "output", path, section_where(c->job, "output"));
}

bool config_adds(const char *key)
{
	return !strcmp(key, "allow_paths") || !strcmp(key, "volumes");
}

char *config_added(const char *key, const char *text)
{
	CLEANUP(free_text) char *here = getcwd(NULL, 0);
	CLEANUP(str_free) struct str all = STR_INIT;

	if (strcmp(key, "allow_paths") != 0)
		return xstrdup(text);
	for (size_t len; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		CLEANUP(free_text) char *item = xstrndup(text, len);
		CLEANUP(free_text) char *path = *item ? value_path(here ? here : "/", item) : NULL;
		if (path)
			str_addf(&all, "%s%s", all.len ? "," : "", path);
	}
	return xstrdup(str_text(&all));
}

/* Flags add to what the user's file allows. */
static int add_to(struct config *c, const char *key, const char *text, const char *flag,
		  struct err *err)
{
	CLEANUP(free_text) char *added = config_added(key, text);
	CLEANUP(str_free) struct str all = STR_INIT;

	for (size_t i = 0; i < section_count(c->top, key); i++)
		str_addf(&all, "%s,", section_item(c->top, key, i));
	str_add(&all, added);
	return value_set(c->top, value_spec(config_keys, key), str_text(&all), "/", flag, err);
}

int config_override(struct config *c, const char *key, const char *text, const char *flag,
		    struct err *err)
{
	const char *rest = key;
	struct section *s = root_of(c, &rest);
	CLEANUP(free_text) char *here = getcwd(NULL, 0);

	if (config_adds(key))
		return add_to(c, key, text, flag, err);
	if (!s && mistakes_about(c->mistakes, "job"))
		return 0; /* config_check() reports an unreadable one */
	if (!s)
		return err_set(err, ERR_USAGE, "%s: no job in this config, so %s cannot be set",
			       flag, key);
	s = descend(s, &rest, flag);
	const struct option_spec *spec = s ? value_spec(section_table(s), rest) : NULL;
	if (!spec)
		return err_set(err, ERR_USAGE, "%s: this job type has no %s", flag, key);
	if (value_set(s, spec, text, here ? here : "/", flag, err) < 0)
		return err_wrap(err, "%s", flag);
	return 0;
}
