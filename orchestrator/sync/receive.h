/* receive.h - writes one fetched output to NAME.part, verifies it, fsyncs it, then renames it into
 * place.
 *
 * The other side is not trusted. Its name must be path_is_safe(), and folders are made below the
 * output folder without following symlinks; no byte more than announced is written; a file gets its
 * final name only with the announced length and hash. All functions block on the local disk: call
 * them in a worker thread. The order of calls: receive_open(); receive_add() with the bytes from
 * receive_offset() on; receive_finish(); the job's check of receive_part_path();
 * receive_keep_all(); receive_drop().
 *
 * NAME.part always holds a prefix of the file, so a later receive_open() of the same name continues
 * at its end. */
#ifndef BURST_SYNC_RECEIVE_H
#define BURST_SYNC_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct receive;

/* Opens (or makes) output_dir/name.part, and hashes what an earlier attempt left in it. output_dir
 * is ours and made if missing. The pod gives name, bytes and sha256 (64 lower-case hex digits):
 * ERR_UNTRUSTED if one is invalid (also: a name that ends in ".part"). ERR_JOB: that name cannot
 * exist in the output folder: it leads through a symlink or a plain file, or is too long. ERR_BUSY:
 * the same name is being received already. ERR_LOCAL: this machine. End it with receive_drop(). */
int receive_open(struct receive **out, const char *output_dir, const char *name, int64_t bytes,
		 const char *sha256, struct err *err);
/* The first missing byte, from which the pod must send. Equal to `bytes` if nothing is missing. */
int64_t receive_offset(const struct receive *r);

/* Writes the next bytes in order. ERR_UNTRUSTED: more than announced (none of them is written, the
 * part is dropped later). ERR_LOCAL, which names the file: the disk is full, or the like; a later
 * attempt continues what was written before. */
int receive_add(struct receive *r, const void *bytes, size_t len, struct err *err);

/* After the last byte: checks length and hash, and fsyncs. The file keeps its .part name.
 * ERR_TRANSIENT: bytes are missing (request more), or the part of an earlier attempt is wrong (it
 * is dropped; open again and request all). ERR_UNTRUSTED: what the pod sent is not what it
 * announced; the part is dropped. */
int receive_finish(struct receive *r, struct err *err);
/* After receive_finish(), for a file that must wait before it is kept: closes its two descriptors.
 * Keeping or dropping opens the file again; it must then still be the one that was verified. */
void receive_close_until_kept(struct receive *r);
/* After receive_finish(), for a file that may be kept although a later one of its name is received
 * first: gives the part another name, and closes it as receive_close_until_kept() does. Only one
 * file of a name may be aside. ERR_LOCAL. */
int receive_set_aside(struct receive *r, struct err *err);
/* Writes "/dev/fd/N", the name of the open file, for a reader who must see this very file whatever
 * has its path by now. */
void receive_open_path(const struct receive *r, char to[32]);
/* output_dir/name.part; borrowed. */
const char *receive_part_path(const struct receive *r);
/* After receive_finish() of each: renames all into place (replacing files of those names) and
 * fsyncs the folders; a folder that consecutive ones share is fsynced once. Afterwards the files
 * survive a crash. */
int receive_keep_all(struct receive *const *list, size_t count, struct err *err);
/* Frees r, whatever happened before. If the file was not kept, removes the part; with keep_part
 * leaves it for a later attempt, unless its bytes are known to be wrong. Accepts NULL. */
void receive_drop(struct receive *r, bool keep_part);

#endif
