/* record.h - what the local vendor remembers of its pods.
 *
 *	STATE/local/lock	held briefly by each command that rents, lists or settles
 *	STATE/local/pods/ID/	a pod that has not ended: pod.json, alive (locked by its supervisor
 *				for as long as it lives), log (what the start script prints),
 *				scratch/ (its disk)
 *	STATE/local/ended/ID.*	what is left of it: .json for the bill, .log for the user; pruned
 *				after 30 days
 *	STATE/volumes/NAME/	volumes
 *
 * A record has one writer: the process that holds the lock on `alive`. Files are replaced by rename
 * but not fsynced: a machine that loses its power loses the pods as well. */
#ifndef BURST_PROVIDERS_LOCAL_RECORD_H
#define BURST_PROVIDERS_LOCAL_RECORD_H

#include "process.h"
#include "wire.h"

struct pod_record {
	struct pod_view view; /* its times stay 0; record_answer() computes its state */
	int64_t created_ms, started_ms, ended_ms;
	struct process supervisor, init;
	char volume[64];
	bool namespaces; /* else a process group */
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

/* The pod's id: the same for the same attempt name, so that no name is used twice. The caller frees
 * it. */
char *record_id(const char *name);
bool record_id_ok(const char *id);
/* Paths of a living pod's folder and of a file in it. The caller frees them. */
char *record_dir(const struct store *store, const char *id);
char *record_path(const struct store *store, const char *id, const char *file);
/* STATE/local/ended/ID.SUFFIX. The caller frees it. */
char *record_ended_path(const struct store *store, const char *id, const char *suffix);

/* Makes a new pod's folder and record and claims `alive`. The caller closes *alive. ERR_REFUSED if
 * the name was used. */
int record_create(const struct store *store, const struct pod_record *record, int *alive,
		  struct err *err);
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

/* Ids of living pods, or of pods that ended at most this long ago. NULL-terminated; free with
 * record_free_ids(). */
char **record_living(const struct store *store);
char **record_ended(const struct store *store, int64_t within_ms);
void record_free_ids(char **ids);
void record_prune(const struct store *store, int64_t older_than_ms);

/* The record as a JSON object: the view with its current state, and the vendor's private data. */
json_t *record_answer(const struct pod_record *record);
int record_read(const json_t *from, struct pod_record *record, struct err *err);

DEFINE_CLEANUP(record_free_ids, char **)

#endif
