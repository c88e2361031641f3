/* template.h - a text with variables and with blocks of lines that are repeated or left out. In a
 * template
 *
 *   @name@          stands for a variable of lower-case letters. An empty one takes the blank in
 *                   front of it away.
 *   #: each WHAT    repeats the lines up to "#: end WHAT".
 *   #: if name      leaves out the lines up to "#: end name" if the variable is empty.
 *   #: ANYTHING     is not printed.
 *
 * A template is part of the program: a mistake in it is a bug, and stops the program. */
#ifndef BURST_CMD_SHOW_TEMPLATE_H
#define BURST_CMD_SHOW_TEMPLATE_H

#include "base/str.h"

struct template_data {
	/* Sets the variables of each WHAT and calls template_fill() with lines and end. */
	void (*each)(struct template_data *t, struct str *to, const char *what, const char *lines,
		     const char *end);
	struct {
		const char *name;
		struct str value;
	} variables[24];
};

/* The variable's value, emptied, to append to. name must live as long as t. */
struct str *template_set(struct template_data *t, const char *name);
/* Adds lines..end; each line ends with a newline. */
void template_fill(struct template_data *t, struct str *to, const char *lines, const char *end);
/* Adds one line up to its newline. */
void template_fill_line(struct template_data *t, struct str *to, const char *line);
void template_free(struct template_data *t);

#endif
