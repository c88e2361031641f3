/* modal_play.h - plays Modal to its translator: literal answers go in, calls and results come out.
 */
#ifndef BURST_TESTS_MODAL_PLAY_H
#define BURST_TESTS_MODAL_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/section.h"
#include "providers/modal/impl.h"
#include "providers/modal/modal.h"

enum { CALLS_MAX = 44 };

/* One answer of the other side. */
struct answer {
	const char *method; /* of the call that it answers */
	/* -1: the reply is lost after the request was sent; -2: nothing could be sent; -4: it is
	 * too long */
	int code;
	const void *message; /* ProtobufCMessage; NULL: an empty one */
	const char *words;
	char *stream; /* the messages of a stream */
	size_t stream_len;
	const char *body; /* of a plain HTTP reply */
};

struct played {
	enum op_next last;
	int calls, waits;
	int64_t waited_ms;
	struct call call[CALLS_MAX];
	struct op_result result;
	struct str said; /* on the way */
	struct err err;
};

extern struct section *modal_conf;

extern struct provider *modal_provider;
int modal_set_up(void **state);
int modal_tear_down(void **state);

/* Carries an operation through these answers; more calls than answers, or other ones, fail the
 * test. */
struct played modal_play(enum op_kind kind, const struct op_want *want,
			 const struct answer *answers, int count);

void modal_played_free(struct played *p);

extern const Modal__Client__AuthTokenGetResponse first_token;

extern const Modal__Client__TokenInfoGetResponse info;

#define MESSAGE(what) PROTOBUF_C_MESSAGE_INIT(&modal__client__##what##__descriptor)

extern const Modal__Client__AppGetOrCreateResponse app;

extern const Modal__Client__EnvironmentGetOrCreateResponse an_environment;

extern Modal__Client__GenericResult success;

extern Modal__Client__GenericResult failure;

extern Modal__Client__GenericResult terminated;

extern const Modal__Client__ImageGetOrCreateResponse built;

extern const Modal__Client__SecretGetOrCreateResponse secret;

extern const Modal__Client__SandboxCreateResponse created;

#define TOKEN                                                                                      \
	{                                                                                          \
		"AuthTokenGet", 0, &first_token, NULL                                              \
	}
#define APP                                                                                        \
	{                                                                                          \
		"AppGetOrCreate", 0, &app, NULL                                                    \
	}
#define IMAGE                                                                                      \
	{                                                                                          \
		"ImageGetOrCreate", 0, &built, NULL                                                \
	}
#define SECRET                                                                                     \
	{                                                                                          \
		"SecretGetOrCreate", 0, &secret, NULL                                              \
	}
struct op_want renting(void);
void *unpacked(const struct call *call, const ProtobufCMessageDescriptor *type);

#define UNPACKED(type, name, call, what)                                                           \
	__attribute__((cleanup(modal_free_cleanup))) Modal__Client__##type *name =                 \
		unpacked(call, &modal__client__##what##__descriptor)
struct answer streamed(const char *method, int code, const void *const *messages, int count);
Modal__Client__SandboxInfo row(const char *id, double created_at, size_t tags,
			       Modal__Client__TaskInfo *task);

extern const Modal__Client__SandboxGetTaskIdResponse a_task;

extern const Modal__Client__SandboxGetTaskIdResponse ended_without_a_task;

#define LIST(page)                                                                                 \
	{                                                                                          \
		"SandboxListV2", 0, page, NULL                                                     \
	}
#define TASK(answer)                                                                               \
	{                                                                                          \
		"SandboxGetTaskId", 0, answer, NULL                                                \
	}

/* What a first listing asks for beside the list was asked. */
void lists_alone(void);

void forget_known(void);

#endif
