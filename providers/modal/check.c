/* check.c - the checks of `burst doctor`: whether Modal accepts the token, and its messages for
 * clients. */
#include "impl.h"

enum { ASKED_TOKEN = 1, ASKED_HELLO, WARNINGS_MOST = 5, OLD_CLIENT = 1 };

static void say(struct turn *t, const char *how, const char *words, const char *text)
{
	str_addf(&t->op->got.text, "%s: %s", how, words);
	str_add_printable(&t->op->got.text, text, strlen(text), 500);
	str_addc(&t->op->got.text, '\n');
}

enum op_next modal_check_failed(struct turn *t)
{
	say(t, "bad", "", t->err->msg);
	err_clear(t->err);
	return modal_done(t);
}

/* Warns the user if Modal calls the client's version old: such a version works until Modal refuses
 * it. A config key sets the version. */
static void warn(struct turn *t, const Modal__Client__Warning *warning)
{
	const struct section *conf = t->op->provider->conf;
	CLEANUP(str_free) struct str words = STR_INIT;

	str_add(&words, modal_text(warning->message));
	if (warning->type == OLD_CLIENT)
		str_addf(&words,
			 " (burst passes for %s of version %s: update burst, or set "
			 "libmodal_version and client_version in providers.modal)",
			 section_text(conf, "libmodal_version"),
			 section_text(conf, "client_version"));
	say(t, "warn", "Modal says: ", str_text(&words));
}

static enum op_next take_hello(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__ClientHelloResponse, hello, t, "greeting Modal",
		      modal__client__client_hello_response__descriptor);

	if (!hello) /* Modal refuses an old client here; its own words help */
		return modal_check_failed(t);
	if (modal_text(hello->warning)[0])
		say(t, "warn", "Modal says: ", hello->warning);
	for (size_t i = 0; i < hello->n_server_warnings && i < WARNINGS_MOST; i++)
		warn(t, hello->server_warnings[i]);
	return modal_done(t);
}

static enum op_next greet(struct turn *t)
{
	Modal__Client__Empty empty = MODAL__CLIENT__EMPTY__INIT;

	t->op->step = ASKED_HELLO;
	return modal_call(t, CALL_POLL, "ClientHello", &empty.base, 0);
}

enum op_next modal_check_next(struct turn *t)
{
	Modal__Client__TokenInfoGetRequest info = MODAL__CLIENT__TOKEN_INFO_GET_REQUEST__INIT;

	if (!t->op->step) {
		t->op->step = ASKED_TOKEN;
		return modal_call(t, CALL_POLL, "TokenInfoGet", &info.base, 0);
	}
	if (t->op->step == ASKED_HELLO)
		return take_hello(t);
	MODAL_MESSAGE(Modal__Client__TokenInfoGetResponse, answer, t,
		      "asking Modal whose token this is",
		      modal__client__token_info_get_response__descriptor);
	/* Modal need not name the owner; the token was accepted */
	if (!answer && !t->reply->failed && t->reply->grpc_status == 12) {
		err_clear(t->err);
		return greet(t);
	}
	if (!answer)
		return modal_check_failed(t);
	say(t, "ok", "Modal accepts the token, of workspace ", modal_text(answer->workspace_name));
	return greet(t);
}
