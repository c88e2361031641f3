/* api.c - builds requests to Modal and interprets its replies. Only this file holds what the API
 * requires of its clients. */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/section.h"

/* Name and version of Modal's JavaScript client, whose headers these calls use, then burst's own,
 * in gRPC's form. */
#define USER_AGENT "grpc-node-js/1.14.7 burst/" BURST_VERSION

enum {
	ANSWER_MS = 30000,
	RELEASE_MS = 10000, /* a failed release is retried at once */
	CREATE_MS = 60000,
	GRACE_MS = 20000, /* for the answer itself, beyond the time that the server may wait */
	REPLY_MOST = 2 << 20,
	HINT_ROOM = 48
};

/* ---- requests ---- */

/* Appends the message as protobuf bytes. */
static void append_packed_message(struct str *to, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	unsigned char *bytes = xmalloc(MAX(len, (size_t)1));

	protobuf_c_message_pack(message, bytes);
	str_addn(to, bytes, len);
	explicit_bzero(bytes, len); /* the message may hold an environment with keys */
	free(bytes);
}

/* Makes *t->call a call of METHOD, without the token, which modal.c adds. Returns OP_CALL. */
static enum op_next fill_call(struct turn *t, enum call_class class, const char *method,
			      const ProtobufCMessage *message, int64_t timeout_ms)
{
	const struct provider *p = t->op->provider;
	const struct section *conf = p->conf;
	int64_t put_off_ms = section_int(conf, "max_throttle_wait");

	*t->call = (struct call){
		.kind = CALL_GRPC,
		.class = class,
		.may_repeat = strcmp(method, "SandboxCreate") != 0,
		.once_by_name = true, /* Modal refuses a second sandbox of a name, and no name is
					 used twice */
		.timeout_ms = timeout_ms,
		.put_off_ms = put_off_ms ? put_off_ms : -1,
		.max_bytes = REPLY_MOST,
		.url = xasprintf("%s/modal.client.ModalClient/%s", p->root, method),
	};
	call_header(t->call, "user-agent: %s", USER_AGENT);
	call_header(t->call, "x-modal-token-id: %s", section_text(conf, "token_id"));
	call_header(t->call, "x-modal-token-secret: %s", section_text(conf, "token_secret"));
	call_header(t->call, "x-modal-client-type: %lld",
		    (long long)section_int(conf, "client_type"));
	call_header(t->call, "x-modal-client-version: %s", section_text(conf, "client_version"));
	call_header(t->call, "x-modal-libmodal-version: %s",
		    section_text(conf, "libmodal_version"));
	call_header(t->call, "x-modal-host: %s", p->host);
	append_packed_message(&t->call->body, message);
	return OP_CALL;
}

enum op_next modal_call(struct turn *t, enum call_class class, const char *method,
			const ProtobufCMessage *message, int wait_s)
{
	return fill_call(t, class, method, message,
			 wait_s                  ? wait_s * 1000 + GRACE_MS
			 : class == CALL_CREATE  ? CREATE_MS
			 : class == CALL_RELEASE ? RELEASE_MS
						 : ANSWER_MS);
}

enum op_next modal_call_stream(struct turn *t, const char *method, const ProtobufCMessage *message,
			       int wait_s)
{
	fill_call(t, CALL_POLL, method, message, wait_s * 1000 + GRACE_MS);
	t->call->stream = true;
	t->call->stream_limit_ms = wait_s * 1000;
	return OP_CALL;
}

enum op_next modal_done(struct turn *t)
{
	*t->result = t->op->got;
	t->op->got = (struct op_result){0};
	return OP_DONE;
}

/* ---- replies ---- */

/* Whether a call that ended with this status code may have been carried out. */
static bool may_have_been_carried_out(int code)
{
	switch (code) {
	case STATUS_CANCELLED:
	case STATUS_UNKNOWN:
	case STATUS_DEADLINE_EXCEEDED:
	case STATUS_ALREADY_EXISTS: /* names are unique: an earlier try of burst's was received */
	case STATUS_ABORTED:
	case STATUS_INTERNAL:
	case STATUS_UNAVAILABLE:
	case STATUS_DATA_LOSS: return true;
	}
	return false;
}

/* words: NULL-terminated. */
static bool has_any_word_of(const struct reply *r, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(r->err.msg, *words))
			return true;
	return false;
}

/* Whether Modal refused the call because the workspace may not spend more. Modal has no status for
 * this, nor a list of its messages. Users have published RESOURCE_EXHAUSTED with "workspace billing
 * cycle spend limit reached" and "Workspace ac-... has exceeded its spend limit", both also when an
 * app or a call begins, and NOT_FOUND for a create beyond a budget. Any other message must have a
 * word about money and a word about an end. Calls about bills are left out, since such messages
 * have other reasons there, and so is NOT_FOUND after other calls: it may quote a name of the
 * user's. */
static bool is_spend_limit_refusal(const struct turn *t)
{
	static const char *const money[] = {"spend",  "budget", "billing", "usage limit", "payment",
					    "credit", "funds",  "invoice", NULL},
				 *const over[] = {"reached",  "exceed",  "exhaust", "insufficient",
						  "required", "overdue", "unpaid",  "past due",
						  "expired",  "add a",   "used up", "not enough",
						  "no more",  "out of",  NULL};
	const struct reply *r = t->reply;

	switch (r->failed || r->retry_after_ms ? 0 : r->grpc_status) {
	case STATUS_NOT_FOUND:
		if (!t->op->creating)
			return false;
		break;
	case STATUS_PERMISSION_DENIED:
		if (t->op->kind == OP_OFFERS || t->op->kind == OP_BILLING)
			return false;
		break;
	case STATUS_RESOURCE_EXHAUSTED:
	case STATUS_FAILED_PRECONDITION: break;
	default: return false;
	}
	return has_any_word_of(r, money) && has_any_word_of(r, over);
}

/* " (what the user can do about t->err)", or "". Static, or in room. */
static const char *hint_for_user(const struct turn *t, char room[HINT_ROOM])
{
	const struct reply *r = t->reply;
	char wait[24];

	if (r->grpc_status == STATUS_RESOURCE_EXHAUSTED && r->retry_after_ms) {
		snprintf(room, HINT_ROOM, " (to be asked again in %s)",
			 duration_show(wait, sizeof(wait), r->retry_after_ms));
		return room;
	}
	if (t->err->kind == ERR_BALANCE)
		return " (the workspace may not spend more: see Usage and Billing in Modal's "
		       "settings)";
	if (r->grpc_status == STATUS_FAILED_PRECONDITION && t->op->fetching_token)
		return " (providers.modal.client_version, client_type and libmodal_version "
		       "identify burst to Modal)";
	if (r->grpc_status == STATUS_FAILED_PRECONDITION)
		return " (something about the account or this client is not as Modal wants it: "
		       "trying again, or another size of pod, does not help)";
	if (r->grpc_status == STATUS_ABORTED)
		return " (Modal carried out something else at that moment)";
	if (r->grpc_status == STATUS_UNAUTHENTICATED)
		return " (are MODAL_TOKEN_ID and MODAL_TOKEN_SECRET right?)";
	if (r->grpc_status == STATUS_PERMISSION_DENIED)
		return " (the token has no access to this)";
	return "";
}

int modal_check_reply(struct turn *t, const char *doing)
{
	const struct reply *r = t->reply;

	if (!r->failed && r->grpc_status == STATUS_OK)
		return 0;
	*t->err = r->err;
	/* A token that may not read prices or bills, or use one kind of GPU, can still do the rest.
	 * After any other refusal the token does not suffice for a run. */
	if (!r->failed && r->grpc_status == STATUS_PERMISSION_DENIED && !t->op->creating &&
	    (t->op->fetching_token || (t->op->kind != OP_OFFERS && t->op->kind != OP_BILLING)))
		t->err->kind = ERR_CREDENTIALS;
	if (is_spend_limit_refusal(t))
		t->err->kind = ERR_BALANCE;
	/* an earlier try may have made something, whatever the last reply says */
	if (t->op->creating &&
	    (r->sent_before ||
	     (r->failed ? r->was_sent : may_have_been_carried_out(r->grpc_status))))
		t->err->kind = ERR_AMBIGUOUS;
	struct err said = *t->err;
	char room[HINT_ROOM];
	err_set(t->err, said.kind, "%s: %s%s", doing, said.msg,
		r->failed ? "" : hint_for_user(t, room));
	t->err->retry_after_ms = said.retry_after_ms;
	return -1;
}

/* For protobuf-c. left: a size_t, the bytes that may still be allocated. */
static void *allocate_from_budget(void *left, size_t size)
{
	if (size > *(size_t *)left)
		return NULL;
	*(size_t *)left -= size;
	return malloc(size);
}

static void free_memory(void *left, void *memory)
{
	(void)left;
	free(memory);
}

/* A message of two bytes takes a hundred once it is unpacked. */
void *modal_unpack(const ProtobufCMessageDescriptor *type, size_t len, const void *bytes)
{
	size_t left = MODAL_UNPACKED_MOST;
	ProtobufCAllocator within = {allocate_from_budget, free_memory, &left};

	return protobuf_c_message_unpack(type, &within, len, bytes);
}

void *modal_unpack_reply(struct turn *t, const char *doing, const ProtobufCMessageDescriptor *type)
{
	if (modal_check_reply(t, doing) < 0)
		return NULL;
	const struct str *body = &t->reply->body;
	void *message = modal_unpack(type, body->len, str_text(body));
	if (!message)
		err_set(t->err, t->op->creating ? ERR_AMBIGUOUS : ERR_TRANSIENT,
			"%s: the answer cannot be read (no %s)", doing, type->short_name);
	return message;
}

/* ---- helpers ---- */

bool modal_id_is_sound(const char *id, const char *prefix)
{
	if (!id || !starts_with(id, prefix) || !id[strlen(prefix)] || strlen(id) >= MODAL_ID_MAX)
		return false;
	for (const char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return false;
	return true;
}

bool modal_next_message(const struct str *body, size_t *at, const void **message, size_t *len)
{
	if (body->len - *at < 4)
		return false;
	const unsigned char *p = (const unsigned char *)body->s + *at;
	size_t size = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (size > body->len - *at - 4)
		return false;
	*message = p + 4;
	*len = size;
	*at += 4 + size;
	return true;
}

const char *modal_text(const char *text)
{
	return text ? text : "";
}
