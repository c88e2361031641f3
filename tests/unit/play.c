/* play.c - plays a vendor with an HTTP API to its translator: answers in order, and what was asked
 * is kept. */
#include "play.h"

static void keep_request(const struct call *call)
{
	const char *path = getenv("BURST_REQUESTS_TO");

	if (!path || call->sigv4)
		return;
	CLEANUP(file_close) FILE *f = fopen(path, "ae");
	json_t *body = call->body.len ? jsonx_parse(call->body.s, call->body.len, NULL) : NULL;
	CLEANUP(json_decref)
	json_t *line =
		json_pack("{s:s,s:s,s:o?}", "method", call->method, "url", call->url, "body", body);
	CLEANUP(free_text) char *text = jsonx_line(line);
	assert_non_null(f);
	fprintf(f, "%s\n", text);
}

static void fill_reply(struct reply *r, const struct answer *a)
{
	*r = (struct reply){
		.status = MAX(a->status, 0), .failed = a->status <= 0, .was_sent = a->status == 0};
	if (r->failed)
		err_set(&r->err, ERR_NETWORK, "the line was cut");
	str_add(&r->body, a->body ? a->body : "");
	str_add(&r->head, a->head ? a->head : "");
}

struct played play(const struct provider_ops *ops, const struct section *conf, enum op_kind kind,
		   const struct op_want *want, const struct answer *answers, int count)
{
	struct played p = {0};
	struct provider *provider = NULL;
	struct reply reply = {0};
	bool have = false;

	if (ops->open(&provider, conf, "/state", &p.err) < 0) {
		p.last = OP_FAILED;
		return p;
	}
	struct op *op = ops->begin(provider, kind, want);
	for (int turn = 0; turn < 100; turn++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		p.last = ops->next(op, have ? &reply : NULL, &call, &wait_ms, &p.result, &p.err);
		reply_free(&reply);
		have = false;
		if (p.last == OP_WAIT) {
			assert_true(wait_ms > 0);
			p.waits++;
			p.waited_ms += wait_ms;
			continue;
		}
		if (p.last != OP_CALL)
			break;
		if (p.calls == count)
			fail_msg("one call more than answers: %s %s", call.method, call.url);
		keep_request(&call);
		p.call[p.calls] = call;
		fill_reply(&reply, &answers[p.calls++]);
		have = true;
	}
	reply_free(&reply);
	ops->op_free(op);
	ops->close(provider);
	if (p.last == OP_FAILED)
		assert_true(p.err.kind != ERR_NONE && p.err.msg[0]);
	assert_null(strstr(p.err.msg, section_text(conf, "api_key")));
	return p;
}

void played_free(struct played *p)
{
	for (int i = 0; i < p->calls; i++)
		call_free(&p->call[i]);
	op_result_free(&p->result);
}

void check_failed(const char *what, struct played *p, enum err_kind kind)
{
	if (p->last != OP_FAILED || p->err.kind != kind)
		fail_msg("%s: got %s (%s), want %s", what,
			 p->last == OP_DONE ? "done" : err_kind_name(p->err.kind), p->err.msg,
			 err_kind_name(kind));
}

void check_done(const char *what, const struct played *p)
{
	if (p->last != OP_DONE)
		fail_msg("%s: %s: %s", what, err_kind_name(p->err.kind), p->err.msg);
}

void check_call(const struct played *p, int i, const char *method, const char *url)
{
	if (i >= p->calls)
		fail_msg("only %d calls", p->calls);
	assert_string_equal(p->call[i].method, method);
	assert_string_equal(p->call[i].url, url);
}

json_t *body_of(const struct call *call)
{
	struct err err;
	json_t *body = jsonx_parse(str_text(&call->body), call->body.len, &err);

	assert_non_null(body);
	return body;
}
