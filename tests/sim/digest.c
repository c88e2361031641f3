/* digest.c - a checksum of all actions of one schedule: two builds with equal checksums decide the
 * same. */
#include "sim.h"

#include <stdlib.h>

enum { OF_THE_RUN = -1 };

bool by_pod;

static void mix(uint64_t *sum, const void *bytes, size_t count)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < count; i++)
		*sum = (*sum ^ b[i]) * 0x100000001b3ull;
}

static void mix_number(uint64_t *sum, int64_t number)
{
	mix(sum, &number, sizeof(number));
}

void digest_actions(struct client *cl)
{
	uint64_t *sum = &cl->sim->digest;

	for (size_t i = 0; i < cl->out.count; i++) {
		const struct action *a = &cl->out.list[i];
		mix_number(sum, cl->sim->now);
		mix_number(sum, (int64_t)cl->number << 32 | (int64_t)a->type);
		mix_number(sum, (int64_t)a->pod * (INT64_C(1) << 32) | a->provider);
		mix_number(sum, (int64_t)a->segment << 32 | a->batch);
		mix_number(sum, (int64_t)a->number << 1 | a->flag);
		mix(sum, a->text, strlen(a->text));
	}
}

/* Actions of the run first, then by pod; the end of the run last. */
static int place(const struct action *a)
{
	return a->type == ACT_END ? INT32_MAX : a->pod < 0 ? OF_THE_RUN : a->pod;
}

void digest_by_pod(struct actions *out)
{
	for (size_t i = 1; i < out->count; i++) {
		struct action a = out->list[i];
		size_t at = i;
		for (; at > 0 && place(&out->list[at - 1]) > place(&a); at--)
			out->list[at] = out->list[at - 1];
		out->list[at] = a;
	}
}
