/* receive_impl.h - the state of one fetched output, for the files receive*.c. */
#ifndef BURST_SYNC_RECEIVE_IMPL_H
#define BURST_SYNC_RECEIVE_IMPL_H

#include <sys/stat.h>

#include "base/crypto.h"
#include "receive.h"

struct receive {
	/* receive_open.c */
	char *output_dir, *name; /* as the caller gave them */
	char *path, *part_path;  /* full: for messages, and for the job's check of the file */
	char *base, *part;       /* names inside the folder */
	char sha256[SHA256_HEX];
	int64_t bytes; /* as announced */
	bool resumed;  /* the part holds bytes of an earlier attempt */

	/* receive.c */
	int64_t offset;      /* length of the prefix that is here */
	struct sha256 *hash; /* of that prefix */
	bool poisoned;       /* the bytes are wrong: no attempt may continue them */

	/* receive_end.c */
	int dir, fd; /* -1: closed */
	bool verified, kept;
	bool rests;      /* verified, and both descriptors are closed */
	struct stat was; /* while it rests: the file that was verified */
};

/* receive_folder.c. Returns a descriptor of the folder that output_dir/name belongs into, the
 * caller's to close; it makes what is missing. -1: ERR_JOB if the name cannot exist here, else
 * ERR_LOCAL. */
int receive_folder(const char *output_dir, const char *name, struct err *err);
/* Reports errno of a call that used the final name: ERR_JOB if it is about the name, else
 * ERR_LOCAL. Returns -1. */
int receive_name_error(const struct receive *r, const char *what, struct err *err);

/* receive.c. Reports errno of a call that used the part: ERR_LOCAL. Returns -1. */
int receive_local_error(const struct receive *r, const char *what, struct err *err);
/* Restarts r->hash with the first `bytes` of the file. ERR_LOCAL. */
int receive_hash_prefix(struct receive *r, int64_t bytes, struct err *err);

#endif
