/* tidy.c - lists and removes a folder of a volume. A listing is one stream, however deep the folder
 * is. */
#include "impl.h"

#include <stdlib.h>

#include "base/path.h"

enum {
	LIST_MOST = 100000,
	LIST_MOST_BYTES = 32 << 20,
	LIST_S = 300,
	BROKEN_MOST = 3,
	BROKEN_MS = 1000
};
enum { FOLDER = 2 }; /* FileEntry.type */
enum { ASKED_LIST = 1, PAUSE, ASKED_REMOVE };

enum op_next modal_call_list(struct turn *t, const char *volume_id, const char *path,
			     bool recursive, int wait_s)
{
	Modal__Client__VolumeListFilesRequest request =
		MODAL__CLIENT__VOLUME_LIST_FILES_REQUEST__INIT;

	request.volume_id = (char *)volume_id;
	request.path = (char *)path;
	request.has_max_entries = true;
	request.max_entries = LIST_MOST;
	request.has_recursive = recursive;
	request.recursive = recursive;
	modal_call_stream(t, "VolumeListFiles2", &request.base, wait_s);
	t->call->stream_limit_ms = 0; /* a partial list is useless */
	t->call->max_bytes = LIST_MOST_BYTES;
	return OP_CALL;
}

/* The part of an entry's path below the folder: "" for the folder itself, NULL outside it. */
static const char *below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	path += strspn(path, "/");
	if (!len)
		return path;
	if (strncmp(path, folder, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + strspn(path + len, "/");
}

int modal_read_list(struct turn *t, const char *folder,
		    void (*take)(struct op *op, const Modal__Client__FileEntry *e,
				 const char *rest),
		    bool *cut)
{
	const struct str *body = &t->reply->body;
	const void *bytes;
	size_t at = 0, len, count = 0;

	*cut = false;
	if (modal_answered(t, "listing the volume") < 0) {
		/* larger than the limit: what arrived is valid but incomplete */
		if (t->err->kind != ERR_UNTRUSTED || !body->len)
			return -1;
		err_clear(t->err);
		*cut = true;
	}
	while (modal_next_message(body, &at, &bytes, &len)) {
		__attribute__((cleanup(modal_free_cleanup)))
		Modal__Client__VolumeListFilesResponse *m = modal_unpack(
			&modal__client__volume_list_files_response__descriptor, len, bytes);
		if (!m)
			return err_set(t->err, ERR_UNTRUSTED,
				       "listing the volume: the answer cannot be read");
		for (size_t i = 0; i < m->n_entries; i++, count++) {
			const char *rest = below(modal_text(m->entries[i]->path), folder);
			if (!rest)
				return err_set(t->err, ERR_UNTRUSTED,
					       "listing %s of the volume: Modal answers with a "
					       "name that is not in it",
					       folder);
			take(t->op, m->entries[i], rest);
		}
	}
	*cut |= count >= LIST_MOST;
	return 0;
}

int64_t modal_entry_bytes(const Modal__Client__FileEntry *e)
{
	return (int64_t)MIN(e->size, (uint64_t)1 << 50);
}

static int64_t entry_changed_s(const Modal__Client__FileEntry *e)
{
	return (int64_t)MIN(e->mtime, (uint64_t)1 << 40);
}

static int check(struct turn *t)
{
	const struct op_want *want = t->op->want;

	if (!modal_id_is_sound(want->file.volume.id, "vo-") || !path_is_safe(want->file.path))
		return err_set(t->err, ERR_REFUSED, "\"%s\" is not a path on volume %s",
			       modal_text(want->file.path), want->file.volume.id);
	return 0;
}

static enum op_next request_entries(struct turn *t)
{
	t->op->step = ASKED_LIST;
	return modal_call_list(t, t->op->want->file.volume.id, t->op->want->file.path,
			       t->op->kind != OP_VOLUME_LS, LIST_S);
}

/* Sends the request, and again if the stream breaks. OP_DONE: it was read. */
static enum op_next list_folder(struct turn *t,
				void (*take)(struct op *op, const Modal__Client__FileEntry *e,
					     const char *rest),
				bool *cut)
{
	if (!t->op->step && check(t) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_entries(t);
	if (modal_read_list(t, t->op->want->file.path, take, cut) == 0)
		return OP_DONE;
	if ((t->err->kind != ERR_NETWORK && t->err->kind != ERR_TRANSIENT) ||
	    t->op->broken++ >= BROKEN_MOST)
		return OP_FAILED;
	err_clear(t->err);
	t->op->step = PAUSE;
	return modal_wait(t, BROKEN_MS);
}

/* ---- a folder's entries ---- */

static void take_name(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	bool folder = e->type == FOLDER;
	struct volume_entry entry = {.folder = folder,
				     .bytes = folder ? -1 : modal_entry_bytes(e),
				     .files = folder ? -1 : 1,
				     .changed_s = folder ? 0 : entry_changed_s(e)};

	size_t len = strcspn(rest, "/");
	/* a truncated name would be another entry's */
	if (!len || rest[len + strspn(rest + len, "/")] || len >= sizeof(entry.name))
		return;
	memcpy(entry.name, rest, len);
	GROW(op->got.entries, op->got.entry_count, op->entry_cap);
	op->got.entries[op->got.entry_count++] = entry;
}

enum op_next modal_volume_ls_next(struct turn *t)
{
	const char *path = t->op->want->file.path;
	bool cut = false;
	enum op_next next = list_folder(t, take_name, &cut);

	if (next != OP_DONE)
		return next;
	if (cut)
		err_set(t->err, ERR_REFUSED, "%s: there is more in it than can be listed", path);
	else if (!t->op->got.entry_count)
		err_set(t->err, ERR_NOT_FOUND, "%s: nothing is listed there", path);
	else
		return modal_done(t);
	return OP_FAILED;
}

/* ---- total size ---- */

static void take_size(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	struct volume_entry *sum = op->got.entries;

	(void)rest;
	sum->changed_s = MAX(sum->changed_s, entry_changed_s(e));
	if (e->type == FOLDER)
		return;
	sum->bytes = MIN(sum->bytes + modal_entry_bytes(e), INT64_MAX / 4);
	sum->files++;
}

enum op_next modal_volume_size_next(struct turn *t)
{
	struct op *op = t->op;
	bool cut = false;

	if (!op->step) {
		op->got.entries = xcalloc(1, sizeof(*op->got.entries));
		op->got.entries[0].folder = true;
	}
	enum op_next next = list_folder(t, take_size, &cut);
	if (next != OP_DONE)
		return next;
	op->got.entry_count = 1;
	COPY_TEXT(op->got.entries[0].name, path_base(op->want->file.path));
	if (cut) /* the newest entry may be missing from the answer */
		op->got.entries[0].changed_s = 0;
	return modal_done(t);
}

/* ---- removal ---- */

static void take_bytes(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	(void)rest;
	if (e->type != FOLDER)
		op->got.bytes = MIN(op->got.bytes + modal_entry_bytes(e), INT64_MAX / 4);
}

static enum op_next request_remove(struct turn *t)
{
	Modal__Client__VolumeRemoveFile2Request request =
		MODAL__CLIENT__VOLUME_REMOVE_FILE2_REQUEST__INIT;

	request.volume_id = (char *)t->op->want->file.volume.id;
	request.path = (char *)t->op->want->file.path;
	request.has_recursive = request.recursive = true;
	t->op->step = ASKED_REMOVE;
	return modal_call(t, CALL_POLL, "VolumeRemoveFile2", &request.base, LIST_S);
}

enum op_next modal_volume_delete_next(struct turn *t)
{
	bool cut = false;

	if (t->op->step == ASKED_REMOVE) {
		if (modal_answered(t, "removing from the volume") < 0 &&
		    t->err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		err_clear(t->err);
		return modal_done(t);
	}
	/* measure it now: the size is unknown after the removal */
	enum op_next next = list_folder(t, take_bytes, &cut);
	if (next == OP_DONE)
		return request_remove(t);
	if (next != OP_FAILED || t->err->kind != ERR_NOT_FOUND)
		return next;
	err_clear(t->err); /* it is missing already */
	return modal_done(t);
}
