/* findings.c - prints what `burst doctor` finds. */
#include "findings.h"

#include <stdlib.h>

#include "base/str.h"
#include "output.h"

void findings_say(struct findings *f, const char *mark, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	f->bad += !strcmp(mark, "bad");
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	output_line(stdout, "%-5s%s", mark, text ? text : "");
	free(text);
}

void findings_say_lines(struct findings *f, const char *provider, const char *text)
{
	const char *line;
	size_t n;

	while ((line = str_next_line(&text, &n))) {
		size_t mark = strcspn(line, ":");
		char word[8] = "ok";
		if (mark < n && mark < sizeof(word))
			snprintf(word, sizeof(word), "%.*s", (int)mark, line);
		CLEANUP(str_free) struct str shown = STR_INIT;
		const char *words = mark < n ? line + mark + 1 : line;
		words += strspn(words, " ");
		str_add_printable(&shown, words, n - (size_t)(words - line), 300);
		findings_say(f, word, "%s: %s", provider, str_text(&shown));
	}
}
