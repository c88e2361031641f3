/* espeak_json.h - takes apart a line of JSON. The agent has checked the line, so nothing here
 * reports a mistake; whatever the bytes, no function reads past the end. */
#ifndef BURST_JOBS_WORKERS_ESPEAK_JSON_H
#define BURST_JOBS_WORKERS_ESPEAK_JSON_H

#include <stdbool.h>

/* Where the reader stands in a line. *end must be readable and 0. */
struct cursor {
	const char *p, *end;
};

/* p; aborts if it is NULL, since a worker without memory cannot go on. */
void *must_have(void *p);
/* Takes blanks. */
void cursor_blanks(struct cursor *c);
/* Takes this character if it comes next, after blanks. */
bool cursor_at(struct cursor *c, char what);
/* Takes a text; the caller frees it. NULL: no text comes next. */
char *cursor_text(struct cursor *c);
/* Takes a value of any kind. */
void cursor_skip(struct cursor *c);
/* Takes the next key of an object whose '{' has been taken, and its colon; the caller frees it.
 * NULL: the object ends. */
char *cursor_key(struct cursor *c);
/* Takes a number, also one that is written as a text. 0 if it is beyond +-100,000. */
int cursor_int(struct cursor *c);

#endif
