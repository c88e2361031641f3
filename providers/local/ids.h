/* ids.h - maps a pod's users to users of this machine. */
#ifndef BURST_PROVIDERS_LOCAL_IDS_H
#define BURST_PROVIDERS_LOCAL_IDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* A pod started by root has users of its own: 0 to count-1 inside are first to first+count-1 on
 * this machine, which have no accounts. A pod started by an ordinary user has only that user: count
 * is 0. */
struct pod_ids {
	uid_t first;
	unsigned count;
};

/* ERR_LOCAL if root started burst and has no users to give. */
int ids_choose(struct pod_ids *ids, struct err *err);
/* Chooses from the text of /proc/self/uid_map. Returns false if root has no users to give. */
bool ids_choose_from(const char *uid_map, struct pod_ids *ids);

/* Makes a user namespace with these ids; *fd is its descriptor. Call before unshare(CLONE_NEWPID).
 */
int ids_make_namespace(const struct pod_ids *ids, int *fd, struct err *err);
/* Enters that namespace as its root. The process then has no rights outside it. */
int ids_enter_namespace(int fd, struct err *err);
/* Enters a new namespace with only the calling ordinary user, under the same number. */
int ids_enter_own_namespace(struct err *err);

/* Maps a user or group of this machine to the pod's with the same number inside, or to the pod's
 * root if there is none. Keeps an id of the pod's. */
uid_t ids_given(const struct pod_ids *ids, uid_t id);
/* Gives a new file to the pod's root. Does nothing if the pod has only the caller's user. */
int ids_give(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives a folder and all below it to the pod's users, each file by ids_given(). Follows no link.
 * Does nothing if one of the pod's users owns the folder already. */
int ids_give_tree(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives the folder itself back to root, so that the next ids_give_tree() examines everything below
 * it. */
int ids_take_back(const char *path, struct err *err);

#endif
