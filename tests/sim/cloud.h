/* cloud.h - what the files of the cloud call of each other. */
#ifndef BURST_TESTS_SIM_CLOUD_H
#define BURST_TESTS_SIM_CLOUD_H

#include "wire.h"

enum { ASKED_AGAIN_MS = 90000, FINISHED_MS = 15000, CALL_TAKES_MS = 120000 };

int cloud_number_of(const struct sim *s, const struct machine *m);
/* A living pod's release may wait for a minute at most: for the end of a window that its vendor
 * reported as used up, or after a 429 that names hours. */
bool cloud_may_wait(const struct sim *s, const struct machine *m);

#endif
