/* tree.c - `tree`: makes a folder of the volume from a tar stream. */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "copy.h"
#include "entries.h"
#include "env.h"
#include "files.h"
#include "json.h"
#include "lanes.h"
#include "listing.h"
#include "place.h"
#include "process.h"
#include "staged.h"
#include "tar.h"

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

static void keep_saying_alive(void)
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
		return tree_fill(t, 0, root, listing);
	pid_t pid = make_pipe(&in, &write_end) < 0 ? -1 : fork();
	if (pid == 0) {
		dup2(write_end, 1);
		execlp("zstd", "zstd", "-dcq", (char *)NULL);
		_exit(127);
	}
	close_fd(&write_end);
	int result = tree_fill(t, in, root, listing);
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
	int result = tree_fill_from(t, -1, &l, root, listing);
	bool ended = l.ended;
	if (t->merging > 0) {
		close_fd(&t->fd); /* end a child that still writes */
		ended = waitpid(t->merging, &status, 0) == t->merging && status == 0;
	}
	lanes_end(&l, id);
	return ended ? result : tar_error(t, "the stream did not come to its end");
}

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

/* Starts the new tree with hard links to the base, if the volume has them. Workers run a verified
 * copy on the container's disk. Entries of the stream replace files and never write into one. The
 * stream contains only the differences, so a base that is missing or incomplete counts as none. */
static int tree_from_base(int dir, const char *base, int root, struct listing *listing)
{
	struct stat was, st;
	int from = openat(dir, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int result = from >= 0         ? copy_tree_wide(from, root, COPY_LINKS)
		     : errno == ENOENT ? COPY_LOST
				       : COPY_FAILED;
	int saved = errno;
	if (!result && listing_read(listing, from, sha256_is_hex(base) ? base : NULL) < 0)
		result = COPY_LOST;
	if (!result && (fstat(from, &was) < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			was.st_ino != st.st_ino))
		result = COPY_LOST;
	close_fd(&from);
	errno = saved;
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
static int tree_listing_fits(struct tar *t, int root, const struct listing *l,
			     struct tree_args *args)
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

/* Builds the new tree in `temp`, then renames it. */
static int tree_build(struct tar *t, int dir, const char *temp, struct tree_args *args)
{
	struct listing listing = {0};
	int root = mkdirat(dir, temp, 0755) < 0
			   ? -1
			   : openat(dir, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int failed = root < 0 ? tar_error(t, "%s: %s", args->dir, strerror(errno)) : 0;
	int begun = !failed && args->base ? tree_from_base(dir, args->base, root, &listing) : 0;
	args->baseless = begun == COPY_LOST;
	if (begun)
		failed = tar_error(t, "cannot begin from %s: %s", args->base,
				   args->baseless ? "files went from it" : strerror(errno));
	if (!failed)
		failed = tree_receive(t, root, args, &listing);
	if (!failed)
		failed = tree_listing_fits(t, root, &listing, args);
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
	int root = openat(dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

static int tree_into(const struct place *place, int dir, struct tree_args *args)
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
	char *path = on_volume(&place, args.dir);
	mkdirs(place.volume, 0755);
	int volume = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dir = volume < 0 ? -1 : open_folder(volume, args.dir, true);
	int status = 1;
	keep_saying_alive();
	if (dir < 0 || (args.lanes && chdir(place.home) < 0))
		fprintf(stderr, "burst-agent: tree: %s: %s\n", path, strerror(errno));
	else
		status = tree_into(&place, dir, &args);
	close_fd(&dir);
	close_fd(&volume);
	free(path);
	place_free(&place);
	return status;
}
