/* size.c - measures the input of a command: bytes, lines or files */
#include "size.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/pattern.h"
#include "base/str.h"

enum { DEPTH_MAX = 32 };

static const char *const names[] = {
	[SIZE_BYTES] = "bytes",
	[SIZE_LINES] = "lines",
	[SIZE_FILES] = "files",
	[SIZE_NUMBER] = "units",
};

const char *size_unit_name(enum size_unit unit)
{
	return names[unit];
}

enum size_unit size_parse(const char *text, const char **of, double *number)
{
	char *end;

	*of = NULL;
	*number = strtod(text, &end);
	if (text[0] >= '0' && text[0] <= '9' && !*end)
		return *number > 0 && *number <= 1e15 ? SIZE_NUMBER : SIZE_NONE;
	for (int unit = SIZE_BYTES; unit <= SIZE_FILES; unit++) {
		size_t len = strlen(names[unit]);
		if (strncmp(text, names[unit], len) != 0 || !starts_with(text + len, " of "))
			continue;
		*of = text + len + strlen(" of ");
		return path_is_safe(*of) ? (enum size_unit)unit : SIZE_NONE;
	}
	return SIZE_NONE;
}

struct measuring {
	enum size_unit unit;
	const char *of;
	double amount;
	size_t files;
};

/* Counts lines; a last one without an end counts, too. */
static int add_lines(struct measuring *m, int fd)
{
	static const size_t room = 1 << 16;
	CLEANUP(free_text) char *buffer = xmalloc(room);
	char last = '\n';
	ssize_t n;

	while ((n = read(fd, buffer, room)) > 0) {
		for (const char *at = buffer; (at = memchr(at, '\n', (size_t)(buffer + n - at)));
		     at++)
			m->amount++;
		last = buffer[n - 1];
	}
	m->amount += last != '\n';
	return n < 0 ? -1 : 0;
}

static int add_file(struct measuring *m, int folder, const char *name, const char *path,
		    const struct stat *st, struct err *err)
{
	if (!S_ISREG(st->st_mode) || !pattern_match(m->of, path))
		return 0;
	m->files++;
	if (m->unit == SIZE_BYTES)
		m->amount += (double)st->st_size;
	if (m->unit == SIZE_FILES)
		m->amount++;
	if (m->unit != SIZE_LINES)
		return 0;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int status = fd < 0 ? -1 : add_lines(m, fd);
	if (status < 0)
		err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	fd_close(fd);
	return status;
}

/* Whether a folder may lead to a match: the pattern up to the last '/' before its first star begins
 * with its path, or the folder is below that. */
static bool may_match_below(const char *pattern, const char *folder)
{
	size_t fixed = strcspn(pattern, "*?[\\"), len = strlen(folder);

	while (fixed && pattern[fixed - 1] != '/')
		fixed--;
	return !strncmp(pattern, folder, MIN(fixed, len)) && (len >= fixed || pattern[len] == '/');
}

/* Adds what is below an open folder, whose path is `below`, and closes its descriptor. */
static int add_folder(struct measuring *m, int folder, const char *below, int depth,
		      struct err *err)
{
	DIR *dir = depth <= DEPTH_MAX ? fdopendir(folder) : NULL;
	struct dirent *entry;
	struct stat st;
	int status = 0;

	while (dir && status == 0 && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		if (!strcmp(name, ".") || !strcmp(name, "..") ||
		    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		CLEANUP(free_text)
		char *path = *below ? xasprintf("%s/%s", below, name) : xstrdup(name);
		if (!S_ISDIR(st.st_mode)) {
			status = add_file(m, folder, name, path, &st, err);
			continue;
		}
		if (!may_match_below(m->of, path))
			continue;
		int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		status = next < 0 ? 0 : add_folder(m, next, path, depth + 1, err);
	}
	if (dir)
		closedir(dir);
	else
		fd_close(folder);
	return status;
}

int size_measure(enum size_unit unit, const char *dir, const char *of, double *amount,
		 struct err *err)
{
	struct measuring m = {.unit = unit, .of = of};
	int folder = path_open_dir(dir);

	if (folder >= 0 && add_folder(&m, folder, "", 0, err) < 0)
		return -1;
	if (!m.files || m.amount <= 0)
		return err_set(err, ERR_CONFIG,
			       m.files ? "the files of \"%s\" are empty" : "no file matches \"%s\"",
			       of);
	*amount = m.amount;
	return 0;
}
