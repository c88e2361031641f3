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
	struct pod_view view; /* its times stay 0; its state is computed by record_answer() */
	int64_t created_ms, started_ms, ended_ms;
	struct process supervisor, init;
	char volume[64];
	bool namespaces; /* else a process group */
	bool retired; /* nothing is left of it but this; until then an ended pod counts as stopped,
			 not as gone */
};

struct store {
	char *dir;     /* STATE/local */
	char *volumes; /* STATE/volumes */
};

/* Makes the folders. cloud_store_close() frees. */
int cloud_store_open(struct store *store, const char *state_dir, struct err *err);
void cloud_store_close(struct store *store);
/* Waits for the store's lock; *fd is to be closed. */
int store_lock(const struct store *store, int *fd, struct err *err);

/* The id of the pod that an attempt's name makes: the same for the same name, so that no name is
 * used twice. To be freed. */
char *record_id(const char *name);
bool record_id_ok(const char *id);
/* Paths of a living pod's folder, and of a file in it. To be freed. */
char *record_dir(const struct store *store, const char *id);
char *record_path(const struct store *store, const char *id, const char *file);
/* STATE/local/ended/ID.SUFFIX. To be freed. */
char *record_ended_path(const struct store *store, const char *id, const char *suffix);

/* A new pod's folder with its record, and `alive` claimed: *alive is to be closed. ERR_REFUSED when
 * the name was used. */
int record_create(const struct store *store, const struct pod_record *record, int *alive,
		  struct err *err);
int record_save(const struct store *store, const struct pod_record *record, struct err *err);
/* Of a living or an ended pod. ERR_NOT_FOUND. */
int record_load(const struct store *store, const char *id, struct pod_record *record,
		struct err *err);
/* The lock on `alive`: *fd >= 0 when no other process holds it, else -1. */
int record_claim(const struct store *store, const char *id, int *fd, struct err *err);
/* Keeps record and log in ended/, deletes the pod's folder. Call it with `alive` claimed and
 * ended_ms set. */
int record_retire(const struct store *store, const struct pod_record *record, struct err *err);
/* Deletes a tree even where the pod left folders that their owner may not enter. */
int record_remove_tree(const char *path, struct err *err);

/* Ids of living pods, or of pods that ended at most so long ago. NULL-terminated; free with
 * record_free_ids(). */
char **record_living(const struct store *store);
char **record_ended(const struct store *store, int64_t within_ms);
void record_free_ids(char **ids);
void record_prune(const struct store *store, int64_t older_than_ms);

/* The record as a JSON object: the view with its state now, and what is private to the vendor. */
json_t *record_answer(const struct pod_record *record);
int record_read(const json_t *from, struct pod_record *record, struct err *err);

DEFINE_CLEANUP(record_free_ids, char **)

#endif
