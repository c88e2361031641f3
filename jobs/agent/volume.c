/* volume.c - the commands that read and write the volume: `tree`, `copy`, `ls`, `rm` and `send`. */
#include "trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "base/path.h"
#include "files.h"
#include "json.h"

/* ---- `tree` ---- */

enum {
	EXIT_NOT_STAGED = 97,
	EXIT_THERE = 98,
	EXIT_NO_BASE = 99,
};

/* Tells a client that waits for a tree that it is still being built. */
static void report_alive(int signal_number)
{
	static const char line[] = "{\"alive\":true}\n";
	int saved = errno;
	(void)signal_number;
	if (write(1, line, sizeof(line) - 1) < 0)
		errno = saved;
	errno = saved;
}

static void report_alive_regularly(void)
{
	struct sigaction act = {.sa_handler = report_alive, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{ALIVE_MS / 1000, 0}, {ALIVE_MS / 1000, 0}},
		  NULL);
}

static int tree_usage(void)
{
	fprintf(stderr, "usage: burst-agent tree --dir DIR --id NEW [--base OLD] [--lanes | "
			"[--zstd] [--from NAME --parts N "
			"--sha256 HEX]]\n");
	return 2;
}

/* Returns false if the arguments are not valid. */
static bool tree_read_args(int argc, char **argv, struct tree_args *args)
{
	for (int i = 2; i < argc; i++) {
		const char **to = !strcmp(argv[i], "--dir")      ? &args->dir
				  : !strcmp(argv[i], "--id")     ? &args->id
				  : !strcmp(argv[i], "--base")   ? &args->base
				  : !strcmp(argv[i], "--from")   ? &args->from
				  : !strcmp(argv[i], "--parts")  ? &args->parts
				  : !strcmp(argv[i], "--sha256") ? &args->sha256
								 : NULL;
		if (!strcmp(argv[i], "--zstd"))
			args->zstd = true;
		else if (!strcmp(argv[i], "--lanes"))
			args->lanes = true;
		else if (to && i + 1 < argc)
			*to = argv[++i];
		else
			return false;
	}
	bool staged = args->from && args->parts && args->sha256;
	if (!staged && (args->from || args->parts || args->sha256))
		return false;
	return args->dir && path_is_safe(args->dir) && args->id && name_safe(args->id) &&
	       args->id[0] != '.' && (!args->base || name_safe(args->base)) &&
	       !(args->lanes && (args->zstd || staged)) &&
	       (!staged || (name_safe(args->from) && atoi(args->parts) > 0));
}

/* Unpacks one stream on fd. */
static int tree_unpack(struct tar *t, int root, bool zstd, struct listing *listing)
{
	int in = -1, write_end = -1, status = 0;
	if (!zstd)
		return tree_fill(t, 0, NULL, root, listing);
	pid_t pid = make_pipe(&in, &write_end) < 0 ? -1 : unzstd(0, write_end);
	close_fd(&write_end);
	int result = tree_fill(t, in, NULL, root, listing);
	close_fd(&in);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || (result == 0 && status != 0))
		return tar_error(t, "zstd could not unpack the stream");
	return result;
}

static int tree_from_lanes(struct tar *t, int root, const char *id, struct listing *listing)
{
	struct lanes l;
	int status = 0;
	lanes_open(&l, id);
	int result = tree_fill(t, -1, &l, root, listing);
	bool ended = l.ended;
	if (t->merging > 0) {
		close_fd(&t->fd); /* end a child that still writes */
		ended = waitpid(t->merging, &status, 0) == t->merging && status == 0;
	}
	lanes_end(&l, id);
	return ended ? result : tar_error(t, "the stream did not come to its end");
}

/* Unpacks the stream from its source: lanes, parts on the volume, or stdin. */
static int tree_receive(struct tar *t, int root, struct tree_args *args, struct listing *listing)
{
	int status = 0;
	if (args->lanes)
		return tree_from_lanes(t, root, args->id, listing);
	if (!args->from)
		return tree_unpack(t, root, args->zstd, listing);
	pid_t pid = staged_start(args);
	int result = pid < 0 ? tar_error(t, "staged: %s", strerror(errno))
			     : tree_unpack(t, root, args->zstd, listing);
	close(0); /* end a child that still writes */
	if (pid > 0 && (waitpid(pid, &status, 0) < 0 || status != 0)) {
		args->unstaged = true;
		result = tar_error(t, "what was put on the volume is not all there");
	}
	return result;
}

static void sync_in_background(const struct place *place)
{
	if (fork())
		return;
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	volume_flush(place);
	_exit(0);
}

/* Writes the tree's listing into it. A tree whose name is a hash must match it. */
static int tree_finish(struct tar *t, int root, const struct listing *l, struct tree_args *args)
{
	char id[65];
	listing_id(l, id);
	if (sha256_is_hex(args->id) && strcmp(args->id, id)) {
		args->baseless = args->base != NULL;
		return tar_error(t, "what came is not tree %s", args->id);
	}
	return listing_write(l, root) < 0 ? tar_error(t, "%s: %s", LISTING_NAME, strerror(errno))
					  : 0;
}

/* Builds the new tree in `temp`, then renames it. It begins with hard links to the base, if there
 * is one: entries of the stream replace files and never write into one. The stream contains only
 * the differences, so a base that is missing or incomplete counts as none. */
static int tree_build(struct tar *t, int dir, const char *temp, struct tree_args *args)
{
	struct listing listing = {0};
	int root = make_at(dir, temp);
	int failed = root < 0 ? tar_error(t, "%s: %s", args->dir, strerror(errno)) : 0;
	const char *base_id = args->base && sha256_is_hex(args->base) ? args->base : NULL;
	enum taken begun =
		!failed && args->base ? tree_link(dir, args->base, base_id, root, &listing) : TAKEN;
	args->baseless = begun == TAKEN_MISSING || begun == TAKEN_CHANGED;
	if (begun != TAKEN)
		failed = tar_error(t, "cannot begin from %s: %s", args->base,
				   args->baseless ? "files went from it" : strerror(errno));
	if (!failed)
		failed = tree_receive(t, root, args, &listing);
	if (!failed)
		failed = tree_finish(t, root, &listing, args);
	close_fd(&root);
	listing_free(&listing);
	struct stat st;
	if (!failed && renameat(dir, temp, dir, args->id) < 0 &&
	    fstatat(dir, args->id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		failed = tar_error(t, "%s: %s", args->id, strerror(errno));
	if (remove_at(dir, temp) < 0 && !failed)
		failed = tar_error(t, "%s: %s", temp, strerror(errno));
	return failed;
}

/* Returns whether the tree exists. Removes a folder of its name without a listing. Files are
 * compared later, before they run. */
static bool tree_is_there(int dir, const char *id)
{
	struct listing l;
	int root = open_at(dir, id);
	if (root < 0 && errno == ENOENT)
		return false;
	bool there = root >= 0 && (!sha256_is_hex(id) || listing_read(&l, root, id) == 0);
	if (there && sha256_is_hex(id))
		listing_free(&l);
	if (!there)
		set_aside(dir, id);
	close_fd(&root);
	return there;
}

/* Makes the tree unless it exists. Returns the exit status. */
static int tree_make(const struct place *place, int dir, struct tree_args *args)
{
	struct stat st;
	if (tree_is_there(dir, args->id)) {
		staged_remove(args);
		return EXIT_THERE;
	}
	if (args->base &&
	    (fstatat(dir, args->base, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
		return EXIT_NO_BASE;
	/* several pods may build on one volume, so a process id is not unique; sshd passes its
	 * sessions only two folders, so read the attempt from the file */
	const char *attempt = env_get(&place->env, "BURST_ATTEMPT", "");
	char *temp = xasprintf(".%s.%.20s.%d", args->id, attempt, getpid());
	struct tar t = {0};
	remove_at(dir, temp);
	int failed = tree_build(&t, dir, temp, args);
	free(temp);
	if (failed) {
		struct str text = {0};
		js_quote(&text, t.error, strlen(t.error));
		fprintf(stderr, "burst-agent: tree: %.*s\n", (int)text.len - 2, text.s + 1);
		str_free(&text);
		return args->unstaged ? EXIT_NOT_STAGED : args->baseless ? EXIT_NO_BASE : 1;
	}
	staged_remove(args);
	printf("{\"tree\":\"%s\",\"files\":%ld}\n", args->id, t.files);
	fflush(stdout);
	sync_in_background(place);
	return 0;
}

int agent_tree(int argc, char **argv)
{
	struct tree_args args = {0};
	if (!tree_read_args(argc, argv, &args))
		return tree_usage();
	struct place place = {0};
	place_load(&place);
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	args.volume = place.volume;
	CLEANUP(free_text) char *path = on_volume(&place, args.dir);
	mkdirs(place.volume, 0755);
	int volume = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dir = volume < 0 ? -1 : open_folder(volume, args.dir, true);
	int status = 1;
	report_alive_regularly();
	if (dir < 0 || (args.lanes && chdir(place.home) < 0))
		fprintf(stderr, "burst-agent: tree: %s: %s\n", path, strerror(errno));
	else
		status = tree_make(&place, dir, &args);
	close_fd(&dir);
	close_fd(&volume);
	place_free(&place);
	return status;
}

/* ---- `copy`, `ls` and `rm` ---- */

int agent_copy(const char *path, const char *to)
{
	struct place place = {0};
	const char *id = strrchr(path, '/');
	place_load(&place);
	umask(022);
	/* the folder may allow entry but no listing */
	int volume = open(place.volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int into = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC), tree = -1;
	CLEANUP(free_text) char *temp = xasprintf(".burst-copy.%d", getpid());
	enum taken taken = volume < 0 || into < 0 ? TAKEN_FAILED
			   : !path_is_safe(path) || !id || !sha256_is_hex(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(volume, path, id + 1, into, temp);
	if (taken == TAKEN &&
	    ((tree = openat(into, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	     move_over(tree, into) < 0))
		taken = TAKEN_FAILED;
	if (taken != TAKEN)
		fprintf(stderr, "burst-agent: copy: %s: %s\n", path,
			taken == TAKEN_MISSING   ? "it is not there"
			: taken == TAKEN_CHANGED ? "it is not what was put there"
						 : strerror(errno));
	if (into >= 0)
		remove_at(into, temp);
	close_fd(&tree);
	close_fd(&into);
	close_fd(&volume);
	place_free(&place);
	return taken == TAKEN ? 0 : 1;
}

struct weight {
	int64_t bytes, files;
};

static enum walk_step add_weight(void *ctx, const struct walked *w)
{
	struct weight *sum = ctx;
	struct stat st;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_ON;
	if (S_ISDIR(st.st_mode))
		return WALK_INTO;
	sum->bytes += st.st_size;
	sum->files++;
	return WALK_ON;
}

int agent_ls(const char *path)
{
	struct place place = {0};
	place_load(&place);
	CLEANUP(free_text) char *full = on_volume(&place, path);
	CLEANUP(close_dir) DIR *d = opendir(full);
	struct dirent *e;
	if (!d)
		fprintf(stderr, "burst-agent: ls: %s: %s\n", path, strerror(errno));
	while (d && (e = next_entry(d))) {
		struct stat st;
		struct weight sum = {0};
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		struct walked top = {.dir = dirfd(d), .name = e->d_name};
		int fd = add_weight(&sum, &top) == WALK_INTO
				 ? open_folder(dirfd(d), e->d_name, false)
				 : -1;
		if (fd >= 0)
			walk_tree(fd, -1, add_weight, &sum);
		close_fd(&fd);
		struct str b = {0};
		str_addc(&b, '{');
		js_text(&b, "name", e->d_name);
		js_bool(&b, "folder", S_ISDIR(st.st_mode));
		js_int(&b, "bytes", sum.bytes);
		js_int(&b, "files", sum.files);
		js_int(&b, "changed_s", st.st_mtim.tv_sec);
		printf("%s}\n", b.s);
		str_free(&b);
	}
	int failed = !d;
	place_free(&place);
	return failed;
}

/* Removes an entry; returns -1 with errno. Renames a tree or an environment first, so that it is
 * complete under its own name; its new name marks it as half built for the next cleanup. */
static int remove_whole(int dir, const char *path, const char *name)
{
	struct stat st;
	CLEANUP(free_text) char *aside = xasprintf(".%s.gone.%d", name, getpid());
	bool moves = (!strncmp(path, "code/", 5) || !strncmp(path, "env/", 4)) && name[0] != '.' &&
		     fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		     renameat(dir, name, dir, aside) == 0;
	return remove_at(dir, moves ? aside : name);
}

int agent_rm(int count, char **paths)
{
	struct place place = {0};
	int status = 0;
	place_load(&place);
	int root = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < count; i++) {
		const char *name;
		int dir = root >= 0 && path_inside(paths[i])
				  ? open_parent(root, paths[i], false, &name)
				  : -1;
		bool gone = dir >= 0 ? remove_whole(dir, paths[i], name) == 0
				     : root >= 0 && path_inside(paths[i]) && errno == ENOENT;
		if (!gone) {
			fprintf(stderr, "burst-agent: rm: %s: %s\n", paths[i],
				path_inside(paths[i]) ? strerror(errno)
						      : "not a path below the volume");
			status = 1;
		}
		close_fd(&dir);
	}
	close_fd(&root);
	place_free(&place);
	return status;
}

/* ---- `send` ---- */

/* error NULL: `bytes` bytes from `offset` on follow. Returns -1 if stdout is closed. */
static int send_answer(const char *path, const char *error, int64_t offset, int64_t bytes)
{
	CLEANUP(str_free) struct str b = {0};
	str_addc(&b, '{');
	js_text(&b, "path", path);
	if (error) {
		js_text(&b, "error", error);
	} else {
		js_int(&b, "offset", offset);
		js_int(&b, "bytes", bytes);
	}
	str_add(&b, "}\n");
	return fd_write_all(1, b.s, b.len);
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
	CLEANUP(free_text) char *part = xcalloc(1, SLICE);
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
	return failed;
}

/* Answers one request. Returns -1 only if stdout is closed. */
static int send_file(const struct place *place, const struct json *ask)
{
	const char *path = json_text(ask, "path", "");
	int64_t offset = MAX(json_int(ask, "offset", 0), (int64_t)0),
		length = json_int(ask, "length", -1);
	char *full = on_volume(place, path);
	int fd = *path ? open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	int result = 0;
	struct stat st;
	free(full);
	if (fd < 0) {
		send_answer(path, *path ? strerror(errno) : "no path was given", 0, 0);
	} else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		send_answer(path, "not a plain file", 0, 0);
	} else {
		int64_t rest = MAX((int64_t)st.st_size - offset, (int64_t)0);
		length = length < 0 ? rest : MIN(length, rest);
		result = send_answer(path, NULL, offset, length) < 0
				 ? -1
				 : send_bytes(fd, offset, length);
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
	CLEANUP(str_free) struct str in = {0};
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
	place_free(&place);
	return failed ? 1 : 0;
}
