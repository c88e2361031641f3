/* section.c - the values of one group of settings, checked against a table of keys. */
#include "section.h"

#include <assert.h>
#include <stdlib.h>

#include "clock.h"
#include "str.h"

struct value {
	bool set; /* the file has a value */
	char *where;
	char *text;
	int64_t number;
	double decimal;
	char **items;
	struct section **groups;
	size_t count, cap; /* of either list */
	struct section *group;
};

struct section {
	const struct option_spec *table;
	char *where;
	struct value *values; /* one per line of the table */
	size_t count;
};

static size_t index_of(const struct section *s, const char *key)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->table[i].key, key))
			return i;
	fprintf(stderr, "burst: bug: no option \"%s\"\n", key);
	abort();
}

/* Sets the default of an empty value. Aborts if the table's text is not valid. */
static void set_default(struct value *v, const struct option_spec *spec)
{
	struct err err = {0};
	int bad = 0;

	if (spec->type == OPTION_GROUP) {
		v->group = section_new(spec->group, spec->key);
		return;
	}
	if (!spec->def)
		return;
	switch (spec->type) {
	case OPTION_TEXT:
	case OPTION_PATH: v->text = xstrdup(spec->def); break;
	case OPTION_INT: v->number = strtoll(spec->def, NULL, 10); break;
	case OPTION_DECIMAL: v->decimal = strtod(spec->def, NULL); break;
	case OPTION_BOOL: v->number = !strcmp(spec->def, "true"); break;
	case OPTION_DURATION: bad = duration_parse(spec->def, &v->number, &err); break;
	case OPTION_MONEY: bad = money_parse(spec->def, &v->number, &err); break;
	case OPTION_TEXTS:
		GROW(v->items, v->count, v->cap);
		v->items[v->count++] = xstrdup(spec->def);
		break;
	case OPTION_GROUP:
	case OPTION_GROUPS: break;
	}
	assert(bad == 0);
	(void)bad;
}

struct section *section_new(const struct option_spec *table, const char *where)
{
	struct section *s = xcalloc(1, sizeof(*s));

	s->table = table;
	s->where = xstrdup(where);
	while (table[s->count].key)
		s->count++;
	s->values = xcalloc(s->count, sizeof(*s->values));
	for (size_t i = 0; i < s->count; i++)
		set_default(&s->values[i], &table[i]);
	return s;
}

static void free_items(struct value *v)
{
	for (size_t i = 0; i < v->count; i++) {
		if (v->items)
			free(v->items[i]);
		if (v->groups)
			section_free(v->groups[i]);
	}
	v->count = 0;
}

static void free_value_text(struct section *s, size_t i)
{
	if (s->table[i].flags & OPTION_SECRET)
		text_wipe(s->values[i].text);
	else
		free(s->values[i].text);
}

static void free_value(struct section *s, size_t i)
{
	struct value *v = &s->values[i];

	free_value_text(s, i);
	free(v->where);
	free_items(v);
	free(v->items);
	free(v->groups);
	section_free(v->group);
}

void section_free(struct section *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		free_value(s, i);
	free(s->values);
	free(s->where);
	free(s);
}

/* Marks the key as set at this place and returns its value, which the caller sets. */
static struct value *mark_set(struct section *s, const char *key, const char *where)
{
	struct value *v = &s->values[index_of(s, key)];
	char *copy = xstrdup(where); /* may be what section_where() lent */

	v->set = true;
	free(v->where);
	v->where = copy;
	return v;
}

void section_set_text(struct section *s, const char *key, const char *text, const char *where)
{
	struct value *v = mark_set(s, key, where);
	char *copy = xstrdup(text);

	free_value_text(s, (size_t)(v - s->values));
	v->text = copy;
}

void section_set_int(struct section *s, const char *key, int64_t value, const char *where)
{
	struct value *v = mark_set(s, key, where);

	v->number = value;
	v->decimal = (double)value;
}

void section_set_decimal(struct section *s, const char *key, double value, const char *where)
{
	mark_set(s, key, where)->decimal = value;
}

void section_set_bool(struct section *s, const char *key, bool value, const char *where)
{
	mark_set(s, key, where)->number = value;
}

void section_add_item(struct section *s, const char *key, const char *item, const char *where)
{
	struct value *v = &s->values[index_of(s, key)];

	if (!v->set)
		free_items(v); /* a value from the file replaces the default */
	mark_set(s, key, where);
	if (!item)
		return; /* an empty list */
	GROW(v->items, v->count, v->cap);
	v->items[v->count++] = xstrdup(item);
}

void section_clear_items(struct section *s, const char *key)
{
	struct value *v = &s->values[index_of(s, key)];

	free_items(v);
	v->set = false;
}

void section_unset(struct section *s, const char *key)
{
	size_t i = index_of(s, key);
	struct value *v = &s->values[i];

	free_value(s, i);
	*v = (struct value){0};
	set_default(v, &s->table[i]);
}

struct section *section_set_group(struct section *s, const char *key, const char *where)
{
	struct section *group = mark_set(s, key, where)->group;
	char *copy = xstrdup(section_where(s, key));

	free(group->where);
	group->where = copy;
	return group;
}

struct section *section_add_group(struct section *s, const char *key, const char *where)
{
	struct value *v = mark_set(s, key, where);
	struct section *group = section_new(s->table[v - s->values].group, where);

	GROW(v->groups, v->count, v->cap);
	v->groups[v->count++] = group;
	return group;
}

bool section_has(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].set;
}

const char *section_text(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].text;
}

int64_t section_int(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].number;
}

double section_decimal(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].decimal;
}

bool section_bool(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].number != 0;
}

size_t section_count(const struct section *s, const char *key)
{
	return s->values[index_of(s, key)].count;
}

const char *section_item(const struct section *s, const char *key, size_t index)
{
	const struct value *v = &s->values[index_of(s, key)];

	assert(index < v->count);
	return v->items[index];
}

bool section_has_item(const struct section *s, const char *key, const char *text)
{
	for (size_t i = 0; i < section_count(s, key); i++)
		if (!strcmp(section_item(s, key, i), text))
			return true;
	return false;
}

const struct section *section_group(const struct section *s, const char *key)
{
	const struct value *v = &s->values[index_of(s, key)];

	assert(v->group);
	return v->group;
}

const struct section *section_group_at(const struct section *s, const char *key, size_t index)
{
	const struct value *v = &s->values[index_of(s, key)];

	assert(index < v->count && v->groups);
	return v->groups[index];
}

const char *section_where(const struct section *s, const char *key)
{
	const char *where = key ? s->values[index_of(s, key)].where : NULL;

	return where ? where : s->where;
}

const struct option_spec *section_table(const struct section *s)
{
	return s->table;
}
