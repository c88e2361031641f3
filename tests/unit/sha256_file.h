/* sha256_file.h - the hash of a file under its name. burst itself hashes open files only, so that
 * nothing is swapped between the look and the read. */
#ifndef BURST_TESTS_SHA256_FILE_H
#define BURST_TESTS_SHA256_FILE_H

#include <errno.h>
#include <fcntl.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/mem.h"

static inline int sha256_file(const char *path, char hex[SHA256_HEX], int64_t *out_bytes,
			      struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", path,
			       strerror(errno));
	return sha256_fd(fd, hex, out_bytes) < 0
		       ? err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno))
		       : 0;
}

#endif
