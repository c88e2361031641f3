/* link.c - makes the SSH connection to each pod's agent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "impl.h"
#include "net/child.h"
#include "net/http.h"

/* ---- link ----
 * One connection to a pod's agent: TCP or a carrier (a child process), SSH, the agent's upload,
 * then JSON lines. */

enum {
	LINE_MAX_BYTES = 1 << 20,
	NOISE_MAX_BYTES = 256 << 10,
	TCP_TIMEOUT_MS = 10000,
	LINK_SILENCE_MS = 9000, /* a dead line is noticed after 11 to 14 s */
	/* Servers between us and the pod may hold a line for many seconds while they restart. burst
	 * asks for an answer every 20 to 30 s, and gives the line up after 50 to 60 s. */
	CARRIER_SILENCE_MS = 40000,
	LAST_WORDS_MS = 500 /* for a carrier that ends, to say why */
};

struct link {
	struct loop *loop;
	const struct link_ops *ops;
	void *ctx;
	char *user, *host_key, *private_key, *run;
	const struct pod_kit *kit;
	int64_t from_event, overdue_at, reached_ms;
	struct http_connect *connecting;
	struct child *carrier;
	char *carrier_name; /* NULL: TCP */
	char carrier_words[200];
	struct err ending; /* until the carrier has said its last words */
	struct timer *words_due;
	struct ssh *ssh;
	struct ssh_channel *control;
	struct timer *limit;
	struct str in;      /* a line that is not complete yet */
	struct str waiting; /* lines to send when the agent is in place */
	size_t noise;       /* bytes before hello that are not the agent's */
	bool placed;        /* the agent is being uploaded, or was there */
	bool up, over;
};

static void report_down(struct link *l)
{
	struct err err;

	loop_untimer(TAKE(l->words_due));
	if (l->carrier)
		child_last_words(l->carrier, l->carrier_words, sizeof(l->carrier_words));
	if (l->carrier_name)
		err_set(&err, l->ending.kind, "%s (through %s%s%s)", l->ending.msg, l->carrier_name,
			l->carrier_words[0] ? ": " : "", l->carrier_words);
	else
		err = l->ending;
	l->ops->down(l->ctx, &err);
}

static void on_words_due(void *ctx)
{
	struct link *l = ctx;

	l->words_due = NULL;
	report_down(l);
}

/* Reports the end to the owner, once; the owner closes the link from there or later. Where a
 * carrier brought no connection, its own last words may explain that: they are awaited for a
 * moment. Not later: the owner must know before its other channels end. */
static void fail(struct link *l, enum err_kind kind, const char *what)
{
	if (l->over)
		return;
	l->over = true;
	err_set(&l->ending, kind, "%s", what);
	if (l->carrier && !l->placed && kind == ERR_NETWORK)
		l->words_due = loop_timer(l->loop, LAST_WORDS_MS, on_words_due, l);
	else
		report_down(l);
}

static void on_carrier_ended(void *ctx, struct reply *reply)
{
	struct link *l = ctx;

	child_last_words(l->carrier, l->carrier_words, sizeof(l->carrier_words));
	l->carrier = NULL;
	if (!l->ssh) { /* it could not be started */
		free(TAKE(l->carrier_name));
		fail(l, ERR_NETWORK, reply->err.msg);
	} else if (l->words_due) {
		report_down(l);
	} /* else the session notices the end of what the carrier brought */
}

static void send_text(struct link *l, const char *text, size_t len)
{
	if (l->control && l->placed)
		ssh_write(l->control, text, len);
	else
		str_addn(&l->waiting, text, len);
}

/* The environment without the variables for the workers. */
static void trace(char mark, const char *line, size_t len)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	if (!log_wants(LOG_TRACE))
		return;
	http_trace_body(&shown, line, len);
	log_line(LOG_TRACE, "%c agent %.400s", mark, str_text(&shown));
}

void link_send(struct link *l, const json_t *line)
{
	char *text = jsonx_line(line);

	trace('>', text, strlen(text));
	send_text(l, text, strlen(text));
	send_text(l, "\n", 1);
	text_wipe(text);
}

/* The agent for a machine of this name; "": the first one. NULL: burst carries none. */
static const struct pod_agent *agent_for(const struct pod_kit *kit, const char *machine, size_t len)
{
	if (!len)
		return &kit->agents[0];
	for (size_t i = 0; i < POD_AGENTS; i++)
		if (kit->agents[i].len && strlen(kit->agents[i].machine) == len &&
		    !memcmp(kit->agents[i].machine, machine, len))
			return &kit->agents[i];
	return NULL;
}

static void agent_placed(struct link *l, const struct pod_agent *needed)
{
	if (l->ops->placed)
		l->ops->placed(l->ctx);
	l->placed = true;
	if (needed)
		ssh_write(l->control, needed->bytes, needed->len);
	if (l->waiting.len)
		ssh_write(l->control, l->waiting.s, l->waiting.len);
	str_free(&l->waiting);
}

/* "have", "need" or "need MACHINE". */
static void take_need(struct link *l, const char *word, size_t len)
{
	bool needs = !memcmp(word, "need", 4);
	size_t skip = len > 5 ? 5 : len;
	const struct pod_agent *agent = needs ? agent_for(l->kit, word + skip, len - skip) : NULL;

	if (needs && !agent)
		fail(l, ERR_UNTRUSTED, "it asks for an agent that burst does not carry");
	else
		agent_placed(l, agent);
}

static void take_json(struct link *l, const char *line, size_t len)
{
	struct err err;
	CLEANUP(json_decref) json_t *event = jsonx_parse(line, len, &err);

	if (!event) {
		if (l->up)
			fail(l, ERR_UNTRUSTED, "its agent sent a line that is not JSON");
		return;
	}
	trace('<', line, len);
	if (l->up) {
		if (l->ops->line)
			l->ops->line(l->ctx, event);
		return;
	}
	if (strcmp(jsonx_text(event, "ev", ""), "hello"))
		return;
	l->up = true;
	loop_untimer(l->limit);
	l->limit = NULL;
	l->ops->up(l->ctx, event, l->reached_ms);
}

static void take_line(struct link *l, const char *line, size_t len)
{
	if (len && line[0] == '{') {
		take_json(l, line, len);
		return;
	}
	if (!l->placed && len >= 10 && !memcmp(line, "BURST ", 6)) {
		take_need(l, line + 6, len - 6);
		return;
	}
	l->noise += len + 1;
	if (l->noise > NOISE_MAX_BYTES)
		fail(l, ERR_UNTRUSTED, "it sends too much text that is not an agent's");
}

static void on_control(void *ctx, int stream, const void *bytes, size_t len)
{
	struct link *l = ctx;

	if (stream == 1) {
		CLEANUP(str_free) struct str text = STR_INIT;
		str_add_printable(&text, bytes, len, 200);
		log_line(LOG_DEBUG, "pod's stderr: %s", str_text(&text));
		l->noise += len;
		if (l->noise > NOISE_MAX_BYTES)
			fail(l, ERR_UNTRUSTED, "it sends too much text that is not an agent's");
		return;
	}
	str_addn(&l->in, bytes, len);
	size_t used = 0;
	char *end;
	while (!l->over && (end = memchr(l->in.s + used, '\n', l->in.len - used))) {
		size_t n = (size_t)(end - l->in.s) - used;
		char *line = l->in.s + used;
		line[n] = '\0';
		used += n + 1;
		take_line(l, line, n);
	}
	if (l->over)
		return; /* the callback may free l: do not touch it after */
	str_drop(&l->in, used);
	if (l->in.len > LINE_MAX_BYTES)
		fail(l, ERR_UNTRUSTED, "its agent sent an endless line");
}

static void on_control_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct link *l = ctx;
	char words[200];

	l->control = NULL;
	if (err)
		COPY_TEXT(words, err->msg);
	else if (signal)
		snprintf(words, sizeof(words), "the agent was killed by SIG%.20s", signal);
	else
		snprintf(words, sizeof(words), "the agent's side of the connection ended (%d)",
			 exit_code);
	fail(l, ERR_NETWORK, words);
}

static const struct ssh_channel_ops control_ops = {.data = on_control, .closed = on_control_closed};

static void on_up(void *ctx, const struct err *err)
{
	struct link *l = ctx;

	if (err) {
		fail(l, err->kind, err->msg);
		return;
	}
	if (!l->reached_ms)
		l->reached_ms = clock_boot_ms();
	l->control = ssh_exec(l->ssh, l->kit->bootstrap, &control_ops, l, false);
	CLEANUP(free_text)
	char *attach = xasprintf("{\"op\":\"attach\",\"from\":%lld,\"run\":\"%s\"}\n",
				 (long long)l->from_event, l->run);
	struct str rest = l->waiting;
	l->waiting = STR_INIT;
	str_add(&l->waiting, attach); /* always the first line */
	str_addn(&l->waiting, str_text(&rest), rest.len);
	str_free(&rest);
}

static void on_lost(void *ctx, const struct err *err)
{
	fail(ctx, err->kind, err->msg);
}

static void open_session(struct link *l, int fd, int64_t silence_ms)
{
	struct ssh_setup setup = {
		.fd = fd,
		.user = l->user,
		.host_key = l->host_key,
		.private_key = l->private_key,
		.limit_ms = MAX(l->overdue_at - clock_boot_ms(), 1000),
		.silence_ms = silence_ms,
	};

	l->ssh = ssh_open(l->loop, &setup, on_up, on_lost, l);
}

static void on_tcp(void *ctx, int fd, const struct err *err)
{
	struct link *l = ctx;

	l->connecting = NULL;
	if (err) {
		fail(l, err->kind, err->msg);
		return;
	}
	l->reached_ms = clock_boot_ms();
	open_session(l, fd, LINK_SILENCE_MS);
}

static void start_carrier(struct link *l, const struct call *dial)
{
	int fd;

	l->carrier_name = xstrdup(path_base(dial->argv[0]));
	l->carrier = child_dial(l->loop, dial, &fd, on_carrier_ended, l);
	if (fd >= 0)
		open_session(l, fd, CARRIER_SILENCE_MS);
}

static void on_overdue(void *ctx)
{
	struct link *l = ctx;

	l->limit = NULL;
	fail(l, ERR_NETWORK, l->ssh ? "its agent does not answer" : "nothing answers there");
}

struct link *link_open(struct loop *loop, struct http *http, const struct link_setup *setup,
		       const struct link_ops *ops, void *ctx)
{
	struct link *l = xcalloc(1, sizeof(*l));

	l->loop = loop;
	l->ops = ops;
	l->ctx = ctx;
	l->user = xstrdup(setup->user);
	l->host_key = xstrdup(setup->host_key);
	l->private_key = xstrdup(setup->private_key);
	l->run = xstrdup(setup->run);
	l->kit = setup->kit;
	l->from_event = setup->from_event;
	l->overdue_at = clock_boot_ms() + setup->limit_ms;
	l->limit = loop_timer(loop, setup->limit_ms, on_overdue, l);
	if (setup->dial)
		start_carrier(l, setup->dial);
	else
		l->connecting = http_connect(http, setup->host, setup->port,
					     MIN(setup->limit_ms, TCP_TIMEOUT_MS), on_tcp, l);
	return l;
}

void link_hand(struct link *l, const struct link_ops *ops, void *ctx)
{
	l->ops = ops;
	l->ctx = ctx;
}

struct ssh *link_ssh(struct link *l)
{
	return l->ssh;
}

static void free_later(void *ctx)
{
	struct link *l = ctx;

	str_free(&l->in);
	str_free(&l->waiting);
	free(l->carrier_name);
	free(l->user);
	free(l->host_key);
	free(l->run);
	text_wipe(l->private_key);
	free(l);
}

/* Callbacks may call this: the struct lives until the next turn. */
void link_close(struct link *l)
{
	if (!l)
		return;
	l->over = true;
	http_connect_cancel(l->connecting);
	loop_untimer(l->limit);
	loop_untimer(l->words_due);
	ssh_close(l->ssh);
	child_cancel(l->carrier);
	l->ssh = NULL;
	l->control = NULL;
	loop_timer(l->loop, 0, free_later, l);
}
