/* roff.c - writes text for man pages. */
#include "roff.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

/* Escapes what roff would obey: a dot or a quote at the start of a line, and a plain -. */
void roff_text(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
	}
}

void roff_heading(FILE *to, const char *macro, const char *title)
{
	fprintf(to, "%s ", macro);
	roff_text(to, title);
	fputc('\n', to);
}

void roff_paragraph(FILE *to, const char *text)
{
	for (; *text; text++) {
		const char *end = strchr(text, '\n');
		CLEANUP(free_text)
		char *line = end ? xstrndup(text, (size_t)(end - text)) : xstrdup(text);
		roff_text(to, line);
		fputs(*line ? "\n" : ".PP\n", to);
		if (!end)
			break;
		if (*line && end[1] != '\n')
			fputs(".br\n", to);
		text = end;
	}
}

void roff_item(FILE *to, const char *name, const char *text)
{
	fputs(".TP\n.B ", to);
	roff_text(to, name);
	fputc('\n', to);
	roff_paragraph(to, text);
}

void roff_example(FILE *to, const char *text)
{
	fputs(".PP\n.RS 4\n.nf\n", to);
	roff_text(to, text);
	fputs(".fi\n.RE\n", to);
}
