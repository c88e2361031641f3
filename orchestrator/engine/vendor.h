/* vendor.h - the providers of one run: their pods, images, logs and volumes. */
#ifndef BURST_ENGINE_VENDOR_H
#define BURST_ENGINE_VENDOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "caller.h"
#include "provider.h"
#include "rented.h"
#include "store/facts.h"
#include "sync/tree.h"
#include "link.h"

struct engine;

/* ---- request ----
 * One operation of a provider that is under way, with what its want points to. */

struct request {
	struct engine *e;
	struct request *next, **link;
	int provider, pod;
	int64_t requested_at;
	struct op_want want;
	struct env_pair env[24];
	size_t env_count;
	char *start_script;
	char **ids;
	char **regions;       /* NULL-terminated, or NULL */
	const char **secrets; /* the list for want.secrets; the names are the job's */
	char image[IMAGE_MAX];
	int lock; /* while a volume may be made; 0: none */
	/* of a volume that is to be made: an earlier create of it is looked for first */
	bool looks;
	/* of a lock, or of a log before a release: the end of the wait */
	struct timer *timer;
	bool released; /* of a log: the release does not wait for it any more */
	bool told;     /* of an image, a look: the log has reported it */
	struct caller_op *op;
};

/* A new request, in the engine's list of those under way. pod: -1 if it is not about one. */
struct request *request_new(struct engine *e, int provider, int pod);
void request_free(struct request *a);
/* Begins the request's operation. done(a) is called once; it frees the request. */
struct caller_op *request_begin(struct request *a, enum op_kind kind,
				void (*done)(void *ctx, struct op_result *result,
					     const struct err *err));
/* Frees the requests that were under way when the caller was freed. */
void requests_forget(struct engine *e);

/* ---- pod image ----
 * Has a provider that builds images build the one for this run's pods. */

struct request;

/* Has the provider build the image of this run's pods, if need be. EV_IMAGE follows. */
void pod_image_get(struct engine *e, int provider);
/* Fills in what the image of the run's pods is made of. */
void pod_image_fill_recipe(struct engine *e, int provider, struct rent_request *r);
/* Fills in the image that is known of the request's provider. */
void pod_image_fill_known(struct request *a);
/* Records the provider's name of the image, also for later runs; "": nothing. */
void pod_image_record(struct engine *e, int provider, const char *image);

struct pod_images *pod_images_new(void);
void pod_images_free(struct pod_images *p);

/* ---- pod log ----
 * What a provider's log shows of a pod. */

struct pod_log;

/* Requests the log of a pod; EV_LOG follows. */
void pod_log_read(struct engine *e, int pod);
/* Reads on, for the display, how much of its image a slow pod has pulled: one log of each provider
 * at a time. */
void pod_log_watch(struct engine *e);

/* A pod's; accepts NULL. */
void pod_log_free(struct pod_log *l);
struct pod_logs *pod_logs_new(void); /* free() frees them */

/* ---- pull ----
 * Reads the progress of an image pull from a pod's log. */

/* In percent, from a log as OP_LOGS returns it: of the bytes of all layers ("3f4a: Downloading [==>
 * ] 12MB/30MB"), else the percentage of its last line that has one. -1: the log shows none, or the
 * image is there. */
int pull_percent(const char *log);

/* ---- release ----
 * Releases a pod. */

/* Releases a pod. EV_RELEASED follows, unless another run has taken the pod (ledger.h). Only its
 * provider's log may say why a pod never came up: a log that ends with the pod is read before. */
void release_pod(struct engine *e, int pod);

/* ---- vendor ----
 * Actions that are operations of a provider. */

/* What the provider says that it billed for one pod, once that is gone. Only vendor.c writes it. */
struct billing {
	struct op_bill bill; /* its hours are not kept */
	int64_t answered_ms; /* wall clock; it may have had no record. 0: no answer */
};

/* Requests a provider's offers. EV_OFFERS follows. */
void vendor_offers(struct engine *e, int provider);
/* Requests a provider's list of pods. EV_LISTED follows. */
void vendor_list(struct engine *e, int provider);
/* Makes lists urgent that were requested before there was a pod to end. */
void vendor_prioritize(struct engine *e);
/* EV_RENTED or EV_RENT_FAILED follows. Nothing is rented if the last journal_pod() failed. */
void vendor_rent(struct engine *e, int pod);
/* Requests what the provider says about a pod. EV_INSPECTED follows. */
void vendor_inspect(struct engine *e, int pod);
/* Requests what the vendor billed for a pod. The answer is in its `billing`. */
void vendor_billing(struct engine *e, int pod);
/* How many bills are requested and not answered. */
int vendor_bills_open(const struct engine *e);

struct vendors *vendors_new(void); /* free() frees them */

/* ---- volumes ----
 * Finds the run's volume at a provider, or has it made. */

/* Finds the run's volume at a provider. create: makes it if there is none. EV_VOLUME follows. */
void volumes_get(struct engine *e, int provider, bool create);

/* ---- volume files ----
 * Fetches files of a volume without a pod. */

/* Fetches the file at path of the pod's volume into the run's folder, under this name. There may be
 * very many, each with a connection of its own: a few run at a time. done() comes exactly once. err
 * NULL: local is the file, which the callee must remove. Otherwise as the provider's OP_FETCH
 * fails, or ERR_INTERRUPTED (volume_files_stop()). */
void volume_files_get(struct engine *e, int pod, const char *path, const char *name,
		      int64_t max_bytes,
		      void (*done)(void *ctx, const char *local, const struct err *err), void *ctx);
/* As volume_files_get(), from a volume that may be another than a pod's. */
void volume_files_from(struct engine *e, int provider, const struct volume *volume,
		       const char *path, const char *name, int64_t max_bytes,
		       void (*done)(void *ctx, const char *local, const struct err *err),
		       void *ctx);
/* Ends everything under way (ERR_INTERRUPTED), for good. After the caller was freed. */
void volume_files_stop(struct engine *e);

/* ---- stage ----
 * Puts the code on a volume before there is a pod, if the vendor can take it. */

/* The code has been scanned: stages it on the volumes that wait for that. */
void stage_tree_ready(struct engine *e);
/* A pod needs the code now. Returns true if the volume has it, and describes it in *want. Otherwise
 * stops staging, and returns false. */
bool stage_take(struct engine *e, int provider, struct upsync_want *want);
/* Stops staging at this provider, if it is under way. A volume's event that waits follows. */
void stage_stop(struct engine *e, int provider);
/* After the caller and the pool have stopped. */
void stage_free(struct engine *e);

/* ---- known ----
 * Reads in the ledger what volumes and images hold. */

/* The environment of the job on one pod, as far as its ledger, its row, its hello or its set-up
 * told: not known, named because this pod is about to make it (name alone), on the volume (tree),
 * or in the pod's image, which comes first. What a start finds missing is forgotten. Only image.c
 * writes it. */
struct pod_env {
	char name[64], tree[SHA256_HEX]; /* on the volume: env/NAME, and its hash; "": none yet */
	char python[32];                 /* the Python that made it; "": not known */
	bool in_image;
	bool image_logged; /* the log has reported what the image has */
};

/* Finds the environment for the job that this pod's image or volume has, for e->pods[pod].env.
 * Returns false if none is known. */
bool known_env_find(struct engine *e, int pod);
/* Names the environment that this pod is about to make, with a name of its own. */
void known_env_name(struct engine *e, int pod);
/* Records the environment that the pod reports it made; known_env_name() named it. */
void known_env_made(struct engine *e, int pod, const json_t *event);
/* A start did not find the environment on the volume under its name: forgets it. */
void known_env_missing(struct engine *e, int pod);
/* Reads the environment of a pod that another client or run has prepared from its row. */
void known_env_adopt(struct engine *e, int pod, const struct pod_row *row);

/* Before the hello: notes whether the pod's image should have the environment, by earlier pods and
 * by what this run had built. Only for a job. */
void known_image_expect(struct engine *e, int pod);
/* Reads from the pod's hello what its image has; records and logs that. */
void known_image_seen(struct engine *e, int pod, const json_t *hello);
/* A start found that the image does not have the environment: forgets it. */
void known_image_missing(struct engine *e, int pod);

/* Finds the packages of the job's install script that the pod's volume has, by their hash. Returns
 * false if none are known. */
bool known_debs_find(const struct engine *e, int pod, char sha256[SHA256_HEX]);
/* Records the packages that an install has kept on the pod's volume. */
void known_debs_put(struct engine *e, int pod, const char *sha256);

/* Whether the pod's volume last got this tree. kind: FACT_KIT or FACT_TREE (code). */
bool known_tree_is(const struct engine *e, int pod, enum fact kind, const char *id);
/* Records that the pod's volume got this tree; "": it lacks what it should have. */
void known_tree_put(struct engine *e, int pod, enum fact kind, const char *id);
/* Records that pods of this job had the present code on the pod's volume. */
void known_code_put(struct engine *e, int pod);
/* Whether a volume has this code tree, by the ledger. */
bool known_code(const struct engine *e, int provider, const struct volume *v,
		const struct tree *tree);
/* The code tree of the last run if a volume has it, as a base for a new one; NULL: unknown. */
const struct tree *known_base(const struct engine *e, int provider, const struct volume *volume);

#endif
