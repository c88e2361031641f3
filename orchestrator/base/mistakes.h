/* mistakes.h - collects every mistake of a file in one reading: a reader notes a mistake and
 * continues. */
#ifndef BURST_BASE_MISTAKES_H
#define BURST_BASE_MISTAKES_H

#include "err.h"

struct mistakes {
	struct mistake {
		struct err err;
		/* what the mistake is about ("job.input"); NULL: nothing that has a name */
		char *key;
	} * list;
	size_t count, cap;
	size_t more; /* left out: the list is bounded */
};

/* Takes *err over and clears it. Returns 0, so that the caller continues. With m == NULL it keeps
 * *err and returns -1, so that the first mistake ends the reading. A message that was noted before
 * is dropped. */
int mistakes_note(struct mistakes *m, const char *key, struct err *err);
/* A mistake about this key was noted: what follows from it needs no message of its own. m may be
 * NULL. */
bool mistakes_about(const struct mistakes *m, const char *key);
bool mistakes_any(const struct mistakes *m);
/* Puts the mistakes into the order of their lines. -1 with the first in *err when there is one,
 * else 0. m may be NULL. */
int mistakes_end(struct mistakes *m, struct err *err);
/* Notes all of `from` in m, and empties it. */
void mistakes_move(struct mistakes *m, struct mistakes *from);
void mistakes_free(struct mistakes *m);

#endif
