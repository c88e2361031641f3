/* receive_folder.c - opens the folder of an output without following a link. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "receive_impl.h"

/* The name is too long for this machine, or something else has it. Neither another pod nor the end
 * of the run would help: only this output fails. */
static bool is_name_errno(int why)
{
	return why == ENAMETOOLONG || why == EILSEQ || why == EINVAL || why == ENOTDIR ||
	       why == EISDIR || why == ELOOP || why == ENOTEMPTY || why == EEXIST;
}

int receive_name_error(const struct receive *r, const char *what, struct err *err)
{
	return err_set(err, is_name_errno(errno) ? ERR_JOB : ERR_LOCAL, "%s: %s: %s", r->path, what,
		       strerror(errno));
}

/* Opens one folder below dir, and makes it if it is missing. What has its name must be a folder, no
 * link. */
static int enter_folder(int dir, const char *name, const char *shown, struct err *err)
{
	bool made = mkdirat(dir, name, 0777) == 0;

	if (!made && errno != EEXIST)
		return err_set(err, is_name_errno(errno) ? ERR_JOB : ERR_LOCAL,
			       "%s: cannot make folder: %s", shown, strerror(errno));
	if (made)
		/* Some file systems refuse it. The fsync that counts follows the rename. */
		(void)fsync(dir);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_JOB, "%s: leads through something that is not a folder",
			       shown);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", shown, strerror(errno));
	return fd;
}

int receive_folder(const char *output_dir, const char *name, struct err *err)
{
	int dir = path_open_dir(output_dir);

	if (dir < 0 && errno == ENOENT && path_mkdirs(output_dir, 0777, err) < 0)
		return -1;
	if (dir < 0)
		dir = path_open_dir(output_dir);
	if (dir < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", output_dir, strerror(errno));
	for (const char *slash; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		CLEANUP(free_text) char *part = xstrndup(name, (size_t)(slash - name));
		CLEANUP(free_text) char *shown = path_join(output_dir, part);
		int next = enter_folder(dir, part, shown, err);
		close(dir);
		dir = next;
	}
	return dir;
}
