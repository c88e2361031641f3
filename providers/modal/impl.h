/* impl.h - what the files of the Modal translator share. */
#ifndef BURST_PROVIDERS_MODAL_IMPL_H
#define BURST_PROVIDERS_MODAL_IMPL_H

#include "base/crypto.h"
#include "modal.pb-c.h"
#include "provider.h"

enum {
	MODAL_ID_MAX = 40,
	MODAL_APP_MAX = 64,
	MODAL_ADDRESSES = 64,
	MODAL_KNOWN = 256,
	MODAL_LOST = 16,
	MODAL_BLOCK_BYTES = 8 << 20
};
enum { MODAL_CORES = 4, MODAL_MEMORY_GB = 16 }; /* of a sandbox, where the config does not say */
#define MODAL_IMAGE "nvidia/cuda:12.8.1-base-ubuntu24.04"

/* the tags of our sandboxes */
#define MODAL_TAG         "burst"
#define MODAL_TAG_MACHINE "burst-machine"
#define MODAL_TAG_RUN     "burst-run"
#define MODAL_TAG_ATTEMPT "burst-attempt"
#define MODAL_TAG_END     "burst-hard-end"

/* AuthTokenGet's answer, which every other call bears. Times of clock_boot_ms(). */
struct auth_token {
	char *text; /* NULL: none yet */
	int64_t refresh_at_ms, dead_at_ms;
	int64_t backoff_ms; /* after a refresh that failed */
	unsigned number;    /* counts those that were taken */
};

/* Where a sandbox's sshd is, which does not change. */
struct address {
	char id[MODAL_ID_MAX];
	char host[128];
	int port;
};

/* A sandbox that was listed or made here. Once the list, which has running ones alone, lacks it, a
 * request finds out how it ended. */
struct known {
	struct pod_view view; /* as last seen; id empty: none */
	bool ours;            /* burst requested its end */
	bool scheduled;       /* it has a task */
	bool queued;          /* Modal reported that it has none */
	enum pod_state told;  /* by the list before */
	/* clock_boot_ms() when it was first seen, and when its address was requested although it
	 * was not reported to run */
	int64_t seen_ms, asked_ms;
};

struct provider {
	const struct section *conf; /* borrowed */
	char *root;                 /* of the API: no slash at its end */
	char *host;                 /* of root, without the port */
	char *account;
	struct auth_token token;
	/* what was learnt on the way and does not change: empty, not yet */
	char app_id[MODAL_ID_MAX];
	char builder_version[32];
	struct address addresses[MODAL_ADDRESSES]; /* the oldest makes room */
	size_t next_address;
	struct known known[MODAL_KNOWN];
	size_t next_known;
	/* creates with an unknown outcome: found by their names where there is no list */
	struct {
		char name[POD_NAME_MAX]; /* empty: none */
		struct marker marker;
	} lost[MODAL_LOST];
	size_t next_lost;
	bool lists_v1;  /* it has no SandboxListV2, or refuses it */
	bool has_swept; /* the environment was looked through once, for what other apps hold */
};

/* What one sandbox used. */
struct use {
	double started_s, ended_s;
	double core_ns, gib_ns, gpu_ns;
	bool counted;      /* these three are known */
	uint32_t gpus;     /* 0: not known */
	char gpu[GPU_MAX]; /* the one it had, in Modal's words */
	char app_id[MODAL_ID_MAX];
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
	/* number of the awaited reply within its operation; 0: nothing was sent yet */
	int step;
	bool creating; /* the call under way is the one that must not be carried twice */
	bool fetching_token;
	struct call waiting; /* the call that waits for the token */
	/* the current call before it got the token; url NULL: it is not sent with another token */
	struct call bare;
	unsigned bears;       /* the token that the call under way bears */
	bool again;           /* it is under way for the second time, with a new one */
	struct op_result got; /* what was learnt so far; freed with the operation */
	/* images, and renting */
	char image_id[MODAL_ID_MAX], registry_id[MODAL_ID_MAX], last_entry[64];
	char recipe[SHA256_HEX];
	bool trusted;       /* the image was taken from want.rent.known_image without a check */
	struct err refusal; /* of a create, during that check */
	struct str said;    /* lines of the build since the last hand-over */
	char tail[3][120];  /* the last lines of the build, the oldest at tail_at */
	size_t tail_at;
	int64_t build_began_ms;
	int broken, rebuilds;
	/* listing */
	bool sweeping;     /* this page is of the whole environment */
	bool app_again;    /* its app was looked for a second time */
	char refused[200]; /* why there is no list; empty: there is one */
	double before;
	int pages, requested_tasks, requested_tunnels, requested_early;
	size_t looked, looked_known, looked_task, looked_lost;
	struct use use; /* billing */
	/* fetching */
	char **urls;
	size_t url_count, next_url;
	int64_t expected; /* bytes in all */
	int urls_again;   /* retries without progress; also of what is put there */
	/* staging */
	struct staged_block *staged; /* one of each of want.file.blocks */
	size_t putting;
	int rounds;
	/* tidying */
	size_t entry_cap;
	int64_t measure_until_ms;
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

/* Fills t->call and gives OP_CALL: /modal.client.ModalClient/METHOD with this message.
 * SandboxCreate is the one call that is not carried twice, unless Modal says that it was not
 * available: by its name it makes one sandbox. wait_s: how long the server itself may take to
 * answer, at most (0: it answers at once). */
enum op_next modal_call(struct turn *t, enum call_class class, const char *method,
			const ProtobufCMessage *message, int wait_s);
/* The same for a stream, hung up on after wait_s. */
enum op_next modal_call_stream(struct turn *t, const char *method, const ProtobufCMessage *message,
			       int wait_s);
/* What has been gathered in op->got is the result. */
enum op_next modal_done(struct turn *t);
enum op_next modal_wait(struct turn *t, int64_t ms);

/* -1 and t->err unless the call ended with OK. A create whose outcome is unknown is ERR_AMBIGUOUS.
 */
int modal_answered(struct turn *t, const char *doing);
/* The same, and its message; NULL on error. protobuf_c_message_free_unpacked() it, by
 * MODAL_MESSAGE. */
void *modal_read(struct turn *t, const char *doing, const ProtobufCMessageDescriptor *type);

static inline void modal_free_cleanup(void *variable)
{
	ProtobufCMessage *message = *(ProtobufCMessage **)variable;

	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}
/* MODAL_MESSAGE(Modal__Client__SandboxWaitResponse, answer, t, "asking",
 * modal__client__sandbox_wait_response__descriptor); */
#define MODAL_MESSAGE(type, name, t, doing, descriptor)                                            \
	__attribute__((cleanup(modal_free_cleanup))) type *name =                                  \
		modal_read(t, doing, &(descriptor))

/* The next message of a stream's body; false at its end. *at begins at 0. */
bool modal_next_message(const struct str *body, size_t *at, const void **message, size_t *len);
/* "sb-" and letters, digits, '-', '_' after it */
bool modal_id_is_sound(const char *id, const char *prefix);
const char *modal_text(const char *text); /* "" for NULL */

/* ---- token.c: the token that every call bears ---- */

bool modal_token_is_due(const struct auth_token *token); /* to be fetched before the next call */
bool modal_token_is_usable(const struct auth_token *token);
void modal_token_drop(struct auth_token *token); /* it is not taken any more */
void modal_token_take(struct auth_token *token, const char *text);
void modal_token_failed(struct auth_token *token);
void modal_token_free(struct auth_token *token);
/* The claim `exp` of a JWT, epoch seconds; 0 when there is none. */
int64_t modal_token_expires_s(const char *jwt);

/* ---- the operations ---- */

enum op_next modal_check_next(struct turn *t);
enum op_next modal_check_failed(struct turn *t); /* *err becomes a finding */

/* rent.c */
enum op_next modal_rent_next(struct turn *t);
enum op_next modal_rent_on(struct turn *t); /* the image is known: op->image_id */

/* image.c */
enum { MODAL_IMAGE_STEPS = 10 }; /* below: its own */
enum op_next modal_image_next(struct turn *t);
/* A create did not find something; *err has Modal's words. Returns whether that is the image. */
enum op_next modal_image_doubted(struct turn *t);
enum op_next modal_call_app(struct turn *t, bool create);
int modal_take_app(struct turn *t); /* into provider->app_id */

/* sandbox.c */
void modal_remember(struct provider *p, const struct pod_view *view);
struct known *modal_known_of(struct provider *p, const char *id);
struct address *modal_address_of(struct provider *p, const char *id);
/* The raw way to port 22, if these tunnels have one. It does not change while the sandbox lives. */
void modal_take_tunnels(struct provider *p, struct pod_view *view,
			Modal__Client__TunnelData *const *tunnels, size_t count);
void modal_set_address(struct provider *p, struct pod_view *view);
enum op_next modal_call_tunnels(struct turn *t, const char *id, int most_s);
/* Not up yet, or ended meanwhile: no error, the next listing reports it. */
int modal_read_tunnels(struct turn *t, struct pod_view *view);
void modal_read_marker(Modal__Client__SandboxTag *const *tags, size_t count, struct marker *out);
int64_t modal_seconds(double at);
/* How it ended, for the core and for people. */
void modal_set_ended(struct provider *p, struct pod_view *view,
		     const Modal__Client__GenericResult *result);
void modal_read_task(struct provider *p, struct pod_view *view,
		     const Modal__Client__TaskInfo *task);

/* pods.c */
struct pod_view *modal_add_pod(struct op *op); /* empty, the last of op->got.pods */
enum op_next modal_list_next(struct turn *t);
enum op_next modal_inspect_next(struct turn *t);
enum op_next modal_release_next(struct turn *t);
enum op_next modal_logs_next(struct turn *t);
enum op_next modal_call_task(struct turn *t); /* SandboxGetTaskId of want.id */

/* billing.c */
enum op_next modal_billing_next(struct turn *t);

/* volumes.c */
enum op_next modal_volume_next(struct turn *t);
enum op_next modal_volume_remove_next(struct turn *t);
enum op_next modal_volumes_next(struct turn *t);
enum op_next modal_fetch_next(struct turn *t);
void modal_volumes_op_free(struct op *op);
/* Whether a block may be requested from this URL: from Modal's storage yes, from other servers of
 * this machine no. */
bool modal_url_is_sound(const struct provider *p, const char *url);

/* stage.c */
enum op_next modal_stage_next(struct turn *t);
void modal_stage_op_free(struct op *op);

/* tidy.c */
enum op_next modal_volume_ls_next(struct turn *t);
enum op_next modal_volume_size_next(struct turn *t);
enum op_next modal_volume_delete_next(struct turn *t);
/* Requests what is in a folder ("/": the whole volume), within wait_s. */
enum op_next modal_call_list(struct turn *t, const char *volume_id, const char *path,
			     bool recursive, int wait_s);
/* Passes on each entry of the answer with its path below the folder ("" for the folder itself;
 * folder "": the whole volume). *cut: the answer was incomplete. */
int modal_read_list(struct turn *t, const char *folder,
		    void (*take)(struct op *op, const Modal__Client__FileEntry *e,
				 const char *rest),
		    bool *cut);
int64_t modal_entry_bytes(const Modal__Client__FileEntry *e);

/* offers.c: dollars an hour, of the config where it names them, else of Modal's own rates (said:
 * NULL where it does not tell); cautious: for a price that must not be too low */
struct modal_rates {
	const struct section *conf;
	const Modal__Client__WorkspaceBillingRatesResponse *said;
	int64_t core, gib;
};
struct modal_rates modal_read_rates(const struct section *conf,
				    const Modal__Client__WorkspaceBillingRatesResponse *said,
				    bool cautious);
/* Of one, by Modal's name: the config's value, else Modal's, else, if Modal withholds its rates,
 * its list price. 0: unknown. */
int64_t modal_gpu_rate(const struct modal_rates *rates, const char *gpu);
bool modal_is_list_rate(const struct modal_rates *rates, const char *gpu);
/* prices.c */
#define MODAL_LIST_DAY "2026-09-01"
int64_t modal_list_rate(const char *gpu); /* 0: none */
enum op_next modal_offers_next(struct turn *t);
/* The size that a sandbox gets for this request (0: the default). */
void modal_size(int64_t cpu_wanted, int64_t memory_gb_wanted, int64_t *cores, int64_t *memory_gb);
int modal_check_prices(const struct section *conf, struct err *err);
int modal_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
		       struct err *err);

#endif
