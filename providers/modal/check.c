/* check.c - what doctor wants to know: is the token accepted, and has the service something to say to its clients? */
#include "impl.h"

enum { ASKED_TOKEN = 1, ASKED_HELLO };

static void say(struct turn *t, const char *how, const char *words, const char *text)
{
	str_addf(&t->op->got.text, "%s: %s", how, words);
	str_add_printable(&t->op->got.text, text, strlen(text), 300);
	str_addc(&t->op->got.text, '\n');
}

enum op_next modal_check_failed(struct turn *t)
{
	say(t, "bad", "", t->err->msg);
	err_clear(t->err);
	return modal_done(t);
}

static enum op_next take_hello(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__ClientHelloResponse, hello, t, "greeting Modal", modal__client__client_hello_response__descriptor);

	if (!hello) /* an old client is refused here, in words that help */
		return modal_check_failed(t);
	if (modal_text(hello->warning)[0])
		say(t, "warn", "Modal says: ", hello->warning);
	for (size_t i = 0; i < hello->n_server_warnings && i < 5; i++)
		say(t, "warn", "Modal says: ", modal_text(hello->server_warnings[i]->message));
	return modal_done(t);
}

enum op_next modal_check_next(struct turn *t)
{
	Modal__Client__TokenInfoGetRequest info = MODAL__CLIENT__TOKEN_INFO_GET_REQUEST__INIT;
	Modal__Client__Empty empty = MODAL__CLIENT__EMPTY__INIT;

	if (!t->op->step) {
		t->op->step = ASKED_TOKEN;
		return modal_ask(t, CALL_POLL, "TokenInfoGet", &info.base, 0);
	}
	if (t->op->step == ASKED_HELLO)
		return take_hello(t);
	MODAL_MESSAGE(Modal__Client__TokenInfoGetResponse, answer, t, "asking Modal whose token this is",
		    modal__client__token_info_get_response__descriptor);
	if (!answer)
		return modal_check_failed(t);
	say(t, "ok", "Modal accepts the token, of workspace ", modal_text(answer->workspace_name));
	t->op->step = ASKED_HELLO;
	return modal_ask(t, CALL_POLL, "ClientHello", &empty.base, 0);
}
