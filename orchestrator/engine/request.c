/* request.c - one operation of a provider that is under way, with what its want points to. */
#include "request.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "impl.h"

struct request *request_new(struct engine *e, int provider, int pod)
{
	struct request *a = xcalloc(1, sizeof(*a));

	a->e = e;
	a->provider = provider;
	a->pod = pod;
	a->requested_at = clock_boot_ms();
	a->next = e->requests;
	a->link = &e->requests;
	if (a->next)
		a->next->link = &a->next;
	e->requests = a;
	return a;
}

void request_free(struct request *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	for (size_t i = 0; i < a->env_count; i++) {
		if (a->env[i].secret)
			explicit_bzero(a->env[i].value, strlen(a->env[i].value));
		free(a->env[i].name);
		free(a->env[i].value);
	}
	free(a->start_script);
	core_ids_free(a->ids);
	for (char **r = a->regions; r && *r; r++)
		free(*r);
	free(a->regions);
	if (a->lock)
		close(a->lock);
	loop_untimer(a->timer);
	free(a);
}

void requests_forget(struct engine *e)
{
	while (e->requests)
		request_free(e->requests);
}

struct caller_op *request_begin(struct request *a, enum op_kind kind,
				void (*done)(void *ctx, struct op_result *result,
					     const struct err *err))
{
	const struct engine_provider *v = &a->e->setup->providers[a->provider];

	return caller_begin(a->e->caller, v, kind, &a->want, done, a);
}
