/* run.h - the pods of one run: their state, their preparation, what they report, the run's end. */
#ifndef BURST_ENGINE_RUN_H
#define BURST_ENGINE_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "job.h"
#include "provider.h"
#include "store/store.h"

struct engine;

/* ---- batch ids ----
 * What agents call a batch, or a turn of the handover: "LIFE-NUMBER". LIFE tells them from those
 * of an earlier client of the run. */

/* The caller frees it. */
char *batch_id(const struct engine *e, uint32_t number);
/* The number of a batch with this id; UINT32_MAX: the id is of an earlier client, or none. */
uint32_t batch_id_number(const struct engine *e, const char *id);

/* ---- work ----
 * The job of the engine: its segments and their needs. */

struct segment_id;

/* Read once when the engine is made; all NULL and 0 without work (reap, cancel). The job owns the
 * texts. Only names.c writes it. */
struct work {
	const struct segment *segments; /* in the core's order */
	size_t count;
	const struct job_needs *needs;
	struct segment_id *ids; /* sorted */
};

/* Reads the job's segments into e->work. */
void work_read(struct engine *e);
void work_free(struct engine *e);
/* Index of the segment with this id; -1: none. */
int64_t segment_by_id(const struct engine *e, const char *id);

/* ---- post ----
 * Passes text to the user and the run's log, and events to the core. */

struct posts;

/* The queue of events and the run's log, which is a file in run_dir (NULL: there is none). */
struct posts *posts_new(const char *run_dir);
void posts_free(struct posts *p);

/* Queues a copy of an event, with what it points to, for the core. err: NULL, none. */
void post(struct engine *e, const struct event *ev, const struct err *err);
/* The oldest queued event; NULL: none waits. post_drop() removes it. */
const struct event *post_first(const struct engine *e);
void post_drop(struct engine *e);
/* Queues an event about a pod that has no other data. */
void post_pod(struct engine *e, enum event_type type, int pod, const struct err *err);
/* Tells the core that the volume was found (e->volumes). */
void post_volume_ready(struct engine *e, int provider);
/* Tells the core that filling that volume takes long. */
void post_volume_fills(struct engine *e, int provider);
/* The answer to ACT_SYNC. */
void post_synced(struct engine *e, int pod, int turn, bool ok);

/* Logs to standard error and the run's log, without secrets. */
void engine_log(struct engine *e, int level, const char *fmt, ...) PRINTF(3, 4);
/* A line that a program of the job printed: to the setup's output(), and to the run's log. */
void engine_output(struct engine *e, int pod, const char *line);
/* The name of a pod in messages: its id, else its attempt. */
const char *pod_called(const struct engine *e, int pod);
/* Sets what the display shows of the pod's present step. */
void pod_set_detail(struct engine *e, int pod, const char *text);
/* Sends a line to the pod's agent, and frees it. Without a connection it is lost. */
void pod_send(struct engine *e, int pod, json_t *line);
/* Copies text of a pod, without secrets and made safe to show. */
void copy_pod_text(char *to, size_t room, const char *from);

/* ---- workers ----
 * What a pod's workers report: ready, failed, how they loaded, on which GPU. */

/* Of one pod. The counts begin with workers_expect() or workers_found() and follow the agent's
 * events; a lost connection leaves them. What the pod says of itself stays known. Only prepare.c
 * writes it. */
struct workers {
	int ready, failed;
	char gpu[GPU_MAX]; /* as an agent reports it, by the name that offers use; "": not yet */
	char version[40];  /* of the engine; "": no worker was ready yet */
	int64_t load_ms[LOAD_PHASES], unpack_bytes; /* as its first worker reported */
};

/* At its hello the pod has so many workers that are ready. */
void workers_found(struct engine *e, int pod, int running);
/* Notes which GPU an agent reports; "": none. */
void workers_note_gpu(struct engine *e, int pod, const char *said);

/* ---- prepare ----
 * Prepares a pod step by step. */

/* How one pod gets what its workers need. The steps run in their order, and a failure or a lost
 * connection leads back to PREP_NONE. An early start skips them: workers get the order to start
 * before the hello, by what the ledger knows of the volume, and the first refusal leads to
 * PREP_TREES. Only prepare.c writes it. */
struct preparing {
	enum prepare_step {
		PREP_NONE,
		PREP_TREES, /* worker files and code are sent, or wait for the scan of the code */
		PREP_SETUP,
		PREP_INSTALL,
		PREP_START, /* workers got the order to start */
		PREP_DONE   /* one was ready */
	} step;
	bool early;       /* started before the hello, and not refused yet */
	bool shared_part; /* this pod also fills its volume, for all pods */
	bool from_image;  /* the last start used the environment of the image */
	int lacked;       /* how often its volume lacked what the ledger said it has */
	/* under way in PREP_TREES; NULL: not */
	struct upsync *kit_sync, *code_sync;
	/* how long its set-up took, and the bytes sent to it: as in its row */
	int64_t setup_began_ms, setup_ms, synced_bytes;
};

/* By its hello the pod's workers run already: nothing is left to prepare. */
void prepare_found(struct engine *e, int pod);
/* The pod's connection ends: ends what is under way. */
void prepare_drop(struct engine *e, int pod);
/* Begins the steps, or goes on with an early start. shared: also those for what the volume has for
 * all pods. EV_PREPARE_FAILED follows or, from prepare.c, EV_WORKERS; neither, before the hello. */
void prepare_pod(struct engine *e, int pod, bool shared);
/* The code folder has been scanned: pods in PREP_TREES go on. */
void prepare_tree_ready(struct engine *e);
/* The agent is in place and has not sent hello yet: orders it to start workers if by the ledger
 * nothing is missing. That saves round trips. If the ledger is wrong, the agent reports that, and
 * all steps follow. */
void prepare_early(struct engine *e, int pod);
/* Takes an agent's event about preparing; false: it is about something else. An answer counts only
 * in the step that waits for it. */
bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event);

/* ---- pods ----
 * Keeps the engine's state of each pod of the core. */

/* What a pod was made with; of an adopted pod, what its row says. Only prepare.c writes it. */
struct origin {
	char account[64]; /* of an adopted pod; "": ours */
	char image[96];   /* "": the provider's own */
	char setup[20];   /* the key of its set-up, as in its row; "": none */
};

/* Adds the engine's part of pods that the core has made. */
void pods_add_new(struct engine *e);
/* Adds a pod of an earlier client or of another run to the core and the engine; returns its number.
 * of_row: the pod as core_pod_of_row() read it from this row. */
int pods_adopt(struct engine *e, const struct core_pod *of_row, const struct pod_row *row);
void pods_free(struct engine *e);

/* ---- pod events ----
 * Turns what an agent reports into events for the core. */

/* What the agent of one pod has reported. Its events have numbers that only grow, also across
 * connections; older ones are ignored. When the event log is read again from the volume, last_event
 * begins at 0 once more, and what live events have counted stands in counted_to. Only pod_events.c
 * writes it. */
struct reports {
	int64_t last_event;    /* the number of the last one that was dealt with */
	int64_t counted_to;    /* batches up to this event are counted already */
	int64_t logged_bytes;  /* of its log lines */
	int64_t empty_events;  /* since the last event that advanced the work */
	int rendered;          /* segments it has finished */
	int returned;          /* batches it returned since the last order to do so, or segment */
	struct err distrusted; /* why its connection is about to end; kind 0: it is not */
};

/* Takes one event of an agent, live or from the log on the volume. */
void pod_event_take(struct engine *e, int pod, const json_t *event);
/* Whether an event reports new work. */
bool pod_event_advances(const struct engine *e, int pod, const char *what, const json_t *event);
/* The pod is being ordered to return batches: begins to count them. */
void pod_events_expect_revoked(struct engine *e, int pod);
/* Records and logs what the agent reports of the dead-man's switch (how). Returns false if the
 * switch does not work; a test still under way is no failure. */
bool pod_switch_works(struct engine *e, int pod, const char *how);
/* Notes that the pod reports what no agent of ours would: pod_distrusted() then returns true, and
 * podlink.c ends the connection. */
void pod_distrust(struct engine *e, int pod, const char *what);
/* True, once, after pod_distrust(): *why is the reason. */
bool pod_distrusted(struct engine *e, int pod, struct err *why);

/* ---- salvage ----
 * Reads the event log that a pod left on its volume. */

/* Reads the event log that a pod left on its volume, and takes its events. EV_SALVAGED follows. */
void salvage_pod(struct engine *e, int pod);

/* ---- ending ----
 * Ends a run: what needs no pod, bills, the run's last row. */

/* Begins the job's finish() (joining, loudness, subtitles), which needs no pod, once the last
 * segment is settled; the pods are being released meanwhile. */
void ending_finish_when_settled(struct engine *e);
/* Begins finish() now, unless it has begun. */
void ending_begin_finish(struct engine *e);
/* Logs what the job's finish() noted, and which finished outputs are not here. */
void ending_notes(struct engine *e);
/* Requests from providers what they billed for pods that are gone, for some of them. */
void ending_request_bills(struct engine *e);
/* Records the providers' answers in the core and in the pods' rows. */
void ending_note_bills(struct engine *e);
/* Notes that a command of the job ended with this code. */
void ending_command_failed(struct engine *e, int code);
/* Decides the run's error. If a pod is not confirmed gone, records whether work remains
 * (engine_note_unfinished()). The error of finish() becomes the run's unless a worse one happened;
 * it is logged in any case. If the job failed by a command, the error names the exit code of the
 * last one that failed. */
void ending_judge(struct engine *e, struct core_summary *s);
/* Writes the run's final row, or that it goes on if a delivery follows. status: its exit status. */
void ending_write(struct engine *e, const struct core_summary *s, int status);

struct ending *ending_new(void);
void ending_free(struct ending *n);

#endif
