/* report.h - shows what the ledger has: the phases of a pod, and the JSON of runs and pods. */
#ifndef BURST_CMD_SHOW_REPORT_H
#define BURST_CMD_SHOW_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "store/store.h"

/* In order of time; they sum to the pod's wall time (until now while it lives). */
enum phase {
	PHASE_QUEUE,   /* until its container runs */
	PHASE_BOOT,    /* until its sshd answers */
	PHASE_CONNECT, /* until the SSH handshake is done */
	PHASE_SYNC,    /* until everything is synced */
	PHASE_LOAD,    /* until the workers are ready */
	PHASE_COMPUTE, /* with at least one batch at work */
	PHASE_IDLE,    /* without a batch at work */
	PHASE_FETCH,   /* from the last batch until the last file is safe */
	PHASE_KEPT,    /* kept without work for another run */
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
json_t *report_delivery_json(const json_t *said); /* from the --json object of the delivery's run */
json_t *report_seconds(int64_t ms);               /* a number with 3 decimals */
json_t *report_dollars(int64_t microusd);         /* with 6 decimals */
/* What vendors report that the run's pods cost; null: no figure. */
json_t *report_vendor_dollars(const struct run_row *run);
json_t *report_text(const char *text); /* accepts invalid UTF-8 */
json_t *report_time(int64_t wall_ms);  /* RFC 3339; null: not yet */

/* "62%"; "-" when nothing was billed. Returns `to`. */
char *report_ratio(char *to, size_t room, int64_t compute_ms, int64_t billed_ms);
/* Prints the table of phases at the end of a run: one line a pod, and one for all. */
/* Says that a pod still ran after its release had been accepted; nothing about other pods. */
void report_outlived(FILE *to, const struct pod_row *pod);
void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms);

/* Names each pod that may still bill, and the command that releases it, on stderr. */
void report_unreleased(const struct pod_row *pods, size_t count);

/* Prints volumes with their monthly cost to `to`, or appends them to the array. Returns the count,
 * or -1 on error. */
int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err);

#endif
