/* provider_conformance.h - what every provider must do, whatever its vendor: one suite, run against
 * the vendor's stand-in.
 *
 * A test fills a subject and calls conformance_run() from within a cmocka test. */
#ifndef BURST_TESTS_PROVIDER_CONFORMANCE_H
#define BURST_TESTS_PROVIDER_CONFORMANCE_H

#include "provider.h"

struct conformance {
	const struct provider_ops *ops;
	struct provider *provider;
	/* Carries a call to the stand-in and fills the reply, as net/ would. */
	void (*carry)(void *ctx, const struct call *call, struct reply *reply);
	void *ctx;
	const char *start_script; /* of a pod that does nothing but live */
	const char *volume;       /* a volume's name that is free; NULL: the stand-in has none */
	/* an id as the vendor's own, of no pod; NULL: any text may be one */
	const char *stranger;
	/* the vendor makes any number of pods of one name: it is burst that never does */
	bool names_repeat;
};

/* Rents, looks, lists, releases; ends with nothing left at the stand-in. Fails the running cmocka
 * test with words. */
void conformance_run(const struct conformance *c);

/* The parts, for tests of one provider. Carries an operation to its end: OP_DONE or OP_FAILED.
 * Waits are not waited for. */
enum op_next conformance_do(const struct conformance *c, enum op_kind kind,
			    const struct op_want *want, struct op_result *result, struct err *err);

#endif
