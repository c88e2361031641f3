/* volumes.c - finds or makes volumes by name, and reads their files without a sandbox, block by
 * block from addresses that expire. */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/section.h"

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
	CLOCK_S = 3600
};
#define GIB (INT64_C(1) << 30)

/* ---- by name ---- */

static int check_name(const struct op *op, struct err *err)
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

/* Version 2 only: its files are durable once `sync` has ended; on version 1 only when the sandbox
 * ends. */
static enum op_next request_volume_id(struct turn *t, bool create)
{
	const struct op_want *want = t->op->want;
	Modal__Client__VolumeGetOrCreateRequest request =
		MODAL__CLIENT__VOLUME_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)want->volume.name;
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.has_object_creation_type = request.has_version = create;
	request.object_creation_type =
		MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_CREATE_IF_MISSING;
	request.version = MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2;
	return modal_call(t, CALL_POLL, "VolumeGetOrCreate", &request.base, 0);
}

static int64_t volume_price(const struct op *op, int64_t gib)
{
	return gib * section_int(op->provider->conf, "volume_price");
}

/* Shows the cost before the volume is made. */
static enum op_next make_or_not(struct turn *t)
{
	const char *name = t->op->want->volume.name;
	char price[32];

	if (t->err->kind != ERR_NOT_FOUND || t->op->step)
		return OP_FAILED;
	if (!t->op->want->volume.create) {
		err_set(t->err, ERR_NOT_FOUND,
			"no volume \"%s\" at Modal: `burst volume create %s`, or volume.create "
			"= true, creates it",
			name, name);
		return OP_FAILED;
	}
	err_clear(t->err);
	log_line(LOG_NOTE,
		 "modal: creating volume \"%s\": %s a month for each GiB on it, until it is "
		 "removed",
		 name, money_show(price, sizeof(price), volume_price(t->op, 1)));
	t->op->step = 1;
	return request_volume_id(t, true);
}

enum op_next modal_volume_next(struct turn *t)
{
	const char *name = modal_text(t->op->want->volume.name);

	if (!t->reply)
		return check_name(t->op, t->err) < 0 ? OP_FAILED : request_volume_id(t, false);
	MODAL_MESSAGE(Modal__Client__VolumeGetOrCreateResponse, answer, t, "looking for the volume",
		      modal__client__volume_get_or_create_response__descriptor);
	if (!answer)
		return make_or_not(t);
	int version = answer->metadata && answer->metadata->version ? answer->metadata->version
								    : answer->version;
	if (!modal_id_is_sound(answer->volume_id, "vo-")) {
		err_set(t->err, ERR_TRANSIENT,
			"looking for the volume: the answer has no usable id");
		return OP_FAILED;
	}
	if (version != MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2) {
		err_set(t->err, ERR_CONFIG,
			"volume \"%s\" is of version %d at Modal; burst needs version 2: choose "
			"another name",
			name, MAX(version, 1));
		return OP_FAILED;
	}
	struct volume *v = t->op->got.volumes = xcalloc(1, sizeof(*v));
	t->op->got.volume_count = 1;
	COPY_TEXT(v->provider, "modal");
	COPY_TEXT(v->id, answer->volume_id);
	COPY_TEXT(v->name, name);
	v->used_bytes = -1;
	/* billed by content: use the intended size until that is known */
	v->size_gb = MAX(t->op->want->volume.size_gb, (int64_t)0);
	v->price_microusd_month = volume_price(t->op, v->size_gb);
	return modal_done(t);
}

/* ---- all of them ---- */

enum { ASKED_PAGE = 1, ASKED_SIZE };

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
	struct volume v = {.used_bytes = -1};

	for (size_t i = 0; i < op->got.volume_count; i++)
		if (!strcmp(op->got.volumes[i].id, item->volume_id))
			return;
	COPY_TEXT(v.provider, "modal");
	COPY_TEXT(v.id, item->volume_id);
	COPY_TEXT(v.name, modal_text(item->label));
	op->got.volumes = xrealloc(op->got.volumes, (op->got.volume_count + 1) * sizeof(v));
	op->got.volumes[op->got.volume_count++] = v;
}

/* Requests the size of the next volume, which decides its bill. */
static enum op_next request_size(struct turn *t)
{
	struct op *op = t->op;

	if (!op->measure_until_ms)
		op->measure_until_ms = clock_boot_ms() + MEASURE_ALL_MS;
	if (op->looked == MIN(op->got.volume_count, (size_t)MEASURED_MOST) ||
	    clock_boot_ms() > op->measure_until_ms)
		return modal_done(t);
	op->step = ASKED_SIZE;
	return modal_call_list(t, op->got.volumes[op->looked].id, "/", true, MEASURE_S);
}

static void take_file(struct op *op, const Modal__Client__FileEntry *e, const char *rest)
{
	struct volume *v = &op->got.volumes[op->looked];

	(void)rest;
	v->used_bytes = MIN(v->used_bytes + modal_entry_bytes(e), INT64_MAX / 4);
}

static enum op_next take_size(struct turn *t)
{
	struct volume *v = &t->op->got.volumes[t->op->looked];
	bool cut;

	v->used_bytes = 0;
	if (modal_read_list(t, "", take_file, &cut) < 0) {
		v->used_bytes = -1;
		if (t->err->kind == ERR_CREDENTIALS)
			return OP_FAILED;
		log_line(LOG_DEBUG, "modal: volume %s: its size is unknown: %s", v->id,
			 t->err->msg);
		err_clear(t->err);
		return modal_done(t); /* requests for the others would fail too */
	}
	v->size_gb = (v->used_bytes + GIB - 1) / GIB;
	v->price_microusd_month = volume_price(t->op, v->size_gb);
	t->op->looked++;
	return request_size(t);
}

static enum op_next take_page(struct turn *t)
{
	double before = t->op->before;
	MODAL_MESSAGE(Modal__Client__VolumeListResponse, answer, t, "listing volumes",
		      modal__client__volume_list_response__descriptor);

	if (!answer)
		return OP_FAILED;
	for (size_t i = 0; i < answer->n_items; i++) {
		const Modal__Client__VolumeListItem *item = answer->items[i];
		if (!modal_id_is_sound(item->volume_id, "vo-")) {
			err_set(t->err, ERR_TRANSIENT, "listing volumes: one without a usable id");
			return OP_FAILED;
		}
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
		return request_size(t);
	return request_page(t);
}

enum op_next modal_volumes_next(struct turn *t)
{
	if (!t->op->step)
		return request_page(t);
	return t->op->step == ASKED_PAGE ? take_page(t) : take_size(t);
}

enum op_next modal_volume_remove_next(struct turn *t)
{
	Modal__Client__VolumeDeleteRequest request = MODAL__CLIENT__VOLUME_DELETE_REQUEST__INIT;

	if (!t->reply) {
		request.volume_id = (char *)t->op->want->id;
		return modal_call(t, CALL_POLL, "VolumeDelete", &request.base, 0);
	}
	if (modal_answered(t, "removing a volume") < 0 && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	return modal_done(t);
}

/* ---- a file of it ---- */

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
	t->op->step = 1;
	return modal_call(t, CALL_POLL, "VolumeGetFile2", &request.base, 0);
}

static enum op_next fetched(struct turn *t)
{
	const struct op *op = t->op;

	if (op->got.bytes == op->expected)
		return modal_done(t);
	err_set(t->err, ERR_TRANSIENT, "fetching %s: got %lld of %lld bytes", op->want->file.path,
		(long long)op->got.bytes, (long long)op->expected);
	return OP_FAILED;
}

/* Requests a block from the server that stores it, without any of our tokens. */
static enum op_next request_block(struct turn *t)
{
	struct op *op = t->op;

	if (op->next_url == op->url_count)
		return fetched(t);
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
	op->step = 2;
	return OP_CALL;
}

bool modal_url_is_sound(const struct provider *p, const char *url)
{
	return url && (starts_with(url, "https://") ||
		       (starts_with(url, "http://") && starts_with(p->root, "http://")));
}

static enum op_next take_urls(struct turn *t)
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
		return fetched(t);
	op->url_count = answer->n_get_urls;
	op->urls = xcalloc(answer->n_get_urls + 1, sizeof(*op->urls));
	for (size_t i = 0; i < answer->n_get_urls; i++) {
		op->urls[i] = xstrdup(modal_text(answer->get_urls[i]));
		if (!modal_url_is_sound(op->provider, op->urls[i])) {
			err_set(t->err, ERR_UNTRUSTED,
				"fetching %s: Modal names an address that is not https",
				op->want->file.path);
			return OP_FAILED;
		}
	}
	return request_block(t);
}

/* Reads a block. What was written before a connection broke stays in the file. The caller retries
 * from there, so this does not retry. */
static enum op_next take_block(struct turn *t)
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
	const struct op_want *want = t->op->want;

	if (!t->op->step) {
		if (!modal_id_is_sound(want->file.volume.id, "vo-") ||
		    !path_is_safe(want->file.path) || want->file.offset < 0) {
			err_set(t->err, ERR_REFUSED,
				"\"%s\" of volume %s is not a file that can be asked for",
				modal_text(want->file.path), want->file.volume.id);
			return OP_FAILED;
		}
		return request_urls(t);
	}
	return t->op->step == 1 ? take_urls(t) : take_block(t);
}
