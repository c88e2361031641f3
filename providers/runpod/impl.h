/* impl.h - what the files of the RunPod translator share. */
#ifndef BURST_PROVIDERS_RUNPOD_IMPL_H
#define BURST_PROVIDERS_RUNPOD_IMPL_H

#include <jansson.h>

#include "provider.h"

enum { RUNPOD_TYPE_MAX = 100, RUNPOD_DISK_LEAST_GB = 20, RUNPOD_DISK_GB = 40 };
#define RUNPOD_IMAGE      "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
#define RUNPOD_IMAGE_CUDA "12.8"

struct provider {
	const struct section *conf; /* borrowed */
	char *root;                 /* of the API: no slash at its end */
	char *account;
	bool secure, community; /* which clouds are wanted */
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
	/* number of the awaited reply within its operation; 0: nothing was sent yet */
	int step;
	int tries;            /* for requests that an operation itself repeats */
	struct op_result got; /* what was learnt so far; freed with the operation */
	json_t *kept;         /* likewise */
	struct err first;     /* why the first way did not work, where there are several */
	char cursor[512];     /* of a list's next page; "": the first one */
	int pages;            /* pages of this list that have been read */
	int64_t rows;         /* rows that those pages held */
	bool sold_out_spot;   /* its spot price is unknown */
	struct volume made;
};

/* One step, as provider_ops.next has it. */
struct turn {
	struct op *op;
	const struct reply *reply; /* NULL: the first step, or a wait is over */
	struct call *call;
	int64_t *wait_ms;
	struct op_result *result;
	struct err *err;
};

/* ---- api.c: how it is asked, and what an answer means ---- */

/* Fills t->call and gives OP_CALL; path begins with a slash. body is taken (NULL: none). A call
 * that must not be carried twice has the class CALL_CREATE. */
enum op_next api_request(struct turn *t, enum call_class class, const char *method, json_t *body,
			 const char *path, ...) PRINTF(5, 6);
/* GET /pods, GET /network-volumes: the page at op->cursor */
enum op_next api_request_pods(struct turn *t);
enum op_next api_request_volumes(struct turn *t);
/* Of a page of a list: 1: there are further pages, send the next request; 0: that was all; -1:
 * there are further pages, but they cannot be read. A page must not pass for the whole: what is
 * missing in it would count as gone, or be made a second time. */
int api_further_pages(struct turn *t, const json_t *page, const char *what);
void api_first_page(struct op *op); /* the list is requested anew */
/* POST /graphql; variables are taken (NULL: none). */
enum op_next api_request_graphql(struct turn *t, enum call_class class, const char *query,
				 json_t *variables);
/* What has been gathered in op->got is the result. */
enum op_next api_done(struct turn *t);
enum op_next api_wait(struct turn *t, int64_t ms);

/* -1 and t->err unless the reply is a 2xx. A create whose reply was lost or is a 5xx is
 * ERR_AMBIGUOUS. */
int api_check(struct turn *t, const char *doing);
/* The same, and the object in its body; NULL on error. A create that was accepted in words that
 * cannot be read is ERR_AMBIGUOUS, anything else of the kind ERR_TRANSIENT. json_decref() it. */
json_t *api_object(struct turn *t, const char *doing);
/* "data" of a GraphQL answer; NULL on error: HTTP, or errors in it. Borrowed from *whole, which
 * is to be freed. */
json_t *api_data(struct turn *t, const char *doing, json_t **whole);

bool api_id_is_sound(const char *id); /* may stand in a URL */
/* percent-encoded, all but letters, digits and keep */
void api_escape(struct str *to, const char *text, const char *keep);
/* dollars there; 0 when absent or absurd */
int64_t api_microusd(const json_t *object, const char *key);
int64_t api_time(const char *rfc3339); /* epoch seconds; 0 when it is none */

/* ---- the operations ---- */

enum op_next offers_next(struct turn *t);
/* As provider_ops.check_wishes; of op only provider and want are looked at. */
int offers_check_wishes(const struct op *op, struct mistakes *m, struct err *err);
enum op_next check_next(struct turn *t);
enum op_next balance_next(struct turn *t);

enum op_next rent_next(struct turn *t);
enum op_next inspect_next(struct turn *t);
enum op_next list_next(struct turn *t);
enum op_next release_next(struct turn *t);
enum op_next logs_next(struct turn *t);
enum op_next billing_next(struct turn *t);

enum op_next volume_next(struct turn *t);
enum op_next volumes_next(struct turn *t);
int volumes_read(struct turn *t); /* a page of them into op->got; -1: t->err */
enum op_next volume_remove_next(struct turn *t);

enum op_next stage_next(struct turn *t);
enum op_next fetch_next(struct turn *t);
enum op_next volume_ls_next(struct turn *t);
enum op_next volume_size_next(struct turn *t);
enum op_next volume_delete_next(struct turn *t);

/* ---- s3.c: the S3-compatible API, for files of want.file.volume ---- */

bool s3_is_configured(const struct provider *p);
bool s3_files_ready(const struct provider *p, const struct volume *v);
/* -1: there are no keys, or this volume or path cannot be reached. */
int s3_check(const struct op *op, struct err *err);
/* Fills t->call. key: of an object, NULL: the volume itself; query: sorted and encoded as it is
 * signed, NULL: none. */
void s3_request(struct turn *t, const char *method, int64_t timeout_ms, const char *key,
		const char *query);
/* Are the keys taken for this volume? ERR_CREDENTIALS: no; 0 also where that could not be found
 * out. */
enum op_next s3_try_keys(struct turn *t, const struct volume *v);
int s3_keys_tried(const struct reply *r, const struct volume *v, struct err *err);
/* Whether to retry after a while: then *next is set. */
bool s3_busy(struct turn *t, enum op_next *next);
/* -1: the failure that the reply reports */
int s3_failure(struct turn *t, const char *doing, const char *path);
/* Whether the data centre's volumes can be read and written without a pod. */
bool s3_reaches(const struct provider *p, const char *datacenter);

/* ---- what they know of one another ---- */

/* An offer's id: "SECURE/EU-RO-1/2/NVIDIA L40S", "SECURE/EU-RO-1/4 vCPU/cpu3c"; the data centre
 * may be empty: anywhere. */
struct placement {
	bool community, cpu;
	char datacenter[REGION_MAX];
	int count;                  /* of GPUs, or of vCPUs */
	char type[RUNPOD_TYPE_MAX]; /* gpuTypeId, or a flavour of CPU */
};
int placement_read(const char *id, struct placement *out); /* -1: none of ours */

/* As people write it: "RTX 4090" for "NVIDIA GeForce RTX 4090". */
void gpu_shown(char to[GPU_MAX], const char *type, const char *name);
/* Whether people who write `wish` mean this type; name: what the catalog calls it, may be "". */
bool gpu_meant(const char *wish, const char *type, const char *name);
/* What such a pod runs; NULL: nothing was wished for. */
const char *image_of(const struct provider *p, const char *wanted);
/* The floor of the host's CUDA that it needs; NULL: none. */
const char *cuda_floor(const struct provider *p, const char *wanted);
/* The data centres of the config; true when there is no such list. */
bool datacenter_is_wanted(const struct provider *p, const char *id);

/* Adds an offer for each data centre where `item` of the catalog is free and where we may go. */
void offers_place(struct op *op, const json_t *item, struct offer *offer, struct placement *where);
bool offers_sold_out(const json_t *item);
/* Something that is wanted costs so much, be it free or not: no cap below the least of these
 * leaves an offer. */
void offers_floor(struct op *op, int64_t price_microusd_h);

void add_offer(struct op *op, const struct offer *offer);
/* The catalog's stock: "high", "medium", "low", or "": none. */
const char *stock_of(const json_t *from);

/* ---- remarks.c ---- */

/* For a list with offers: names wishes that are misspelt, or that only the config forbids. */
void add_remarks(struct op *op);
/* For a list without offers: -1 and t->err with the reason. */
int nothing_offered(struct turn *t);

/* ---- cpus.c: pods without a GPU, wished for as "none" ---- */

bool cpu_is_meant(const char *wish);
int cpu_wish(const struct op *op); /* which entry of the wanted list; -1: none of them */
bool cpu_alone_is_wished(const struct op *op);
enum op_next cpus_request(struct turn *t);
int cpus_read(struct turn *t);
/* No more than such a pod may have. */
int64_t cpu_disk_gb(int64_t wanted_gb, int vcpus);

/* Of the container, where so much is wanted (0: the default). It is billed beside what runs
 * there, while that runs. */
int64_t disk_gb_of(int64_t wanted_gb, const struct placement *where);
int64_t disk_microusd_h(int64_t wanted_gb, const struct placement *where);

struct pod_view *add_pod(struct op *op); /* empty, the last of op->got.pods */
/* A pod as v2 describes it. ERR_TRANSIENT when it is none. */
int pods_read(const json_t *from, struct pod_view *out, struct err *err);

#endif
