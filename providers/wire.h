/* wire.h - the JSON between a translator and burst's own vendor, which is also the format of a
 * pod's record on disk. */
#ifndef BURST_PROVIDERS_WIRE_H
#define BURST_PROVIDERS_WIRE_H

#include <jansson.h>

#include "provider.h"

/* How a pod is isolated from the machine. */
enum isolation {
	ISOLATION_AUTO,       /* namespaces if they work, else a process group */
	ISOLATION_NAMESPACES, /* namespaces or no pod */
	ISOLATION_PROCESS,
};
/* Returns -1 if the word is none of the three. */
int wire_read_isolation(const char *word, enum isolation *out);

/* What the vendor needs of the provider's section of burst.cfg. */
struct wire_conf {
	int64_t capacity;    /* of pods at a time */
	char gpu[GPU_MAX];   /* "none", or pods see this machine's own */
	bool shared_network; /* use the machine's network */
	enum isolation isolation;
	/* This client has built a sandbox here before: no trial is needed, which would build a
	 * whole one. No config file sets it. */
	bool sandbox_works;
	/* ---- of another machine; no file sets these ---- */
	bool is_host;        /* its offers and findings say which GPUs it has, and more of it */
	int64_t client_ms;   /* the client's wall clock; 0: it is this machine's */
	char model[GPU_MAX]; /* RENT: the pod has GPUs of this model to itself, as nvidia-smi
				prints it; "": it takes one of `capacity` */
	int gpus;            /* so many */
	int64_t memory_gb;   /* RENT: of a pod at most, where a host can bound it; 0: no bound */
};
json_t *wire_conf_json(const struct wire_conf *conf);
void wire_read_conf(const json_t *from,
		    struct wire_conf *conf); /* missing keys get their defaults */

/* A pod's view without its times: each side has its own unit for them. */
json_t *wire_view_json(const struct pod_view *view);
/* ERR_BUG if the id, or another text that must not be cut, is missing or too long. */
int wire_read_view(const json_t *from, struct pod_view *view, struct err *err);

json_t *wire_error_json(const struct err *err);
/* Sets *err from {"error":{"kind","message"}}. Returns false if the object is no error. */
bool wire_read_error(const json_t *from, struct err *err);

#endif
