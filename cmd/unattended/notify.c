/* notify.c - decides whether to notify the user about a run's end, and through which channels; and
 * sends the notice: over HTTP, to a command, to the desktop, or into git's notes. */
#include "unattended.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/git.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/show/notify_text.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "commit_tree.h"
#include "engine/pooled.h"
#include "jobs/excerpt/excerpt.h"
#include "jobs/warm/warm.h"
#include "net/http.h"
#include "store/facts.h"

/* LIMIT_MS: longest time for one channel; GRACE_MS: in which HTTP reports that the time is over */
enum { LIMIT_MS = 10000, REPLY_MAX_BYTES = 64 << 10, GRACE_MS = 500 };
#define AGAIN_MS                                                                                   \
	(12 * INT64_C(3600000)) /* after this long the same failure to begin is reported again */

static const enum notify_event notified_by_default[] = {NOTIFY_FAILED, NOTIFY_CAPPED,
							NOTIFY_UNRELEASED, NOTIFY_RECOVERED};

static const struct section *notify_section(const struct config *c)
{
	return section_group(config_top(c), "notify");
}

/* ---- the config ---- */

static void note_mistake(struct mistakes *m, const char *key, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("notify.%s", key);

	mistakes_note(m, path, err);
}

static void check_events(const struct section *conf, struct mistakes *m)
{
	struct err err = {0};

	for (size_t i = 0; i < section_count(conf, "on"); i++) {
		const char *name = section_item(conf, "on", i);
		if (notify_event_named(name) != NOTIFY_NONE)
			continue;
		err_set(&err, ERR_CONFIG,
			"%s: notify.on: \"%.40s\" is not an event: use \"done\", \"recovered\", "
			"\"failed\", \"capped\" and \"unreleased\"",
			section_where(conf, "on"), name);
		note_mistake(m, "on", &err);
	}
}

void notify_check(const struct config *c, struct mistakes *m)
{
	const struct section *conf = notify_section(c);
	const char *url = section_text(conf, "url"), *template = section_text(conf, "template");
	CLEANUP(str_free) struct str filled = STR_INIT;
	CLEANUP(json_decref) json_t *nothing = json_object();
	struct err err = {0};

	check_events(conf, m);
	if (url && !starts_with(url, "https://") && !starts_with(url, "http://")) {
		err_set(&err, ERR_CONFIG,
			"%s: notify.url must begin with https:// (or http:// for this machine "
			"only)",
			section_where(conf, "url"));
		note_mistake(m, "url", &err);
	}
	if (template && notify_fill(&filled, template, NOTIFY_DONE, nothing, &err) < 0) {
		err_wrap(&err, "%s: notify.template", section_where(conf, "template"));
		note_mistake(m, "template", &err);
	}
}

/* Whether notify.on names the event; without notify.on, whether it is notified by default. */
static bool wants_event(const struct section *conf, enum notify_event event)
{
	size_t count = section_count(conf, "on");

	if (!section_has(conf, "on")) {
		for (size_t i = 0; i < ARRAY_LEN(notified_by_default); i++)
			if (notified_by_default[i] == event)
				return true;
		return false;
	}
	for (size_t i = 0; i < count; i++)
		if (notify_event_named(section_item(conf, "on", i)) == event)
			return true;
	return false;
}

static bool has_channel(const struct section *conf)
{
	return section_text(conf, "url") || section_text(conf, "command") ||
	       section_bool(conf, "desktop") || section_bool(conf, "git_note");
}

/* ---- one notice, over one way; each takes ten seconds at most ---- */

/* How ntfy shows a notice: its priority and its emoji. */
struct notice_style {
	const char *priority, *tags;
};

struct notice {
	const char *event, *run, *job;
	const char *title, *summary; /* one line each */
	const struct str *body;
	bool json; /* the body is JSON */
	struct notice_style looks;
};

/* What send_http() waits for. */
struct waiting {
	bool replied;
	int status;
	struct err err; /* ERR_NONE: there is a status */
};

static void on_reply(void *ctx, struct reply *reply)
{
	struct waiting *w = ctx;

	w->replied = true;
	w->status = reply->status;
	if (reply->failed)
		w->err = reply->err;
}

static bool is_printable_ascii(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Adds a header. A value that is not printable ASCII is encoded by RFC 2047. */
static void add_header(struct call *call, const char *name, const char *value)
{
	CLEANUP(str_free) struct str coded = STR_INIT;

	if (!is_printable_ascii(value)) {
		str_add(&coded, "=?UTF-8?B?");
		base64_add(&coded, value, strlen(value));
		str_add(&coded, "?=");
		value = str_text(&coded);
	}
	call_header(call, "%s: %s", name, value);
}

/* POSTs the notice and waits for the reply. No message shows the URL, since it may hold a key. */
static int send_http(const char *url, const struct notice *n, struct err *err)
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
	http_send(http, &call, on_reply, &w);
	while (!w.replied && clock_boot_ms() < deadline_ms)
		loop_turn(loop, MAX(deadline_ms - clock_boot_ms(), 0));
	http_free(http);
	loop_free(loop);
	call_free(&call);
	if (!w.replied)
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

/* Our environment without our keys and with these "NAME=value" texts, which are borrowed. The
 * caller frees the array. */
static char **environment_with(char *added[], size_t count)
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

/* Returns -1 also if the program fails. added: as for environment_with(). */
static int run_program(const char *const *argv, const char *input, char *added[], size_t count,
		       struct err *err)
{
	char **environment = environment_with(added, count);
	struct program p = {
		.argv = argv, .input = input, .environment = environment, .limit_ms = LIMIT_MS};
	int status = program_must(&p, NULL, NULL, err);

	free(environment);
	return status;
}

/* Runs a shell command with the body as stdin, and BURST_EVENT, BURST_RUN and BURST_JOB in an
 * environment without our keys. */
static int send_to_command(const char *command, const struct notice *n, struct err *err)
{
	const char *const argv[] = {"sh", "-c", command, NULL};
	CLEANUP(free_text) char *event = xasprintf("BURST_EVENT=%s", n->event);
	CLEANUP(free_text) char *run = xasprintf("BURST_RUN=%s", n->run);
	CLEANUP(free_text) char *job = xasprintf("BURST_JOB=%s", n->job);
	char *added[] = {event, run, job};

	return run_program(argv, str_text(n->body), added, ARRAY_LEN(added), err);
}

/* Notification servers read a body as markup. */
static void append_escaped_markup(struct str *to, const char *text)
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

static int send_to_desktop(const struct notice *n, bool urgent, struct err *err)
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

	if (!program_exists(argv[0]))
		return err_set(err, ERR_LOCAL,
			       "notify-send is not installed (Debian: libnotify-bin)");
	/* cron's jobs do not know the address of the desktop's session bus */
	bool lacks_bus =
		!getenv("DBUS_SESSION_BUS_ADDRESS") && stat(bus, &st) == 0 && S_ISSOCK(st.st_mode);
	append_escaped_markup(&body, n->summary);
	argv[5] = str_text(&body);
	return run_program(argv, NULL, &address, lacks_bus, err);
}

/* ---- earlier runs ---- */

/* Copies how this job's last reported run ended: "done" or "failed WALL-MS CODE". Returns false if
 * none is known. */
static bool last_end(struct cmd_context *ctx, const struct run_row *run, char words[64])
{
	char key[RUN_JOB_KEY];

	run_job_key(run->config, run->job, key);
	return fact_get(ctx->store, FACT_ENDED, key, NULL, words, 64);
}

static bool has_failed_before(struct cmd_context *ctx, const struct run_row *run)
{
	char words[64];

	return last_end(ctx, run, words) && strcmp(words, "done") != 0;
}

/* Whether the same failure of the job was reported less than AGAIN_MS ago: a queue or a git hook
 * repeats it. */
static bool was_just_reported(struct cmd_context *ctx, const struct run_row *run)
{
	char words[64], code[24];
	long long at_ms;

	return last_end(ctx, run, words) &&
	       sscanf(words, "failed %lld %23[^\n]", &at_ms, code) == 2 &&
	       !strcmp(code, run->error_code) && clock_wall_ms() - at_ms < AGAIN_MS &&
	       clock_wall_ms() >= at_ms;
}

/* Records the event for last_end(). */
static void remember_end(struct cmd_context *ctx, const struct run_row *run,
			 enum notify_event event)
{
	char key[RUN_JOB_KEY], words[64];

	run_job_key(run->config, run->job, key);
	snprintf(words, sizeof(words), "failed %lld %s", (long long)clock_wall_ms(),
		 run->error_code);
	fact_put(ctx->store, FACT_ENDED, key, NULL,
		 event == NOTIFY_DONE || event == NOTIFY_RECOVERED ? "done" : words, NULL);
}

/* ---- sending ---- */

/* Warns that a channel could not deliver: on stderr and, since the user may not read that, in the
 * run's log. run: its id; "": none. */
static void report_undelivered(const struct cmd_context *ctx, const char *run, const char *channel,
			       const struct err *err)
{
	CLEANUP(free_text) char *path = *run ? run_path(&ctx->runs, run, "log") : NULL;
	CLEANUP(file_close) FILE *log = path ? fopen(path, "ae") : NULL;
	CLEANUP(str_free) struct str line = STR_INIT;
	char when[32];

	str_addf(&line, "notify.%s: %s", channel, err->msg);
	log_redact(&line);
	if (log)
		fprintf(log, "%s %s\n", clock_rfc3339(when, sizeof(when), clock_wall_ms()),
			str_text(&line));
	log_line(LOG_WARN, "%s", str_text(&line));
}

/* Fills the template; without one, or with a bad one, the body is the run's JSON. */
static void fill_body(struct str *to, const char *template, enum notify_event event,
		      const json_t *said)
{
	if (!template || notify_fill(to, template, event, said, NULL) < 0) {
		char *text = output_json_line((json_t *)said);
		str_reset(to);
		str_add(to, text);
		free(text);
	}
	log_redact(to);
}

static struct notice_style style_of(enum notify_event event)
{
	static const struct notice_style looks[] = {
		[NOTIFY_DONE] = {"low", "white_check_mark"},
		[NOTIFY_RECOVERED] = {"default", "white_check_mark"},
		[NOTIFY_FAILED] = {"high", "x"},
		[NOTIFY_CAPPED] = {"high", "moneybag"},
		[NOTIFY_UNRELEASED] = {"max", "rotating_light"},
	};

	return looks[event];
}

/* POSTs the notice. Without a template, a program gets the run's JSON, and a service that shows
 * notices to people gets the summary. */
static int send_to_url(const char *url, const char *template, struct notice n,
		       enum notify_event event, const json_t *said, struct err *err)
{
	CLEANUP(str_free) struct str summary = STR_INIT;

	if (!template && notify_is_for_people(url)) {
		fill_body(&summary, "{summary}", event, said);
		n.body = &summary;
		n.json = false;
	}
	return send_http(url, &n, err);
}

/* Sends the event through url, desktop and command, as far as the config has them. said: the run's
 * JSON. Failures are warnings. */
static void send_to_channels(struct cmd_context *ctx, const struct section *conf, const char *run,
			     enum notify_event event, const json_t *said)
{
	const char *url = section_text(conf, "url"), *command = section_text(conf, "command"),
		   *template = section_text(conf, "template");
	CLEANUP(str_free) struct str title = STR_INIT;
	CLEANUP(str_free) struct str summary = STR_INIT;
	CLEANUP(str_free) struct str body = STR_INIT;
	struct err err = {0};

	notify_title(&title, event, said);
	notify_summary(&summary, said);
	fill_body(&body, template, event, said);
	log_redact(&summary);
	struct notice n = {.event = notify_event_name(event),
			   .run = run,
			   .job = json_string_value(json_object_get(said, "job")),
			   .title = str_text(&title),
			   .summary = str_text(&summary),
			   .body = &body,
			   .json = !template || notify_is_json(template),
			   .looks = style_of(event)};
	n.job = n.job ? n.job : "";
	if (url && send_to_url(url, template, n, event, said, &err) < 0)
		report_undelivered(ctx, run, "url", &err);
	if (section_bool(conf, "desktop") &&
	    send_to_desktop(&n, event == NOTIFY_UNRELEASED || event == NOTIFY_FAILED, &err) < 0)
		report_undelivered(ctx, run, "desktop", &err);
	if (command && send_to_command(command, &n, &err) < 0)
		report_undelivered(ctx, run, "command", &err);
}

/* Appends a line to git's note of the run's commit, which may have lines of other jobs. Runs no git
 * hooks: one could do anything for any time. */
static void note_commit(struct cmd_context *ctx, const struct run_row *run, enum notify_event event,
			const json_t *said)
{
	CLEANUP(free_text) char *folder = path_dir(run->config);
	CLEANUP(repo_free) struct repo repo = {0};
	CLEANUP(str_free) struct str line = STR_INIT;
	struct err err = {0};
	char when[32];

	str_addf(&line,
		 "%s job %s, run %s: %s: ", clock_rfc3339(when, sizeof(when), clock_wall_ms()),
		 run->job, run->id[0] ? run->id : "-", notify_event_name(event));
	notify_summary(&line, said);
	log_redact(&line);
	if (git_find(&repo, folder, &err) < 0 ||
	    GIT_CHANGE(&repo, &err, "notes", "--ref=burst", "append", "-m", str_text(&line),
		       run->commit_id) != 0)
		report_undelivered(ctx, run->id, "git_note", &err);
}

/* Notifies of the event as the config says, and remembers it. Without a channel does nothing. */
static void notify(struct cmd_context *ctx, const struct config *config, const struct run_row *run,
		   enum notify_event event, const json_t *said)
{
	const struct section *conf = notify_section(config);
	bool wanted = wants_event(conf, event) ||
		      (event == NOTIFY_RECOVERED && wants_event(conf, NOTIFY_DONE));

	if (event == NOTIFY_NONE || !has_channel(conf))
		return;
	if (ctx->store)
		remember_end(ctx, run, event);
	if (run->commit_id[0] && section_bool(conf, "git_note"))
		note_commit(ctx, run, event, said);
	if (wanted)
		send_to_channels(ctx, conf, run->id, event, said);
}

/* ---- which runs to report ---- */

/* Whether the user hears of this run's event. Not of a stage, which the whole run reports, nor of
 * success in filling a volume, measuring or keeping pods; but always if a pod may still bill. */
static bool is_reported(const struct run_row *run, enum notify_event event)
{
	bool renders = strcmp(run->type, JOB_WARM) && !excerpt_is(run->type) &&
		       strcmp(run->type, KEEP_RUN);

	if (event == NOTIFY_UNRELEASED)
		return true;
	return !run->stage[0] && (renders || (event != NOTIFY_DONE && event != NOTIFY_RECOVERED));
}

void notify_ended(struct cmd_context *ctx, const struct run_row *run, const json_t *said)
{
	if (!has_channel(notify_section(ctx->config)))
		return;
	enum notify_event event = notify_event_of(run->status, has_failed_before(ctx, run));
	if (is_reported(run, event))
		notify(ctx, ctx->config, run, event, said);
}

void notify_settled(struct cmd_context *ctx, const struct run_row *run, enum run_status was)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (!ctx->config || !has_channel(notify_section(ctx->config)) || run->status == was)
		return;
	enum notify_event event = notify_event_of(run->status, has_failed_before(ctx, run));
	if (run->status == RUN_INTERRUPTED) /* the run's client died before it could notify */
		event = NOTIFY_FAILED;
	if (!is_reported(run, event) ||
	    store_pods(ctx->store, run->id, false, &pods, &count, NULL) < 0)
		return;
	CLEANUP(json_decref) json_t *said = report_run_json(run, pods, count, clock_wall_ms());
	free(pods);
	notify(ctx, ctx->config, run, event, said);
}

void notify_never_began(struct cmd_context *ctx, const struct err *err)
{
	struct config_source ask = {
		.user_only = true, .providers = provider_registry, .jobs = job_registry};
	struct config *own = NULL;
	struct run_row run = {0};
	struct err ignored = {0};

	if (isatty(STDERR_FILENO) || err->kind == ERR_USAGE || err->kind == ERR_BUSY ||
	    err->kind == ERR_INTERRUPTED)
		return;
	if (ctx->cmd == &cmd_run && opt_has(ctx, "dry-run"))
		return;
	if (!ctx->config && config_open(&own, &ask, &ignored) < 0)
		return;
	const struct config *config = ctx->config ? ctx->config : own;
	if (has_channel(notify_section(config))) {
		COPY_TEXT(run.job, config_job(config) ? config_job_name(config) : "");
		COPY_TEXT(run.config, config_path(config) ? config_path(config) : "");
		COPY_TEXT(run.commit_id, ctx->tree ? ctx->tree->commit : "");
		run.status = err->kind == ERR_CAP          ? RUN_CAPPED
			     : err->kind == ERR_UNRELEASED ? RUN_UNRELEASED
							   : RUN_FAILED;
		COPY_TEXT(run.error_code, err_kind_name(err->kind));
		COPY_TEXT(run.error, err->msg);
		CLEANUP(json_decref) json_t *said = report_run_json(&run, NULL, 0, clock_wall_ms());
		if (!ctx->store || !was_just_reported(ctx, &run))
			notify(ctx, config, &run, notify_event_of(run.status, false), said);
	}
	config_free(own);
}
