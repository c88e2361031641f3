/* files.c - volumes of Modal: finds or makes them, and reads, puts, lists and removes their files
 * without a sandbox */
#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "base/section.h"
#include "impl.h"

/* ---- listing and removing a folder: a listing is one stream, however deep the folder is ---- */

enum {
	LIST_MOST = 100000,
	LIST_MOST_BYTES = 32 << 20,
	LIST_S = 300,
	BROKEN_MOST = 3,
	BROKEN_MS = 1000
};
enum { FOLDER = 2 }; /* FileEntry.type */
#define SUM_MOST_BYTES (INT64_MAX / 4)
enum { ASKED_LIST = 1, PAUSE, ASKED_REMOVE };
enum list_depth { LIST_ONE_LEVEL, LIST_ALL_BELOW };
/* Called for each entry of a list. rest: its path below the listed folder, "" for that folder. */
typedef void entry_taker(struct op *op, const Modal__Client__FileEntry *e, const char *rest);

/* Requests the list of a folder ("/": the whole volume), which must be complete within wait_s. */
static enum op_next call_list(struct turn *t, const char *volume_id, const char *path,
			      enum list_depth depth, int wait_s)
{
	Modal__Client__VolumeListFilesRequest request =
		MODAL__CLIENT__VOLUME_LIST_FILES_REQUEST__INIT;

	request.volume_id = (char *)volume_id;
	request.path = (char *)path;
	request.has_max_entries = true;
	request.max_entries = LIST_MOST;
	request.has_recursive = request.recursive = depth == LIST_ALL_BELOW;
	modal_call_stream(t, "VolumeListFiles2", &request.base, wait_s);
	t->call->stream_limit_ms = 0; /* a partial list is useless */
	t->call->max_bytes = LIST_MOST_BYTES;
	return OP_CALL;
}

/* The part of path below the folder ("": the volume): "" for the folder itself, NULL outside. */
static const char *rest_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	path += strspn(path, "/");
	if (!len)
		return path;
	if (strncmp(path, folder, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + strspn(path + len, "/");
}

/* Reads a list of the folder and calls take for each entry. *cut: the list is incomplete. */
static int for_each_listed(struct turn *t, const char *folder, entry_taker *take, bool *cut)
{
	const struct str *body = &t->reply->body;
	const void *bytes;
	size_t at = 0, len, count = 0;

	*cut = false;
	if (modal_check_reply(t, "listing the volume") < 0) {
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
			const char *rest = rest_below(modal_text(m->entries[i]->path), folder);
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

static int64_t entry_bytes(const Modal__Client__FileEntry *e)
{
	return (int64_t)MIN(e->size, (uint64_t)1 << 50);
}

static int64_t entry_changed_s(const Modal__Client__FileEntry *e)
{
	return (int64_t)MIN(e->mtime, (uint64_t)1 << 40);
}

static int check_file_path(struct turn *t)
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
	return call_list(t, t->op->want->file.volume.id, t->op->want->file.path,
			 t->op->kind == OP_VOLUME_LS ? LIST_ONE_LEVEL : LIST_ALL_BELOW, LIST_S);
}

/* Lists want.file.path and calls take for each entry. Requests the list again if its stream breaks.
 * OP_DONE: the list was read; the operation goes on. */
static enum op_next list_folder_with_retry(struct turn *t, entry_taker *take, bool *cut)
{
	if (!t->op->step && check_file_path(t) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_entries(t);
	if (for_each_listed(t, t->op->want->file.path, take, cut) == 0)
		return OP_DONE;
	if ((t->err->kind != ERR_NETWORK && t->err->kind != ERR_TRANSIENT) ||
	    t->op->broken++ >= BROKEN_MOST)
		return OP_FAILED;
	err_clear(t->err);
	t->op->step = PAUSE;
	return turn_wait(t, BROKEN_MS);
}

/* ---- a folder's entries ---- */

/* Adds an entry that is directly in the folder to the result. */
static void add_entry_directly_in(struct op *op, const Modal__Client__FileEntry *e,
				  const char *rest)
{
	bool folder = e->type == FOLDER;
	struct volume_entry entry = {.folder = folder,
				     .bytes = folder ? -1 : entry_bytes(e),
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
	enum op_next next = list_folder_with_retry(t, add_entry_directly_in, &cut);

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

/* Adds a file to the one entry of the result. */
static void add_entry_to_sum(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	struct volume_entry *sum = op->got.entries;

	(void)rest;
	sum->changed_s = MAX(sum->changed_s, entry_changed_s(e));
	if (e->type == FOLDER)
		return;
	sum->bytes = MIN(sum->bytes + entry_bytes(e), SUM_MOST_BYTES);
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
	enum op_next next = list_folder_with_retry(t, add_entry_to_sum, &cut);
	if (next != OP_DONE)
		return next;
	op->got.entry_count = 1;
	COPY_TEXT(op->got.entries[0].name, path_base(op->want->file.path));
	if (cut) /* the newest entry may be missing from the answer */
		op->got.entries[0].changed_s = 0;
	return modal_done(t);
}

/* ---- removal ---- */

static void add_entry_bytes(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	(void)rest;
	if (e->type != FOLDER)
		op->got.bytes = MIN(op->got.bytes + entry_bytes(e), SUM_MOST_BYTES);
}

static enum op_next request_removal(struct turn *t)
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
		if (modal_check_reply(t, "removing from the volume") < 0 &&
		    t->err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		err_clear(t->err);
		return modal_done(t);
	}
	/* list before the removal: the result has the bytes that it freed */
	enum op_next next = list_folder_with_retry(t, add_entry_bytes, &cut);
	if (next == OP_DONE)
		return request_removal(t);
	if (next != OP_FAILED || t->err->kind != ERR_NOT_FOUND)
		return next;
	err_clear(t->err); /* nothing to remove: success */
	return modal_done(t);
}

/* ---- volumes by name, and their files, block by block from addresses that expire ---- */

enum {
	NAME_MOST = 64,
	BLOCK_MOST_BYTES = 16 << 20,
	BLOCK_MS = 10 * 60 * 1000,
	ADDRESSES_AGAIN_MOST = 3
};
enum {
	PAGE_ROWS = 100,
	PAGES_MOST = 50,
	MEASURED_MOST = 20,
	MEASURE_S = 15,
	MEASURE_ALL_MS = 20000,
	CLOCK_S = 3600 /* how far Modal's clock may be ahead of ours */
};
#define GIB (INT64_C(1) << 30)

/* ---- by name ---- */

static int check_volume_name(const struct op *op, struct err *err)
{
	const char *name = modal_text(op->want->volume.name);

	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return err_set(err, ERR_CONFIG,
				       "volume \"%s\": Modal allows letters, digits, '-', '_' "
				       "and '.' in a volume's name",
				       name);
	if (!*name || strlen(name) >= NAME_MOST)
		return err_set(err, ERR_CONFIG,
			       "volume \"%s\": a name of 1 to %d characters is needed", name,
			       NAME_MOST - 1);
	return 0;
}

/* Creates version 2 only: its files are durable once `sync` has ended, those of version 1 only when
 * the sandbox ends. */
static enum op_next request_volume_id(struct turn *t, enum modal_missing missing)
{
	const struct op_want *want = t->op->want;
	Modal__Client__VolumeGetOrCreateRequest request =
		MODAL__CLIENT__VOLUME_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)want->volume.name;
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.has_object_creation_type = request.has_version = missing == MODAL_MAKE_MISSING;
	request.object_creation_type =
		MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_CREATE_IF_MISSING;
	request.version = MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2;
	return modal_call(t, CALL_POLL, "VolumeGetOrCreate", &request.base, 0);
}

static int64_t volume_price_microusd_month(const struct op *op, int64_t gib)
{
	return gib * section_int(op->provider->conf, "volume_price");
}

/* Makes the volume, after a log line with its price, if it may be made and was not found. */
static enum op_next make_missing_volume(struct turn *t)
{
	const char *name = t->op->want->volume.name;
	char price[32];

	if (t->err->kind != ERR_NOT_FOUND || t->op->step)
		return OP_FAILED;
	if (!t->op->want->volume.create)
		return turn_fail(
			t, ERR_NOT_FOUND,
			"no volume \"%s\" at Modal: `burst volume create %s`, or volume.create "
			"= true, creates it",
			name, name);
	err_clear(t->err);
	log_line(LOG_NOTE,
		 "modal: creating volume \"%s\": %s a month for each GiB on it, until it is "
		 "removed",
		 name, money_show(price, sizeof(price), volume_price_microusd_month(t->op, 1)));
	t->op->step = 1;
	return request_volume_id(t, MODAL_MAKE_MISSING);
}

enum op_next modal_volume_next(struct turn *t)
{
	const char *name = modal_text(t->op->want->volume.name);

	if (!t->reply)
		return check_volume_name(t->op, t->err) < 0
			       ? OP_FAILED
			       : request_volume_id(t, MODAL_FAIL_IF_MISSING);
	MODAL_MESSAGE(Modal__Client__VolumeGetOrCreateResponse, answer, t, "looking for the volume",
		      modal__client__volume_get_or_create_response__descriptor);
	if (!answer)
		return make_missing_volume(t);
	int version = answer->metadata && answer->metadata->version ? answer->metadata->version
								    : answer->version;
	if (!modal_id_is_sound(answer->volume_id, "vo-"))
		return turn_fail(t, ERR_TRANSIENT,
				 "looking for the volume: the answer has no usable id");
	if (version != MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2)
		return turn_fail(
			t, ERR_CONFIG,
			"volume \"%s\" is of version %d at Modal; burst needs version 2: choose "
			"another name",
			name, MAX(version, 1));
	struct volume *v = op_result_add_volume(&t->op->got);
	COPY_TEXT(v->provider, "modal");
	COPY_TEXT(v->id, answer->volume_id);
	COPY_TEXT(v->name, name);
	v->used_bytes = -1;
	/* billed by content: use the intended size until that is known */
	v->size_gb = MAX(t->op->want->volume.size_gb, (int64_t)0);
	v->price_microusd_month = volume_price_microusd_month(t->op, v->size_gb);
	return modal_done(t);
}

/* ---- all volumes ---- */

enum { ASKED_PAGE = 1, ASKED_SIZE };

/* Requests the volumes made before the last one of the previous page. */
static enum op_next request_page(struct turn *t)
{
	Modal__Client__ListPagination pagination = MODAL__CLIENT__LIST_PAGINATION__INIT;
	Modal__Client__VolumeListRequest request = MODAL__CLIENT__VOLUME_LIST_REQUEST__INIT;

	if (!t->op->before)
		t->op->before = (double)(clock_wall_ms() / 1000 + CLOCK_S);
	pagination.has_max_objects = pagination.has_created_before = true;
	pagination.max_objects = PAGE_ROWS;
	pagination.created_before = t->op->before;
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.pagination = &pagination;
	t->op->step = ASKED_PAGE;
	return modal_call(t, CALL_POLL, "VolumeList", &request.base, 0);
}

static void add_volume(struct op *op, const Modal__Client__VolumeListItem *item)
{
	if (op_result_has_volume(&op->got, item->volume_id))
		return;
	struct volume *v = op_result_add_volume(&op->got);
	v->used_bytes = -1;
	COPY_TEXT(v->provider, "modal");
	COPY_TEXT(v->id, item->volume_id);
	COPY_TEXT(v->name, modal_text(item->label));
}

/* Lists the files of the next volume, whose size decides its bill. After the last one, or when it
 * takes too long, the operation is done: the other sizes stay unknown. */
static enum op_next request_next_size(struct turn *t)
{
	struct op *op = t->op;

	if (!op->measure_until_ms)
		op->measure_until_ms = clock_boot_ms() + MEASURE_ALL_MS;
	if (op->looked == MIN(op->got.volume_count, (size_t)MEASURED_MOST) ||
	    clock_boot_ms() > op->measure_until_ms)
		return modal_done(t);
	op->step = ASKED_SIZE;
	return call_list(t, op->got.volumes[op->looked].id, "/", LIST_ALL_BELOW, MEASURE_S);
}

static void add_entry_to_volume(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	struct volume *v = &op->got.volumes[op->looked];

	(void)rest;
	v->used_bytes = MIN(v->used_bytes + entry_bytes(e), SUM_MOST_BYTES);
}

/* Sets the size and price of the volume whose files were listed. */
static enum op_next on_size_reply(struct turn *t)
{
	struct volume *v = &t->op->got.volumes[t->op->looked];
	bool cut;

	v->used_bytes = 0;
	if (for_each_listed(t, "", add_entry_to_volume, &cut) < 0) {
		v->used_bytes = -1;
		if (t->err->kind == ERR_CREDENTIALS)
			return OP_FAILED;
		log_line(LOG_DEBUG, "modal: volume %s: its size is unknown: %s", v->id,
			 t->err->msg);
		err_clear(t->err);
		return modal_done(t); /* requests for the others would fail too */
	}
	v->size_gb = (v->used_bytes + GIB - 1) / GIB;
	v->price_microusd_month = volume_price_microusd_month(t->op, v->size_gb);
	t->op->looked++;
	return request_next_size(t);
}

static enum op_next on_page_reply(struct turn *t)
{
	double before = t->op->before;
	MODAL_MESSAGE(Modal__Client__VolumeListResponse, answer, t, "listing volumes",
		      modal__client__volume_list_response__descriptor);

	if (!answer)
		return OP_FAILED;
	for (size_t i = 0; i < answer->n_items; i++) {
		const Modal__Client__VolumeListItem *item = answer->items[i];
		if (!modal_id_is_sound(item->volume_id, "vo-"))
			return turn_fail(t, ERR_TRANSIENT,
					 "listing volumes: one without a usable id");
		t->op->before = item->created_at;
		/* burst neither makes nor uses other versions */
		if (item->metadata &&
		    item->metadata->version ==
			    MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2 &&
		    strlen(modal_text(item->label)) < NAME_MOST)
			add_volume(t->op, item);
	}
	if (answer->n_items < PAGE_ROWS || t->op->before >= before || t->op->before <= 0 ||
	    ++t->op->pages >= PAGES_MOST)
		return request_next_size(t);
	return request_page(t);
}

enum op_next modal_volumes_next(struct turn *t)
{
	if (!t->op->step)
		return request_page(t);
	return t->op->step == ASKED_PAGE ? on_page_reply(t) : on_size_reply(t);
}

enum op_next modal_volume_remove_next(struct turn *t)
{
	Modal__Client__VolumeDeleteRequest request = MODAL__CLIENT__VOLUME_DELETE_REQUEST__INIT;

	if (!t->reply) {
		request.volume_id = (char *)t->op->want->id;
		return modal_call(t, CALL_POLL, "VolumeDelete", &request.base, 0);
	}
	if (modal_check_reply(t, "removing a volume") < 0 && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	return modal_done(t);
}

/* ---- fetching a file ---- */

enum { ASKED_URLS = 1, ASKED_BLOCK };

static void forget_urls(struct op *op)
{
	for (size_t i = 0; i < op->url_count; i++)
		free(op->urls[i]);
	free(op->urls);
	op->urls = NULL;
	op->url_count = op->next_url = 0;
}

void modal_volumes_op_free(struct op *op)
{
	forget_urls(op);
}

/* Requests the addresses of the file's blocks, from the first byte that is missing here on. */
static enum op_next request_urls(struct turn *t)
{
	const struct op_want *want = t->op->want;
	Modal__Client__VolumeGetFile2Request request =
		MODAL__CLIENT__VOLUME_GET_FILE2_REQUEST__INIT;
	int64_t most = want->file.max_bytes;

	request.volume_id = (char *)want->file.volume.id;
	request.path = (char *)want->file.path;
	request.has_start = true;
	request.start = (uint64_t)(want->file.offset + t->op->got.bytes);
	request.has_len = most > 0;
	request.len = (uint64_t)(most - t->op->got.bytes);
	t->op->step = ASKED_URLS;
	return modal_call(t, CALL_POLL, "VolumeGetFile2", &request.base, 0);
}

/* All blocks are here: fails unless that is the whole file. */
static enum op_next finish_fetch(struct turn *t)
{
	const struct op *op = t->op;

	if (op->got.bytes == op->expected)
		return modal_done(t);
	return turn_fail(t, ERR_TRANSIENT, "fetching %s: got %lld of %lld bytes",
			 op->want->file.path, (long long)op->got.bytes, (long long)op->expected);
}

/* Requests the next block from the server that stores it, without any of our tokens. */
static enum op_next request_block(struct turn *t)
{
	struct op *op = t->op;

	if (op->next_url == op->url_count)
		return finish_fetch(t);
	*t->call = (struct call){
		.kind = CALL_HTTP,
		.class = CALL_POLL,
		.unlimited = true,
		.timeout_ms = BLOCK_MS,
		.max_bytes = BLOCK_MOST_BYTES,
		.method = "GET",
		.url = xstrdup(op->urls[op->next_url]),
		.body_to = xstrdup(op->want->file.local),
	};
	op->step = ASKED_BLOCK;
	return OP_CALL;
}

/* Whether a block may be fetched from or put to this URL: https only, since a plain http URL could
 * name a server of this machine. Tests use http throughout. */
static bool is_block_url_allowed(const struct provider *p, const char *url)
{
	return url && (starts_with(url, "https://") ||
		       (starts_with(url, "http://") && starts_with(p->root, "http://")));
}

/* Keeps the addresses, and requests the first block unless the file ends before the wanted part. */
static enum op_next on_urls_reply(struct turn *t)
{
	struct op *op = t->op;
	MODAL_MESSAGE(Modal__Client__VolumeGetFile2Response, answer, t,
		      "asking for a file of the volume",
		      modal__client__volume_get_file2_response__descriptor);

	if (!answer)
		return OP_FAILED;
	forget_urls(op);
	int64_t offset = op->want->file.offset, most = op->want->file.max_bytes;
	op->expected =
		MAX((int64_t)MIN(answer->size, (uint64_t)INT64_MAX / 4) - offset, (int64_t)0);
	if (most > 0)
		op->expected = MIN(op->expected, most);
	/* beyond the end of the file */
	if (op->got.bytes >= op->expected)
		return finish_fetch(t);
	op->url_count = answer->n_get_urls;
	op->urls = xcalloc(answer->n_get_urls + 1, sizeof(*op->urls));
	for (size_t i = 0; i < answer->n_get_urls; i++) {
		op->urls[i] = xstrdup(modal_text(answer->get_urls[i]));
		if (!is_block_url_allowed(op->provider, op->urls[i]))
			return turn_fail(t, ERR_UNTRUSTED,
					 "fetching %s: Modal names an address that is not https",
					 op->want->file.path);
	}
	return request_block(t);
}

/* A block was appended to the local file, or a part of it before the connection broke: the caller
 * retries from there, so this function does not. */
static enum op_next on_block_reply(struct turn *t)
{
	struct op *op = t->op;
	const struct reply *r = t->reply;

	if (r->failed) {
		*t->err = r->err;
		err_wrap(t->err, "fetching %s", op->want->file.path);
		return OP_FAILED;
	}
	/* the address has expired */
	if ((r->status == 403 || r->status == 400) && op->urls_again++ < ADDRESSES_AGAIN_MOST)
		return request_urls(t);
	if (r->status != 200 && r->status != 206) {
		enum err_kind kind = r->status == 429   ? ERR_RATE_LIMITED
				     : r->status == 404 ? ERR_NOT_FOUND
							: ERR_TRANSIENT;
		err_set(t->err, kind, "fetching %s: HTTP %d", op->want->file.path, r->status);
		t->err->retry_after_ms = r->retry_after_ms;
		return OP_FAILED;
	}
	op->got.bytes += r->to_bytes;
	op->next_url++;
	op->urls_again = 0;
	return request_block(t);
}

enum op_next modal_fetch_next(struct turn *t)
{
	if (!t->op->step)
		return check_file_path(t) < 0 ? OP_FAILED : request_urls(t);
	return t->op->step == ASKED_URLS ? on_urls_reply(t) : on_block_reply(t);
}

/* ---- stage ----
 * Puts a file onto a volume without a sandbox. Blocks are named by their hashes. Modal gives
 * addresses for missing blocks; the replies to the PUTs are sent back, until nothing is missing. */

enum { BLOCKS_MOST = 4096, PUT_MS = 10 * 60 * 1000, ANSWER_MOST = 64 << 10, REFUSAL_MOST = 160 };
/* limits of requests for missing blocks: in all, and without an accepted PUT in between */
enum { ROUNDS_MOST = 20, IN_VAIN_MOST = 4 };
enum { TRIES_MOST = 6, WAIT_FIRST_MS = 500, WAIT_MOST_MS = 10000 };
enum { ASKED_MISSING = 1, ASKED_PUT, STAGE_PAUSE };

struct staged_block {
	char *url;         /* address for the PUT; NULL: none */
	bool put;          /* Modal's storage has accepted it */
	struct str answer; /* of the PUT */
};

void modal_stage_op_free(struct op *op)
{
	for (size_t i = 0; op->staged && i < op->want->file.blocks.count; i++) {
		free(op->staged[i].url);
		str_free(&op->staged[i].answer);
	}
	free(op->staged);
}

static enum op_next fail_staging(struct turn *t, enum err_kind kind, const char *why)
{
	return turn_fail(t, kind, "putting %s on the volume: %s", t->op->want->file.path, why);
}

/* ERR_BUG: want.file.blocks does not fit the file. */
static int check_staged_file(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct file_blocks *blocks = &want->file.blocks;

	if (check_file_path(t) < 0)
		return -1;
	if (blocks->bytes < 0 ||
	    blocks->count != (size_t)((blocks->bytes + MODAL_BLOCK_BYTES - 1) / MODAL_BLOCK_BYTES))
		return err_set(t->err, ERR_BUG, "%s: %zu blocks for %lld bytes", want->file.path,
			       blocks->count, (long long)blocks->bytes);
	if (blocks->count > BLOCKS_MOST)
		return err_set(t->err, ERR_REFUSED, "%s: %lld bytes are too many for one file",
			       want->file.path, (long long)blocks->bytes);
	return 0;
}

/* ---- what is missing? ---- */

/* Names all blocks and the answers to their PUTs: Modal makes the file, or lists missing ones. */
static enum op_next request_missing(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct file_blocks *blocks = &want->file.blocks;
	Modal__Client__VolumePutFiles2Request__Block *all = xcalloc(blocks->count + 1,
								    sizeof(*all)),
						     **list = xcalloc(blocks->count + 1,
								      sizeof(*list));
	Modal__Client__VolumePutFiles2Request__File
		file = MODAL__CLIENT__VOLUME_PUT_FILES2_REQUEST__FILE__INIT,
		*files[] = {&file};
	Modal__Client__VolumePutFiles2Request request =
		MODAL__CLIENT__VOLUME_PUT_FILES2_REQUEST__INIT;

	for (size_t i = 0; i < blocks->count; i++) {
		struct staged_block *s = &t->op->staged[i];
		modal__client__volume_put_files2_request__block__init(&all[i]);
		all[i].has_contents_sha256 = true;
		all[i].contents_sha256 = (ProtobufCBinaryData){sizeof(blocks->list[i].sha256),
							       blocks->list[i].sha256};
		all[i].has_put_response = s->put;
		all[i].put_response = (ProtobufCBinaryData){s->answer.len, (uint8_t *)s->answer.s};
		list[i] = &all[i];
	}
	file.path = (char *)want->file.path;
	file.has_size = file.has_mode = true;
	file.size = (uint64_t)blocks->bytes;
	file.mode = 0600;
	file.n_blocks = blocks->count;
	file.blocks = list;
	request.volume_id = (char *)want->file.volume.id;
	request.n_files = 1;
	request.files = files;
	t->op->step = ASKED_MISSING;
	enum op_next what = modal_call(t, CALL_POLL, "VolumePutFiles2", &request.base, 0);
	free(all);
	free(list);
	return what;
}

/* Fails with `why` after too many requests without progress. */
static enum op_next request_missing_again(struct turn *t, const char *why)
{
	if (t->op->urls_again++ >= IN_VAIN_MOST || t->op->rounds++ >= ROUNDS_MOST)
		return fail_staging(t, ERR_TRANSIENT, why);
	return request_missing(t);
}

/* ---- block by block ---- */

/* Puts the next block that has an address. After the last one, asks again what is missing. */
static enum op_next request_next_put(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct file_blocks *blocks = &want->file.blocks;
	size_t i = 0;

	while (i < blocks->count && !t->op->staged[i].url)
		i++;
	if (i == blocks->count)
		return request_missing_again(t,
					     "Modal accepts the blocks but keeps reporting them as "
					     "missing");
	*t->call = (struct call){
		.kind = CALL_HTTP,
		.class = CALL_POLL,
		.unlimited = true,
		.may_repeat = true,
		.timeout_ms = PUT_MS,
		.max_bytes = ANSWER_MOST,
		.method = "PUT",
		.url = xstrdup(t->op->staged[i].url),
	};
	call_header(t->call, "Content-Type: application/octet-stream");
	if (blocks->list[i].bytes) { /* only zeros: nothing is sent */
		t->call->body_from = xstrdup(want->file.local);
		t->call->body_from_offset = (int64_t)i * MODAL_BLOCK_BYTES;
		t->call->body_from_bytes = blocks->list[i].bytes;
	}
	t->op->putting = i;
	t->op->step = ASKED_PUT;
	return OP_CALL;
}

/* Keeps the addresses of the missing blocks and puts the first one; none missing: done. */
static enum op_next on_missing_reply(struct turn *t)
{
	struct op *op = t->op;
	MODAL_MESSAGE(Modal__Client__VolumePutFiles2Response, answer, t,
		      "putting a file on the volume",
		      modal__client__volume_put_files2_response__descriptor);

	if (!answer)
		return OP_FAILED;
	for (size_t i = 0; i < op->want->file.blocks.count; i++)
		free(TAKE(op->staged[i].url));
	for (size_t i = 0; i < answer->n_missing_blocks; i++) {
		const Modal__Client__VolumePutFiles2Response__MissingBlock *m =
			answer->missing_blocks[i];
		if (m->file_index || m->block_index >= op->want->file.blocks.count)
			return fail_staging(
				t, ERR_UNTRUSTED,
				"Modal reports a block as missing that the file does not "
				"have");
		if (!is_block_url_allowed(op->provider, m->put_url))
			return fail_staging(t, ERR_UNTRUSTED,
					    "Modal names an address that is not https");
		free(op->staged[m->block_index].url);
		op->staged[m->block_index].url = xstrdup(m->put_url);
	}
	if (answer->n_missing_blocks)
		return request_next_put(t);
	op->got.bytes = op->want->file.blocks.bytes;
	return modal_done(t);
}

/* Marks the block as put, wherever it occurs in the file, and puts the next one. */
static enum op_next on_block_accepted(struct turn *t)
{
	const struct file_blocks *blocks = &t->op->want->file.blocks;
	const unsigned char *sha256 = blocks->list[t->op->putting].sha256;

	for (size_t i = 0; i < blocks->count; i++) {
		struct staged_block *s = &t->op->staged[i];
		if (memcmp(blocks->list[i].sha256, sha256, sizeof(blocks->list[i].sha256)))
			continue;
		free(TAKE(s->url));
		str_reset(&s->answer);
		str_addn(&s->answer, t->reply->body.s ? t->reply->body.s : "", t->reply->body.len);
		s->put = true;
	}
	t->op->urls_again = t->op->broken = 0;
	return request_next_put(t);
}

/* Retries after a failure that may pass; asks for a new address where this one may have expired. */
static enum op_next on_put_reply(struct turn *t)
{
	struct op *op = t->op;
	const struct reply *r = t->reply;
	CLEANUP(str_free) struct str words = STR_INIT;
	bool may_pass = r->failed ? r->err.kind == ERR_NETWORK || r->err.kind == ERR_TRANSIENT
				  : r->status == 429 || r->status >= 500;

	if (!r->failed && r->status >= 200 && r->status <= 299)
		return on_block_accepted(t);
	if (may_pass && op->broken++ < TRIES_MOST) {
		int64_t wait =
			MIN((int64_t)WAIT_FIRST_MS << (op->broken - 1), (int64_t)WAIT_MOST_MS);
		op->step = STAGE_PAUSE;
		return turn_wait(t, MAX(wait, r->retry_after_ms));
	}
	if (r->failed) {
		*t->err = r->err;
		err_wrap(t->err, "putting %s on the volume", op->want->file.path);
		return OP_FAILED;
	}
	str_addf(&words, "HTTP %d ", r->status);
	str_add_printable(&words, str_text(&r->body), r->body.len, REFUSAL_MOST);
	/* the address has expired */
	if (r->status == 400 || r->status == 403 || r->status == 404 || r->status == 410)
		return request_missing_again(t, str_text(&words));
	return fail_staging(t, may_pass ? ERR_TRANSIENT : ERR_REFUSED, str_text(&words));
}

enum op_next modal_stage_next(struct turn *t)
{
	struct op *op = t->op;

	switch (op->step) {
	case 0:
		if (check_staged_file(t) < 0)
			return OP_FAILED;
		op->staged = xcalloc(op->want->file.blocks.count + 1, sizeof(*op->staged));
		return request_missing(t);
	case ASKED_MISSING: return on_missing_reply(t);
	case ASKED_PUT: return on_put_reply(t);
	case STAGE_PAUSE: return request_next_put(t);
	}
	return fail_staging(t, ERR_BUG, "no such step");
}
