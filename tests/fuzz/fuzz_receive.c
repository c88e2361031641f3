/* fuzz_receive.c - a pod that names a file and sends its bytes: whatever the name and however they
 * come, nothing is written outside the output folder, and under its final name the file is whole
 * and what was announced.
 *
 * Input: a byte for what is there before (enum before), the name, a newline, then pairs of a letter
 * and a number. a: so many of its bytes, in order; x: so many others; f: finished; k: kept;
 * d: given up (odd: its part stays), and announced once more */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/path.h"
#include "sync/receive.h"
#include "tests/unit/sha256_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum before {
	LINK_TO_FOLDER = 1,
	LINK_TO_FILE = 2,
	PART_IS_LINK = 4,
	PART_IS_LONG = 8,
	OTHER_HASH = 16,
	EMPTY = 32
};
enum { BYTES = 200 };

static char root[64], out[80], elsewhere[80];

static void remove_root(void)
{
	path_remove_tree(root, NULL);
}

static void must(bool well)
{
	if (!well)
		abort();
}

static void put(const char *dir, const char *name, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	FILE *f = fopen(path, "we");

	must(f && fwrite(bytes, 1, len, f) == len && fclose(f) == 0);
}

static void make_folders(uint8_t before)
{
	if (!root[0]) {
		snprintf(root, sizeof(root), "%s/burst-fuzz.XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		must(mkdtemp(root) && atexit(remove_root) == 0);
		snprintf(out, sizeof(out), "%s/out", root);
		snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", root);
	}
	path_remove_tree(out, NULL);
	path_remove_tree(elsewhere, NULL);
	must(mkdir(out, 0700) == 0 && mkdir(elsewhere, 0700) == 0);
	put(elsewhere, "kept", "before", 6);
	CLEANUP(free_text) char *folder_link = path_join(out, "l");
	CLEANUP(free_text) char *file_link = path_join(out, "a");
	CLEANUP(free_text) char *part = path_join(out, "a.part");
	if (before & LINK_TO_FOLDER)
		must(symlink("../elsewhere", folder_link) == 0);
	if (before & LINK_TO_FILE)
		must(symlink("../elsewhere/kept", file_link) == 0);
	if (before & PART_IS_LINK)
		must(symlink("../elsewhere/kept", part) == 0);
	else if (before & PART_IS_LONG)
		put(out, "a.part", "0123456789", 10);
}

static void check_elsewhere(void)
{
	CLEANUP(free_text) char *path = path_join(elsewhere, "kept");
	CLEANUP(str_free) struct str text = STR_INIT;
	DIR *d = opendir(elsewhere);
	int entries = 0;

	while (readdir(d))
		entries++;
	closedir(d);
	assert(entries == 3 && path_read(path, 100, &text, NULL) == 0 &&
	       !strcmp(str_text(&text), "before"));
	d = opendir(root);
	for (entries = 0; readdir(d);)
		entries++;
	closedir(d);
	assert(entries == 4);
}

static void check_final(const char *name, const char *hash, bool kept)
{
	CLEANUP(free_text) char *path = path_join(out, name);
	char hex[SHA256_HEX];
	struct stat st;

	if (lstat(path, &st) < 0) {
		assert(!kept);
		return;
	}
	if (kept)
		assert(S_ISREG(st.st_mode) && sha256_file(path, hex, NULL, NULL) == 0 &&
		       !strcmp(hex, hash));
	else
		assert(!S_ISREG(st.st_mode)); /* what was there before */
}

struct
try {
	const char *name;
	char bytes[BYTES], hash[SHA256_HEX];
	int64_t size;
	struct receive *r;
	bool kept;
};

static bool begin(struct try *t)
{
	struct err err = {0};

	t->r = NULL;
	if (receive_open(&t->r, out, t->name, t->size, t->hash, &err) < 0) {
		assert(err.kind == ERR_UNTRUSTED || err.kind == ERR_JOB || err.kind == ERR_LOCAL ||
		       err.kind == ERR_BUSY);
		return false;
	}
	assert(path_is_safe(t->name));
	assert(receive_offset(t->r) >= 0 && receive_offset(t->r) <= t->size);
	return true;
}

static void one_step(struct try *t, char what, uint8_t number)
{
	struct err err = {0};
	int64_t at = receive_offset(t->r), left = t->size - at;
	int64_t n = MIN((int64_t)number, left);

	switch (what) {
	case 'a': receive_add(t->r, t->bytes + at, (size_t)n, &err); break;
	case 'x': receive_add(t->r, t->hash, MIN(number, 64), &err); break;
	case 'f':
		if (receive_finish(t->r, &err) < 0)
			assert(err.kind == ERR_UNTRUSTED || err.kind == ERR_TRANSIENT);
		break;
	case 'k': t->kept |= receive_keep_all(&t->r, 1, &err) == 0; break;
	}
}

/* After a finish that has failed nothing but dropping is left to do. */
static void all_steps(struct try *t, const uint8_t *at, const uint8_t *end)
{
	bool over = false;

	for (; end - at >= 2 && t->r; at += 2) {
		if (at[0] == 'd') {
			receive_drop(t->r, at[1] & 1);
			over = false;
			if (!begin(t))
				return;
		} else if (!over) {
			one_step(t, (char)at[0], at[1]);
			over = at[0] == 'f';
			if (over) {
				struct err err = {0};
				t->kept |= receive_keep_all(&t->r, 1, &err) == 0;
			}
		}
	}
	receive_drop(t->r, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *newline = len > 2 ? memchr(data + 1, '\n', len - 1) : NULL;
	struct try t = {.size = BYTES};

	if (!newline)
		return 0;
	CLEANUP(free_text)
	char *name = xstrndup((const char *)data + 1, (size_t)(newline - data - 1));
	for (int i = 0; i < BYTES; i++)
		t.bytes[i] = (char)(i * 7);
	if (data[0] & EMPTY)
		t.size = 0;
	sha256_hex(t.bytes, (size_t)t.size, t.hash);
	if (data[0] & OTHER_HASH)
		t.hash[0] = t.hash[0] == 'a' ? 'b' : 'a';
	t.name = name;
	make_folders(data[0]);
	if (begin(&t))
		all_steps(&t, newline + 1, data + len);
	assert(!t.kept || !(data[0] & OTHER_HASH));
	check_elsewhere();
	if (path_is_safe(name) && !starts_with(name, "l/") && !ends_with(name, ".part"))
		check_final(name, t.hash, t.kept);
	return 0;
}
