/* zip.h - reads members of a zip file that lies in memory. Nothing is written to a disk. */
#ifndef BURST_JOBS_TTS_ZIP_H
#define BURST_JOBS_TTS_ZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* A zip file that names more members than this is refused. */
#define ZIP_MEMBERS_MOST 65536

struct zip_member {
	const char *name; /* as in the zip file, byte by byte, in UTF-8 */
	size_t most;      /* a longer member is an error */
	bool found;
	struct str bytes;
};

/* Unpacks these members in one pass and leaves `found` false for those that are absent. Of two
 * members with one name, the first counts. all_bytes: limit for their sum. ERR_CONFIG: the bytes
 * are no zip file, are damaged, need a password, or exceed a limit. ERR_LOCAL: libarchive is
 * missing. */
int zip_read(const void *zip, size_t len, struct zip_member *members, size_t count,
	     size_t all_bytes, struct err *err);
void zip_members_free(struct zip_member *members, size_t count); /* their bytes */

#endif
