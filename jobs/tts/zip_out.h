/* zip_out.h - writes a zip file of stored members. */
#ifndef BURST_JOBS_TTS_ZIP_OUT_H
#define BURST_JOBS_TTS_ZIP_OUT_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct zip_out {
	const char *name; /* for messages; borrowed */
	int fd;
	int64_t at; /* bytes so far */
	struct str directory;
	size_t count; /* members */
};

/* Makes the file in the open folder. Free with zip_out_free(), also after an error. All: ERR_LOCAL.
 */
int zip_out_begin(struct zip_out *z, int dir, const char *name, struct err *err);
/* Add a member, whose name must be ASCII: these bytes, or a file of a folder. ERR_JOB: the zip file
 * would be too large. */
int zip_out_add(struct zip_out *z, const char *name, const void *bytes, size_t len,
		struct err *err);
int zip_out_add_file(struct zip_out *z, const char *name, int dir, const char *file,
		     struct err *err);
/* Writes the directory; then the file is complete. */
int zip_out_end(struct zip_out *z, struct err *err);
void zip_out_free(struct zip_out *z);

static inline void zip_out_free_cleanup(struct zip_out *z)
{
	zip_out_free(z);
}

#endif
