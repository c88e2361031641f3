/* state.c - what all files that read a config ask of it. */
#include "state.h"

#include "base/err.h"
#include "config.h"

const char *const config_run_caps[CONFIG_RUN_CAPS] = {"per_day", "per_month"};

struct account *config_find_account(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->account_count; i++)
		if (!strcmp(c->accounts[i].ops->name, name))
			return &c->accounts[i];
	return NULL;
}

int config_mistake(const struct config *c, struct err *err)
{
	if (!c->lenient)
		return -1;
	log_line(LOG_WARN, "%s; continuing without it", err->msg);
	err_clear(err);
	return 0;
}

int config_no_provider(const struct config *c, const char *before, const char *name,
		       struct err *err)
{
	CLEANUP(str_free) struct str there = STR_INIT;
	const char *names[64];
	size_t n = MIN(c->account_count, ARRAY_LEN(names) - 1);

	for (size_t i = 0; i < n; i++) {
		names[i] = c->accounts[i].ops->name;
		str_addf(&there, "%s%s", i ? ", " : "", names[i]);
	}
	names[n] = NULL;
	const char *near = nearest_word(name, names);
	if (near)
		return err_set(err, ERR_CONFIG,
			       "%s: unknown provider \"%.40s\", did you mean "
			       "\"%s\"?",
			       before, name, near);
	return err_set(err, ERR_CONFIG,
		       "%s: unknown provider \"%.40s\" (known: %s; BURST_PROVIDER_PATH adds "
		       "others)",
		       before, name, str_text(&there));
}

bool config_is_projects_word(const struct config *c, const struct section *s, const char *key)
{
	const char *where = section_where(s, key);

	return !section_has(s, key) ||
	       (starts_with(where, c->project_shown) && where[strlen(c->project_shown)] == ':');
}

bool config_is_read(const struct config *c, const struct section *s, const struct option_spec *spec)
{
	return spec->type == OPTION_PATH && strcmp(spec->key, "output") &&
	       section_text(s, spec->key) && config_is_projects_word(c, s, spec->key);
}
