/* receive.h - how one output comes home: into NAME.part, verified, fsynced, then renamed into
 * place.
 *
 * The other side is not trusted: its name must be path_is_safe() and folders are made below the
 * output folder without following symlinks; no byte more than announced is written; a file gets its
 * final name only with the announced length and hash. All functions block on the local disk: call
 * them in a worker thread.
 *
 *     receive_open, then ask the pod for bytes from receive_offset() on
 *     receive_add ...
 *     receive_finish, then have receive_part_path() checked where the job wants that
 *     receive_keep
 *     receive_drop
 *
 * NAME.part always holds a prefix of the file, so a later receive_open() of the same name goes on
 * from its end. */
#ifndef BURST_SYNC_RECEIVE_H
#define BURST_SYNC_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct receive;

/* Opens (or makes) output_dir/name.part; the hash of what an earlier try left in it is computed
 * here. output_dir is ours and made if missing; name, bytes and sha256 (64 lower-case hex digits)
 * are foreign: ERR_UNTRUSTED when they are not fit for use (also: a name that ends in ".part").
 * ERR_JOB: the output folder has no place for that name: it leads through a symlink or a plain file
 * there, or is too long. ERR_BUSY: the same name is being received already. ERR_LOCAL: this
 * machine. End it with receive_drop(). */
int receive_open(struct receive **out, const char *output_dir, const char *name, int64_t bytes,
		 const char *sha256, struct err *err);
/* The first byte that is still missing: what to ask the pod for. Equal to `bytes` when all is here
 * already. */
int64_t receive_offset(const struct receive *r);
int64_t receive_bytes(const struct receive *r); /* as announced */

/* The next bytes in order. ERR_UNTRUSTED: more than announced (nothing of it is written, the part
 * is dropped later). ERR_LOCAL: disk full or the like, naming the file; what was written before is
 * kept for a later try. */
int receive_add(struct receive *r, const void *bytes, size_t len, struct err *err);
/* Bytes of a range, for big files over several sessions: any order, from several threads at once,
 * each range once. Not to be mixed with receive_add() on the same receive. The file is called
 * NAME.split meanwhile. Same errors. */
int receive_add_at(struct receive *r, int64_t offset, const void *bytes, size_t len,
		   struct err *err);
/* A fair division of what is missing: the start and length of part `index` of `parts`, in multiples
 * of 1 MiB but the last. */
void receive_range(const struct receive *r, int index, int parts, int64_t *offset, int64_t *length);

/* All bytes are here: checks length and hash and fsyncs. The file stays under its .part name.
 * ERR_TRANSIENT: bytes are missing (ask for more), or a part kept from an earlier try does not fit
 * (it is dropped; open again and ask for all). ERR_UNTRUSTED: what the pod sent is not what it
 * announced; the part is dropped. */
int receive_finish(struct receive *r, struct err *err);
/* After receive_finish(), for one that is to wait before it is kept: closes its descriptors, of
 * which it has two. It is opened again where it is kept or dropped, and must then still be the very
 * file that was verified. */
void receive_rest(struct receive *r);
/* For others to read it by, whatever stands at that path by now: a name of its descriptor. */
void receive_open_path(const struct receive *r, char to[32]);
/* output_dir/name.part, and the final path; borrowed. */
const char *receive_part_path(const struct receive *r);
const char *receive_path(const struct receive *r);
/* After receive_finish(): renames into place (replacing a file of that name) and fsyncs the folder.
 * Now the file is safe. */
int receive_keep(struct receive *r, struct err *err);
/* All of them; the folder of those in a row that share one is fsynced once. */
int receive_keep_all(struct receive *const *list, size_t count, struct err *err);
/* Ends it and frees r, whatever happened before. Not kept yet: the part is removed, or left for a
 * later try where that can help (keep_part, and its bytes are not known to be wrong). NULL is fine.
 */
void receive_drop(struct receive *r, bool keep_part);

#endif
