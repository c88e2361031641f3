/* text.c - wraps text to a width. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"

void text_wrap(FILE *to, const char *text, int at, int indent, int width)
{
	bool fresh = true; /* nothing is on this line yet */

	while (*text) {
		if (*text == '\n') {
			fputc('\n', to);
			text++;
			at = *text && *text != '\n' ? fprintf(to, "%*s", indent, "") : 0;
			fresh = true;
			continue;
		}
		if (*text == ' ') {
			text++;
			continue;
		}
		int len = (int)strcspn(text, " \n");
		if (!fresh && at + 1 + len > width) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			fresh = true;
		}
		at += fprintf(to, "%s%.*s", fresh ? "" : " ", len, text);
		fresh = false;
		text += len;
	}
	fputc('\n', to);
}

char *text_flag(char *out, size_t room, const struct opt *opt)
{
	char letter[8] = "    ";

	if (opt->letter)
		snprintf(letter, sizeof(letter), "-%c, ", opt->letter);
	if (!opt->name) {
		snprintf(out, room, "  -%c", opt->letter);
		return out;
	}
	snprintf(out, room, "  %s--%s%s%s%s", letter, opt->name,
		 opt->arg ? (opt->optional ? "[=" : " ") : "", opt->arg ? opt->arg : "",
		 opt->arg && opt->optional ? "]" : "");
	return out;
}

char *text_arg(char *out, size_t room, const char **at, int *more)
{
	const char *p = *at ? *at : "";

	p += strspn(p, " [");
	size_t len = strcspn(p, " [].");
	if (!len)
		return NULL;
	snprintf(out, room, "%.*s", (int)len, p);
	p += len;
	*more = starts_with(p, "...");
	p += strspn(p, ".]");
	*at = p;
	return out;
}
