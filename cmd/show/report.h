/* report.h - shows what the ledger has of runs and pods: phases, JSON, logs, what bills now. */
#ifndef BURST_CMD_SHOW_REPORT_H
#define BURST_CMD_SHOW_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "columns.h"
#include "config/config.h"
#include "core/core.h"
#include "output.h"
#include "runs/caps.h"
#include "runs/runs.h"
#include "store/store.h"

/* ---- prices and costs that may be unknown ---- */

/* Whether this price of a provider is known: some vendors name none, and 0 is then no price. */
bool price_is_given(const char *provider, int64_t price_microusd_h);
/* "$0.69 an hour", or "no price given". Returns `to`. */
char *price_show(char to[32], const char *provider, int64_t price_microusd_h);
/* The same for a program; null: none is given. A new reference. */
json_t *price_json(const char *provider, int64_t price_microusd_h);
/* "$0.12"; with unpriced_ms (billed time without a price), "over $0.12" or "no price". room >= 40.
 * Returns `to`. */
char *cost_show(char *to, size_t room, int64_t microusd, int64_t unpriced_ms);

/* ---- phases of pods, and the JSON of runs and pods ---- */

/* In order of time. */
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
const char *phase_name(enum phase phase); /* "queue" ... */
/* Splits the pod's wall time, until now while it lives, into phases. */
void report_phases(const struct pod_row *pod, int64_t now_ms, int64_t phase_ms[PHASES]);

/* ---- runs ---- */

/* What burst says of a run, to people and to programs. */
struct run_facts {
	struct run_row row;
	const char *status, *status_or_client;
	int64_t exit_status, vendor_microusd;
	char done[48], used[16];
};
struct run_facts run_facts_of(const struct run_row *run);

enum {
	RUN_TABLE = 1,  /* the table of `ledger` */
	RUN_MORE = 2,   /* in it, if some vendor billed more than burst counted */
	RUN_OBJECT = 4, /* the objects of `ledger --json` */
	RUN_CSV = 8,
	RUN_END = 16, /* the object of `run --json` */
	RUN_DATA = RUN_OBJECT | RUN_CSV | RUN_END,
	RUN_ALL = RUN_DATA | RUN_TABLE
};
extern const struct columns of_runs;

/* ---- pods ---- */

/* What burst says of a pod, to people and to programs. Its words belong to the row that it was made
 * of. */
struct pod_facts {
	struct pod_row row;
	const char *called, *id_or_name, *phase;
	bool gone;
	int64_t age_ms, hard_end_ms, billed_ms, vendor_ms; /* below 0: unknown, here and below */
	int64_t cost_microusd, counted_microusd, vendor_microusd, unpriced_ms;
	int64_t phase_ms[PHASES];
	char used[16];
	/* for `ps`, which sets them */
	struct run_row run; /* id "": not in the ledger */
	int64_t eta_ms;
	const char *state, *phase_or_state;
	char gpu_and_spot[80], short_commit[12], done[48];
};
void pod_facts_of(struct pod_facts *f, const struct pod_row *pod, int64_t now_ms);

/* Tables and objects, which may be added to one another. */
enum {
	POD_PS = 1,        /* the table of `ps` */
	POD_PS_JSON = 2,   /* its objects */
	POD_END = 4,       /* the table of phases, at the end of a run */
	POD_END_KEPT = 8,  /* in it, if a pod was kept */
	POD_END_MORE = 16, /* and if a vendor billed more than burst counted */
	POD_RUN_JSON = 32, /* the objects of `run --json` */
	POD_JSON = POD_PS_JSON | POD_RUN_JSON,
	POD_PHASES = 64 /* "phases" in them */
};
extern const struct columns of_pods;

/* The objects of `run --json` (tests/schema); new references. */
json_t *report_run_json(const struct run_row *run, const struct pod_row *pods, size_t count,
			int64_t now_ms);
/* An object of "errors"; a new reference. pod "": none. */
json_t *report_error_json(const char *code, const char *message, const char *pod);
/* What --json says of a stage; a new reference. said: the object of the stage's run; NULL: it was
 * done before, and nothing ran. err: why it did not begin; NULL or without a kind: it did. */
json_t *report_stage_json(const char *name, const json_t *said, const struct err *err);
/* What --json calls `deliver`: the sum of the stage of that name and its repetition; a new
 * reference, or NULL if it did not run. */
json_t *report_delivery_json(const json_t *stages);

/* "62%"; "-" when nothing was billed. Returns `to`. */
char *report_ratio(char *to, size_t room, int64_t compute_ms, int64_t billed_ms);
/* Prints a line if the pod still ran well after its release had been accepted. */
void report_outlived(FILE *to, const struct pod_row *pod);
/* Prints the table of phases at the end of a run: one line a pod, and one for all. */
void report_print_phases(FILE *to, const struct pod_row *pods, size_t count, int64_t now_ms);

/* Names each pod that may still bill, and the command that releases it, on stderr. */
void report_unreleased(const struct pod_row *pods, size_t count);

/* Prints volumes with their monthly cost to `to`, and appends them to the array, unless NULL.
 * Returns the count, or -1 with *err. */
int report_volumes(struct store *store, FILE *to, json_t *array, struct err *err);

/* The present phase of a pod, by its row. */
enum pod_phase phase_of_row(const struct pod_row *row);

/* ---- pods that have not ended ---- */

/* The objects of `ps --json`; a new reference. */
json_t *live_pods_list(const struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now);
/* Prints the table of `ps`. Returns how many of the pods have no client. */
size_t live_pods_table(const struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		       int64_t now);

#endif
