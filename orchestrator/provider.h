/* provider.h - one vendor of pods, as a translator: what we want becomes calls, replies become
 * results.
 *
 * No function here does I/O, sleeps or retries, and there is no global state: the engine carries
 * the calls and the core decides what a failure means. Times of calls in ms, money in
 * micro-dollars, epochs in seconds.
 *
 * An operation is a little state machine: next(op, NULL) first, then next(op, reply) after each
 * call, until OP_DONE or OP_FAILED. The caller that began it ends it with op_free(). */
#ifndef BURST_PROVIDER_H
#define BURST_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/err.h"
#include "base/section.h"
#include "base/str.h"
#include "rented.h"

#define PROVIDER_ABI 14u

struct env_pair {
	char *name, *value;
	bool secret; /* never shown, not even in --trace */
};

/* ---- what is wanted ---- */

enum op_kind {
	/* credentials and surroundings, for doctor: result.text has lines "ok|warn|bad: words" */
	OP_CHECK,
	/* want.offers -> result.offers; result.text: lines for people about GPUs that were wished
	   for and are not among them */
	OP_OFFERS,
	/* want.volume -> result.volumes[0]; makes it only if create; ERR_NOT_FOUND otherwise.
	 * ERR_NO_CAPACITY: none can be made where pods are available */
	OP_VOLUME,
	OP_VOLUMES,       /* -> result.volumes, all of ours */
	OP_VOLUME_REMOVE, /* want.id */
	/* want.rent -> result.pods[0]; a lost or 5xx reply is ERR_AMBIGUOUS, never "try again".
	 * Where create_once the core may send it again, with the same name */
	OP_RENT,
	/* want.id -> result.pods[0] (state GONE when the vendor has forgotten it) */
	OP_INSPECT,
	OP_LIST, /* -> result.pods: every pod of this account that has a burst marker. A pod that
		    lost its marker but can still be recognized is listed with an empty one */
	/* want.id -> done when the vendor has accepted; already gone is success. result.text: a
	 * warning for people, or empty */
	OP_RELEASE,
	/* want.id, want.since_s (when it was rented, 0: unknown), want.bill -> result.billing;
	 * ERR_NOT_FOUND while the vendor has no record */
	OP_BILLING,
	OP_BALANCE, /* -> result.balance_microusd, -1 where there is none */
	/* want.id -> result.text: the log of the pod, as text to show. Lines of its own container
	 * begin with "container: "; all others are the vendor's. A last line that begins with
	 * "image: " gives the reason why its image cannot be pulled, on any pod. */
	OP_LOGS,
	OP_STAGE, /* want.file: put one local file on a volume without a pod */
	/* want.file: get one file of a volume without a pod, from want.file.offset on */
	OP_FETCH,
	/* only where can_tidy: */
	/* want.file.path, a folder -> result.entries, what is directly in it; ERR_NOT_FOUND without
	   it */
	OP_VOLUME_LS,
	/* want.file.path, a file or a folder with all below it: gone when done; absent is success.
	   -> result.bytes */
	OP_VOLUME_DELETE,
	/* want.file.path, a folder for which LS returned bytes -1 -> result.entries[0]: the sum of
	 * all in it */
	OP_VOLUME_SIZE,
	/* want.rent.{image, packages, agent, steps, known_image} -> result.image: the image of such
	 * pods, built unless known_image still is that. May take many minutes. Only where
	 * makes_image */
	OP_IMAGE,
};

/* A step of an image's build: a file with this text is placed at `path`, then a shell executes
 * `run`. */
struct image_step {
	char *path, *run;
	const char *text;
};

struct rent_request {
	struct offer offer;
	char name[POD_NAME_MAX]; /* "burst-" + attempt: never used again */
	struct marker marker;
	struct volume volume;            /* id empty: none */
	const char *mount;               /* "/workspace" */
	const char *image;               /* NULL: the provider's default */
	int64_t disk_gb, memory_gb, cpu; /* 0: the provider's default */
	/* For vendors that build an image: what else is to be in it. Debian packages,
	 * NULL-terminated or NULL; and the agent, at this path (NULL: none), which changes when it
	 * does. Others leave it out, and the pod fetches what it lacks. */
	const char *const *packages;
	const void *agent;
	size_t agent_len;
	const char *agent_path;
	const struct image_step *steps; /* in this order, as root */
	size_t step_count;
	/* the op_result.image of the last build of this recipe; NULL: unknown */
	const char *known_image;
	const char *start_script;   /* POSIX sh text; becomes the container's first process */
	const struct env_pair *env; /* the start script's contract: jobs/agent/CONTROL.md */
	size_t env_count;
	/* Its setup fetches packages, and all that runs in it is burst's own: a provider that
	 * closes the network to its pods opens it to this one. */
	bool fetches_packages;
	/* Where waits_free: how long it may wait for its start, and how long it may run from then;
	 * the marker's hard end is the create and both. The pod ends itself after run_s, and so
	 * should the vendor where it can. Elsewhere wait_s is 0, and run_s lasts to the hard end.
	 */
	int64_t wait_s, run_s;
};

struct op_want {
	char id[POD_ID_MAX];
	int64_t since_s;
	/* LOGS: how long its lines are waited for at most; 0: as long as they take */
	int64_t log_ms;
	struct {
		/* names as people write them, in order of preference; NULL-terminated or NULL: any
		 */
		const char *const *gpus;
		bool spot;
		/* offers must be able to attach it; id empty: one of this name is to be made there;
		 * name empty, too: none */
		struct volume volume;
		int vram_gb; /* at least; 0: any */
		/* at least, where the price hangs on them; 0: the provider's default */
		int64_t cpu, memory_gb, disk_gb;
		/* what is to run there; NULL: the provider's default */
		const char *image;
	} offers;
	struct {
		const char *name;
		int64_t size_gb;
		bool create;
		const char *const *gpus; /* where a new one should be: near most of these */
		/* try the keys for its files without a pod, where there are such keys:
		 * ERR_CREDENTIALS */
		bool prove_files;
	} volume;
	struct rent_request rent;
	struct { /* for vendors that report dollars alone; 0: unknown */
		/* the pod's, as the vendor gave it, or the offer's where that is more */
		int64_t price_microusd_h;
		int64_t list_microusd_h; /* the offer's */
		/* the offer's: another one may have been given, at its price */
		char gpu[GPU_MAX];
	} bill;
	struct {
		struct volume volume;
		/* on the volume, relative, safe (else ERR_REFUSED); no link is followed */
		const char *path;
		const char *local; /* local file to read (STAGE) or to write (FETCH) */
		int64_t offset, max_bytes;
		/* STAGE where stage_block_bytes: what local holds; borrowed */
		struct file_blocks blocks;
	} file;
	/* VOLUME with create: offers are in these regions alone, so a new one must be in one of
	 * them; NULL: anywhere */
	const char *const *regions;
	/* LIST: pods that are to be looked up by these ids where the list lacks them, or is
	 * refused; NULL-terminated, or NULL. Objects outside the tree may not know this member and
	 * those below it */
	char *const *ids;
	/* OFFERS, check_wishes: names of the job's variables that hold secrets; NULL-terminated, or
	 * NULL */
	const char *const *secrets;
	/* OFFERS, RENT: the least version of CUDA that a host must support, as "12.8"; NULL or "":
	 * any. Providers that have no filter for it leave it out */
	const char *least_cuda;
};

/* What a vendor has billed for a pod until now. It may still grow while the pod exists, and shortly
 * afterwards. */
struct op_bill {
	/* 0, not reported: the price is unknown, and the vendor reports dollars alone */
	int64_t billed_ms;
	/* all of it; 0 if the pod has a price: the vendor reports seconds alone */
	int64_t cost_microusd;
	int64_t beside_microusd; /* the part of the cost that the pod's price does not pay for */
	/* true: the vendor reports how long (0 ms: it never ran); false: implied from dollars and
	 * the price */
	bool reported;
	char note[300]; /* a fault of the record, for people: one sentence; "": none */
	/* in order of time if the vendor reports by the hour, else NULL */
	struct bill_hour *hours;
	size_t hour_count;
};
struct bill_hour {
	int64_t start_s, end_s; /* epoch */
	int64_t cost_microusd;
};

/* What a vendor that accepts a release reports about the pod. */
enum release_word {
	RELEASE_TAKEN, /* nothing */
	RELEASE_ENDED, /* it was there until now */
	RELEASE_ABSENT /* it knows no such pod: gone, or too new to be indexed */
};

struct op_result {
	struct offer *offers;
	size_t offer_count;
	struct pod_view *pods;
	size_t pod_count;
	struct volume *volumes;
	size_t volume_count;
	struct volume_entry *entries;
	size_t entry_count;
	struct op_bill billing;
	int64_t balance_microusd;
	int64_t bytes; /* FETCH, STAGE: moved */
	/* IMAGE, RENT: for rent_request.known_image; empty: none. Only the provider reads it */
	char image[IMAGE_MAX];
	struct str text;
	enum release_word release;
	/* OFFERS: the lowest price among all that was wanted, available or sold out; 0: unknown */
	int64_t floor_microusd_h;
	/* LIST: the vendor refuses its list, for the reason in text. pods has those whose ids this
	 * handle knows, each looked up by itself; a pod that is missing may still exist. Last:
	 * plug-ins of an older ABI may not know it */
	bool partial;
};
void op_result_free(struct op_result *r);
/* Appends an empty pod, offer or volume. Valid until the next one is appended. */
struct pod_view *op_result_add_pod(struct op_result *r);
struct offer *op_result_add_offer(struct op_result *r);
struct volume *op_result_add_volume(struct op_result *r);
bool op_result_has_pod(const struct op_result *r, const char *id);
bool op_result_has_volume(const struct op_result *r, const char *id);
/* ERR_UNTRUSTED: more pods, volumes or offers than any account has. A list that comes in pages is
 * checked after each row: each row is compared with all before it. */
int op_result_check_counts(const struct op_result *r, struct err *err);

/* Dollars as a vendor's JSON has them: at least 0, at most this. */
#define VENDOR_MOST_MICROUSD INT64_C(1000000000000)

/* Checks every answer before the engine, a command or the ledger sees it: neither a vendor nor a
 * plug-in is trusted. Names, details and markers of strangers' pods may be any text; code that
 * shows them makes them printable. An address that ssh could take for an option turns its pod into
 * one that will never run (POD_STATE_FAILED, the reason in `detail`), so that it is released.
 * ERR_UNTRUSTED: impossible ids, counts, prices or times, or a text that does not end. */
int provider_check_answer(struct op_result *r, struct err *err);
/* Where an sshd may be: nothing that ssh takes for an option, and no character that it treats
 * specially. NULL: it may be there; else what is wrong ("its user"). */
const char *provider_bad_address(const char *host, int port, const char *user);

/* ---- how it travels ---- */

enum call_kind { CALL_HTTP, CALL_GRPC, CALL_CHILD };
/* Priority near an account's rate limit; a part of each window is reserved for releases. CALL_LIST
 * is the engine's: a poll that finds pods to release or proves them gone. */
enum call_class { CALL_RELEASE, CALL_CREATE, CALL_POLL, CALL_LIST };

struct call {
	enum call_kind kind;
	enum call_class class;
	/* another service of the vendor's (object storage): not counted against the API's limits */
	bool unlimited;
	bool may_repeat; /* carrying it twice does no harm: net/ may try again on its own */
	int64_t timeout_ms;
	/* a larger reply is ERR_UNTRUSTED; with body_to that holds for the file, a refusal may have
	 * 1 MiB */
	size_t max_bytes;
	struct str body; /* HTTP: request body; CHILD: its stdin */
	/* CALL_HTTP */
	const char *method;
	char *url;
	char **headers; /* "Name: value" */
	size_t header_count, header_cap;
	char *sigv4; /* "aws:amz:REGION:s3", with user and password */
	char *user, *password;
	/* CALL_GRPC (with url, headers and body above): url is SERVER/package.Service/Method, body
	 * the request message without any framing, headers the metadata */
	bool stream; /* the server sends any number of messages */
	/* closes a stream after this long, which is no failure; 0: it must end by itself */
	int64_t stream_limit_ms;
	/* how long in all the server may defer this call; 0: a minute, below: not at all */
	int64_t put_off_ms;
	/* CALL_CHILD: argv, NULL-terminated; argv[0] is looked up in PATH; "burst" means this very
	 * program */
	char **argv;
	size_t argc, argv_cap;
	/* both: the reply's body is appended to this file instead (FETCH); the request's body is
	 * read from that one (STAGE) */
	char *body_to, *body_from;
	/* HTTP: only this part of body_from; 0 bytes: to its end */
	int64_t body_from_offset, body_from_bytes;
	/* CALL_GRPC without may_repeat: whatever it makes has a name that works once, so after
	 * UNAVAILABLE net/ sends it again with the same idempotency key. Last: objects outside the
	 * tree may not know it */
	bool once_by_name;
};
void call_free(struct call *c);
void call_header(struct call *c, const char *fmt, ...) PRINTF(2, 3);
void call_arg(struct call *c, const char *word);

struct reply {
	bool failed;    /* no reply: err has the reason */
	bool was_sent;  /* after a failure: the request may have reached the other side */
	struct err err; /* GRPC: also the words of a status that is not OK, its kind by the code */
	/* GRPC: the status code of the call (0: OK; else google.rpc.Status bytes in details), with
	 * `failed` the one that comes nearest; body is the reply message, or of a stream every
	 * whole message with its length in front (4 bytes, big-endian) */
	int grpc_status;
	struct str details;
	int status; /* HTTP status, or the child's exit code (128+n: killed by signal n) */
	struct str body;
	struct str head;  /* HTTP: header lines as received, "\r\n" between; CHILD: its stderr */
	int64_t to_bytes; /* HTTP, CHILD: of the body, appended to body_to */
	int64_t wall_ms, retry_after_ms;
	/* an earlier try of this very call failed, and may have been carried out all the same */
	bool sent_before;
};
void reply_free(struct reply *r);
/* Value of a header (case-insensitive, last one wins) into out; false when absent. */
bool reply_header(const struct reply *r, const char *name, char *out, size_t room);
/* How far this machine's wall clock is from the one that dated the reply, negative: behind. 0 where
 * the reply's date lies between the request (sent_wall_ms) and now. False when the reply bears no
 * date. */
bool reply_clock_off(const struct reply *r, int64_t sent_wall_ms, int64_t now_wall_ms,
		     int64_t *off_ms);

enum op_next { OP_CALL, OP_WAIT, OP_DONE, OP_FAILED };

struct provider; /* each vendor's own */
struct op;       /* one operation under way */

/* The arguments of provider_ops.next, for providers that pass them on as one. */
struct turn {
	struct op *op;
	const struct reply *reply; /* NULL: the first step, or a wait has ended */
	struct call *call;
	int64_t *wait_ms;
	struct op_result *result;
	struct err *err;
};
enum op_next turn_wait(struct turn *t, int64_t ms);
enum op_next turn_fail(struct turn *t, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);

struct provider_ops {
	uint32_t abi;        /* PROVIDER_ABI; first, for objects loaded from outside the tree */
	const char *name;    /* as burst.cfg spells it: "runpod" */
	const char *summary; /* one line for doctor and help */
	const struct option_spec *options; /* keys of its section */
	bool can_stage, can_fetch;         /* files of a volume without a pod */
	/* other machines see what a pod wrote to a volume only after a sync, and only if they mount
	 * it later */
	bool volume_lags;
	bool makes_image; /* OP_IMAGE, before the first pod of a run */
	bool can_tidy;    /* OP_VOLUME_LS and OP_VOLUME_DELETE, without a pod */
	/* OP_STAGE needs the file's blocks of this size in want.file.blocks; 0: it needs none */
	int64_t stage_block_bytes;
	int64_t poll_ms; /* pause between two listings while a pod boots */
	/* requests an account may send, until the vendor's replies report a limit; 0: no limit */
	int calls_per_minute;
	/* time between the two listings that prove a released pod gone; 0: one listing is proof */
	int64_t list_gap_ms;

	/* conf outlives the provider. state_dir: a folder for files of the provider's children. */
	int (*open)(struct provider **out, const struct section *conf, const char *state_dir,
		    struct err *err);
	void (*close)(struct provider *p); /* accepts NULL */
	/* The vendor account these pods are rented on, for rate limits and "one listing per
	 * account". Borrowed. */
	const char *(*account)(const struct provider *p);

	/* want is borrowed until op_free. */
	struct op *(*begin)(struct provider *p, enum op_kind kind, const struct op_want *want);
	/* Advances an operation by one step. The first call has reply == NULL. OP_CALL: send *call
	 * (the caller frees it) and call again with its reply. OP_WAIT: call again after *wait_ms
	 * with reply == NULL. With both, result->text may hold lines of progress for people (the
	 * log of a build); the caller frees them. OP_DONE: *result is set; free it with
	 * op_result_free(). OP_FAILED: *err is set; its kind says whether a retry can help or can
	 * cost money twice. */
	enum op_next (*next)(struct op *op, const struct reply *reply, struct call *call,
			     int64_t *wait_ms, struct op_result *result, struct err *err);
	void (*op_free)(struct op *op); /* at any time; accepts NULL */
	/* Whether can_stage, can_fetch and can_tidy hold for this very volume (NULL: for any): they
	 * may hang on keys, and on where it is. NULL: they do. */
	bool (*files_ready)(const struct provider *p, const struct volume *v);
	/* A note for each user who rents there; a run and `burst offers` show it once. NULL: none.
	 */
	const char *caution;
	bool logs_outlive; /* OP_LOGS also returns the log of a released pod, for a while */
	/* Whether its pods cost nothing that is worth saving: what they can carry themselves is
	 * left to them. NULL: no. */
	bool (*pods_are_free)(const struct provider *p);
	/* Notes in m what conf's values alone show to be wrong, and returns 0; with m == NULL the
	 * first one is an error (ERR_CONFIG, names file:line). Secrets may be missing. open()
	 * checks all of it again. NULL: nothing to check. */
	int (*check_conf)(const struct section *conf, struct mistakes *m, struct err *err);
	/* Checks what a job wants of its pods (want->offers) as far as that needs no call: what
	 * this provider can never have. Each mistake names a key (err_about()). OP_OFFERS fails
	 * with the first one. NULL: nothing to check. */
	int (*check_wishes)(const struct section *conf, const struct op_want *want,
			    struct mistakes *m, struct err *err);
	/* POSIX sh: ends a pod of this vendor from inside, and reports whether that is proven to
	 * work. It is placed above the start script; jobs/agent/CONTROL.md lists what it must
	 * define. NULL: a pod ends when its first process exits, which the switch calls unproven.
	 */
	const char *end_script;
	/* Names the child process whose stdin and stdout are a connection to the sshd of this pod,
	 * which has REACH_DIAL: fills call->argv (CALL_CHILD) and nothing else. Only pod->id, host,
	 * port and user are set. Pure: no I/O. The start script writes `connect` into the pod's
	 * BURST_HOME: run by sh in the pod, it becomes that sshd (jobs/agent/CONTROL.md).
	 * ERR_REFUSED: no pod can have this id. NULL: no pod has REACH_DIAL. */
	int (*dial)(const struct provider *p, const struct pod_view *pod, struct call *call,
		    struct err *err);
	/* What the user must set before the first run, for `burst init --provider`: a line for
	 * people. NULL: nothing. */
	const char *setup;
	/* Its pods may be plain processes on a machine with other users: the start script and the
	 * agent change nothing of the system there. */
	bool shares_machine;
	/* A pod that has not started costs nothing: caps and billed seconds count from
	 * pod_view.started_at_s, which each view of a pod that has started must report. A pod
	 * without it is in the queue, whatever its state says. */
	bool waits_free;
	/* A pod's name works once: an OP_RENT with the name of a pod that exists makes no second
	 * one and answers with that pod. So a create whose reply was lost is sent again. */
	bool create_once;
	/* The least rights that its credentials need, as a file for the vendor's own tool, by
	 * conf's values alone; `burst doctor --rights` prints it. A new string. NULL: the vendor
	 * has no such rights. */
	char *(*rights)(const struct section *conf);
};
/* The text of a pod's first process: the provider's end script, then `script`. A new string. */
char *provider_start_script(const struct provider_ops *ops, const char *script);
/* Files of this volume (NULL: of some) can be fetched, or put there, without a pod. */
bool provider_can_fetch(const struct provider_ops *ops, const struct provider *p,
			const struct volume *v);
bool provider_can_stage(const struct provider_ops *ops, const struct provider *p,
			const struct volume *v);
/* And be removed there. */
bool provider_can_tidy(const struct provider_ops *ops, const struct provider *p,
		       const struct volume *v);
/* Fills `call` with the child process that connects to the sshd of this pod, which has REACH_DIAL.
 * ERR_REFUSED, also where the provider has no such way. */
int provider_dial(const struct provider_ops *ops, const struct provider *p,
		  const struct pod_view *pod, struct call *call, struct err *err);
bool provider_pods_are_free(const struct provider_ops *ops, const struct provider *p);
/* Adds a line to the text of a result of OP_OFFERS if it names no price for some offer; it names
 * the regions of such offers unless no offer has a price. */
void provider_remark_unpriced(const struct provider_ops *ops, const struct provider *p,
			      struct op_result *offers);

/* Looks up the credential for a private image in a key whose items are "ghcr.io/me=NAME": NAME
 * reads images below ghcr.io/me. No other registry gets it, whatever image a project's file names.
 * NULL: no item matches. */
const char *provider_registry_name(const struct section *conf, const char *key, const char *image);
/* What a text of Docker, containerd or a registry means for the pull of an image. */
enum pull_verdict {
	PULL_MAY_WORK, /* as far as the text says */
	PULL_LIMITED,  /* not until a registry's rate limit has passed */
	PULL_HOPELESS, /* on no host, however often it is tried */
};
/* of_a_pull: the text is known to be about one; else it may be any line of a log. */
enum pull_verdict provider_judge_pull(const char *text, bool of_a_pull);
/* Checks the name of an image: parts with "/" between, then ":TAG", "@DIGEST" or both. No part may
 * be ".." or begin with a sign: a registry could take it for another image than the one that its
 * credential is for. */
bool provider_is_image(const char *image);
/* The image that conf's `key` names (absent: fine) is one. group: "pod", for people. */
int provider_check_image(const struct section *conf, const char *group, const char *key,
			 struct err *err);
int provider_check_registries(const struct section *conf, const char *group, const char *key,
			      struct err *err);
/* The same of an https URL; http only on this machine's loopback, since keys travel to it. */
int provider_check_url(const struct section *conf, const char *group, const char *key,
		       struct err *err);
/* That URL without the slashes at its end. A new string. */
char *provider_url_root(const char *url);
/* A list of cards with the dollars that an hour of one costs, like ["L40S=1.95"]. */
int provider_check_prices(const struct section *conf, const char *group, const char *key,
			  struct err *err);
/* The same where a card may stand without a price: ["L40S=1.95", "T4"]. */
int provider_check_cards(const struct section *conf, const char *group, const char *key,
			 struct err *err);
/* The price in such a list for a card of this name, or else for another name of it. 0: none. */
int64_t provider_price_of(const struct section *conf, const char *key, const char *gpu);
/* "burst.cfg:5: providers.runpod.cloud = "X": must be ..." (ERR_CONFIG) */
int provider_bad_value(const struct section *conf, const char *group, const char *key,
		       const char *must, struct err *err);

/* What a provider's check_conf and check_wishes consist of. Both tables end with an empty row. */
struct key_check {
	const char *key;
	int (*check)(const struct section *conf, const char *group, const char *key,
		     struct err *err);
};
int provider_check_keys(const struct key_check *checks, const struct section *conf,
			const char *group, struct mistakes *m, struct err *err);
typedef int want_check(const struct section *conf, const struct op_want *want, struct err *err);
int provider_judge_wishes(want_check *const *checks, const struct section *conf,
			  const struct op_want *want, struct mistakes *m, struct err *err);

/* Names an account: the same for every burst with this secret, without revealing it. A new string.
 */
char *provider_account_name(const char *vendor, const char *secret);

/* The registry (providers/registry.c): NULL-terminated; this program's own, then those that were
 * loaded. cmd/ hands it to the engine. */
extern const struct provider_ops *provider_registry[];
enum { PLUGINS_MAX = 8 };
/* The one of that name; NULL: there is none. */
const struct provider_ops *provider_find(const char *name);

/* A shared object outside the tree offers one vendor: the very struct provider_ops, under this
 * name. It may call what these headers declare (providers/plugin.syms), and is held to the same
 * contract. */
#define PROVIDER_SYMBOL "burst_provider"
/* Adds plug-ins to the registry for the rest of the process. path: absolute paths with ':' between,
 * each an object or a folder, whose NAME.so are taken in order of their names. One that cannot be
 * used is skipped, and a line in `bad` names it and the reason. */
void providers_load(const char *path, struct str *bad);

#endif
