/* volumes.c - volumes: found or made by name; their files without a sandbox, block by block from addresses that hold for a while. */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/section.h"

enum { NAME_MOST = 64, BLOCK_MOST_BYTES = 16 << 20, BLOCK_MS = 10 * 60 * 1000, ADDRESSES_AGAIN_MOST = 3 };

/* ---- by name ---- */

static int check_name(const struct op *op, struct err *err)
{
	const char *name = modal_text(op->want->volume.name);

	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return err_set(err, ERR_CONFIG, "volume \"%s\": Modal takes letters, digits, '-', '_' and '.' in a volume's name", name);
	if (!*name || strlen(name) >= NAME_MOST)
		return err_set(err, ERR_CONFIG, "volume \"%s\": a name of 1 to %d characters is needed", name, NAME_MOST - 1);
	return 0;
}

/* Version 2 only: files on it last from the moment `sync` has ended, on version 1 from the end of the sandbox. */
static enum op_next ask_volume(struct turn *t)
{
	const struct op_want *want = t->op->want;
	Modal__Client__VolumeGetOrCreateRequest request = MODAL__CLIENT__VOLUME_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)want->volume.name;
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.has_object_creation_type = request.has_version = want->volume.create;
	request.object_creation_type = MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_CREATE_IF_MISSING;
	request.version = MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2;
	return modal_ask(t, CALL_POLL, "VolumeGetOrCreate", &request.base, 0);
}

enum op_next modal_volume_next(struct turn *t)
{
	const char *name = modal_text(t->op->want->volume.name);

	if (!t->reply)
		return check_name(t->op, t->err) < 0 ? OP_FAILED : ask_volume(t);
	MODAL_MESSAGE(Modal__Client__VolumeGetOrCreateResponse, answer, t, "looking for the volume",
		      modal__client__volume_get_or_create_response__descriptor);
	if (!answer)
		return OP_FAILED;
	int version = answer->metadata && answer->metadata->version ? answer->metadata->version : answer->version;
	if (!modal_id_is_sound(answer->volume_id, "vo-")) {
		err_set(t->err, ERR_TRANSIENT, "looking for the volume: the answer has no id that we can use");
		return OP_FAILED;
	}
	if (version != MODAL__CLIENT__VOLUME_FS_VERSION__VOLUME_FS_VERSION_V2) {
		err_set(t->err, ERR_CONFIG, "volume \"%s\" is of version %d at Modal; burst needs version 2: choose another name", name,
			MAX(version, 1));
		return OP_FAILED;
	}
	struct volume *v = t->op->got.volumes = xcalloc(1, sizeof(*v));
	t->op->got.volume_count = 1;
	COPY_TEXT(v->provider, "modal");
	COPY_TEXT(v->id, answer->volume_id);
	COPY_TEXT(v->name, name);
	v->used_bytes = -1;
	return modal_done(t);
}

enum op_next modal_volume_remove_next(struct turn *t)
{
	Modal__Client__VolumeDeleteRequest request = MODAL__CLIENT__VOLUME_DELETE_REQUEST__INIT;

	if (!t->reply) {
		request.volume_id = (char *)t->op->want->id;
		return modal_ask(t, CALL_POLL, "VolumeDelete", &request.base, 0);
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

static enum op_next ask_urls(struct turn *t)
{
	const struct op_want *want = t->op->want;
	Modal__Client__VolumeGetFile2Request request = MODAL__CLIENT__VOLUME_GET_FILE2_REQUEST__INIT;
	int64_t most = want->file.max_bytes;

	request.volume_id = (char *)want->file.volume.id;
	request.path = (char *)want->file.path;
	request.has_start = true;
	request.start = (uint64_t)(want->file.offset + t->op->got.bytes);
	request.has_len = most > 0;
	request.len = (uint64_t)(most - t->op->got.bytes);
	t->op->step = 1;
	return modal_ask(t, CALL_POLL, "VolumeGetFile2", &request.base, 0);
}

/* A block, from whatever server keeps it: none of our tokens goes there. */
static enum op_next ask_block(struct turn *t)
{
	struct op *op = t->op;

	if (op->next_url == op->url_count)
		return modal_done(t);
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

static enum op_next take_urls(struct turn *t)
{
	struct op *op = t->op;
	MODAL_MESSAGE(Modal__Client__VolumeGetFile2Response, answer, t, "asking for a file of the volume",
		      modal__client__volume_get_file2_response__descriptor);

	if (!answer)
		return OP_FAILED;
	forget_urls(op);
	/* past its end there is nothing more of it */
	if (answer->has_size && answer->size <= (uint64_t)(op->want->file.offset + op->got.bytes))
		return modal_done(t);
	op->url_count = answer->n_get_urls;
	op->urls = xcalloc(answer->n_get_urls + 1, sizeof(*op->urls));
	for (size_t i = 0; i < answer->n_get_urls; i++) {
		op->urls[i] = xstrdup(modal_text(answer->get_urls[i]));
		/* no server says what we ask other servers of this machine for */
		if (!starts_with(op->urls[i], "https://") && !starts_with(op->provider->root, "http://")) {
			err_set(t->err, ERR_UNTRUSTED, "fetching %s: Modal names an address that is not https", op->want->file.path);
			return OP_FAILED;
		}
	}
	return ask_block(t);
}

static int64_t length_told(const struct reply *r)
{
	char text[32];
	char *end;

	if (!reply_header(r, "Content-Length", text, sizeof(text)) || !isdigit((unsigned char)text[0]))
		return -1;
	long long n = strtoll(text, &end, 10);
	return *end || n > BLOCK_MOST_BYTES ? -1 : (int64_t)n;
}

/* What was written before a connection broke stays in the file: whoever asks again does so from there, so we do not. */
static enum op_next take_block(struct turn *t)
{
	struct op *op = t->op;
	const struct reply *r = t->reply;

	if (r->failed) {
		*t->err = r->err;
		err_wrap(t->err, "fetching %s", op->want->file.path);
		return OP_FAILED;
	}
	if (r->status == 403 && op->urls_again++ < ADDRESSES_AGAIN_MOST) /* its time was over */
		return ask_urls(t);
	int64_t len = length_told(r);
	if ((r->status != 200 && r->status != 206) || len < 0) {
		enum err_kind kind = r->status == 429 ? ERR_RATE_LIMITED : r->status == 404 ? ERR_NOT_FOUND : ERR_TRANSIENT;
		err_set(t->err, kind, "fetching %s: HTTP %d%s", op->want->file.path, r->status,
			r->status == 200 || r->status == 206 ? " without a length" : "");
		t->err->retry_after_ms = r->retry_after_ms;
		return OP_FAILED;
	}
	op->got.bytes += len;
	op->next_url++;
	return ask_block(t);
}

enum op_next modal_fetch_next(struct turn *t)
{
	const struct op_want *want = t->op->want;

	if (!t->op->step) {
		if (!modal_id_is_sound(want->file.volume.id, "vo-") || !path_is_safe(want->file.path) || want->file.offset < 0) {
			err_set(t->err, ERR_REFUSED, "\"%s\" of volume %s is not a file that can be asked for", modal_text(want->file.path),
				want->file.volume.id);
			return OP_FAILED;
		}
		return ask_urls(t);
	}
	return t->op->step == 1 ? take_urls(t) : take_block(t);
}
