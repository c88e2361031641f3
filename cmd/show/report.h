/* report.h - shows what the ledger has of runs and pods: phases, JSON, logs, what bills now. */
#ifndef BURST_CMD_SHOW_REPORT_H
#define BURST_CMD_SHOW_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "config/config.h"
#include "core/core.h"
#include "runs/glance.h"
#include "runs/runs.h"
#include "store/store.h"
#include "unattended/queue.h"

/* ---- phases of pods, and the JSON of runs and pods ---- */

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
/* What --json says of a stage: from the object of its run. said NULL: it was done before, and
 * nothing ran. err: why it did not begin; NULL or without a kind: it did. */
json_t *report_stage_json(const char *name, const json_t *said, const struct err *err);
/* What --json calls `deliver`: the stage of that name and its repetition; NULL: there is none. */
json_t *report_delivery_json(const json_t *stages);
json_t *report_seconds(int64_t ms);       /* a number with 3 decimals */
json_t *report_dollars(int64_t microusd); /* with 6 decimals */
/* What vendors report that the run's pods cost; null: no figure. */
json_t *report_vendor_dollars(const struct run_row *run);
json_t *report_text(const char *text); /* accepts invalid UTF-8 */
json_t *report_time(int64_t wall_ms);  /* RFC 3339; null: not yet */

/* "62%"; "-" when nothing was billed. Returns `to`. */
char *report_ratio(char *to, size_t room, int64_t compute_ms, int64_t billed_ms);
/* Says that a pod still ran after its release had been accepted; nothing about other pods. */
void report_outlived(FILE *to, const struct pod_row *pod);
/* Prints the table of phases at the end of a run: one line a pod, and one for all. */
void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms);

/* Names each pod that may still bill, and the command that releases it, on stderr. */
void report_unreleased(const struct pod_row *pods, size_t count);

/* Prints volumes with their monthly cost to `to`, or appends them to the array. Returns the count,
 * or -1 on error. */
int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err);

/* ---- the present phase of a pod; pod_phase_name() has the words ---- */

enum pod_phase phase_of_row(const struct pod_row *row);
/* The same as a word; "kept" while the pod waits for a run that can use it. */
const char *phase_word(const struct pod_row *row);

/* ---- pods that have not ended ---- */

/* An object for each pod; a new reference. */
json_t *live_pods_list(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now);
/* Prints them and the volumes. */
int live_pods_json(struct cmd_context *ctx, const struct pod_row *pods, size_t count, int64_t now,
		   struct err *err);
int live_pods_print(struct cmd_context *ctx, const struct pod_row *pods, size_t count, int64_t now,
		    struct err *err);

/* ---- the ledger in one line ---- */

struct status_line {
	const char *ledger; /* "read" | "none" | "locked" */
	struct glance glance;
	struct queue_open queued;
	struct config_cap per_day; /* from the user's own file */
};

void status_line_print(const struct status_line *s);
/* tests/schema/status.json */
void status_line_print_json(const struct status_line *s);

/* ---- the log of a run ---- */

/* Prints the log of run id at path, then the table of its phases; with --follow until the run ends.
 * ERR_USAGE: the run has no log. */
int run_log_show(struct cmd_context *ctx, const char *id, const char *path, struct err *err);

/* ---- the end of a sweep ---- */

void swept_say(void *ctx, const struct swept *pod);
void swept_add_accounts(struct str *to, const struct sweep_end *end);
void swept_say_nothing(const struct sweep_end *end);

#endif
