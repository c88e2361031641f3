/* zip.c - reads members of a zip file in memory, by libarchive. */
#include "zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/archive_library.h"
#include "base/guard.h"

/* clang-format off */
#define ZIP_FUNCTIONS(X)                                                                            \
	X(entry_filetype) X(entry_is_data_encrypted) X(entry_pathname) X(error_string) X(read_data) \
	X(read_free) X(read_new) X(read_next_header) X(read_open_memory)                            \
	X(read_support_format_zip_seekable)
/* clang-format on */

static struct {
#define MEMBER(name) LATE_MEMBER(archive_, name)
	ZIP_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;
static struct err lib_error; /* why it is not loaded */

static void load_library_once(void)
{
#define ROW(name) LATE_ROW(lib, archive_, name)
	static const struct late_function functions[] = {ZIP_FUNCTIONS(ROW)};
#undef ROW

	late_load(ARCHIVE_LIBRARY, ARCHIVE_PACKAGE, functions, ARRAY_LEN(functions), &lib_error);
}

static int load_library(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library_once);
	return lib_error.kind ? err_set(err, lib_error.kind, "%s", lib_error.msg) : 0;
}

/* ---- members ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct zip_member *const *)a)->name,
		      (*(struct zip_member *const *)b)->name);
}

static int name_against_member(const void *name, const void *member)
{
	return strcmp(name, (*(struct zip_member *const *)member)->name);
}

static int fail_reading(struct archive *a, const char *name, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *why = lib.error_string(a);

	str_add_printable(&shown, name, strlen(name), 100);
	return err_set(err, ERR_CONFIG, "%s%sthe zip file is damaged: %s", str_text(&shown),
		       *name ? ": " : "", why ? why : "it ends too early");
}

/* Unpacks the member that the archive is at. */
static int read_member(struct archive *a, struct zip_member *m, size_t most, struct err *err)
{
	char block[32768];
	la_ssize_t got;

	while ((got = lib.read_data(a, block, sizeof(block))) > 0) {
		if (m->bytes.len + (size_t)got > MIN(m->most, most))
			return err_set(err, ERR_CONFIG, "%s is unpacked larger than %zu MiB",
				       m->name, MIN(m->most, most) >> 20);
		str_addn(&m->bytes, block, (size_t)got);
	}
	if (got < 0)
		return fail_reading(a, m->name, err);
	return 0;
}

/* Returns the first of the members of this name; NULL: none, or they were read. */
static struct zip_member **find_members(struct zip_member **sorted, size_t count, const char *name)
{
	struct zip_member **found =
		name ? bsearch(name, sorted, count, sizeof(*sorted), name_against_member) : NULL;

	while (found && found > sorted && !strcmp(found[-1]->name, name))
		found--;
	return found && !(*found)->found ? found : NULL;
}

/* Unpacks the member that the archive is at for all that ask for it. Returns how many these are, or
 * -1. */
static int read_for_all(struct archive *a, struct zip_member **first, struct zip_member **end,
			size_t *all_bytes, struct err *err)
{
	int count = 0;

	if (read_member(a, *first, *all_bytes, err) < 0)
		return -1;
	for (struct zip_member **m = first; m < end && !strcmp((*m)->name, (*first)->name); m++) {
		if ((*first)->bytes.len > *all_bytes)
			return err_set(err, ERR_CONFIG, "what it holds is too large unpacked");
		*all_bytes -= (*first)->bytes.len;
		if (m > first)
			str_addn(&(*m)->bytes, str_text(&(*first)->bytes), (*first)->bytes.len);
		(*m)->found = true;
		count++;
	}
	return count;
}

static int read_members(struct archive *a, struct zip_member **sorted, size_t count,
			size_t all_bytes, struct err *err)
{
	struct archive_entry *entry;
	size_t left = count, entries = 0;
	int status = ARCHIVE_OK;

	while (left && (status = lib.read_next_header(a, &entry)) >= ARCHIVE_WARN &&
	       status != ARCHIVE_EOF) {
		struct zip_member **m = find_members(sorted, count, lib.entry_pathname(entry));
		if (++entries > ZIP_MEMBERS_MOST)
			return err_set(err, ERR_CONFIG, "it has more than %d files",
				       ZIP_MEMBERS_MOST);
		if (!m || lib.entry_filetype(entry) != AE_IFREG)
			continue;
		if (lib.entry_is_data_encrypted(entry))
			return err_set(err, ERR_CONFIG, "%s is encrypted with a password",
				       (*m)->name);
		int read = read_for_all(a, m, sorted + count, &all_bytes, err);
		if (read < 0)
			return -1;
		left -= (size_t)read;
	}
	return status < ARCHIVE_WARN ? fail_reading(a, "", err) : 0;
}

int zip_read(const void *zip, size_t len, struct zip_member *members, size_t count,
	     size_t all_bytes, struct err *err)
{
	if (load_library(err) < 0)
		return -1;
	struct zip_member **sorted = xcalloc(count + 1, sizeof(*sorted));
	struct archive *a = lib.read_new();
	/* libarchive translates names to the locale's charset; ours are UTF-8 */
	locale_t utf8 = archive_utf8_locale(), was = utf8 ? uselocale(utf8) : (locale_t)0;

	for (size_t i = 0; i < count; i++)
		sorted[i] = &members[i];
	qsort(sorted, count, sizeof(*sorted), by_name);
	/* the reader that seeks trusts the zip file's directory, and not what else lies in it */
	int result = lib.read_support_format_zip_seekable(a) == ARCHIVE_OK &&
				     lib.read_open_memory(a, zip, len) == ARCHIVE_OK
			     ? read_members(a, sorted, count, all_bytes, err)
			     : fail_reading(a, "", err);
	lib.read_free(a);
	if (utf8) {
		uselocale(was);
		freelocale(utf8);
	}
	free(sorted);
	return result;
}

void zip_members_free(struct zip_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		str_free(&members[i].bytes);
}
