/* vendor.h - actions that are operations of a provider. */
#ifndef BURST_ENGINE_VENDOR_H
#define BURST_ENGINE_VENDOR_H

#include <stdint.h>

#include "provider.h"

struct engine;

/* What the provider says that it billed for one pod, once that is gone. Only vendor.c writes it. */
struct billing {
	struct op_bill bill; /* its hours are not kept */
	int64_t answered_ms; /* wall clock; it may have had no record. 0: no answer */
};

void vendor_offers(struct engine *e, int provider);
void vendor_list(struct engine *e, int provider);
/* Makes lists urgent that were requested before there was a pod to end. */
void vendor_prioritize(struct engine *e);
/* EV_RENTED or EV_RENT_FAILED follows. Nothing is rented if the last journal_pod() failed. */
void vendor_rent(struct engine *e, int pod);
void vendor_inspect(struct engine *e, int pod);
/* Requests what the vendor billed, for the ledger; vendor_bills_open() falls with each answer. */
void vendor_billing(struct engine *e, int pod);
int vendor_bills_open(const struct engine *e);

struct vendors *vendors_new(void);
void vendors_free(struct vendors *v);

#endif
