/* template.c - fills a text's variables and repeats its blocks of lines. */
#include "template.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of the variable of this name, or of a free one. */
static size_t find(const struct template_data *t, const char *name)
{
	size_t i = 0;

	while (i < ARRAY_LEN(t->variables) && t->variables[i].name &&
	       strcmp(t->variables[i].name, name))
		i++;
	assert(i < ARRAY_LEN(t->variables));
	return i;
}

struct str *template_set(struct template_data *t, const char *name)
{
	size_t i = find(t, name);

	t->variables[i].name = name;
	str_reset(&t->variables[i].value);
	return &t->variables[i].value;
}

static const char *value(const struct template_data *t, const char *name)
{
	size_t i = find(t, name);

	assert(t->variables[i].name); /* otherwise nothing sets what the template names */
	return str_text(&t->variables[i].value);
}

static const char *next_line(const char *line)
{
	return strchr(line, '\n') + 1;
}

void template_fill_line(struct template_data *t, struct str *to, const char *line)
{
	while (*line != '\n') {
		size_t len = *line == '@' ? strspn(line + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
		char name[16];

		if (!len || line[1 + len] != '@') {
			str_addc(to, *line++);
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)len, line + 1);
		str_add(to, value(t, name));
		if (!*value(t, name) && to->len && to->s[to->len - 1] == ' ')
			to->s[--to->len] = '\0';
		line += len + 2;
	}
}

void template_fill(struct template_data *t, struct str *to, const char *lines, const char *end)
{
	char verb[8], what[24], last[40];

	for (const char *line = lines; line < end; line = next_line(line)) {
		if (!starts_with(line, "#: ")) {
			template_fill_line(t, to, line);
			str_addc(to, '\n');
			continue;
		}
		if (sscanf(line, "#: %7s %23[^\n]", verb, what) < 2 ||
		    (strcmp(verb, "each") && strcmp(verb, "if")))
			continue;
		snprintf(last, sizeof(last), "\n#: end %s\n", what);
		const char *first = next_line(line), *stop = strstr(line, last);
		assert(stop);
		if (!strcmp(verb, "each"))
			t->each(t, to, what, first, stop + 1);
		else if (*value(t, what))
			template_fill(t, to, first, stop + 1);
		line = stop + 1;
	}
}

void template_free(struct template_data *t)
{
	for (size_t i = 0; i < ARRAY_LEN(t->variables); i++)
		str_free(&t->variables[i].value);
}
