/* ids.h - which users of this machine a pod's users are. */
#ifndef BURST_PROVIDERS_LOCAL_IDS_H
#define BURST_PROVIDERS_LOCAL_IDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* A pod started by root gets users of its own: 0 to count-1 inside are first to first+count-1 on
 * this machine, which no account has. A pod started by an ordinary user has that user alone: count
 * is 0. */
struct pod_ids {
	uid_t first;
	unsigned count;
};

/* ERR_LOCAL if this is root and has no users to give. */
int ids_choose(struct pod_ids *ids, struct err *err);
/* Of the text of /proc/self/uid_map: what root may give to pods; false if it has nothing. */
bool ids_choose_from(const char *uid_map, struct pod_ids *ids);

/* A user namespace with these ids, as a descriptor. Call it before unshare(CLONE_NEWPID). */
int ids_make_namespace(const struct pod_ids *ids, int *fd, struct err *err);
/* Puts this process into that namespace as its root; it has no right outside it afterwards. */
int ids_enter_namespace(int fd, struct err *err);
/* The same for an ordinary user: a new namespace with that user alone, under the same number. */
int ids_enter_own_namespace(struct err *err);

/* Maps a user or group of this machine to the pod's with the same number inside, or to the pod's
 * root if there is none. An id of the pod's stays as it is. */
uid_t ids_given(const struct pod_ids *ids, uid_t id);
/* Gives a new file to the pod's root; no effect where the pod has the caller's own user. */
int ids_give(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives a folder and all below it to the pod's users, each file as ids_given() says. Follows no
 * link. Does nothing if one of the pod's users owns the folder itself. */
int ids_give_tree(const struct pod_ids *ids, const char *path, struct err *err);
/* Gives root the folder itself again, so that the next ids_give_tree() looks at everything below
 * it. */
int ids_take_back(const char *path, struct err *err);

#endif
