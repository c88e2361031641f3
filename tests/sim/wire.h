/* wire.h - a vendor behind its real translator: what the core asks of RunPod or Modal goes through
 * the provider's own begin() and next(), its calls travel on the virtual clock to a server in
 * memory that reads the very bytes, and what the translator makes of the answers goes to the core
 * as the engine would hand it on. */
#ifndef BURST_TESTS_SIM_WIRE_H
#define BURST_TESTS_SIM_WIRE_H

#include <jansson.h>

#include "net/http.h"
#include "net/loop.h"
#include "sim.h"

/* ---- a server's side ---- */

struct answer {                /* as it leaves the server */
	int status;            /* of HTTP; 0: none, the connection ends */
	struct str head, body; /* gRPC: its trailers are in the head, its messages framed */
	int64_t delay_ms;      /* the server's time for it */
	bool endless;          /* a stream without further messages that does not end */
	/* it names a time before which the call must not be repeated; 0: it does not */
	int64_t again_ms;
	bool dated;
};

struct wired { /* what a server keeps of a machine beside what the cloud knows */
	char name[POD_NAME_MAX];
	json_t *env;  /* RunPod: as it was sent; Modal: of its secret */
	json_t *tags; /* Modal: [[name, value]] */
	char *text;   /* RunPod: the part of its description that never changes */
	bool locked;  /* RunPod: until that is edited */
};

enum { VOLUMES_MAX = 3 * CLIENTS_MAX };

struct server {
	int vendor, asked_by; /* the client whose call it has in hand */
	/* of the one name that is asked for; RunPod makes another one each time, Modal never */
	int volumes, volume_dc[VOLUMES_MAX];
	/* the client that made it, + 1; 0: it was there, or another machine made it */
	int volume_by[VOLUMES_MAX];
	bool volume_gone[VOLUMES_MAX], twin_made;
	/* RunPod's window of a minute */
	int64_t window_began;
	int asked;
	/* Modal */
	bool has_app;
	char builder[16];
	json_t *images;  /* recipe -> [id, built at] */
	json_t *secrets; /* id -> environment */
	json_t *files;   /* put there without a pod: path -> text, or its size */
	json_t *blocks;  /* by hash: true, or of what they are */
	int made;        /* ids given */
	int64_t token_made, second_began;
	int token_number, second_creates;
};

struct wire_gpu {
	const char *runpod, *modal, *name;
	int memory_gb;
};
/* offers 0 and 1 of a vendor are the first kind, 2 and 3 the second */
extern const struct wire_gpu wire_gpus[2];
extern const char *const wire_datacenters[2];
enum { MODAL_ADDRESS_MS = 20000 };

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
/* No second volume of one name is kept by the client that made it. */
void runpod_check_twin(struct sim *s, const struct server *v);
/* A file of its volume; false: it does not exist. */
bool wire_file(struct sim *s, const struct server *v, const char *path, struct str *to);
/* Refuses for a rate limit in the vendor's own words, with or without Retry-After. */
void runpod_put_off(struct sim *s, struct answer *a, int seconds);
void modal_put_off(struct answer *a, int code, const char *words, double seconds);
void modal_status(struct answer *a, int code, const char *words);
void answer_free(struct answer *a);
const char *call_header_of(const struct call *call, const char *name); /* "" without it */

/* ---- the line: line.c ---- */

/* The parts that net/loop.h and net/http.h leave open. */
struct loop {
	struct client *cl;
	bool cut; /* nothing is sent any more: its client is dead */
};
struct http { /* of one life of one client */
	struct loop loop;
	struct provider *handles[VENDORS_MAX];
	struct op *ops; /* under way */
};
struct http_call { /* one trip of a call; its memory is used again */
	size_t slot;
	uint64_t serial; /* of this use */
	struct client *cl;
	struct op *op; /* while its owner listens */
	int provider, number;
	struct call call;
	struct answer answer;
	char ends[40];   /* the pod that it is meant to end */
	int64_t sent_at; /* true time */
	int64_t slow_reply_ms;
	bool on_way, wanted; /* to its server; by its owner */
	bool failed, was_sent, cut, open, hung_up;
	bool puts_off, fails_before, fails_after, loses_reply;
	int garbage, x;      /* 0: none */
	int64_t sent_offset; /* of the wall clock */
	struct reply reply;  /* as far as it has come */
	http_on_piece *on_piece;
	void (*done)(void *ctx, struct reply *reply);
	void *ctx;
};

void line_open(struct sim *s);
void line_close(struct sim *s);
/* Switches to this client's clock and random numbers. Returns the previous client, for
 * line_leave(). */
struct client *line_enter(struct client *cl);
void line_leave(struct client *was);
struct client *line_caller(void);
void line_arrives(struct sim *s, const struct happening *h); /* a call reaches its server */
void line_hears(struct sim *s, const struct happening *h);   /* its reply is back */
void line_fires(const struct happening *h);                  /* a timer */

/* ---- the rules of calling: rules.c ---- */

struct said { /* over the line, the last time */
	bool failed, hung_up, cut;
	int status, code; /* gRPC: -1: none */
	int64_t again_ms;
};
struct op { /* of a translator, as caller.c has it in hand */
	struct op *next;
	struct http *line;
	struct client *cl;
	uint64_t serial;
	int provider;
	enum op_kind kind;
	const struct op_want *want;
	struct op *inner; /* the translator's own */
	struct call call; /* what it wants carried, borrowed */
	bool asks;        /* the call is wanted now */
	bool flying;
	char key[40], last_key[40];      /* of a gRPC call that was sent, and of the one before */
	int64_t wants_since, not_before; /* true time */
	int sends, failures;
	int64_t put_off_ms;
	struct said said;
	bool refused; /* certainly nothing was done */
};
const struct provider_ops *rules_ops(const struct sim *s, int vendor);
struct op *rules_asker(struct client *cl, const struct call *call);
void rules_sent(struct http_call *c);
void rules_heard(struct http_call *c, const struct reply *r);

/* ---- a client's side ---- */

struct wire_tally {
	int64_t runs, ops, calls;
};
struct wire_tally *wire_tally_of(struct sim *s, int vendor);
const struct provider_ops *wire_ops(const struct sim *s, int vendor); /* the translator itself */
struct http *wire_line(struct client *cl);
void wire_serve(struct sim *s, int vendor, int client, const struct call *call, struct answer *a);

enum { ENV_MAX = 24 };
struct asked { /* what an answer needs of its question */
	struct asked *next, **link;
	struct client *cl;
	struct wire_life *life;
	int provider, pod;
	uint32_t segment;
	int64_t requested_at;
	struct op_want want;
	struct env_pair env[ENV_MAX];
	size_t env_count;
	char image[IMAGE_MAX];
	const char *regions[3];
	char *path, local[40]; /* of a file, remote and local */
	struct str got;        /* contents of the local file */
	struct file_block blocks[3];
	char **ids;
	struct caller_op *op;
	struct timer *timer;
	bool released; /* the release no longer waits for this last log */
	void (*done)(struct asked *a, struct op_result *result, const struct err *err);
};
struct stage { /* the code on a volume, before there is a pod */
	struct caller_op *op;
	struct asked *asked;
	bool holds, there;
};
struct asked *wire_request_first(struct client *cl); /* the first */
struct asked *wire_request_new(struct client *cl, int provider, int pod);
struct caller_op *wire_begin(struct asked *a, enum op_kind kind,
			     void (*done)(struct asked *a, struct op_result *result,
					  const struct err *err));
void wire_cancel(struct asked *a, struct caller_op *op);
int64_t wire_time_there(struct client *cl, int provider); /* caller_time_there() */
struct stage *wire_stage(struct client *cl, int provider);
const json_t *wire_staged(struct sim *s, int vendor, const char *path);
void wire_tell_volume(struct client *cl, int provider);
void wire_open(struct sim *s);
void wire_free(struct sim *s);
bool wire_is(const struct sim *s, int vendor);
void wire_begin_life(struct client *cl);
void wire_end_life(struct client *cl);
/* Carries out the action if it is for such a vendor. False: it is not. */
bool wire_act(struct client *cl, const struct action *a);
void wire_prioritize(struct client *cl); /* vendor_prioritize() */
bool wire_rent(struct client *cl, int pod);
/* wire_files.c: */
bool wire_fetch(struct client *cl, int pod, uint32_t segment);
bool wire_salvage(struct client *cl, int pod);
bool wire_stage_begin(struct client *cl, int provider, const struct volume *v);
void wire_stage_stop(struct client *cl, int provider);
/* requests the bills of gone pods; calls client_leaves() when they are there */
void wire_bill(struct client *cl);
void wire_read_local(struct client *cl, const char *local, int64_t offset, int64_t bytes,
		     struct str *to);
void wire_write_local(struct client *cl, const char *local, const void *bytes, size_t len);
bool wire_avoid_host(struct client *cl, int pod, int64_t at);
/* a reply is back, or a timer is over */
void wire_hears(struct client *cl, const struct happening *h);
/* A pod of Modal's ends: one that waits for its kind of GPU gets it. */
void wire_freed(struct sim *s, int vendor, int offer);
const struct wire_tally *wire_tallies(const struct sim *s); /* by enum wire_kind */

#endif
