/* manifest.c - reads and writes manifest.jsonl, the list of the output folder's files. */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"

#define MANIFEST_NAME      "manifest.jsonl"
#define MANIFEST_MAX_BYTES ((size_t)512 << 20)
#define LINE_MAX_BYTES     ((size_t)1 << 20)

/* Reads one line. ERR_CONFIG: burst does not write such a line. The caller frees out->line. */
static int read_entry(const char *bytes, size_t len, struct manifest_entry *out, struct err *err)
{
	CLEANUP(json_decref)
	json_t *line = len <= LINE_MAX_BYTES ? jsonx_parse(bytes, len, err) : NULL;

	if (!line)
		return err_set(err, ERR_CONFIG, "not a line of a manifest");
	const char *id = jsonx_text(line, "id", NULL), *file = jsonx_text(line, "file", NULL);
	const char *key = jsonx_text(line, "key", NULL), *hash = jsonx_text(line, "sha256", NULL);
	if (!id || !file || !path_is_safe(file) || !sha256_is_hex(key) || !sha256_is_hex(hash))
		return err_set(err, ERR_CONFIG,
			       "id, file, key and sha256 are not what burst writes");
	size_t id_room = strlen(id) + 1, file_room = strlen(file) + 1;
	char *text = xmalloc(len + 1 + id_room + file_room);
	memcpy(text, bytes, len);
	text[len] = '\0';
	*out = (struct manifest_entry){.line = text,
				       .id = memcpy(text + len + 1, id, id_room),
				       .file = memcpy(text + len + 1 + id_room, file, file_room)};
	COPY_TEXT(out->key, key);
	COPY_TEXT(out->sha256, hash);
	return 0;
}

/* For qsort(): by file, then later lines of the manifest first. */
static int compare_by_file(const void *a, const void *b)
{
	const struct manifest_entry *x = *(struct manifest_entry *const *)a;
	const struct manifest_entry *y = *(struct manifest_entry *const *)b;
	int order = strcmp(x->file, y->file);

	return order ? order : (x < y) - (x > y);
}

static void index_by_file(struct manifest *m)
{
	m->by_file = xcalloc(m->count + 1, sizeof(*m->by_file));
	for (size_t i = 0; i < m->count; i++)
		m->by_file[i] = &m->entries[i];
	qsort(m->by_file, m->count, sizeof(*m->by_file), compare_by_file);
}

/* Adds the entries of all lines to *m; a last line that was cut off may be invalid. */
static int parse_lines(const char *name, const char *bytes, size_t len, bool lenient,
		       struct manifest *m, struct err *err)
{
	const char *end = bytes + len, *line;
	size_t number = 0, n;

	while ((line = bytes_next_line(&bytes, end, &n))) {
		bool whole = line + n < end;
		struct manifest_entry entry;
		struct err why = {0};
		number++;
		if (n && read_entry(line, n, &entry, &why) == 0) {
			GROW(m->entries, m->count, m->cap);
			m->entries[m->count++] = entry;
		} else if (n && whole && !lenient) {
			return err_set(err, ERR_CONFIG, "%s:%zu: %s; use --force to overwrite",
				       name, number, why.msg);
		} else if (n && whole && !m->bad_line) {
			m->bad_line = number;
		}
	}
	return 0;
}

int manifest_parse(const char *name, const char *bytes, size_t len, bool lenient,
		   struct manifest *out, struct err *err)
{
	struct manifest m = {.present = true};

	if (parse_lines(name, bytes, len, lenient, &m, err) < 0) {
		manifest_free(&m);
		return -1;
	}
	index_by_file(&m);
	*out = m;
	return 0;
}

int manifest_read(const char *dir, bool lenient, struct manifest *out, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(dir, MANIFEST_NAME);
	CLEANUP(str_free) struct str text = STR_INIT;
	struct err why = {0};
	CLEANUP(fd_close) int folder = path_open_dir(dir);

	if (folder < 0 ||
	    path_read_plain_at(folder, MANIFEST_NAME, path, MANIFEST_MAX_BYTES, &text, &why) < 0) {
		if (folder < 0 && errno != ENOENT)
			return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
		if (folder >= 0 && why.kind != ERR_NOT_FOUND)
			return err_set(err, why.kind, "%s", why.msg);
		*out = (struct manifest){0};
		index_by_file(out);
		return 0;
	}
	return manifest_parse(path, str_text(&text), text.len, lenient, out, err);
}

bool manifest_exists(int folder)
{
	struct stat st;

	return fstatat(folder, MANIFEST_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

void manifest_free(struct manifest *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->entries[i].line);
	free(m->entries);
	free(m->by_file);
	*m = (struct manifest){0};
}

bool manifest_is_latest(const struct manifest *m, size_t i)
{
	return i == 0 || strcmp(m->by_file[i - 1]->file, m->by_file[i]->file) != 0;
}

struct manifest_entry *const *manifest_find(const struct manifest *m, const char *file,
					    size_t *count)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strcmp(m->by_file[mid]->file, file) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (*count = 0; low + *count < m->count && !strcmp(m->by_file[low + *count]->file, file);)
		++*count;
	return *count ? &m->by_file[low] : NULL;
}

int manifest_match(const struct manifest *m, const char *dir, const char *file, const char *key,
		   const struct manifest_entry **out, bool *absent, struct err *err)
{
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	CLEANUP(fd_close) int parent = -1;
	CLEANUP(fd_close) int fd = -1;
	char hash[SHA256_HEX];
	const char *base;
	size_t count;
	struct stat st;

	*out = NULL;
	if (folder >= 0)
		parent = path_open_parent(folder, file, &base);
	*absent = parent < 0 || fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0;
	if (*absent)
		return 0;
	struct manifest_entry *const *entries = manifest_find(m, file, &count);
	if (!entries || !S_ISREG(st.st_mode))
		return 0;
	fd = openat(parent, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s/%s: %s", dir, file, strerror(errno));
	if (sha256_fd(fd, hash, NULL) < 0)
		return err_set(err, ERR_LOCAL, "%s/%s: %s", dir, file, strerror(errno));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i]->sha256, hash))
			continue;
		if (!*out || (key && !strcmp(entries[i]->key, key)))
			*out = entries[i];
		if (!key || !strcmp(entries[i]->key, key))
			break;
	}
	return 0;
}

json_t *manifest_entry_json(const struct manifest_entry *entry)
{
	return jsonx_parse(entry->line, strlen(entry->line), NULL);
}

void manifest_restore(const struct manifest_entry *entry, struct segment_result *result)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(entry);

	result->state = SEGMENT_SAFE;
	result->cached = true;
	result->suspect = jsonx_bool(line, "suspect", false);
	COPY_TEXT(result->reason, jsonx_text(line, "reason", ""));
	COPY_TEXT(result->sha256, entry->sha256);
	result->bytes = MAX(jsonx_int(line, "bytes", 0), 0);
	result->seconds = MIN(MAX(jsonx_number(line, "seconds", 0), 0), 1e9);
	result->sample_rate = (int)MIN(MAX(jsonx_int(line, "sample_rate", 0), 0), 1000000);
	result->tries = (int)MIN(MAX(jsonx_int(line, "tries", 1), 0), 1000);
	COPY_TEXT(result->provider, jsonx_text(line, "provider", ""));
	COPY_TEXT(result->gpu, jsonx_text(line, "gpu", ""));
	COPY_TEXT(result->batch, jsonx_text(line, "batch", ""));
	COPY_TEXT(result->attempt, jsonx_text(line, "attempt", ""));
	COPY_TEXT(result->rendered_as, jsonx_text(line, "rendered_as", entry->file));
}

json_t *manifest_line(const struct segment *segment, const struct segment_result *result,
		      const char *file, const char *commit)
{
	json_t *line =
		json_pack("{s:s, s:s, s:s, s:I, s:s}", "id", segment->id, "file", file, "sha256",
			  result->sha256, "bytes", (json_int_t)result->bytes, "key", segment->key);

	if (commit[0])
		json_object_set_new(line, "commit", json_string(commit));
	return line;
}

/* Makes a JSON string of a text from a pod, whose invalid bytes are escaped. */
static json_t *json_of_foreign(const char *foreign)
{
	struct str clean = STR_INIT;

	str_add_printable(&clean, foreign, strlen(foreign), 0);
	json_t *text = json_string(str_text(&clean));
	str_free(&clean);
	return text;
}

void manifest_add_result(json_t *line, const struct segment_result *result)
{
	json_object_set_new(line, "provider", json_of_foreign(result->provider));
	json_object_set_new(line, "gpu", json_of_foreign(result->gpu));
	json_object_set_new(line, "batch", json_of_foreign(result->batch));
	json_object_set_new(line, "attempt", json_of_foreign(result->attempt));
	if (result->rendered_as[0] && strcmp(result->rendered_as, jsonx_text(line, "file", "")))
		json_object_set_new(line, "rendered_as", json_of_foreign(result->rendered_as));
	json_object_set_new(line, "cached", json_boolean(result->cached));
	json_object_set_new(line, "tries", json_integer(result->tries));
	json_object_set_new(line, "suspect", json_boolean(result->suspect));
	if (result->suspect)
		json_object_set_new(line, "reason", json_of_foreign(result->reason));
}

/* Appends a line of JSON. 12 digits are precise to a sample, and keep 3.289 as 3.289. */
static void add_line(struct str *text, const json_t *line)
{
	CLEANUP(free_text) char *compact = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));

	str_add(text, compact);
	str_addc(text, '\n');
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the newest line of each unchanged file of `old` that is not among the sorted now->files. */
static int add_former(struct str *text, const char *dir, const struct manifest *old,
		      const struct manifest_lines *now, struct err *err)
{
	for (size_t i = 0; i < old->count; i++) {
		const char *file = old->by_file[i]->file;
		const struct manifest_entry *kept;
		bool absent;
		if (!manifest_is_latest(old, i) ||
		    (now->count &&
		     bsearch(&file, now->files, now->count, sizeof(*now->files), compare_texts)))
			continue;
		if (manifest_match(old, dir, file, NULL, &kept, &absent, err) < 0)
			return -1;
		if (!kept)
			continue;
		CLEANUP(json_decref) json_t *line = manifest_entry_json(kept);
		json_object_set_new(line, "former", json_true());
		add_line(text, line);
	}
	return 0;
}

void manifest_lines_add(struct manifest_lines *lines, json_t *line)
{
	GROW(lines->files, lines->count, lines->cap);
	lines->files[lines->count++] = xstrdup(jsonx_text(line, "file", ""));
	add_line(&lines->text, line);
	json_decref(line);
}

void manifest_lines_free(struct manifest_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->files[i]);
	free(lines->files);
	str_free(&lines->text);
	*lines = (struct manifest_lines){0};
}

int manifest_append(const char *dir, const struct manifest_lines *lines, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(dir, MANIFEST_NAME);
	/* open without following links: a repository may contain one, to a file outside */
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	CLEANUP(fd_close)
	int fd = folder < 0
			 ? -1
			 : openat(folder, MANIFEST_NAME,
				  O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
				  0666);
	struct stat st;
	char last = '\n';

	if (fd < 0 && errno == ELOOP)
		return err_set(err, ERR_LOCAL,
			       "%s: is a link, and nothing is written through it: remove it", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_LOCAL, "%s: is not a regular file", path);
	/* end a line that a full disk cut off, so that the next one starts on its own line */
	if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n' &&
	    write(fd, "\n", 1) != 1)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	ssize_t n = write(fd, str_text(&lines->text), lines->text.len);
	if (n >= 0 && (size_t)n != lines->text.len)
		return err_set(err, ERR_LOCAL, "%s: the disk is full: free some space and retry",
			       path);
	if (n < 0 || fsync(fd) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	return 0;
}

int manifest_rewrite(const char *dir, struct manifest_lines *lines, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(dir, MANIFEST_NAME);
	CLEANUP(manifest_free) struct manifest old = {0};

	if (lines->count)
		qsort(lines->files, lines->count, sizeof(*lines->files), compare_texts);
	if (manifest_read(dir, true, &old, err) < 0)
		return -1;
	if (add_former(&lines->text, dir, &old, lines, err) < 0)
		return -1;
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	if (folder < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	return path_write_at(folder, MANIFEST_NAME, path, str_text(&lines->text), lines->text.len,
			     0666, err);
}
