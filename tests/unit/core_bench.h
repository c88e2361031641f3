/* core_bench.h - a run of the core under test: what is told to it, what it did, and a virtual
 * clock. */
#ifndef BURST_TESTS_CORE_BENCH_H
#define BURST_TESTS_CORE_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/impl.h"

#define WALL_MS 1800000000000ll /* the wall clock at boot clock 0 */
#define SECOND  1000ll
#define MINUTE  (60 * SECOND)
#define HOUR    (60 * MINUTE)

struct bench {
	struct core_conf conf;
	struct core *core;
	struct actions out; /* of the last word to it, and of all ticks of wait() */
	int64_t now;
	struct event hello; /* what its workers say beside how many they are */
	struct core_segment segments[1024];
	size_t count;
};

/* A run of one provider and one pod, its segments of 1 s each; tear_down() frees it. */
void set_up(struct bench *b, size_t segments);
void tear_down(struct bench *b);

/* Hands the core one event; b->out then holds the actions that follow. */
void tell(struct bench *b, struct event ev);

void tell_err(struct bench *b, enum event_type type, int pod, enum err_kind kind);

/* Lets time pass, with a tick whenever the core asked for one. */
void wait_ms(struct bench *b, int64_t ms);

/* How many actions of this kind there were (pod -1: of any pod). */
int did(const struct bench *b, enum action_type type, int pod);

/* The first action of this kind; the test fails if there is none. */
const struct action *first(const struct bench *b, enum action_type type);
const struct core_pod *pod(const struct bench *b, int i);
void check_phase(const struct bench *b, const char *name, int i, enum pod_phase want);
void check_field(const char *name, const char *what, long long got, long long want);

/* The run is over: the core said ACT_END. */
bool has_ended(const struct bench *b);
struct core_summary summary(const struct bench *b);
int exit_status(const struct bench *b);
struct offer offer(int n, int64_t price);

void start(struct bench *b);
void start_with(struct bench *b, const struct offer *offers, size_t count);

/* A run with one offer at $1 an hour. */
void start_simply(struct bench *b);

struct pod_view view_of(const struct bench *b, int i, enum pod_state state);
void rented_as(struct bench *b, int i, struct pod_view v);
void rented(struct bench *b, int i);

/* The vendor's list, asked for now: pods by their numbers in one state, -1 ends them. */
void list_in(struct bench *b, enum pod_state state, int i, int k);

void list_running(struct bench *b, int i);
void list_nothing(struct bench *b);
void connected(struct bench *b, int i);

/* From rented to working in 15 s; b->out then holds what it was first given. */
void bring_up(struct bench *b, int i);

/* What a pod's agent reports. */
void began(struct bench *b, int i, uint32_t batch);
void rendered(struct bench *b, int i, uint32_t segment);
void safe(struct bench *b, int i, uint32_t segment, bool good);
void done(struct bench *b, int i, uint32_t batch);
void render_batch(struct bench *b, int i, uint32_t batch, int64_t ms, bool good);

/* Creates still under way succeed, releases are accepted, and pods not listed any more, until the
 * run has ended. */
void end_well(struct bench *b);

/* Fails unless the ledger's row for the pod was written right before this action. */
void check_saved_first(const struct bench *b, const char *name, enum action_type type, int i);

/* Pods of an earlier life of the run that came up a minute ago and may live for four hours more, at
 * $1 an hour each; listed as running, not connected yet. */
void adopt_living(struct bench *b, int i, int64_t ready_at);

#endif
