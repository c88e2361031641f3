/* wire.h - a vendor behind its real translator: what the core asks of RunPod or Modal goes through the provider's own begin()
 * and next(), its calls travel on the virtual clock to a server in memory that reads the very bytes, and what the translator
 * makes of the answers goes to the core as the engine would hand it on. */
#ifndef BURST_TESTS_SIM_WIRE_H
#define BURST_TESTS_SIM_WIRE_H

#include <jansson.h>

#include "sim.h"

/* ---- a server's side ---- */

struct answer { /* as it leaves the server */
	int status;	    /* of HTTP; 0: none, the connection ends */
	struct str head, body; /* gRPC: its trailers are in the head, its messages framed */
	int64_t delay_ms;   /* it was thought about for so long */
	bool endless;	    /* a stream that says no more, but does not end */
};

struct wired { /* what a server keeps of a machine beside what the cloud knows */
	char name[POD_NAME_MAX];
	json_t *env;	 /* RunPod: as it was sent; Modal: of its secret */
	json_t *tags;	 /* Modal: [[name, value]] */
	char *text;	 /* RunPod: the part of its description that never changes */
	bool locked;	 /* RunPod: until that is edited */
};

struct server {
	int vendor, asked_by; /* the client whose call it has in hand */
	/* of the one name that is asked for; RunPod makes another one each time, Modal never */
	int volumes, volume_dc[CLIENTS_MAX + 1];
	/* RunPod's window of a minute */
	int64_t window_began;
	int asked;
	/* Modal */
	bool has_app;
	char builder[16];
	json_t *images;	 /* recipe -> [id, built at] */
	json_t *secrets; /* id -> environment */
	int made;	 /* ids given */
	int64_t token_made, second_began;
	int token_number, second_creates;
};

struct wire_gpu {
	const char *runpod, *modal, *name;
	int memory_gb;
};
extern const struct wire_gpu wire_gpus[2]; /* offers 0 and 1 of a vendor are the first kind, 2 and 3 the second */
extern const char *const wire_datacenters[2];

struct wired *wire_of(struct sim *s, const struct machine *m);
struct machine *wire_find(struct sim *s, int vendor, const char *id);
struct exchange { /* one call at a server, and its answer */
	struct sim *s;
	struct server *v;
	const struct vendor_plan *plan;
	const struct call *call;
	struct answer *a;
};
void runpod_serve(struct sim *s, struct server *v, const struct call *call, struct answer *a);
void modal_serve(struct sim *s, struct server *v, const struct call *call, struct answer *a);
/* Too many, in the vendor's own words, with or without when to come again. */
void runpod_put_off(struct sim *s, struct answer *a, int seconds);
void modal_put_off(struct answer *a, int code, const char *words, double seconds);
void modal_status(struct answer *a, int code, const char *words);
void answer_free(struct answer *a);
const char *call_header_of(const struct call *call, const char *name); /* "" without it */

/* ---- a client's side ---- */

struct wire_tally {
	int64_t runs, ops, calls;
};

void wire_open(struct sim *s);
void wire_free(struct sim *s);
bool wire_is(const struct sim *s, int vendor);
void wire_begin_life(struct client *cl);
void wire_end_life(struct client *cl);
/* Carries the action if it is one for such a vendor. */
bool wire_act(struct client *cl, const struct action *a);
bool wire_rent(struct client *cl, int pod);
bool wire_mark_host(struct client *cl, int pod, int64_t at);
void wire_arrives(struct sim *s, const struct happening *h); /* a call reaches its server */
void wire_hears(struct client *cl, const struct happening *h); /* a reply is back, or a wait is over */
/* A pod of Modal's ends: one that waits for its kind of GPU gets it. */
void wire_freed(struct sim *s, int vendor, int offer);
const struct wire_tally *wire_tallies(const struct sim *s); /* by enum wire_kind */

#endif
