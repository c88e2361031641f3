/* names.h - what the user means by the id of a run, a pod or a request, or by any part of one.
 * Every command that takes an id asks here: a whole id goes before the beginning of one, and that
 * before any other part. What several ids have is ERR_USAGE, and the message lists them; so is what
 * none has. */
#ifndef BURST_CMD_NAMES_H
#define BURST_CMD_NAMES_H

#include "store/store.h"

/* Where no run has it: the run of a pod, or of a request, that has it. */
int named_run(struct store *s, const char *text, struct run_row *out, struct err *err);
/* By its vendor's id, its name or its attempt; pods that may bill go before others. Where no pod
 * has it: the only such pod of a run. */
int named_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
/* The same of pods alone. 1: *out is set, 0: this ledger has none, -1: *err is set. */
int name_find_pod(struct store *s, const char *text, struct pod_row *out, struct err *err);
int named_request(struct store *s, const char *text, struct request_row *out, struct err *err);
/* A new id that no row has, as people type it: LEN letters and digits that are not taken for one
 * another. */
enum { NAME_LEN = 6 };
void name_draw(char id[NAME_LEN + 1]);

#endif
