/* translator.h - shared by the files of the translator: local.c sends requests, local.c reads
 * replies, local.c checks wishes. */
#ifndef BURST_LOCAL_TRANSLATOR_H
#define BURST_LOCAL_TRANSLATOR_H

#include "wire.h"

struct provider {
	const struct section *section; /* borrowed */
	struct local_conf conf;
	char *state_dir;
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
};

/* wire.c: the verb of an operation; the index is its enum op_kind. */
extern const struct local_verb {
	const char *word;
	enum call_class class;
	bool may_repeat;
	int64_t timeout_ms;
} local_verbs[];

/* local.c */

#endif
