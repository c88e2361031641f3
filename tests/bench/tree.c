/* tree.c - how long a scan takes and how fast trees are packed. Peers, measured in the same run on
 * the same files: `git add` into a new repository for the first scan, `git status` for the scan
 * that knows the files, `tar | zstd -1` for packing. Prints one line a figure; tests nothing.
 *
 * Sources: all of libburst. Use: bench-tree [FILES [BYTES]], in a folder with room (TMPDIR). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "sync/pack.h"
#include "sync/tree.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int result, const struct err *err)
{
	if (result < 0) {
		fprintf(stderr, "bench: %s\n", err->msg);
		exit(1);
	}
}

static double shell(const char *words, const char *dir)
{
	CLEANUP(str_free) struct str command = STR_INIT;
	double start = seconds();

	str_add(&command, "cd ");
	str_add_shell(&command, dir);
	str_addf(&command, " && { %s; } >/dev/null 2>&1", words);
	if (system(command.s) != 0)
		return -1;
	return seconds() - start;
}

/* Half of it compresses well, half does not: about what code and small media do. */
static void make_files(const char *root, int files, size_t bytes)
{
	CLEANUP(free_text) char *content = xmalloc(bytes + 1);
	uint64_t x = 88172645463325252u;
	struct err err = {0};

	for (int i = 0; i < files; i++) {
		CLEANUP(free_text) char *dir = xasprintf("%s/d%02d", root, i / 100 % 100);
		CLEANUP(free_text) char *path = xasprintf("%s/file-%05d.c", dir, i);
		for (size_t b = 0; b < bytes; b++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			content[b] = (char)(b % 64 < 32 ? x : 'a' + (b & 15));
		}
		if (i % 100 == 0)
			must(path_mkdirs(dir, 0777, &err), &err);
		CLEANUP(file_close) FILE *f = fopen(path, "we");
		if (!f || fwrite(content, 1, bytes, f) != bytes)
			exit(1);
	}
}

static double time_scan(const char *root, const struct tree *known, struct tree **out)
{
	struct tree_scan_options opts = {.known = known};
	struct err err = {0};
	double start = seconds();

	must(tree_scan(out, root, &opts, &err), &err);
	return seconds() - start;
}

static double time_pack(const char *root, const struct tree *tree, bool zstd, int64_t *out_bytes)
{
	static char buf[512 << 10];
	CLEANUP(str_free) struct str squeezed = STR_INIT;
	struct err err = {0};
	struct tree_diff diff;
	struct pack *p = NULL;
	ssize_t n;
	double start = seconds();

	tree_diff(&diff, NULL, tree);
	struct pack_plan plan = pack_plan_of(&diff, root);
	must(pack_open(&p, &plan, &err), &err);
	*out_bytes = 0;
	while ((n = pack_read(p, buf, sizeof(buf), &err)) > 0) {
		str_reset(&squeezed);
		*out_bytes += zstd && pack_add_zstd_frame(&squeezed, buf, (size_t)n)
				      ? (int64_t)squeezed.len
				      : n;
	}
	must((int)n, &err);
	pack_close(p);
	tree_diff_free(&diff);
	return seconds() - start;
}

/* Drops what the system remembers of files, where that is allowed. */
static bool forget_files(void)
{
	CLEANUP(fd_close) int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	sync();
	return fd >= 0 && write(fd, "3", 1) == 1;
}

static void bench_packs(const char *root, const struct tree *tree)
{
	double mb = (double)tree->bytes / 1e6;

	for (int zstd = 0; zstd < 2; zstd++) {
		int64_t bytes;
		double ours = time_pack(root, tree, zstd, &bytes);
		double peer = shell(zstd ? "tar -c . | zstd -1 -T1 | cat" : "tar -c . | cat", root);
		printf("pack%s: %.3f s, %.0f MB/s, %.1f MB out; tar%s %.3f s (%.2fx)\n",
		       zstd ? " zstd -1" : "", ours, mb / ours, (double)bytes / 1e6,
		       zstd ? " | zstd -1" : "", peer, peer / ours);
	}
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(free_text) char *root = xasprintf("%s/burst-bench-XXXXXX", tmp ? tmp : "/tmp");
	int files = argc > 1 ? atoi(argv[1]) : 10000;
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
	struct tree *first = NULL, *cold = NULL, *warm = NULL;
	struct err err = {0};

	if (!mkdtemp(root))
		return 1;
	make_files(root, files, bytes);
	printf("%d files of %zu bytes\n", files, bytes);
	if (forget_files())
		printf("scan, disk cold: %.3f s\n", time_scan(root, NULL, &cold));
	printf("scan, everything read: %.3f s", time_scan(root, NULL, &first));
	first->scanned_ns +=
		INT64_C(10000000000); /* as if the files were older than a tick of the clock */
	double known = time_scan(root, first, &warm);
	double add = shell("git init -q . && git add .", root);
	double status = shell("git status", root);
	printf("; git add %.3f s\n", add);
	printf("scan, nothing changed: %.3f s (%" PRId64
	       " files read); git status %.3f s (%.2fx)\n",
	       known, warm->read_files, status, status / known);
	CLEANUP(free_text) char *git = path_join(root, ".git");
	must(path_remove_tree(git, &err), &err);
	bench_packs(root, warm);
	tree_free(first);
	tree_free(cold);
	tree_free(warm);
	return path_remove_tree(root, NULL) < 0;
}
