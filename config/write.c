/* write.c - writes settings as text in burst.cfg's syntax. */
#include "write.h"

#include <math.h>
#include <stdlib.h>

void config_quote(struct str *to, const char *text)
{
	str_addc(to, '"');
	for (; *text; text++) {
		if (*text == '\n') {
			str_add(to, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			str_addc(to, '\\');
		str_addc(to, *text);
	}
	str_addc(to, '"');
}

static void write_items(struct str *to, const struct section *s, const char *key)
{
	str_add(to, "[");
	for (size_t i = 0; i < section_count(s, key); i++) {
		str_add(to, i ? ", " : "");
		config_quote(to, section_item(s, key, i));
	}
	str_add(to, "]");
}

static void write_value(struct str *to, const struct section *s, const struct option_spec *spec)
{
	switch (spec->type) {
	case OPTION_TEXT:
	case OPTION_PATH: config_quote(to, section_text(s, spec->key)); break;
	case OPTION_INT: str_addf(to, "%lldL", (long long)section_int(s, spec->key)); break;
	case OPTION_DECIMAL: {
		double value = section_decimal(s, spec->key);
		str_addf(to, value == floor(value) && fabs(value) < 1e15 ? "%.1f" : "%.17g", value);
		break;
	}
	case OPTION_BOOL: str_add(to, section_bool(s, spec->key) ? "true" : "false"); break;
	case OPTION_DURATION:
		str_addf(to, "\"%lldms\"", (long long)section_int(s, spec->key));
		break;
	case OPTION_MONEY: str_addf(to, "%.6f", (double)section_int(s, spec->key) / 1e6); break;
	case OPTION_TEXTS: write_items(to, s, spec->key); break;
	case OPTION_GROUP:
		str_add(to, "{ ");
		config_print(to, section_group(s, spec->key), NULL);
		str_add(to, "}");
		break;
	}
}

static bool among(const char *key, const char *const *list)
{
	for (; list && *list; list++)
		if (!strcmp(key, *list))
			return true;
	return false;
}

void config_print(struct str *to, const struct section *s, const char *const *leave_out)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		bool theirs = spec->flags & (OPTION_SECRET | OPTION_USER_ONLY);
		if (theirs || !section_has(s, spec->key) || among(spec->key, leave_out))
			continue;
		str_addf(to, "%s = ", spec->key);
		write_value(to, s, spec);
		str_add(to, ";\n");
	}
}
