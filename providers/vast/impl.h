/* impl.h - shared by the files of the Vast.ai translator. Shapes of requests and replies are those
 * of Vast's published OpenAPI 3.1 file (vast-ai/docs c624622, August 2026). */
#ifndef BURST_PROVIDERS_VAST_IMPL_H
#define BURST_PROVIDERS_VAST_IMPL_H

#include <jansson.h>

#include "provider.h"
#include "providers/web.h"

/* 8 GB is the least disk that Vast takes. */
enum { VAST_DISK_LEAST_GB = 8, VAST_DISK_GB = 40 };
#define VAST_IMAGE      "nvidia/cuda:12.8.1-base-ubuntu24.04"
#define VAST_IMAGE_CUDA "12.8"

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
	/* number of the awaited reply within the operation; 0: nothing sent yet */
	int step;
	struct op_result got; /* results so far; freed with the operation */
	struct err first;     /* RENT: why a create failed that left an instance */
	char token[512];      /* of a list's next page; "": the first page */
	int pages;            /* pages of this list read so far */
	int64_t rows;         /* rows on those pages */
	char *log_url;        /* LOGS: where the log will be; freed with the operation */
	int tries;            /* LOGS: requests to that address */
};

/* ---- api.c: requests and replies ---- */

/* Fills t->call and returns OP_CALL. path begins below "/api". Takes over body (NULL: none). A call
 * that must not be carried out twice has the class CALL_CREATE. */
enum op_next vast_request(struct turn *t, enum call_class class, const char *method, json_t *body,
			  const char *path, ...) PRINTF(5, 6);
/* Ends the operation with op->got as its result. */
enum op_next vast_done(struct turn *t);

/* Returns -1 with t->err unless the reply is a 2xx. A create whose reply was lost or is a 5xx is
 * ERR_AMBIGUOUS. Vast answers 404 as well as 401 to a key that it does not know: both are
 * ERR_CREDENTIALS. */
int vast_check(struct turn *t, const char *doing);
/* Checks the reply like vast_check(), and returns the object in the body; NULL on error. A body
 * with "success": false is an error whatever its status. An accepted create with an unreadable body
 * is ERR_AMBIGUOUS, other unreadable bodies are ERR_TRANSIENT. The caller calls json_decref(). */
json_t *vast_read_object(struct turn *t, const char *doing);
/* Moves op->token past this page of a list with `rows` rows, of which Vast counts `total` in all.
 * Returns 1: there are more pages, send the next request; 0: it was the last; -1: t->err. A page
 * must not pass for the whole list: what it lacks would count as gone. */
int vast_next_page(struct turn *t, const json_t *page, const char *what, size_t rows,
		   int64_t total);

bool vast_id_is_sound(const char *id); /* may be part of a URL: digits alone */

/* ---- the operations ---- */

/* Each X_next() is one step of an operation. Without t->reply it makes the first request; with it,
 * it reads the reply and makes the next request, waits or ends. */

enum op_next vast_offers_next(struct turn *t);
/* As provider_ops.check_wishes. */
int vast_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
		      struct err *err);

enum op_next vast_rent_next(struct turn *t);
enum op_next vast_inspect_next(struct turn *t);
enum op_next vast_list_next(struct turn *t);
enum op_next vast_release_next(struct turn *t);
enum op_next vast_logs_next(struct turn *t);
enum op_next vast_billing_next(struct turn *t);

/* ---- image.c ---- */

/* As a key_check: each user of a private registry has letters that need no quotes. */
int vast_check_logins(const struct section *conf, const char *group, const char *key,
		      struct err *err);
/* Appends what "image_login" says for this image, which the caller wipes; nothing: the image is
 * public. Its host can read the login: ERR_CONFIG unless allow_secrets. */
int vast_add_login(struct str *to, const struct section *conf, const char *image, struct err *err);
/* The image of a request for this one (NULL: the default). */
const char *vast_image(const struct section *conf, const char *wanted);

/* ---- shared helpers ---- */

/* An offer's id: "ASK/BID/END". */
struct ask {
	long long id;
	int64_t bid_microusd_h; /* of the whole machine; 0: on demand */
	int64_t end_s;          /* when the host takes the machine back; 0: not reported */
};
int vast_ask_read(const char *id, struct ask *out); /* -1: not a valid id */

/* Sets the common name: "A100 80GB SXM" for "A100 SXM4" with 80 GB. */
void vast_set_gpu_name(char to[GPU_MAX], const char *vast_name, int vram_gb);
/* The country of "California, US": "US"; a text without a comma is kept. */
void vast_set_region(char to[REGION_MAX], const char *geolocation);
/* Disk of the container for this request (0: the default). */
int64_t vast_disk_gb(int64_t wanted_gb);
/* Memory of one GPU: as sold where the catalogue knows the card, for drivers report a little less.
 */
int vast_vram_gb(const json_t *from);

/* The label of an instance is its marker, "burst-ATTEMPT/MACHINE/RUN/HARD_END". This variable
 * repeats it: a user may change the label in Vast's console.
 */
#define VAST_MARKER_VAR "BURST_MARKER"
#endif
