/* script_print.c - prints what a Markdown file says: a JSON line for each item, then one with what
 * is not spoken. For tests. */
#include <stdio.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "jobs/text/script.h"

static int print(const char *name)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str silent = STR_INIT;
	struct err err = {0};

	if (path_read(name, (size_t)64 << 20, &text, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	input_read_markdown(&s, script_add_source(&s, name), str_text(&text), text.len);
	for (size_t i = 0; i < s.count; i++) {
		CLEANUP(json_decref)
		json_t *item = json_pack("{s:I,s:b,s:s}", "line", (json_int_t)s.items[i].line,
					 "heading", s.items[i].heading, "text", s.items[i].text);
		json_dumpf(item, stdout, JSON_COMPACT);
		putchar('\n');
	}
	script_tell_silent(&s, &silent);
	CLEANUP(json_decref)
	json_t *end = json_pack("{s:s,s:s}", "silent", str_text(&silent), "complaint", s.complaint);
	json_dumpf(end, stdout, JSON_COMPACT);
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	return argc == 2 ? print(argv[1]) : 2;
}
