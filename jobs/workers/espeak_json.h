/* espeak_json.h - parses a JSON line. The agent has checked the line, so nothing here reports a
 * mistake. No function reads past the end, whatever the bytes. */
#ifndef BURST_JOBS_WORKERS_ESPEAK_JSON_H
#define BURST_JOBS_WORKERS_ESPEAK_JSON_H

#include <stdbool.h>

/* Position in a line. *end must be readable and 0. */
struct cursor {
	const char *p, *end;
};

/* Returns p. Aborts if p is NULL: a worker without memory cannot continue. */
void *must_have(void *p);
/* Skips blanks. */
void cursor_blanks(struct cursor *c);
/* Consumes this character if it comes next, after blanks. */
bool cursor_at(struct cursor *c, char what);
/* Consumes a text; the caller frees it. NULL: another kind of value comes next. */
char *cursor_text(struct cursor *c);
/* Consumes a value of any kind. */
void cursor_skip(struct cursor *c);
/* Consumes the next key of an object and its colon; the '{' is consumed already. The caller frees
 * the key. NULL: the object has ended. */
char *cursor_key(struct cursor *c);
/* Consumes a number, or a text that holds one. Returns 0 beyond +-100,000. */
int cursor_int(struct cursor *c);

#endif
