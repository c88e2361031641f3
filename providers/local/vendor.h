/* vendor.h - what the files of the local vendor share: records, processes, users, volumes */
#ifndef BURST_PROVIDERS_LOCAL_VENDOR_H
#define BURST_PROVIDERS_LOCAL_VENDOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "local.h"
#include "providers/wire.h"

/* ---- process ----
 * Identifies processes of this machine, so that a reused pid is never mistaken for the intended
 * process. */

struct process {
	pid_t pid;      /* 0: none */
	uint64_t start; /* start time in clock ticks since boot; with the pid, unique until the next
			   boot */
	char boot[40];  /* the kernel's boot id */
};

/* Identifies a running process. The result's pid is 0 if it does not run. */
struct process process_of(pid_t pid);
/* Sends the signal to exactly this process. -1: it is gone. */
int process_signal(const struct process *p, int sig);
/* Waits at most ms for its end. Returns true once it has ended. */
bool process_wait_end(const struct process *p, int64_t ms);

/* Kills and reaps everything below the calling process, which must be a child subreaper. Repeats
 * until nothing is left, since processes may fork meanwhile. Returns -1 if one still runs after ms.
 */
int process_kill_below(int64_t ms);
/* Kills processes of other parents: those whose initial environment has this "NAME=value", and all
 * below them. Needed if both supervisors of a pod were killed. Returns -1 if one still runs after
 * ms. */
int process_kill_by_env(const char *assignment, int64_t ms);

/* Closes every descriptor from 3 on except the listed ones. Ignores entries of -1. */
void process_close_all_but(const int *keep, int count);

enum { GROUP_MAX = 256 }; /* of a control group's path, as /proc/PID/cgroup has it */

/* ---- record ----
 * What the local vendor remembers of its pods.
 *
 * STATE/local/lock held briefly by each command that rents, lists or settles STATE/local/pods/ID/
 * a pod that has not ended: pod.json, alive (locked by its supervisor for as long as it lives),
 * log (what the start script prints), scratch/ (its disk) STATE/local/ended/ID.* what is left of
 * it: .json for the bill, .log for the user; pruned after 30 days STATE/volumes/NAME/ volumes
 *
 * A record has one writer: the process that holds the lock on `alive`. Files are replaced by
 * rename but not fsynced: a machine that loses its power loses the pods as well. */

struct pod_record {
	struct pod_view view; /* its times stay 0; record_answer() computes its state */
	int64_t created_ms, started_ms, ended_ms;
	struct process supervisor, init;
	char volume[64];
	bool namespaces;       /* else a process group */
	char group[GROUP_MAX]; /* its control group; "": it has none of its own */
	int gpus;              /* that it has to itself; 0: it takes one of the machine's slots */
	bool retired; /* only the record is left; an ended pod counts as stopped until then, not as
			 gone */
};

struct store {
	char *dir;     /* STATE/local */
	char *volumes; /* STATE/volumes */
};

/* Makes the folders. cloud_store_close() frees the store. */
int cloud_store_open(struct store *store, const char *state_dir, struct err *err);
void cloud_store_close(struct store *store);
/* Waits for the store's lock. The caller closes *fd. */
int store_lock(const struct store *store, int *fd, struct err *err);

/* The pod's id: the same for the same name, so that no name is used twice. The caller frees it. */
char *record_id_of_name(const char *name);
bool record_is_id(const char *id);
/* Paths of a living pod's folder and of a file in it. The caller frees them. */
char *record_dir(const struct store *store, const char *id);
char *record_path(const struct store *store, const char *id, const char *file);
/* STATE/local/ended/ID.SUFFIX. The caller frees it. */
char *record_ended_path(const struct store *store, const char *id, const char *suffix);

/* Makes a new pod's folder and record and claims `alive`. The caller closes *alive. ERR_REFUSED if
 * the name was used. */
int record_create(const struct store *store, const struct pod_record *record, int *alive,
		  struct err *err);
/* Replaces the record of a living pod. */
int record_save(const struct store *store, const struct pod_record *record, struct err *err);
/* Loads the record of a living or an ended pod. ERR_NOT_FOUND. */
int record_load(const struct store *store, const char *id, struct pod_record *record,
		struct err *err);
/* Takes the lock on `alive`: *fd >= 0, or -1 if another process holds it. */
int record_claim(const struct store *store, const char *id, int *fd, struct err *err);
/* Keeps record and log in ended/ and deletes the pod's folder. Call with `alive` claimed and
 * ended_ms set. */
int record_retire(const struct store *store, const struct pod_record *record, struct err *err);
/* Deletes a tree, even if the pod left folders that their owner cannot enter. */
int record_remove_tree(const char *path, struct err *err);

/* Ids of living pods. NULL-terminated; free with record_free_ids(). NULL and ERR_LOCAL if their
 * folder cannot be read: that must not pass for "no pods". */
char **record_living(const struct store *store, struct err *err);
/* The same of pods that ended at most this long ago; for people alone, so that a folder that cannot
 * be read counts as empty. */
char **record_ended(const struct store *store, int64_t within_ms);
void record_free_ids(char **ids);
/* Deletes what is left of pods that ended longer ago. */
void record_prune(const struct store *store, int64_t older_than_ms);

/* The record as a JSON object: the view with its current state, and the vendor's private data. */
json_t *record_to_json(const struct pod_record *record);
/* Reads a record that record_to_json() wrote. ERR_BUG: it is none. */
int record_from_json(const json_t *from, struct pod_record *record, struct err *err);

DEFINE_CLEANUP(record_free_ids, char **)

/* ---- files: volumes of the local vendor: folders, and access to their files without a pod ---- */

enum volume_missing { VOLUME_MUST_EXIST, VOLUME_MAKE_MISSING };
/* 0: the volume exists now. ERR_NOT_FOUND, ERR_CONFIG (an unsafe name). */
int volume_ensure(const struct store *store, const char *name, enum volume_missing missing,
		  struct err *err);
/* Removes the volume with all in it. ERR_NOT_FOUND. */
int volume_remove(const struct store *store, const char *name, struct err *err);
/* Returns an array of {"name","used_bytes"}; used_bytes are bytes on disk. */
json_t *volume_list(const struct store *store);

/* Copy one file and follow no link in the path: a pod may have put links there. max 0: no limit.
 * *moved: bytes copied. stage reads stdin, writes under another name, syncs and renames;
 * ERR_REFUSED if more than max bytes arrive, ERR_TRANSIENT if fewer than least. fetch writes at
 * most max bytes from offset on to stdout. */
int volume_stage(const struct store *store, const char *name, const char *path, int64_t least,
		 int64_t max, int64_t *moved, struct err *err);
int volume_fetch(const struct store *store, const char *name, const char *path, int64_t offset,
		 int64_t max, int64_t *moved, struct err *err);

/* Returns an array of {"name","folder","bytes","files","changed_s"}, one for each entry of the
 * folder; a folder's numbers include all below it. Follows no link. ERR_NOT_FOUND if the folder is
 * missing. */
int volume_measure_folder(const struct store *store, const char *name, const char *path,
			  json_t **out, struct err *err);
/* Removes a file, or a folder with all below it. Succeeds if it is missing. */
int volume_delete(const struct store *store, const char *name, const char *path, struct err *err);

/* ---- gpus: the GPUs of this machine, each for one pod at a time ---- */

enum { GPUS_MOST = 64 };
enum card_state {
	CARD_FREE,
	CARD_LOCKED, /* a pod has it, of any user of this machine */
	CARD_USED,   /* a program that is no pod computes on it */
};
struct card {
	char uuid[64], model[GPU_MAX]; /* as nvidia-smi prints them */
	int64_t memory_mib;
	enum card_state state;
};
/* Lists the GPUs; none without nvidia-smi. Free *out with gpus_free(). */
int gpus_list(struct card **out, size_t *count, struct err *err);
void gpus_free(struct card *cards); /* accepts NULL */
DEFINE_CLEANUP(gpus_free, struct card *)

/* GPUs that no other pod gets while the locks are open: flock on /tmp/burst-gpu-UUID. */
struct gpu_claim {
	struct card cards[GPUS_MOST];
	int locks[GPUS_MOST];
	int count;
};
/* Claims so many free GPUs of this model. ERR_NO_CAPACITY: they are taken; ERR_REFUSED: this
 * machine never had so many. */
int gpus_claim(const char *model, int count, struct gpu_claim *claim, struct err *err);
/* Gives them back and removes their lock files. */
void gpus_unclaim(struct gpu_claim *claim);
/* The UUIDs with "," between. The caller frees it. */
char *gpus_visible(const struct gpu_claim *claim);

/* ---- group: control groups of pods on a host, which the user's systemd makes ---- */

struct group_kind {
	bool works;
	bool bounds_memory;
	bool knows_oom; /* running out of memory can end one process instead of the whole group */
};
/* Makes a group and ends it. The groups outlive all logins of the user. ERR_NOT_FOUND: there is no
 * systemd that could make groups; ERR_CONFIG: it would end them with the user's last login;
 * ERR_LOCAL: it refuses. Sets XDG_RUNTIME_DIR. */
int group_try(struct group_kind *out, struct err *err);
/* Whether logind ends processes without a group of their own with the login that started them. */
bool group_logind_kills(void);
/* Becomes `burst-host supervise STATE_DIR PLAN` in a new group for this pod, with all descriptors
 * that stay open over an exec. Exits if that fails; the reason goes to stderr. memory_gb 0: no
 * bound. */
void group_become(const struct group_kind *kind, const struct pod_record *record, int64_t memory_gb,
		  const char *state_dir, int plan);
/* The group that group_become() has made for this process; "": none. */
void group_find_own(char group[GROUP_MAX]);
/* Whether the kernel bounds the memory of that group. */
bool group_bounds_memory(void);
/* Kills all processes in the group except the calling one. Does nothing with a group that is no
 * pod's. -1: one still runs after ms. */
int group_kill(const char *group, int64_t ms);

/* ---- pod: starts and ends a pod's supervisor and first process ---- */

struct pod_plan {
	const struct wire_conf *conf;
	const char *script;      /* a POSIX shell script */
	const json_t *env;       /* object of texts */
	const char *mount;       /* absolute path of the volume in the pod */
	struct gpu_claim claim;  /* empty: the pod has all GPUs of this machine, or none */
	struct group_kind group; /* works: the supervisor gets a control group */
};

/* Starts the supervisor of a new pod: a process in its own session that holds `alive`. Returns once
 * the record names it; the supervisor records the rest. The caller holds the store's lock and then
 * closes its own copy of alive. ERR_LOCAL if it did not start; nothing runs then. */
int pod_launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	       int alive, struct err *err);

/* The rest of pod_launch() in the program that group_become() has started: reads the plan from the
 * descriptor and supervises the pod. Returns an exit status. */
int pod_supervise(const struct store *store, int plan);

/* Ends the pod and everything in it. Waits until its processes are gone and its scratch folder is
 * removed. Succeeds if it has ended already. ERR_TRANSIENT if one of its processes still runs. */
int pod_release(const struct store *store, const char *id, struct err *err);

/* Settles a record whose supervisor may have ended: kills remaining processes, sets the end,
 * retires the record. The caller holds the store's lock. Does nothing if the supervisor runs. */
int pod_settle(const struct store *store, const char *id, struct err *err);

/* ---- ids: maps a pod's users to users of this machine ---- */

/* A pod started by root has users of its own: 0 to count-1 inside are first to first+count-1 on
 * this machine, which have no accounts. A pod started by an ordinary user has only that user: count
 * is 0. */
struct pod_ids {
	uid_t first;
	unsigned count;
};

/* ERR_LOCAL if root started burst and has no users to give. */
int ids_choose(struct pod_ids *ids, struct err *err);
/* Chooses from the text of /proc/self/uid_map. False: root has no users to give. For tests. */
bool ids_choose_from(const char *uid_map, struct pod_ids *ids);

/* Makes a user namespace with these ids, *fd. Call before unshare(CLONE_NEWPID). */
int ids_make_namespace(const struct pod_ids *ids, int *fd, struct err *err);
/* Enters that namespace as its root. The process then has no rights outside it. */
int ids_enter_namespace(int fd, struct err *err);
/* Enters a new namespace with only the calling ordinary user, under the same number. */
int ids_enter_own_namespace(struct err *err);

/* Maps a user or group of this machine to the pod's with the same number inside, or to the pod's
 * root if there is none. Keeps an id of the pod's. */
uid_t ids_map_to_pod(const struct pod_ids *ids, uid_t id);
/* Gives a new file to the pod's root. Does nothing if the pod has only the caller's user. */
int ids_give_file(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives a folder and all below it to the pod's users, each file by ids_given(). Follows no link.
 * Does nothing if one of the pod's users owns the folder already. */
int ids_give_tree(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives the folder itself back to root, so that the next ids_give_tree() examines all below it. */
int ids_take_back(const char *path, struct err *err);

/* ---- account: the name and home of a pod's user ---- */

/* Name of the user inside a pod in namespaces: root, or "pod" for an ordinary user. */
const char *account_in_pod(void);
const char *account_home_in_pod(void);

/* Name of this machine's user, who runs a pod that is a process group. Static. */
const char *account_name(void);
/* Returns whether sshd can run commands for that user: the password file names a shell. */
bool account_has_shell(void);

#endif
