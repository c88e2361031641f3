/* send.c - `send`: files of the volume, requested line by line. */
#include "send.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "files.h"
#include "json.h"

static void send_error(const char *path, const char *error)
{
	struct str b = {0};
	str_addc(&b, '{');
	js_text(&b, "path", path);
	js_text(&b, "error", error);
	str_add(&b, "}\n");
	fd_write_all(1, b.s, b.len);
	str_free(&b);
}

static int send_header(const char *path, int64_t offset, int64_t bytes)
{
	struct str b = {0};
	str_addc(&b, '{');
	js_text(&b, "path", path);
	js_int(&b, "offset", offset);
	js_int(&b, "bytes", bytes);
	str_add(&b, "}\n");
	int failed = fd_write_all(1, b.s, b.len);
	str_free(&b);
	return failed;
}

/* Retries a read that a network volume fails for a moment. *tries: retries left for the whole file.
 */
static ssize_t read_patiently(int fd, void *to, size_t len, int64_t offset, int *tries)
{
	ssize_t n;
	while ((n = pread(fd, to, len, offset)) < 0 && (*tries)-- > 0)
		if (errno != EINTR)
			nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
	return n;
}

int send_bytes(int fd, int64_t offset, int64_t left)
{
	char *part = xcalloc(1, SLICE);
	int failed = 0, tries = 20;
	posix_fadvise(fd, offset, left, POSIX_FADV_SEQUENTIAL);
	while (left > 0 && !failed) {
		size_t most = (size_t)MIN(left, (int64_t)SLICE);
		ssize_t n = read_patiently(fd, part, most, offset, &tries);
		if (n <= 0) {
			memset(part, 0, most);
			n = (ssize_t)most;
		}
		failed = fd_write_all(1, part, (size_t)n);
		offset += n;
		left -= n;
	}
	free(part);
	return failed;
}

static int send_file(const struct place *place, const struct json *ask)
{
	const char *path = json_text(ask, "path", "");
	int64_t offset = MAX(json_int(ask, "offset", 0), (int64_t)0),
		length = json_int(ask, "length", -1);
	char *full = on_volume(place, path);
	int fd = *path ? open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	int saved = errno, result = 0;
	struct stat st;
	free(full);
	if (fd < 0) {
		send_error(path, *path ? strerror(saved) : "no path was given");
	} else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		send_error(path, "not a plain file");
	} else {
		int64_t rest = MAX((int64_t)st.st_size - offset, (int64_t)0);
		length = length < 0 ? rest : MIN(length, rest);
		result =
			send_header(path, offset, length) < 0 ? -1 : send_bytes(fd, offset, length);
	}
	close_fd(&fd);
	return result;
}

int send_lines(const struct place *place, struct str *in)
{
	char *nl;
	while (in->len && (nl = memchr(in->s, '\n', in->len))) {
		struct json_doc doc;
		int failed = send_file(place, json_read(&doc, in->s, (size_t)(nl - in->s)));
		json_free(&doc);
		if (failed)
			return -1;
		str_drop(in, (size_t)(nl - in->s) + 1);
	}
	return in->len > LINE_MAX_BYTES ? -1 : 0;
}

int agent_send(void)
{
	struct place place = {0};
	struct str in = {0};
	char part[16 << 10];
	ssize_t n;
	int failed = 0;
	place_load(&place);
	signal(SIGPIPE, SIG_IGN);
	while (!failed && (n = read(0, part, sizeof(part))) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			str_addn(&in, part, (size_t)n);
		failed = send_lines(&place, &in) < 0;
	}
	str_free(&in);
	place_free(&place);
	return failed ? 1 : 0;
}
