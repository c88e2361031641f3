/* notify_send.c - sends one notification over HTTP, to a command, or to the desktop. */
#include "notify_send.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "net/http.h"

enum { LIMIT_MS = 10000, REPLY_MAX_BYTES = 64 << 10, GRACE_MS = 500 };

/* ---- HTTP ---- */

struct waiting {
	bool over;
	int status;
	struct err err; /* ERR_NONE: there is a status */
};

static void answered(void *ctx, struct reply *reply)
{
	struct waiting *w = ctx;

	w->over = true;
	w->status = reply->status;
	if (reply->failed)
		w->err = reply->err;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Adds a header. Values are ASCII without line ends; others are encoded by RFC 2047. */
static void add_header(struct call *call, const char *name, const char *value)
{
	CLEANUP(str_free) struct str coded = STR_INIT;

	if (!is_ascii(value)) {
		str_add(&coded, "=?UTF-8?B?");
		base64_add(&coded, value, strlen(value));
		str_add(&coded, "?=");
		value = str_text(&coded);
	}
	call_header(call, "%s: %s", name, value);
}

int notify_post(const char *url, const struct notice *n, struct err *err)
{
	struct call call = {.kind = CALL_HTTP,
			    .method = "POST",
			    .url = xstrdup(url),
			    .timeout_ms = LIMIT_MS,
			    .max_bytes = REPLY_MAX_BYTES};
	struct waiting w = {0};
	int64_t deadline_ms = clock_boot_ms() + LIMIT_MS + GRACE_MS;

	log_secret(url);
	if (http_ready(err) < 0) {
		call_free(&call);
		return -1;
	}
	str_addn(&call.body, str_text(n->body), n->body->len);
	add_header(&call, "Content-Type",
		   n->json ? "application/json" : "text/plain; charset=utf-8");
	add_header(&call, "Title", n->title); /* this header and the next two are for ntfy */
	add_header(&call, "Priority", n->looks.priority);
	add_header(&call, "Tags", n->looks.tags);
	add_header(&call, "X-Burst-Event", n->event);
	struct loop *loop = loop_new();
	struct http *http = http_new(loop, "burst/" BURST_VERSION);
	http_send(http, &call, answered, &w);
	while (!w.over && clock_boot_ms() < deadline_ms)
		loop_turn(loop, MAX(deadline_ms - clock_boot_ms(), 0));
	http_free(http);
	loop_free(loop);
	call_free(&call);
	if (!w.over)
		return err_set(err, ERR_NETWORK, "no answer within %d s", LIMIT_MS / 1000);
	if (w.err.kind) {
		*err = w.err;
		log_redact_field(err->msg, sizeof(err->msg));
		return -1;
	}
	return w.status / 100 == 2
		       ? 0
		       : err_set(err, ERR_REFUSED, "the server answered with status %d", w.status);
}

/* ---- programs ---- */

/* Our environment without our keys and with these variables. The caller frees it and the added
 * texts. */
static char **with_variables(char *added[], size_t count)
{
	char **base = guard_environ();
	size_t n = 0;

	while (base[n])
		n++;
	char **all = xcalloc(n + count + 1, sizeof(*all));
	for (size_t i = 0; i < count; i++)
		all[i] = added[i];
	memcpy(all + count, base,
	       n * sizeof(*all)); /* a program finds the first of two equal names */
	free(base);
	return all;
}

static int run_program(const char *const *argv, const char *input, char *added[], size_t count,
		       struct err *err)
{
	char **environment = with_variables(added, count);
	struct program p = {
		.argv = argv, .input = input, .environment = environment, .limit_ms = LIMIT_MS};
	int status = program_must(&p, NULL, NULL, err);

	free(environment);
	return status;
}

int notify_command(const char *command, const struct notice *n, struct err *err)
{
	const char *const argv[] = {"sh", "-c", command, NULL};
	CLEANUP(free_text) char *event = xasprintf("BURST_EVENT=%s", n->event);
	CLEANUP(free_text) char *run = xasprintf("BURST_RUN=%s", n->run);
	CLEANUP(free_text) char *job = xasprintf("BURST_JOB=%s", n->job);
	char *added[] = {event, run, job};

	return run_program(argv, str_text(n->body), added, ARRAY_LEN(added), err);
}

/* Escapes the text, which servers read as markup. */
static void add_plain(struct str *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			str_add(to, "&amp;");
		else if (*text == '<')
			str_add(to, "&lt;");
		else
			str_addc(to, *text);
	}
}

int notify_desktop(const struct notice *n, bool urgent, struct err *err)
{
	CLEANUP(str_free) struct str body = STR_INIT;
	const char *argv[] = {"notify-send",
			      "--app-name=burst",
			      urgent ? "--urgency=critical" : "--urgency=normal",
			      "--",
			      n->title,
			      NULL,
			      NULL};
	CLEANUP(free_text) char *bus = xasprintf("/run/user/%lu/bus", (unsigned long)getuid());
	CLEANUP(free_text) char *address = xasprintf("DBUS_SESSION_BUS_ADDRESS=unix:path=%s", bus);
	struct stat st;

	if (!program_found(argv[0]))
		return err_set(err, ERR_LOCAL,
			       "notify-send is not installed (Debian: libnotify-bin)");
	/* cron's jobs do not know the address of the desktop's session bus */
	bool lacks_bus =
		!getenv("DBUS_SESSION_BUS_ADDRESS") && stat(bus, &st) == 0 && S_ISSOCK(st.st_mode);
	add_plain(&body, n->summary);
	argv[5] = str_text(&body);
	return run_program(argv, NULL, &address, lacks_bus, err);
}
