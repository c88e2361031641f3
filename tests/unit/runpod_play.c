/* runpod_play.c - plays RunPod to its translator: answers in order, and what was asked is kept. */
#include "runpod_play.h"

#include <sys/mount.h>
#include <unistd.h>

struct section *runpod_conf;

int runpod_set_up(void **state)
{
	(void)state;
	runpod_conf = section_new(provider_runpod.options, "burst.cfg:1");
	section_set_text(runpod_conf, "api_key", "rpa_key123", "test");
	return 0;
}

int runpod_tear_down(void **state)
{
	(void)state;
	section_free(runpod_conf);
	return 0;
}

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

struct played runpod_play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count)
{
	struct played p = {0};
	struct provider *provider = NULL;
	struct reply reply = {0};
	bool have = false;

	if (provider_runpod.open(&provider, runpod_conf, "/state", &p.err) < 0) {
		p.last = OP_FAILED;
		return p;
	}
	struct op *op = provider_runpod.begin(provider, kind, want);
	for (int turn = 0; turn < 100; turn++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		p.last = provider_runpod.next(op, have ? &reply : NULL, &call, &wait_ms, &p.result,
					      &p.err);
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
	provider_runpod.op_free(op);
	provider_runpod.close(provider);
	if (p.last == OP_FAILED)
		assert_true(p.err.kind != ERR_NONE && p.err.msg[0]);
	assert_null(strstr(p.err.msg, "rpa_key123"));
	return p;
}

void runpod_played_free(struct played *p)
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

struct op_want a_rent(void)
{
	static char name1[] = "BURST_AUTHORIZED_KEY", value1[] = "ssh-ed25519 AAAA burst",
		    name2[] = "BURST_HOST_KEY_B64", value2[] = "aG9zdGtleQ==";
	static struct env_pair env[] = {{name1, value1, false}, {name2, value2, true}};
	struct op_want want = {.rent = {.start_script = "#!/bin/sh\necho it\\'s \"me\" $HOME\n",
					.mount = "/workspace",
					.env = env,
					.env_count = 2,
					.marker.hard_end_s = 1800000000}};

	COPY_TEXT(want.rent.offer.id, "SECURE/EU-RO-1/2/NVIDIA GeForce RTX 4090");
	want.rent.offer.price_microusd_h = 1380000;
	COPY_TEXT(want.rent.name, "burst-00000000000000f1");
	COPY_TEXT(want.rent.marker.machine, "00000000000000aa");
	COPY_TEXT(want.rent.marker.run, "1121-r1");
	COPY_TEXT(want.rent.marker.attempt, "00000000000000f1");
	want.rent.volume =
		(struct volume){.id = "agv6w2qcg7", .name = "cache", .region = "EU-RO-1"};
	return want;
}

json_t *body_of(const struct call *call)
{
	struct err err;
	json_t *body = jsonx_parse(str_text(&call->body), call->body.len, &err);

	assert_non_null(body);
	return body;
}

const char *const no_gpu[] = {"none", NULL};
