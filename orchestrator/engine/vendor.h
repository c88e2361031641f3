/* vendor.h - actions that are operations of a provider. */
#ifndef BURST_ENGINE_VENDOR_H
#define BURST_ENGINE_VENDOR_H

struct engine;

void vendor_offers(struct engine *e, int provider);
void vendor_list(struct engine *e, int provider);
/* Lists that were asked for before there was something to end: they wait no longer than it does. */
void vendor_prioritize(struct engine *e);
void vendor_rent(struct engine *e, int pod);
void vendor_inspect(struct engine *e, int pod);
/* What the vendor says it billed, for the ledger; vendor_bills_open() falls when it has answered.
 */
void vendor_billing(struct engine *e, int pod);
int vendor_bills_open(const struct engine *e);

struct vendors *vendors_new(void);
void vendors_free(struct vendors *v);

#endif
