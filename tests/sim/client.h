/* client.h - what the files of the simulated client share. */
#ifndef BURST_TESTS_SIM_CLIENT_H
#define BURST_TESTS_SIM_CLIENT_H

#include "wire.h"

/* By its boot clock; long ago: it never slept. */
int64_t client_woke_at(const struct client *cl);

enum { BILLING_MS = 3000 }; /* as in engine.c */
char client_name_of(const struct client *cl);
struct machine *client_machine_of(struct client *cl, int pod);
int client_pod_of(struct client *cl, int machine);
size_t *client_seen_of(struct client *cl, int machine);
struct row *client_row_of(struct client *cl, const char *attempt);
bool client_ours(const struct client *cl, const struct row *row);
bool client_save(struct client *cl, int pod);

/* Past events stay in the past, even if the clock was set back. */
int64_t client_past(struct client *cl, int64_t boot, int64_t by);
/* What a row says of its pod to each client that takes it, on the clock of this life. */
struct core_pod client_carried(struct client *cl, const struct row *row);

void client_step(struct client *cl, struct event *ev);

/* With the slowest of all offers. */
double client_slowest_ms(const struct client *cl, double weight);

/* By the cloud's meter, until now. */
int64_t client_bill(const struct client *cl);

void client_dies(struct client *cl);
bool client_crashes_now(struct client *cl);

/* Every living pod, except the second one of a create, must stand in the ledger as possibly
 * billing. */
void client_check_known(struct client *cl);

void client_end(struct client *cl);
int client_active_now(struct client *cl, int but);
void client_fetch(struct client *cl, const struct action *a);

/* `run -d` returns here: its client is no longer needed. */
void client_check_handover(struct client *cl);

void client_take_offers(struct client *cl, const struct event *ev);
void client_perform(struct client *cl);
void client_avoid_host(struct client *cl, const struct action *a, int64_t at);

/* A row as burst reads it back: the saved pod, on the clock of this life. */
struct core_pod client_from_row(struct client *cl, const struct row *row);
int64_t client_spent_before(const struct client *cl);

void client_rent(struct client *cl, const struct action *a);
/* Calls the vendor's API, within its limits. */
void client_call(struct client *cl, const struct action *a, enum what what, int64_t x, int machine,
		 int64_t extra);
/* Its laptop is closed, or the client ends and never returns; a reap may follow. */
void client_left_alone(struct client *cl, const struct fault *f);

#endif
