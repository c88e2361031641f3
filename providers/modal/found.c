/* found.c - the pods that an operation has found so far. */
#include "impl.h"

#include <math.h>

#include "base/section.h"
#include "list.h"

struct pod_view *modal_add_pod(struct op *op)
{
	op->got.pods = xrealloc(op->got.pods, (op->got.pod_count + 1) * sizeof(*op->got.pods));
	struct pod_view *pod = &op->got.pods[op->got.pod_count++];

	*pod = (struct pod_view){0};
	return pod;
}

bool modal_is_listed(const struct op *op, const char *id)
{
	for (size_t i = 0; i < op->got.pod_count; i++)
		if (!strcmp(op->got.pods[i].id, id))
			return true;
	return false;
}

bool modal_is_refused(const struct reply *r)
{
	return !r->failed && (r->grpc_status == 3 || r->grpc_status == 7 || r->grpc_status == 9 ||
			      r->grpc_status == 12);
}
