/* kubernetes_bed.h - an open Kubernetes translator for tests, which calls nobody. */
#ifndef BURST_TESTS_KUBERNETES_BED_H
#define BURST_TESTS_KUBERNETES_BED_H

#include "providers/kubernetes/impl.h"

extern struct section *conf; /* context "bed", prices of L40S and B200 */
extern struct provider *provider;

/* Set-up and teardown of a cmocka test. */
int open_provider(void **state);
int close_provider(void **state);

#endif
