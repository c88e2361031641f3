/* wired.h - the operations of a provider whose vendor is burst's own program: the arguments and
 * the JSON (wire.h) of each child, and what its answer says. Used by local and ssh. */
#ifndef BURST_PROVIDERS_WIRED_H
#define BURST_PROVIDERS_WIRED_H

#include "child.h"
#include "wire.h"

/* Checks of the keys "isolation" and "network", which mean the same for every such vendor. */
int wired_check_isolation(const struct section *s, const char *group, const char *key,
			  struct err *err);
int wired_check_network(const struct section *s, const char *group, const char *key,
			struct err *err);

/* Adds the verb, the vendor's folder and what else this operation says, as arguments and as input.
 * conf: for the verbs that need it. ERR_BUG: not text that JSON can hold. */
int wired_ask(const struct op *op, const struct wire_conf *conf, const char *dir, struct call *call,
	      struct err *err);

/* How a provider reads the answer to "offers", which differs between them. */
typedef int wired_offers(const struct op *op, const json_t *from, struct op_result *result,
			 struct err *err);
/* child_vendor.take for such a child. */
enum op_next wired_take(const struct op *op, const struct reply *reply, wired_offers *read_offers,
			struct op_result *result, struct err *err);

#endif
