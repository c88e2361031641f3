/* impl.h - shared by the files of the RunPod translator. */
#ifndef BURST_PROVIDERS_RUNPOD_IMPL_H
#define BURST_PROVIDERS_RUNPOD_IMPL_H

#include <jansson.h>

#include "provider.h"
#include "providers/web.h"

enum { RUNPOD_TYPE_MAX = 100, RUNPOD_DISK_LEAST_GB = 20, RUNPOD_DISK_GB = 40 };
#define RUNPOD_IMAGE      "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
#define RUNPOD_IMAGE_CUDA "12.8"

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
	/* number of the awaited reply within the operation; 0: nothing sent yet */
	int step;
	int tries;            /* of requests that the operation repeats */
	struct op_result got; /* results so far; freed with the operation */
	json_t *kept;         /* data between steps; freed with the operation */
	struct err first;     /* why the first of several ways failed */
	char cursor[512];     /* of a list's next page; "": the first page */
	int pages;            /* pages of this list read so far */
	int64_t rows;         /* rows on those pages */
	bool sold_out_spot;   /* its spot price is unknown */
	struct volume made;
};

/* ---- api.c: requests and replies ---- */

/* Fills t->call and returns OP_CALL. path starts with a slash. Takes over body (NULL: none). A call
 * that must not be carried out twice has the class CALL_CREATE. */
enum op_next api_request(struct turn *t, enum call_class class, const char *method, json_t *body,
			 const char *path, ...) PRINTF(5, 6);
/* GET /pods, GET /network-volumes: the page at op->cursor */
enum op_next api_request_pods(struct turn *t);
enum op_next api_request_volumes(struct turn *t);
/* Moves op->cursor past this page of a list of `what`. Returns 1: there are more pages, send the
 * next request; 0: it was the last; -1: there are more, but burst cannot read how. A page must not
 * pass for the whole list: what it lacks would count as gone, or be made twice. */
int api_next_page(struct turn *t, const json_t *page, const char *what);
void api_first_page(struct op *op); /* restarts the list */
/* POST /graphql. Takes over variables (NULL: none). */
enum op_next api_request_graphql(struct turn *t, enum call_class class, const char *query,
				 json_t *variables);
/* Ends the operation with op->got as its result. */
enum op_next api_done(struct turn *t);

/* Returns -1 with t->err unless the reply is a 2xx. A create whose reply was lost or is a 5xx is
 * ERR_AMBIGUOUS. */
int api_check(struct turn *t, const char *doing);
/* Checks the reply like api_check(), and returns the object in the body; NULL on error. An accepted
 * create with an unreadable body is ERR_AMBIGUOUS, other unreadable bodies are ERR_TRANSIENT. The
 * caller calls json_decref(). */
json_t *api_read_object(struct turn *t, const char *doing);
/* The "data" of a GraphQL answer, borrowed from *whole, which the caller frees. NULL on HTTP or
 * GraphQL errors. */
json_t *api_read_data(struct turn *t, const char *doing, json_t **whole);

bool api_id_is_sound(const char *id); /* may be part of a URL */

/* ---- the operations ---- */

/* Each X_next() is one step of an operation. Without t->reply it makes the first request; with it,
 * it reads the reply and makes the next request, waits or ends. */

enum op_next offers_next(struct turn *t);
/* As provider_ops.check_wishes. */
int offers_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
			struct err *err);

enum op_next rent_next(struct turn *t);
enum op_next inspect_next(struct turn *t);
enum op_next list_next(struct turn *t);
enum op_next release_next(struct turn *t);
enum op_next logs_next(struct turn *t);
enum op_next billing_next(struct turn *t);

enum op_next volume_next(struct turn *t);
enum op_next volumes_next(struct turn *t);
/* Adds a page of the list to op->got. 1: there are more pages; 0: there are not; -1: t->err. */
int volumes_read_page(struct turn *t);
enum op_next volume_remove_next(struct turn *t);

enum op_next stage_next(struct turn *t);
enum op_next fetch_next(struct turn *t);
enum op_next volume_ls_next(struct turn *t);
enum op_next volume_size_next(struct turn *t);
enum op_next volume_delete_next(struct turn *t);

/* ---- files.c: the S3-compatible API, for files of want.file.volume ---- */

bool s3_is_configured(const struct provider *p);
/* As provider_ops.files_ready. */
bool s3_files_ready(const struct provider *p, const struct volume *v);
/* Requests this volume with the S3 keys. OP_CALL. */
enum op_next s3_try_keys(struct turn *t, const struct volume *v);
/* -1 with ERR_CREDENTIALS: the reply to s3_try_keys() refuses the keys; 0: accepted, or unknown. */
int s3_check_keys_reply(const struct reply *r, const struct volume *v, struct err *err);
/* Whether volumes of this data centre can be read and written without a pod. */
bool s3_reaches(const struct provider *p, const char *datacenter);

/* ---- shared helpers ---- */

/* An offer's id: "SECURE/EU-RO-1/2/NVIDIA L40S", "SECURE/EU-RO-1/4 vCPU/cpu3c"; an empty data
 * centre means any. */
struct placement {
	bool community, cpu;
	char datacenter[REGION_MAX];
	int count;                  /* of GPUs or vCPUs */
	char type[RUNPOD_TYPE_MAX]; /* gpuTypeId, or a CPU flavour */
};
int placement_read(const char *id, struct placement *out); /* -1: not a valid id */

/* Sets the common name: "RTX 4090" for "NVIDIA GeForce RTX 4090". name: the catalog's, or "". */
void set_gpu_name(char to[GPU_MAX], const char *type, const char *name);
/* Whether a user's `wish` means this type. name: the catalog's, may be "". */
bool gpu_is_meant(const char *wish, const char *type, const char *name);
/* The image of a pod. wanted: the job's; NULL: it has none. */
const char *image_or_default(const struct provider *p, const char *wanted);
/* The least CUDA version that the host of a pod with this image must support; NULL: any. */
const char *least_cuda_version(const struct op *op, const char *image);
/* Whether the config allows this data centre; true if it has no list. */
bool datacenter_is_wanted(const struct section *conf, const char *id);

/* ---- offers.c: pods without a GPU, for the wish "none" ---- */

/* Whether the wish is for a pod without a GPU. */
bool cpu_is_meant(const char *wish);
/* A pod without a GPU has no more disk. */
enum { RUNPOD_DISK_GB_PER_VCPU = 10 };
/* Disk of the container for this request (0: the default), and its price, billed separately. */
int64_t disk_gb_or_default(int64_t wanted_gb, const struct placement *where);
int64_t disk_microusd_h(int64_t wanted_gb, const struct placement *where);

/* Reads a pod as v2 describes it. ERR_TRANSIENT if it is none. */
int pod_read(const json_t *from, struct pod_view *out, struct err *err);

#endif
