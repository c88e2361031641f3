/* logs.c - reads a pod's log, and whether its image cannot be pulled. */
#include "impl.h"

#include "base/jsonx.h"

enum { LOG_WAIT_MS = 8000, LOG_LINES = 200, LOG_MOST = 64 << 10, BLOCK_MOST_BYTES = 1 << 20 };

/* Whether a pull fails repeatedly or permanently, with no later line. */
struct pulls {
	int failures;
	char last[300];
};

/* Texts of Docker and registries for an image that this account cannot get, or not soon (a rate
 * limit), however often the host retries. */
static bool pull_is_hopeless(const char *line)
{
	static const char *const words[] = {"manifest unknown",
					    "manifest for ",
					    "no matching manifest",
					    "pull access denied",
					    "repository does not exist",
					    "unauthorized",
					    "authentication required",
					    "invalid reference format",
					    "access to the resource is denied",
					    "toomanyrequests"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

static bool pull_failed(const char *line)
{
	return strcasestr(line, "error pulling image") || strcasestr(line, "failed to pull") ||
	       pull_is_hopeless(line);
}

static void follow_pull(struct pulls *p, const char *line)
{
	if (pull_failed(line)) {
		p->failures += pull_is_hopeless(line) ? 2 : 1;
		COPY_TEXT(p->last, line);
	} else if (!strcasestr(line, "pulling")) {
		p->failures = 0;
	}
}

static void add_event(struct str *to, const struct str *data, struct pulls *pulls)
{
	CLEANUP(json_decref) json_t *event = jsonx_parse(str_text(data), data->len, NULL);
	const char *line = jsonx_text(event, "line", NULL);

	if (!line)
		return; /* truncated, or not a line of the log */
	if (!strcmp(jsonx_text(event, "source", ""), "system"))
		follow_pull(pulls, line);
	str_addf(to, "%s: ", jsonx_text(event, "source", "log"));
	for (const char *p = line; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

static void read_events(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str data = STR_MAX(BLOCK_MOST_BYTES);
	struct pulls pulls = {0};
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len))) {
		size_t shown = len && line[len - 1] == '\r' ? len - 1 : len;
		if (!line[len])
			break; /* the connection broke within this line */
		if (!shown) {
			add_event(to, &data, &pulls);
			str_reset(&data);
		} else if (shown >= 5 && !strncmp(line, "data:", 5)) {
			size_t skip = 5 + (shown > 5 && line[5] == ' ');
			if (data.len)
				str_addc(&data, '\n');
			str_addn(&data, line + skip, shown - skip);
		}
	}
	add_event(to, &data, &pulls);
	if (pulls.failures < 2)
		return;
	str_add(to, "image: ");
	for (const char *p = pulls.last; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

/* The stream never ends by itself, and sends nothing, not even its head, before the first line. The
 * time limit ends it; what arrived until then is the log. */
enum op_next logs_next(struct turn *t)
{
	if (!t->reply) {
		enum op_next next = api_request(t, CALL_POLL, "GET", NULL, "/pods/%s/logs?tail=%d",
						t->op->want->id, LOG_LINES);
		call_header(t->call, "Accept: text/event-stream");
		t->call->may_repeat = false;
		t->call->timeout_ms =
			t->op->want->log_ms ? MIN(t->op->want->log_ms, LOG_WAIT_MS) : LOG_WAIT_MS;
		return next;
	}
	if ((!t->reply->failed || !t->reply->was_sent) && api_check(t, "log of a pod") < 0)
		return OP_FAILED;
	t->op->got.text = STR_MAX(LOG_MOST);
	read_events(&t->op->got.text, str_text(&t->reply->body));
	return api_done(t);
}
