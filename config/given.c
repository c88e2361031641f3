/* given.c - prints the settings of a config as a new burst.cfg. */
#include "given.h"

#include <stdlib.h>

#include "base/clock.h"
#include "write.h"

#define INDENT 4

struct printer {
	struct str *to;
	const struct config *config;
	int depth;
};

/* Writes the shortest form that reads back as the same number. */
static void add_number(struct str *to, double value)
{
	char text[32];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	str_add(to, text);
}

static void add_duration(struct str *to, int64_t ms)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;

	while (ms % units[i].ms)
		i++;
	str_addf(to, "\"%lld%s\"", (long long)(ms / units[i].ms), ms ? units[i].unit : "s");
}

static void add_path(const struct printer *p, const char *path)
{
	const char *dir = config_dir(p->config);
	size_t len = strlen(dir);

	if (!strcmp(path, dir))
		config_quote(p->to, ".");
	else if (starts_with(path, dir) && path[len] == '/')
		config_quote(p->to, path + len + 1);
	else
		config_quote(p->to, path);
}

static void add_items(struct str *to, const struct section *s, const char *key)
{
	str_addc(to, '[');
	for (size_t i = 0; i < section_count(s, key); i++) {
		str_add(to, i ? ", " : "");
		config_quote(to, section_item(s, key, i));
	}
	str_addc(to, ']');
}

static void add_section(struct printer *p, const struct section *s);

static void add_groups(struct printer *p, const struct section *s, const char *key)
{
	str_add(p->to, "(");
	p->depth++;
	for (size_t i = 0; i < section_count(s, key); i++) {
		str_addf(p->to, "%s\n%*s{\n", i ? "," : "", INDENT * p->depth, "");
		p->depth++;
		add_section(p, section_group_at(s, key, i));
		p->depth--;
		str_addf(p->to, "%*s}", INDENT * p->depth, "");
	}
	p->depth--;
	str_add(p->to, ")");
}

static void add_value(struct printer *p, const struct section *s, const struct option_spec *spec)
{
	struct str *to = p->to;

	switch (spec->type) {
	case OPTION_TEXT: config_quote(to, section_text(s, spec->key)); break;
	case OPTION_PATH: add_path(p, section_text(s, spec->key)); break;
	case OPTION_INT: str_addf(to, "%lld", (long long)section_int(s, spec->key)); break;
	case OPTION_DECIMAL: add_number(to, section_decimal(s, spec->key)); break;
	case OPTION_MONEY: add_number(to, (double)section_int(s, spec->key) / 1e6); break;
	case OPTION_BOOL: str_add(to, section_bool(s, spec->key) ? "true" : "false"); break;
	case OPTION_DURATION: add_duration(to, section_int(s, spec->key)); break;
	case OPTION_TEXTS: add_items(to, s, spec->key); break;
	case OPTION_GROUP:
		str_add(to, "{\n");
		p->depth++;
		add_section(p, section_group(s, spec->key));
		p->depth--;
		str_addf(to, "%*s}", INDENT * p->depth, "");
		break;
	case OPTION_GROUPS: add_groups(p, s, spec->key); break;
	}
}

static void add_key(struct printer *p, const struct section *s, const struct option_spec *spec)
{
	str_addf(p->to, "%*s%s = ", INDENT * p->depth, "", spec->key);
	add_value(p, s, spec);
	str_add(p->to, ";\n");
}

static bool is_given(const struct printer *p, const struct section *s,
		     const struct option_spec *spec)
{
	if (spec->flags & (OPTION_SECRET | OPTION_USER_ONLY) || !section_has(s, spec->key))
		return false;
	if (spec->type != OPTION_GROUP)
		return !config_is_users(p->config, s, spec->key);
	const struct section *group = section_group(s, spec->key);
	for (const struct option_spec *inner = spec->group; inner->key; inner++)
		if (is_given(p, group, inner))
			return true;
	return false;
}

static void add_section(struct printer *p, const struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++)
		if (is_given(p, s, spec))
			add_key(p, s, spec);
}

void config_print_given(struct str *to, const struct config *c)
{
	struct printer p = {.to = to, .config = c};
	const struct section *top = config_top(c);

	for (const struct option_spec *spec = section_table(top); spec->key; spec++)
		if (!strcmp(spec->key, "provider") || is_given(&p, top, spec))
			add_key(&p, top, spec);
	str_add(to, "job = {\n");
	p.depth = 1;
	add_section(&p, config_job(c));
	str_add(to, "};\n");
}
