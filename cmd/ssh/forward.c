/* forward.c - reads the ports that `burst ssh -L` forwards. */
#include "forward.h"

#include <stdio.h>
#include <stdlib.h>

void forwards_free(struct forwards *f)
{
	for (int i = 0; i < f->count; i++)
		free(f->spec[i]);
}

/* "8080", or "8080:9090" for another port there: forwards to the pod's loopback. NULL: invalid. */
static char *forward_of(const char *text, size_t length)
{
	CLEANUP(free_text) char *word = xasprintf("%.*s", (int)length, text);
	unsigned here = 0, there = 0;
	int end = 0;

	if (sscanf(word, "%5u%n", &here, &end) == 1 && !word[end])
		there = here;
	else if (sscanf(word, "%5u:%5u%n", &here, &there, &end) != 2 || word[end])
		here = 0;
	if (!here || !there || here > 65535 || there > 65535)
		return NULL;
	return xasprintf("127.0.0.1:%u:127.0.0.1:%u", here, there);
}

int forwards_read(struct forwards *f, const char *text, struct err *err)
{
	while (text) {
		const char *comma = strchrnul(text, ',');
		size_t length = (size_t)(comma - text);

		if (f->count == FORWARDS_MAX)
			return err_set(err, ERR_USAGE, "ssh: -L forwards at most %d ports",
				       FORWARDS_MAX);
		if (!(f->spec[f->count] = forward_of(text, length)))
			return err_set(err, ERR_USAGE,
				       "ssh: -L %.*s: give a port, as in -L 8080, two, as in -L "
				       "8080:80 (here, on the pod), or several with commas between",
				       (int)MIN(length, (size_t)40), text);
		f->count++;
		text = *comma ? comma + 1 : NULL;
	}
	return 0;
}
