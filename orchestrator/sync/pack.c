/* pack.c - packs entries of a tree as a tar stream, and slices of it with zstd. */
#include "pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/archive_library.h"
#include "base/crypto.h"
#include "base/guard.h"
#include "base/path.h"
#include "base/str.h"

/* clang-format off */
#define ARCHIVE_FUNCTIONS(X)                                                                                               \
	X(set_error) X(error_string) X(entry_free) X(entry_new) X(entry_set_filetype) X(entry_set_mode) X(entry_set_mtime) \
	X(entry_set_pathname) X(entry_set_size) X(entry_set_symlink) X(write_add_filter_zstd) X(write_close) X(write_data) \
	X(write_free) X(write_header) X(write_new) X(write_open) X(write_set_bytes_per_block) X(write_set_filter_option)   \
	X(write_set_format_pax_restricted) X(write_set_format_raw)
/* clang-format on */

/* libarchive, which brings ICU and eleven more libraries along, is loaded at the first use. */
static struct {
#define MEMBER(name) LATE_MEMBER(archive_, name)
	ARCHIVE_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;
static struct err lib_error; /* why it is not loaded */

static void load_library_once(void)
{
#define ROW(name) LATE_ROW(lib, archive_, name)
	static const struct late_function functions[] = {ARCHIVE_FUNCTIONS(ROW)};
#undef ROW

	late_load(ARCHIVE_LIBRARY, ARCHIVE_PACKAGE, functions, ARRAY_LEN(functions), &lib_error);
}

int pack_load_library(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library_once);
	return lib_error.kind ? err_set(err, lib_error.kind, "%s", lib_error.msg) : 0;
}

#define SLICE    (256u << 10) /* bytes of a file handed to the archive at once */
#define NS_PER_S INT64_C(1000000000)

struct pack {
	struct pack_plan plan;
	int root; /* descriptor of the folder; -1: there is none */
	struct archive *archive;
	locale_t utf8; /* libarchive translates names from the locale's charset; ours are UTF-8. 0:
			  there is none */
	struct str ready;   /* packed bytes for pack_read() */
	size_t taken;       /* how many of them pack_read() has returned */
	struct str removed; /* the content of .burst-delete */
	struct tree_entry removed_entry;
	bool removed_done, ended;
	bool closing; /* the pack failed: the archive's own end must not follow */

	/* the entry being packed */
	size_t next;                    /* index of the next one */
	const struct tree_entry *entry; /* NULL: between two */
	int fd;                         /* of its file; -1: the entry has its data in memory */
	int64_t at;                     /* bytes of it packed so far */
	struct sha256 *hash;

	char *room; /* SLICE bytes */
	struct err failed;
};

struct pack_plan pack_plan_of(const struct tree_diff *diff, const char *root)
{
	return (struct pack_plan){
		.root = root,
		.entries = diff->changed,
		.count = diff->changed_count,
		.removed = diff->removed,
		.removed_count = diff->removed_count,
	};
}

/* For libarchive: adds its output to p->ready. */
static la_ssize_t collect_packed_bytes(struct archive *a, void *ctx, const void *bytes, size_t len)
{
	struct pack *p = ctx;

	if (p->closing) {
		lib.set_error(a, ECANCELED, "given up");
		return -1;
	}
	str_addn(&p->ready, bytes, len);
	return (la_ssize_t)len;
}

/* Sets p->failed from libarchive's error. Returns -1. */
static int fail_packing(struct pack *p, const char *path)
{
	const char *why = lib.error_string(p->archive);

	return err_set(&p->failed, ERR_LOCAL, "%s: cannot pack: %s", path, why ? why : "unknown");
}

static int open_archive(struct pack *p)
{
	struct archive *a = p->archive;

	if (lib.write_set_format_pax_restricted(a) != ARCHIVE_OK)
		return fail_packing(p, "tar");
	lib.write_set_bytes_per_block(a, 0);
	if (lib.write_open(a, p, NULL, collect_packed_bytes, NULL) != ARCHIVE_OK)
		return fail_packing(p, "tar");
	return 0;
}

/* Makes the entry .burst-delete: a file with the removed paths, and NUL between them. */
static void make_list_of_removed(struct pack *p)
{
	for (size_t i = 0; i < p->plan.removed_count; i++) {
		if (i)
			str_addn(&p->removed, "", 1);
		str_add(&p->removed, p->plan.removed[i]);
	}
	p->removed_entry = (struct tree_entry){
		.path = (char *)TREE_DELETE_NAME,
		.type = TREE_FILE,
		.size = (int64_t)p->removed.len,
		.data = p->removed.s,
	};
	if (p->removed.len)
		sha256_hex(p->removed.s, p->removed.len, p->removed_entry.sha256);
	p->removed_done = !p->plan.removed_count;
}

int pack_open(struct pack **out, const struct pack_plan *plan, struct err *err)
{
	if (pack_load_library(err) < 0)
		return -1;
	CLEANUP(pack_close) struct pack *p = xcalloc(1, sizeof(*p));

	p->plan = *plan;
	p->root = p->fd = -1;
	p->archive = lib.write_new();
	p->utf8 = archive_utf8_locale();
	p->room = xmalloc(SLICE);
	make_list_of_removed(p);
	if (plan->root) {
		p->root = open(plan->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (p->root < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", plan->root, strerror(errno));
	}
	if (!p->archive || open_archive(p) < 0)
		return err_set(err, ERR_LOCAL, "%s", p->failed.msg);
	*out = TAKE(p);
	return 0;
}

/* Sets p->failed: the entry's file is not as scanned. Returns -1. how: "is gone". */
static int fail_changed(struct pack *p, const char *how)
{
	return err_set(&p->failed, ERR_LOCAL, "%s: %s since it was scanned", p->entry->path, how);
}

static int write_header(struct pack *p, const struct tree_entry *e)
{
	struct archive_entry *header = lib.entry_new();

	lib.entry_set_pathname(header, e->path);
	lib.entry_set_mtime(header, (time_t)(e->mtime_ns / NS_PER_S), 0);
	lib.entry_set_size(header, e->size);
	switch (e->type) {
	case TREE_FILE: lib.entry_set_mode(header, S_IFREG | (e->executable ? 0755 : 0644)); break;
	case TREE_FOLDER: lib.entry_set_mode(header, S_IFDIR | 0755); break;
	case TREE_LINK:
		lib.entry_set_mode(header, S_IFLNK | 0777);
		lib.entry_set_symlink(header, e->target);
		break;
	}
	int got = lib.write_header(p->archive, header);
	lib.entry_free(header);
	/* A warning is about a name that libarchive could not translate. The name travels as it is,
	 * as it should. */
	return got == ARCHIVE_OK || got == ARCHIVE_WARN ? 0 : fail_packing(p, e->path);
}

/* Sets p->fd. Fails if the file is gone, or has another type or size than when it was scanned. */
static int open_entry_file(struct pack *p, const struct tree_entry *e)
{
	struct stat st;

	p->fd = path_open_below(p->root, e->path, O_RDONLY | O_NOCTTY);
	if (p->fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return fail_changed(p, "is gone");
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return err_set(&p->failed, ERR_LOCAL, "%s: %s", e->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size != e->size)
		return fail_changed(p, "has changed");
	return 0;
}

/* Writes the entry's header and, if it has content, makes it p->entry. The header goes out before
 * the file is opened: if the file then fails, the stream breaks off inside its content, which every
 * reader takes for an error. Not all do so between two entries. */
static int begin_entry(struct pack *p, const struct tree_entry *e)
{
	if (write_header(p, e) < 0)
		return -1;
	if (e->type != TREE_FILE || !e->size)
		return 0;
	p->entry = e;
	p->at = 0;
	p->fd = -1;
	p->hash = sha256_new();
	return e->data ? 0 : open_entry_file(p, e);
}

/* Reads until `want` bytes or the end of the file. Returns how many, or -1 with errno. */
static ssize_t read_full(int fd, char *to, size_t want)
{
	size_t got = 0;

	while (got < want) {
		ssize_t n = read(fd, to + got, want - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Called before the file's last bytes go out: fails if the file is not as scanned, so that its
 * entry stays cut short. */
static int check_file_unchanged(struct pack *p)
{
	char hex[SHA256_HEX], more;

	sha256_finish(TAKE(p->hash), hex);
	if (strcmp(hex, p->entry->sha256) || (p->fd >= 0 && read_full(p->fd, &more, 1) != 0))
		return fail_changed(p, "has changed");
	return 0;
}

/* Packs the next SLICE bytes of p->entry; behind the last ones p->entry is NULL. */
static int pack_slice(struct pack *p)
{
	const struct tree_entry *e = p->entry;
	size_t want = (size_t)MIN(e->size - p->at, (int64_t)SLICE);
	const char *bytes = e->data ? (const char *)e->data + p->at : p->room;

	if (p->fd >= 0) {
		ssize_t got = read_full(p->fd, p->room, want);
		if (got < 0)
			return err_set(&p->failed, ERR_LOCAL, "%s: %s", e->path, strerror(errno));
		if ((size_t)got < want)
			return fail_changed(p, "has changed");
	}
	sha256_add(p->hash, bytes, want);
	p->at += (int64_t)want;
	bool last = p->at == e->size;
	if (last && check_file_unchanged(p) < 0)
		return -1;
	if (lib.write_data(p->archive, bytes, want) != (la_ssize_t)want)
		return fail_packing(p, e->path);
	if (last) {
		fd_close(p->fd);
		p->fd = -1;
		p->entry = NULL;
	}
	return 0;
}

/* Packs the next slice or entry, or the archive's end. On failure p->failed is set. */
static int pack_next(struct pack *p)
{
	if (p->entry && p->plan.stop && atomic_load(p->plan.stop))
		return err_set(&p->failed, ERR_INTERRUPTED, "stopped while packing");
	if (p->entry)
		return pack_slice(p);
	if (!p->removed_done) {
		p->removed_done = true;
		return begin_entry(p, &p->removed_entry);
	}
	if (p->next < p->plan.count)
		return begin_entry(p, p->plan.entries[p->next++]);
	if (lib.write_close(p->archive) != ARCHIVE_OK)
		return fail_packing(p, "tar");
	p->ended = true;
	return 0;
}

ssize_t pack_read(struct pack *p, void *buf, size_t room, struct err *err)
{
	/* libarchive translates names from the locale's charset; ours are UTF-8 */
	locale_t was = p->utf8 ? uselocale(p->utf8) : (locale_t)0;

	/* what was packed before a failure still goes out: see begin_entry() */
	while (!p->failed.kind && !p->ended && p->ready.len - p->taken < room)
		pack_next(p);
	if (p->utf8)
		uselocale(was);
	size_t n = MIN(room, p->ready.len - p->taken);
	if (!n)
		return p->failed.kind ? err_set(err, p->failed.kind, "%s", p->failed.msg) : 0;
	memcpy(buf, p->ready.s + p->taken, n);
	p->taken += n;
	if (p->taken > SLICE || p->taken == p->ready.len) {
		str_drop(&p->ready, p->taken);
		p->taken = 0;
	}
	return (ssize_t)n;
}

void pack_close(struct pack *p)
{
	if (!p)
		return;
	p->closing = true;
	if (p->archive)
		lib.write_free(p->archive);
	if (p->utf8)
		freelocale(p->utf8);
	fd_close(p->fd);
	fd_close(p->root);
	sha256_free(p->hash);
	str_free(&p->ready);
	str_free(&p->removed);
	free(p->room);
	free(p);
}

/* For libarchive: ctx is a struct str. */
static la_ssize_t append_to_str(struct archive *a, void *ctx, const void *bytes, size_t len)
{
	(void)a;
	str_addn(ctx, bytes, len);
	return (la_ssize_t)len;
}

bool pack_add_zstd_frame(struct str *out, const void *bytes, size_t len)
{
	size_t before = out->len;

	if (pack_load_library(NULL) < 0)
		return false;
	struct archive *a = lib.write_new();
	struct archive_entry *e = lib.entry_new();

	lib.entry_set_filetype(e, AE_IFREG);
	bool done =
		lib.write_set_format_raw(a) == ARCHIVE_OK &&
		lib.write_add_filter_zstd(a) == ARCHIVE_OK &&
		lib.write_set_filter_option(a, "zstd", "compression-level", "1") == ARCHIVE_OK &&
		lib.write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
		lib.write_open(a, out, NULL, append_to_str, NULL) == ARCHIVE_OK &&
		lib.write_header(a, e) == ARCHIVE_OK &&
		lib.write_data(a, bytes, len) == (la_ssize_t)len &&
		lib.write_close(a) == ARCHIVE_OK;
	lib.entry_free(e);
	lib.write_free(a);
	if (!done && out->len > before) {
		out->len = before;
		out->s[before] = '\0';
	}
	return done;
}
