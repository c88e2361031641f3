/* wire_modal.h - what the parts of Modal in memory share: sandboxes (wire_modal_sandboxes.c), files
 * and bills (wire_modal_files.c), and all else (wire_modal.c). */
#ifndef BURST_TESTS_SIM_WIRE_MODAL_H
#define BURST_TESTS_SIM_WIRE_MODAL_H

#include "modal.pb-c.h"
#include "net/grpc.h"
#include "wire.h"

#define APP_ID      "ap-0000000000000000000001"
#define VOLUME_ID   "vo-000000000000000001"
#define MODAL_BLOBS "https://blobs.example.org/"

struct built { /* an image */
	const char *id;
	int64_t at;
};

void *modal_request(struct exchange *x, const ProtobufCMessageDescriptor *type);
void modal_request_free(void *variable);
#define REQUEST(type, name, x, descriptor)                                                         \
	__attribute__((cleanup(modal_request_free))) type *name = modal_request((x), &(descriptor))

static inline const char *plain(const char *text)
{
	return text ? text : "";
}

void modal_begin_head(struct answer *a);
void modal_add_frame(struct exchange *x, const ProtobufCMessage *message);
void modal_yes(struct exchange *x, const ProtobufCMessage *message);
void modal_no(struct exchange *x, enum grpc_code code, const char *words);
void modal_malformed(struct exchange *x, const char *what);
void modal_set_result(const struct machine *m, Modal__Client__GenericResult *to);
double wire_modal_seconds(struct exchange *x, const struct machine *m, int64_t at);

void modal_get_file(struct exchange *x);
void modal_put_files(struct exchange *x);
void modal_blob(struct exchange *x); /* plain HTTP, to where the blocks of files are kept */
void modal_task_id(struct exchange *x);
void modal_task_info(struct exchange *x);
void modal_usage(struct exchange *x);

void modal_sandbox_create(struct exchange *x);
/* The newest first, a page at a time. */
void modal_sandbox_list(struct exchange *x);
void modal_sandbox_get_from_name(struct exchange *x);
void modal_sandbox_get_tunnels(struct exchange *x);
void modal_sandbox_wait(struct exchange *x);
void modal_sandbox_terminate(struct exchange *x);
/* The service's messages on the stream INFO, the entrypoint's own on STDOUT. */
void modal_sandbox_get_logs(struct exchange *x);
bool modal_image_by_id(struct exchange *x, const char *id, struct built *out);

#endif
