/* impl.h - shared by the files of the Modal provider */
#ifndef BURST_PROVIDERS_MODAL_IMPL_H
#define BURST_PROVIDERS_MODAL_IMPL_H

#include <stdlib.h>

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
enum { MODAL_CORES = 4, MODAL_MEMORY_GB = 16 }; /* of a sandbox, if the config has none */
enum { MODAL_GPUS_MOST = 8 };                   /* of one sandbox */
enum { MODAL_SSHD_PORT = 22 };
#define MODAL_IMAGE "nvidia/cuda:12.8.1-base-ubuntu24.04"

/* reply.grpc_status, as in google.rpc.Code */
/* clang-format off */
enum {
	STATUS_OK, STATUS_CANCELLED, STATUS_UNKNOWN, STATUS_INVALID_ARGUMENT,
	STATUS_DEADLINE_EXCEEDED, STATUS_NOT_FOUND, STATUS_ALREADY_EXISTS, STATUS_PERMISSION_DENIED,
	STATUS_RESOURCE_EXHAUSTED, STATUS_FAILED_PRECONDITION, STATUS_ABORTED, STATUS_OUT_OF_RANGE,
	STATUS_UNIMPLEMENTED, STATUS_INTERNAL, STATUS_UNAVAILABLE, STATUS_DATA_LOSS,
	STATUS_UNAUTHENTICATED,
};
/* clang-format on */

/* tags of burst's sandboxes */
#define MODAL_TAG         "burst"
#define MODAL_TAG_MACHINE "burst-machine"
#define MODAL_TAG_RUN     "burst-run"
#define MODAL_TAG_ATTEMPT "burst-attempt"
#define MODAL_TAG_END     "burst-hard-end"

/* The token of AuthTokenGet, which every other call carries. Times from clock_boot_ms(). */
struct auth_token {
	char *text; /* NULL: none yet */
	int64_t refresh_at_ms, dead_at_ms;
	int64_t backoff_ms; /* after a failed refresh */
	unsigned number;    /* number of tokens fetched so far */
};

/* Address of a sandbox's sshd, which never changes. */
struct address {
	char id[MODAL_ID_MAX];
	char host[128];
	int port;
};

/* A sandbox that was listed or made here. The list has running ones only, so a request finds out
 * how a missing one ended. */
struct known {
	struct pod_view view; /* as last seen; empty id: unused */
	bool ours;            /* burst requested its end */
	bool scheduled;       /* it has a task */
	bool queued;          /* Modal reported that it has none */
	enum pod_state told;  /* state in the previous list */
	/* clock_boot_ms() of its first sight, and of the last request for its address while it was
	 * not reported as running */
	int64_t seen_ms, asked_ms;
};

struct provider {
	const struct section *conf; /* borrowed */
	char *root;                 /* of the API, without a slash at its end */
	char *host;                 /* host of root, without the port */
	char *account;
	struct auth_token token;
	/* learnt values that never change; empty: unknown */
	char app_id[MODAL_ID_MAX];
	char builder_version[32];
	struct address addresses[MODAL_ADDRESSES]; /* a new one replaces the oldest */
	size_t next_address;
	struct known known[MODAL_KNOWN];
	size_t next_known;
	/* creates with an unknown outcome, found by name if there is no list */
	struct {
		char name[POD_NAME_MAX]; /* empty: unused */
		struct marker marker;
	} lost[MODAL_LOST];
	size_t next_lost;
	bool lists_v1;  /* Modal lacks SandboxListV2, or refuses it */
	bool has_swept; /* the environment was searched once for sandboxes of other apps */
};

/* What one sandbox used. */
struct use {
	double core_ns, gib_ns, gpu_ns;
	bool counted;      /* cores, memory and GPU time are known */
	uint32_t gpus;     /* 0: unknown */
	char gpu[GPU_MAX]; /* its actual GPU, by Modal's name */
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
	/* number of the awaited reply within the operation; 0: nothing sent yet */
	int step;
	bool creating; /* the current call must not be carried out twice */
	bool fetching_token;
	struct call waiting; /* the call that waits for the token */
	/* the current call without a token; url NULL: do not repeat it with another */
	struct call bare;
	unsigned bears;       /* number of the current call's token */
	bool again;           /* the current call is a repetition with a new token */
	struct op_result got; /* results so far; freed with the operation */
	/* for images and renting */
	char image_id[MODAL_ID_MAX], registry_id[MODAL_ID_MAX], last_entry[64];
	char recipe[SHA256_HEX];
	bool trusted;       /* the image is want.rent.known_image, unchecked */
	struct err refusal; /* of a create, during that check */
	struct str said;    /* lines of the build since they were last passed on */
	char tail[3][120];  /* last lines of the build; the oldest is at tail_at */
	size_t tail_at;
	int64_t build_began_ms;
	int broken, rebuilds;
	int64_t hard_end_ms; /* of the pod to rent, by clock_boot_ms() */
	/* listing */
	bool sweeping;     /* this page lists the whole environment */
	bool app_again;    /* its app was looked up again */
	char refused[200]; /* why there is no list; empty: there is one */
	double before;
	int pages, requested_tasks, requested_tunnels, requested_early;
	size_t looked, looked_known, looked_task, looked_lost;
	struct use use; /* billing */
	/* fetching */
	char **urls;
	size_t url_count, next_url;
	int64_t expected; /* total bytes */
	int urls_again;   /* retries without progress, for PUTs too */
	/* staging */
	struct staged_block *staged; /* one for each of want.file.blocks */
	size_t putting;
	int rounds;
	/* tidying */
	size_t entry_cap;
	int64_t measure_until_ms;
};

/* ---- api.c: requests and replies ---- */

/* Fills t->call and returns OP_CALL: /modal.client.ModalClient/METHOD with this message. Only
 * SandboxCreate is not repeated, unless Modal was unavailable: a second one would make a second
 * sandbox. wait_s: how long the server may take to answer (0: it answers at once). */
enum op_next modal_call(struct turn *t, enum call_class class, const char *method,
			const ProtobufCMessage *message, int wait_s);
/* The same for a stream, which ends after wait_s. */
enum op_next modal_call_stream(struct turn *t, const char *method, const ProtobufCMessage *message,
			       int wait_s);
/* Ends the operation with op->got as its result. */
enum op_next modal_done(struct turn *t);

/* Returns -1 with t->err unless the call ended with OK. A create with an unknown outcome is
 * ERR_AMBIGUOUS. */
int modal_check_reply(struct turn *t, const char *doing);
/* The same, and returns the message; NULL on error. Free with protobuf_c_message_free_unpacked(),
 * or declare it with MODAL_MESSAGE. */
void *modal_unpack_reply(struct turn *t, const char *doing, const ProtobufCMessageDescriptor *type);

/* Unpacks one message, which may take no more memory than this. NULL: it cannot be read, or takes
 * more. Free it with protobuf_c_message_free_unpacked(m, NULL). */
enum { MODAL_UNPACKED_MOST = 256 << 20 };
void *modal_unpack(const ProtobufCMessageDescriptor *type, size_t len, const void *bytes);

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
		modal_unpack_reply(t, doing, &(descriptor))

/* Reads the next message of a stream's body. *at starts at 0. Returns false at the end. */
bool modal_next_message(const struct str *body, size_t *at, const void **message, size_t *len);
/* Accepts "sb-" and letters, digits, '-' and '_' */
bool modal_id_is_sound(const char *id, const char *prefix);
const char *modal_text(const char *text); /* "" for NULL */

/* ---- modal.c: the token that every call carries. Declared for tests. ---- */

/* Whether a new token is to be fetched before the next call. */
bool modal_token_is_due(const struct auth_token *token);
bool modal_token_is_usable(const struct auth_token *token);
/* Replaces the token with one that was just received. */
void modal_token_take(struct auth_token *token, const char *text);
/* After a failed refresh: the next one is due after a pause that doubles each time. */
void modal_token_back_off(struct auth_token *token);
/* Wipes the token. */
void modal_token_free(struct auth_token *token);
/* The claim `exp` of a JWT in epoch seconds, or 0. */
int64_t modal_token_expires_s(const char *jwt);

/* ---- the operations ---- */

/* Each X_next() is one step of an operation. Without t->reply it makes the first request; with it,
 * it reads the reply and makes the next request, waits or ends. */

/* rent.c */
enum op_next modal_rent_next(struct turn *t);

/* image.c */
enum { MODAL_IMAGE_STEPS = 10 }; /* lower steps are image.c's */
/* OP_DONE: op->image_id is known. The result is set, unless this is a rent, which goes on. */
enum op_next modal_image_next(struct turn *t);
/* A create did not find an object, and *t->err has Modal's words: checks whether the image is the
 * missing one, and builds it again then. OP_FAILED if it was checked before. */
enum op_next modal_recheck_image(struct turn *t);
enum modal_missing { MODAL_FAIL_IF_MISSING, MODAL_MAKE_MISSING };
enum op_next modal_call_app(struct turn *t, enum modal_missing missing);
int modal_read_app_reply(struct turn *t); /* sets provider->app_id */

/* sandbox.c */
/* Adds the sandbox to the provider's memory (over the oldest), or updates it there. */
void modal_remember(struct provider *p, const struct pod_view *view);
/* NULL: it is not remembered. Borrowed, and overwritten by later modal_remember() calls. */
struct known *modal_find_known(struct provider *p, const char *id);
struct address *modal_find_address(struct provider *p, const char *id);
/* Remembers the address of sshd if these tunnels have it. It never changes. */
void modal_remember_address(struct provider *p, const struct pod_view *view,
			    Modal__Client__TunnelData *const *tunnels, size_t count);
/* Sets the remembered address in the view, which then is running. */
void modal_set_address(struct provider *p, struct pod_view *view);
enum op_next modal_call_tunnels(struct turn *t, const char *id, int most_s);
/* Remembers the address. Succeeds without one if the sandbox is not up yet, or has ended. */
int modal_read_tunnels_reply(struct turn *t, struct pod_view *view);
void modal_read_marker(Modal__Client__SandboxTag *const *tags, size_t count, struct marker *out);
int64_t modal_epoch_s(double at); /* 0 for an implausible time */
/* Marks the view as gone and records how it ended, for the core and the user. */
void modal_set_ended(struct provider *p, struct pod_view *view,
		     const Modal__Client__GenericResult *result);
/* Sets state, times and GPU of the view by its task; NULL: changes nothing. */
void modal_read_task(struct provider *p, struct pod_view *view,
		     const Modal__Client__TaskInfo *task);

/* list.c */
enum op_next modal_list_next(struct turn *t);
enum op_next modal_inspect_next(struct turn *t);
enum op_next modal_release_next(struct turn *t);
enum op_next modal_logs_next(struct turn *t);
enum op_next modal_call_task(struct turn *t, const char *id); /* SandboxGetTaskId */

/* files.c */
enum op_next modal_volume_next(struct turn *t);
enum op_next modal_volume_remove_next(struct turn *t);
enum op_next modal_volumes_next(struct turn *t);
enum op_next modal_fetch_next(struct turn *t);
void modal_volumes_op_free(struct op *op);
enum op_next modal_stage_next(struct turn *t);
void modal_stage_op_free(struct op *op);
enum op_next modal_volume_ls_next(struct turn *t);
enum op_next modal_volume_size_next(struct turn *t);
enum op_next modal_volume_delete_next(struct turn *t);

/* offers.c */
enum op_next modal_offers_next(struct turn *t);
enum op_next modal_billing_next(struct turn *t);
/* The size of a sandbox for this request (0: the default). */
void modal_sandbox_size(int64_t cpu_wanted, int64_t memory_gb_wanted, int64_t *cores,
			int64_t *memory_gb);
int modal_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
		       struct err *err);

#endif
