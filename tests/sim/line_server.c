/* line_server.c - what happens to a call at its server: the answer, and what goes wrong with it. */

#include <time.h>

#include "line.h"
#include "net/grpc.h"

void line_break_off(struct http_call *c)
{
	c->failed = true;
	c->answer.again_ms = 0;
	str_reset(&c->answer.head);
	str_reset(&c->answer.body);
}

static void spoil_http(struct http_call *c)
{
	struct str *body = &c->answer.body;

	c->answer.again_ms = 0;
	if (body->len)
		body->len = body->len / 2;
	if (body->s)
		body->s[body->len] = '\0';
	switch (c->garbage) {
	case 1: c->cut = true; return; /* fewer bytes than were announced */
	case 2: c->cut = strstr(str_text(&c->answer.head), "Content-Length") != NULL; return;
	case 3:
		str_reset(body);
		str_add(body, "<html><body>Please wait</body></html>");
		break;
	default: str_reset(body); str_add(body, "{\"zebra\":{\"stripes\":[1,2]}}");
	}
}

static void spoil_grpc(struct http_call *c)
{
	struct answer *a = &c->answer;

	switch (c->garbage) {
	case 1: /* it ends in the middle of a message */
		str_reset(&a->body);
		str_addn(&a->body, "\0\0\0\0\7abc", 8);
		c->cut = true;
		return;
	case 2: /* it ends without a status */
		a->again_ms = 0;
		str_reset(&a->head);
		str_add(&a->head, "HTTP/2 200\r\nContent-Type: application/grpc\r\n");
		return;
	case 3: /* sent by a proxy between the server and burst */
		a->again_ms = 0;
		str_reset(&a->head);
		str_reset(&a->body);
		str_add(&a->head, "HTTP/2 200\r\nContent-Type: text/html\r\n");
		str_add(&a->body, "<html></html>");
		return;
	default: /* no message of this kind */
		str_reset(&a->body);
		grpc_add_frame(&a->body, "\xff\xff\xff", 3);
	}
}

static void answer_failure(struct http_call *c, bool grpc)
{
	static const int http[] = {500, 502, 503, 504},
			 codes[] = {GRPC_UNAVAILABLE, GRPC_INTERNAL, GRPC_UNKNOWN};
	struct answer *a = &c->answer;

	answer_free(a);
	if (grpc && c->x % 4) {
		modal_status(a, codes[c->x % 4 - 1], "it broke: 50% of it");
		return;
	}
	a->status = http[c->x % 4];
	str_addf(&a->head, "HTTP/1.1 %d X\r\nContent-Type: text/html\r\n", a->status);
	str_add(&a->body, "<html><body>Bad gateway</body></html>");
}

static void serve(struct sim *s, struct http_call *c)
{
	bool grpc = c->on_piece, refused = c->puts_off || c->fails_before;
	size_t machines = s->machine_count;

	if (c->puts_off && grpc)
		modal_put_off(&c->answer, GRPC_RESOURCE_EXHAUSTED, "slower, please",
			      c->number % 7 ? 0.5 + c->number % 5 : 25);
	else if (c->puts_off)
		runpod_put_off(s, &c->answer,
			       c->number % 5 ? 1 + c->number % 4 : 900 * (1 + c->number % 8));
	else if (c->fails_before)
		answer_failure(c, grpc);
	else
		wire_serve(s, c->provider, c->cl->number, &c->call, &c->answer);
	if (!refused && c->fails_after)
		answer_failure(c, grpc);
	else if (!refused && c->garbage && grpc)
		spoil_grpc(c);
	else if (!refused && c->garbage)
		spoil_http(c);
	if (c->loses_reply || !c->answer.status)
		line_break_off(c);
	bool spoilt = c->failed || c->fails_after || c->garbage || c->slow_reply_ms;
	for (size_t i = machines; spoilt && i < s->machine_count; i++)
		s->machines[i].reply_lost = true;
}

static void add_date(struct sim *s, struct answer *a)
{
	time_t now = (time_t)((WALL_EPOCH_MS + s->now) / 1000);
	struct tm tm;
	char text[48];

	if (plant(PLANT_CLOCK_UNHEARD))
		return;
	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	str_addf(&a->head, "Date: %s\r\n", text);
}

void line_note_release(struct sim *s, const struct http_call *c)
{
	struct machine *m = c->ends[0] ? wire_find(s, c->provider, c->ends) : NULL;
	bool comes_there =
		!c->failed && !c->puts_off && !c->fails_before && c->answer.status != 429;

	if (m && !comes_there)
		cloud_release_requested(s, m);
}

/* A call reaches its server. */
void line_arrives(struct sim *s, const struct happening *h)
{
	struct http_call *c = s->lines->calls[h->x];

	c->on_way = false;
	serve(s, c);
	if (c->answer.status == 429)
		line_note_release(s, c);
	if (!c->wanted) {
		line_put_back(c);
		return;
	}
	if (!c->failed) {
		c->answer.dated = true;
		add_date(s, &c->answer);
	}
	int64_t took = s->now - c->sent_at + s->plan->vendors[h->provider].latency_ms +
		       c->answer.delay_ms + c->slow_reply_ms;
	if (took > c->call.timeout_ms)
		line_break_off(c);
	line_hear_later(c, MIN(took, c->call.timeout_ms) - (s->now - c->sent_at));
}
