/* reference.c - walks the key tables of burst, of the job types and of the providers. */
#include "reference.h"

#include "base/str.h"
#include "config_keys.h"

static const char *kind_of(const struct option_spec *spec)
{
	switch (spec->type) {
	case OPTION_TEXT: return "text";
	case OPTION_PATH: return "path";
	case OPTION_INT:
		return spec->flags & OPTION_AUTO ? "whole number or \"auto\"" : "whole number";
	case OPTION_DECIMAL: return "number";
	case OPTION_BOOL: return "true or false";
	case OPTION_DURATION: return "duration";
	case OPTION_MONEY: return "dollars";
	case OPTION_TEXTS:
		return spec->flags & OPTION_AUTO ? "list of texts or \"auto\"" : "list of texts";
	case OPTION_GROUP: return "group";
	case OPTION_GROUPS: return "list of groups";
	}
	return "";
}

/* The caller frees it. NULL: no default. */
static char *default_of(const struct option_spec *spec)
{
	if (!spec->def)
		return NULL;
	switch (spec->type) {
	case OPTION_TEXT:
	case OPTION_PATH:
	case OPTION_DURATION: return xasprintf("\"%s\"", spec->def);
	case OPTION_TEXTS: return xasprintf("[\"%s\"]", spec->def);
	case OPTION_INT:
	case OPTION_DECIMAL:
	case OPTION_BOOL:
	case OPTION_MONEY:
	case OPTION_GROUP:
	case OPTION_GROUPS: break;
	}
	return xstrdup(spec->def);
}

static void read_table(const struct reference_reader *to, const struct option_spec *table,
		       const char *prefix)
{
	for (; table->key; table++) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", prefix, table->key);
		CLEANUP(free_text) char *value = default_of(table);
		struct reference_row row = {
			.path = path,
			.kind = kind_of(table),
			.value = value,
			.help = table->help,
			.range = keys_range(path),
			.flags = table->flags,
		};

		to->row(to->ctx, &row);
		if (table->group) {
			CLEANUP(free_text) char *inner = xasprintf("%s.", path);
			read_table(to, table->group, inner);
		}
	}
}

void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers)
{
	to->section(to->ctx, "Keys of burst", "They stand at the top of burst.cfg.");
	read_table(to, config_keys, "");
	for (; *jobs; jobs++) {
		CLEANUP(free_text) char *title = xasprintf("Keys of a %s job", (*jobs)->type);
		to->section(to->ctx, title, (*jobs)->summary ? (*jobs)->summary : "");
		read_table(to, (*jobs)->options, "job.");
	}
	for (; *providers; providers++) {
		CLEANUP(free_text)
		char *title = xasprintf("Keys of the %s provider", (*providers)->name);
		CLEANUP(free_text) char *prefix = xasprintf("providers.%s.", (*providers)->name);
		to->section(to->ctx, title, (*providers)->summary ? (*providers)->summary : "");
		read_table(to, (*providers)->options, prefix);
	}
}
