/* report.h - what the ledger knows, as people and scripts see it: the phases of a pod, and the JSON
 * of runs and pods. */
#ifndef BURST_CMD_SHOW_REPORT_H
#define BURST_CMD_SHOW_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "store/store.h"

/* In order of time; they sum to the pod's wall time (to now while it lives). */
enum phase {
	PHASE_QUEUE,   /* until its container runs */
	PHASE_BOOT,    /* until its sshd answers */
	PHASE_CONNECT, /* until the handshake is done */
	PHASE_SYNC,    /* until everything is there */
	PHASE_LOAD,    /* until the workers are ready */
	PHASE_COMPUTE, /* with at least one batch in work */
	PHASE_IDLE,    /* without a batch in work */
	PHASE_FETCH,   /* from the last batch to the last file safe */
	PHASE_KEPT,    /* without work, for another run to take over */
	PHASE_RELEASE, /* until it is confirmed gone */
	PHASES
};
extern const char *const phase_names[PHASES]; /* "queue" ... */
void report_phases(const struct pod_row *pod, int64_t now_ms, int64_t phase_ms[PHASES]);

int64_t report_wall_ms(const struct pod_row *pod, int64_t now_ms);

/* The objects of `run --json` (tests/schema); new references. */
json_t *report_run_json(const struct run_row *run, const struct pod_row *pods, size_t count,
			int64_t now_ms);
/* pod "": none */
json_t *report_error_json(const char *code, const char *message, const char *pod);
json_t *report_delivery_json(const json_t *said); /* of what the delivery's own run said */
json_t *report_seconds(int64_t ms);               /* a number with 3 decimals */
json_t *report_dollars(int64_t microusd);         /* with 6 */
json_t *report_text(const char *text);            /* also when it is not UTF-8 */
json_t *report_time(int64_t wall_ms);             /* RFC 3339, null when not yet */

/* "62%"; "-" when nothing was billed. Returns `to`. */
char *report_ratio(char *to, size_t room, int64_t compute_ms, int64_t billed_ms);
/* The table of phases that ends a run: one line a pod, a line for all. */
void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms);

/* Names each pod that may still bill, and what ends it, on stderr. */
void report_unreleased(const struct pod_row *pods, size_t count);

/* Volumes with what they cost a month: lines on `to`, or appended to the array. Returns how many,
 * -1 on error. */
int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err);

#endif
