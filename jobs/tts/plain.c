/* plain.c - reads plain text: a line or a paragraph each */
#include "script.h"

/* A text has paragraphs if blank lines separate texts and one of them has more than one line. */
static enum input_mode guess_mode(const char *bytes, const char *end)
{
	const char *line;
	size_t len, run = 0, longest = 0, blocks = 0;

	for (const char *at = bytes; next_line(&at, end, &line, &len);) {
		run = line_is_blank(line, len) ? 0 : run + 1;
		blocks += run == 1;
		longest = MAX(longest, run);
	}
	return blocks > 1 && longest > 1 ? INPUT_PARAGRAPHS : INPUT_LINES;
}

/* Adds the text as an item and empties it. */
static void add_paragraph(struct script *s, const char *source, size_t line, struct str *text)
{
	struct script_item item = {
		.source = source, .line = line, .chapter = -1, .border = BORDER_PARAGRAPH};

	if (text->len)
		script_add(s, &item, str_text(text), text->len);
	str_reset(text);
}

void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode)
{
	const char *line, *end = bytes + len;
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t n, number = 0, began = 0;

	if (mode == INPUT_AUTO)
		mode = guess_mode(bytes, end);
	for (const char *at = bytes; next_line(&at, end, &line, &n);) {
		number++;
		if (line_is_blank(line, n)) {
			add_paragraph(s, source, began, &text);
		} else if (mode == INPUT_LINES) {
			struct script_item item = {.source = source,
						   .line = number,
						   .chapter = -1,
						   .border = BORDER_LINE};
			script_add(s, &item, line, n);
		} else {
			if (!text.len)
				began = number;
			else
				str_addc(&text, ' ');
			str_addn(&text, line, n);
		}
	}
	add_paragraph(s, source, began, &text);
}
