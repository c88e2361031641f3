/* stage.c - puts a file onto a volume without a sandbox. Blocks are named by their hashes. Modal
 * gives addresses for missing blocks; the replies to the PUTs are sent back, until nothing is
 * missing. */
#include "impl.h"

#include <stdlib.h>

#include "base/path.h"

enum { BLOCKS_MOST = 4096, PUT_MS = 10 * 60 * 1000, ANSWER_MOST = 64 << 10 };
/* limits of requests for missing blocks: in all, and without an accepted PUT in between */
enum { ROUNDS_MOST = 20, IN_VAIN_MOST = 4 };
enum { TRIES_MOST = 6, WAIT_FIRST_MS = 500, WAIT_MOST_MS = 10000 };
enum { ASKED_MISSING = 1, ASKED_PUT, PAUSE };

struct staged_block {
	char *url; /* address for the PUT; NULL: none */
	bool put;
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

static enum op_next failed(struct turn *t, enum err_kind kind, const char *why)
{
	err_set(t->err, kind, "putting %s on the volume: %s", t->op->want->file.path, why);
	return OP_FAILED;
}

static int check(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct file_blocks *blocks = &want->file.blocks;

	if (!modal_id_is_sound(want->file.volume.id, "vo-") || !path_is_safe(want->file.path))
		return err_set(t->err, ERR_REFUSED,
			       "\"%s\" of volume %s is not a file that can be stored there",
			       modal_text(want->file.path), want->file.volume.id);
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

static enum op_next request_again(struct turn *t, const char *why)
{
	if (t->op->urls_again++ >= IN_VAIN_MOST || t->op->rounds++ >= ROUNDS_MOST)
		return failed(t, ERR_TRANSIENT, why);
	return request_missing(t);
}

/* ---- block by block ---- */

static enum op_next put_next(struct turn *t)
{
	const struct op_want *want = t->op->want;
	const struct file_blocks *blocks = &want->file.blocks;
	size_t i = 0;

	while (i < blocks->count && !t->op->staged[i].url)
		i++;
	if (i == blocks->count)
		return request_again(t, "Modal accepts the blocks but keeps reporting them as "
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

static enum op_next take_missing(struct turn *t)
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
			return failed(t, ERR_UNTRUSTED,
				      "Modal reports a block as missing that the file does not "
				      "have");
		if (!modal_url_is_sound(op->provider, m->put_url))
			return failed(t, ERR_UNTRUSTED, "Modal names an address that is not https");
		free(op->staged[m->block_index].url);
		op->staged[m->block_index].url = xstrdup(m->put_url);
	}
	if (answer->n_missing_blocks)
		return put_next(t);
	op->got.bytes = op->want->file.blocks.bytes;
	return modal_done(t);
}

/* A block that occurs several times in the file is sent once. */
static enum op_next was_put(struct turn *t)
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
	return put_next(t);
}

static enum op_next take_put(struct turn *t)
{
	struct op *op = t->op;
	const struct reply *r = t->reply;
	CLEANUP(str_free) struct str words = STR_INIT;
	bool passes = r->failed ? r->err.kind == ERR_NETWORK || r->err.kind == ERR_TRANSIENT
				: r->status == 429 || r->status >= 500;

	if (!r->failed && r->status >= 200 && r->status <= 299)
		return was_put(t);
	if (passes && op->broken++ < TRIES_MOST) {
		int64_t wait =
			MIN((int64_t)WAIT_FIRST_MS << (op->broken - 1), (int64_t)WAIT_MOST_MS);
		op->step = PAUSE;
		return modal_wait(t, MAX(wait, r->retry_after_ms));
	}
	if (r->failed) {
		*t->err = r->err;
		err_wrap(t->err, "putting %s on the volume", op->want->file.path);
		return OP_FAILED;
	}
	str_addf(&words, "HTTP %d ", r->status);
	str_add_printable(&words, str_text(&r->body), r->body.len, 160);
	/* the address has expired */
	if (r->status == 400 || r->status == 403 || r->status == 404 || r->status == 410)
		return request_again(t, str_text(&words));
	return failed(t, passes ? ERR_TRANSIENT : ERR_REFUSED, str_text(&words));
}

enum op_next modal_stage_next(struct turn *t)
{
	struct op *op = t->op;

	switch (op->step) {
	case 0:
		if (check(t) < 0)
			return OP_FAILED;
		op->staged = xcalloc(op->want->file.blocks.count + 1, sizeof(*op->staged));
		return request_missing(t);
	case ASKED_MISSING: return take_missing(t);
	case ASKED_PUT: return take_put(t);
	case PAUSE: return put_next(t);
	}
	return failed(t, ERR_BUG, "no such step");
}
