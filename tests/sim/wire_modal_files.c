/* wire_modal_files.c - Modal in memory, the files of its volumes and what a sandbox has used: a
 * file is fetched from addresses that are given for it, and put there block by block, each known by
 * its hash. */
#include <stdlib.h>

#include "base/crypto.h"
#include "base/jsonx.h"
#include "net/grpc.h"
#include "wire_modal.h"

/* ---- fetching ---- */

/* What is requested of it, in two blocks if it is long enough; its size is that of the whole file.
 */
void modal_get_file(struct exchange *x)
{
	REQUEST(Modal__Client__VolumeGetFile2Request, r, x,
		modal__client__volume_get_file2_request__descriptor);
	Modal__Client__VolumeGetFile2Response answer =
		MODAL__CLIENT__VOLUME_GET_FILE2_RESPONSE__INIT;
	CLEANUP(str_free) struct str file = STR_INIT;
	char *urls[2];

	if (!r)
		return;
	if (strcmp(plain(r->volume_id), VOLUME_ID) || !x->v->volumes) {
		modal_malformed(x, "volume_id");
		return;
	}
	if (!wire_file(x->s, x->v, plain(r->path), &file)) {
		modal_no(x, GRPC_NOT_FOUND, "No such file or directory");
		return;
	}
	size_t start = MIN(r->start, file.len),
	       end = r->len && r->len < file.len - start ? start + r->len : file.len;
	size_t cuts[] = {start, start + (end - start) / 2, end};
	for (int i = 0; i < 2; i++)
		urls[i] = xasprintf(MODAL_BLOBS "get/%zu-%zu/%s?at=%lld", cuts[i], cuts[i + 1],
				    r->path, (long long)x->s->now);
	answer.has_size = true;
	answer.size = file.len;
	answer.n_get_urls = start < end ? 2 : 0;
	answer.get_urls = urls;
	modal_yes(x, &answer.base);
	for (int i = 0; i < 2; i++)
		free(urls[i]);
}

static void say(struct exchange *x, int status, const void *body, size_t len)
{
	x->a->status = status;
	str_addf(&x->a->head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n", status, len);
	str_addn(&x->a->body, body, len);
}

/* Its address is valid for a while. */
static void get_blob(struct exchange *x, const char *where)
{
	CLEANUP(str_free) struct str file = STR_INIT;
	const char *at = strstr(where, "?at="), *slash = strchr(where, '/');
	unsigned long from = 0, to = 0;

	if (!at || !slash || sscanf(where, "%lu-%lu/", &from, &to) != 2) {
		modal_malformed(x, "an address that was never given");
		return;
	}
	CLEANUP(free_text) char *path = xasprintf("%.*s", (int)(at - slash - 1), slash + 1);
	if (x->s->now - atoll(at + 4) > MODAL_ADDRESS_MS)
		say(x, 403, "expired", 7);
	else if (!wire_file(x->s, x->v, path, &file) || to > file.len)
		say(x, 404, "gone", 4);
	else
		say(x, 200, file.s + from, to - from);
}

/* ---- putting ---- */

/* Stored until the file is complete; the reply confirms it. */
static void put_blob(struct exchange *x, const char *hex)
{
	char is[SHA256_HEX];

	sha256_hex(str_text(&x->call->body), x->call->body.len, is);
	if (strcmp(is, hex)) {
		modal_malformed(x, "a block whose hash is another");
		return;
	}
	json_object_set_new(x->v->blocks, hex, json_true());
	CLEANUP(free_text) char *answer = xasprintf("kept:%s", hex);
	say(x, 200, answer, strlen(answer));
}

void modal_blob(struct exchange *x)
{
	const char *where = x->call->url + strlen(MODAL_BLOBS);

	if (call_header_of(x->call, "x-modal-token-id")[0])
		modal_malformed(x, "our token goes to strangers");
	else if (starts_with(where, "get/") && !strcmp(x->call->method, "GET"))
		get_blob(x, where + 4);
	else if (starts_with(where, "put/") && !strcmp(x->call->method, "PUT"))
		put_blob(x, where + 4);
	else
		modal_malformed(x, "no such address");
}

static bool is_there(struct exchange *x, const Modal__Client__VolumePutFiles2Request__Block *b,
		     char hex[SHA256_HEX])
{
	for (size_t i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", b->contents_sha256.data[i]);
	CLEANUP(free_text) char *said = xasprintf("kept:%s", hex);
	bool bears = b->has_put_response && b->put_response.len == strlen(said) &&
		     !memcmp(b->put_response.data, said, strlen(said));
	/* an earlier reply names what was put; a file that is there already misses nothing */
	return (bears && json_object_get(x->v->blocks, hex)) ||
	       json_is_string(json_object_get(x->v->blocks, hex));
}

void modal_put_files(struct exchange *x)
{
	REQUEST(Modal__Client__VolumePutFiles2Request, r, x,
		modal__client__volume_put_files2_request__descriptor);
	Modal__Client__VolumePutFiles2Response answer =
		MODAL__CLIENT__VOLUME_PUT_FILES2_RESPONSE__INIT;
	const Modal__Client__VolumePutFiles2Request__File *f =
		r && r->n_files == 1 ? r->files[0] : NULL;
	Modal__Client__VolumePutFiles2Response__MissingBlock missing[8], *list[8];
	char hex[8][SHA256_HEX], *urls[8];

	if (!r)
		return;
	if (!f || f->n_blocks > ARRAY_LEN(missing) || strcmp(plain(r->volume_id), VOLUME_ID) ||
	    !plain(f->path)[0] || !f->has_size) {
		modal_malformed(x, "volume_id, files");
		return;
	}
	for (size_t i = 0; i < f->n_blocks; i++) {
		if (f->blocks[i]->contents_sha256.len != 32) {
			modal_malformed(x, "contents_sha256");
			return;
		}
		if (is_there(x, f->blocks[i], hex[i]))
			continue;
		size_t n = answer.n_missing_blocks++;
		modal__client__volume_put_files2_response__missing_block__init(&missing[n]);
		missing[n].has_file_index = missing[n].has_block_index = true;
		missing[n].block_index = i;
		missing[n].put_url = urls[n] = xasprintf(MODAL_BLOBS "put/%s", hex[i]);
		list[n] = &missing[n];
	}
	answer.missing_blocks = list;
	if (!answer.n_missing_blocks)
		json_object_set_new(x->v->files, f->path, json_integer((json_int_t)f->size));
	for (size_t i = 0; i < f->n_blocks && !answer.n_missing_blocks; i++)
		json_object_set_new(x->v->blocks, hex[i], json_string("of a file"));
	modal_yes(x, &answer.base);
	for (size_t i = 0; i < answer.n_missing_blocks; i++)
		free(urls[i]);
}

/* ---- what a sandbox has used ---- */

static bool ever_ran(const struct machine *m)
{
	return m->running ||
	       (m->is_over && !m->never_runs && !m->failed && !m->queued && m->runs_at < m->ended);
}

void modal_task_id(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxGetTaskIdRequest, r, x,
		modal__client__sandbox_get_task_id_request__descriptor);
	Modal__Client__SandboxGetTaskIdResponse answer =
		MODAL__CLIENT__SANDBOX_GET_TASK_ID_RESPONSE__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	const struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;
	char id[48];

	if (!r)
		return;
	if (!m) {
		modal_no(x, GRPC_NOT_FOUND, "Sandbox not found.");
		return;
	}
	snprintf(id, sizeof(id), "ta-%s", m->id);
	if (!m->queued) { /* placed, though it may never run */
		answer.task_id = id;
	} else if (m->is_over) {
		modal_set_result(m, &result);
		answer.task_result = &result;
	}
	modal_yes(x, &answer.base);
}

void modal_task_info(struct exchange *x)
{
	REQUEST(Modal__Client__TaskGetInfoRequest, r, x,
		modal__client__task_get_info_request__descriptor);
	Modal__Client__TaskGetInfoResponse answer = MODAL__CLIENT__TASK_GET_INFO_RESPONSE__INIT;
	Modal__Client__TaskInfo info = MODAL__CLIENT__TASK_INFO__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	Modal__Client__GPUConfig gpu = MODAL__CLIENT__GPUCONFIG__INIT;
	const struct machine *m = r && starts_with(plain(r->task_id), "ta-")
					  ? wire_find(x->s, x->v->vendor, r->task_id + 3)
					  : NULL;

	if (!r)
		return;
	if (!m) {
		modal_malformed(x, "no such task");
		return;
	}
	info.has_started_at = ever_ran(m);
	info.started_at = info.has_started_at ? wire_modal_seconds(x, m, m->runs_at) : 0;
	info.has_finished_at = m->is_over;
	info.finished_at = m->is_over ? wire_modal_seconds(x, m, m->ended) : 0;
	if (m->is_over) {
		modal_set_result(m, &result);
		info.result = &result;
	}
	gpu.has_count = true;
	gpu.count = 1;
	info.gpu_config = &gpu;
	answer.info = &info;
	modal_yes(x, &answer.base);
}

/* Of the GPU alone. */
void modal_usage(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxGetResourceUsageRequest, r, x,
		modal__client__sandbox_get_resource_usage_request__descriptor);
	Modal__Client__SandboxGetResourceUsageResponse answer =
		MODAL__CLIENT__SANDBOX_GET_RESOURCE_USAGE_RESPONSE__INIT;
	const struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;

	if (!r)
		return;
	if (!m || x->s->now % 4 == 0) {
		modal_no(x, m ? GRPC_UNIMPLEMENTED : GRPC_NOT_FOUND, "no usage of it");
		return;
	}
	answer.has_gpu_nanosecs = true;
	answer.gpu_nanosecs = (uint64_t)(m->ended - m->runs_at) * 1000000;
	answer.gpu_type = (char *)wire_gpus[m->offer / 2].modal;
	modal_yes(x, &answer.base);
}
