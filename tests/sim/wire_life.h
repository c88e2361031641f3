/* wire_life.h - what the files of a client's side keep of its life. */
#ifndef BURST_TESTS_SIM_WIRE_LIFE_H
#define BURST_TESTS_SIM_WIRE_LIFE_H

#include "engine/caller.h"
#include "wire.h"

enum { BAD_MAX = 16, KINDS = WIRE_MODAL + 1 };

struct pod_log { /* of one pod of this life */
	bool asked;
	int64_t read_at;
	uint32_t *lines;
	size_t count, cap;
};

struct wire_life { /* of one client */
	struct client *cl;
	struct http line;
	struct caller *caller;
	struct volume volumes[VENDORS_MAX];
	struct asked *asked;
	struct stage stages[VENDORS_MAX];
	struct asked *lists[VENDORS_MAX];
	struct pod_log *logs;
	size_t log_count;
	int inside; /* its caller.c is at work */
};

struct bad_offer {
	char id[160];
	int64_t at;
};

struct ledger { /* what a laptop's ledger keeps of a vendor */
	char image[IMAGE_MAX];
	struct bad_offer bad[BAD_MAX];
};

struct wire {
	struct section *conf[VENDORS_MAX];
	struct server servers[VENDORS_MAX];
	struct wired *machines;
	size_t machine_count;
	struct wire_life *lives[CLIENTS_ALL];
	struct ledger ledgers[LAPTOPS_MAX][VENDORS_MAX];
	struct wire_tally tally[KINDS];
};

struct wire_life *wire_life_of(struct client *cl);
struct ledger *wire_ledger_of(struct client *cl, int vendor);
struct client *wire_enter(struct wire_life *l);
void wire_leave(struct wire_life *l, struct client *was);
int wire_check_clock(struct client *cl, int provider, struct err *err);

#endif
