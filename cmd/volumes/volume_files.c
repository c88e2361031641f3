/* volume_files.c - lists a folder of a volume, and copies one file from or to it. */
#include "volume_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/natural.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/table.h"

enum { ASK_MS = 3600 * 1000 };
#define FILE_MOST (INT64_C(1) << 40)

int volume_split(const char *text, char **name, const char **path, struct err *err)
{
	const char *colon = strchr(text, ':');
	const char *rest = colon ? colon + 1 : text;

	rest += strspn(rest, "/");
	if (*rest && !path_is_safe(rest))
		return err_set(err, ERR_USAGE, "volume: \"%.60s\" is not a path on a volume", text);
	*name = colon && colon > text ? xstrndup(text, (size_t)(colon - text)) : NULL;
	*path = rest;
	return 0;
}

static struct op_want want_of(const struct volume_row *v, const char *path)
{
	struct op_want want = {.file.path = path};

	COPY_TEXT(want.file.volume.provider, v->provider);
	COPY_TEXT(want.file.volume.id, v->id);
	COPY_TEXT(want.file.volume.name, v->name);
	COPY_TEXT(want.file.volume.region, v->region);
	return want;
}

static int cannot(const struct volume_row *v, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "volume %s: %s cannot %s files there without a pod, or has no keys for that "
		       "(see `burst doctor`)",
		       v->name, v->provider, what);
}

static int by_name(const void *a, const void *b)
{
	return natural_order(((const struct volume_entry *)a)->name,
			     ((const struct volume_entry *)b)->name);
}

static void print_entries(struct volume_entry *list, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char when[32];

	if (count)
		qsort(list, count, sizeof(*list), by_name);
	table_column(t, "NAME", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "BYTES", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "CHANGED (UTC)", TABLE_LEFT, 1);
	for (size_t i = 0; i < count; i++) {
		clock_rfc3339(when, sizeof(when), list[i].changed_s * 1000);
		table_cell(t, "%s%s", list[i].name, list[i].folder ? "/" : "");
		if (list[i].bytes < 0)
			table_cell(t, "-");
		else
			table_cell(t, "%lld", (long long)list[i].bytes);
		table_cell(t, "%s", list[i].changed_s > 0 ? when : "-");
	}
	table_print(t, stdout, terminal_width(stdout));
}

int volume_list_folder(const struct engine_provider *p, const struct volume_row *v,
		       const char *path, struct err *err)
{
	struct op_want want = want_of(v, path);
	struct op_result result = {0};

	if (!provider_can_tidy(p->ops, p->handle, &want.file.volume))
		return cannot(v, "list", err);
	if (caller_perform(p, OP_VOLUME_LS, &want, ASK_MS, &result, err) < 0)
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_USAGE, "volume %s has no folder \"%s\"", v->name,
					 path)
			       : err_wrap(err, "%s", v->provider);
	print_entries(result.entries, result.entry_count);
	op_result_free(&result);
	return 0;
}

int volume_get_file(const struct engine_provider *p, const struct volume_row *v, const char *path,
		    const char *file, struct err *err)
{
	CLEANUP(free_text) char *part = xasprintf("%s%s", file, PATH_PART);
	struct op_want want = want_of(v, path);
	struct op_result result = {0};

	if (!provider_can_fetch(p->ops, p->handle, &want.file.volume))
		return cannot(v, "read", err);
	if (path_exists(file))
		return err_set(err, ERR_USAGE, "%s already exists; nothing was changed", file);
	want.file.local = part;
	want.file.max_bytes = FILE_MOST;
	unlink(part);
	if (caller_perform(p, OP_FETCH, &want, ASK_MS, &result, err) < 0) {
		unlink(part);
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_USAGE, "volume %s has no file \"%s\"", v->name,
					 path)
			       : err_wrap(err, "%s", v->provider);
	}
	op_result_free(&result);
	if (rename(part, file) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", file, strerror(errno));
	output_line(stderr, "%s: from volume %s", file, v->name);
	return 0;
}

int volume_put_file(const struct engine_provider *p, const struct volume_row *v, const char *file,
		    const char *path, struct err *err)
{
	struct op_want want = want_of(v, path);
	struct op_result result = {0};
	struct stat st;

	if (!provider_can_stage(p->ops, p->handle, &want.file.volume))
		return cannot(v, "write", err);
	if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: %s", file,
			       errno == ENOENT ? strerror(errno) : "is not a regular file");
	want.file.local = file;
	want.file.max_bytes = st.st_size;
	if (p->ops->stage_block_bytes &&
	    blocks_of_file(&want.file.blocks, file, p->ops->stage_block_bytes, err) < 0)
		return -1;
	int status = caller_perform(p, OP_STAGE, &want, ASK_MS, &result, err);
	blocks_free(&want.file.blocks);
	if (status < 0)
		return err_wrap(err, "%s", v->provider);
	op_result_free(&result);
	output_line(stderr, "%s: on volume %s as %s", file, v->name, path);
	return 0;
}
