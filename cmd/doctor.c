#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "engine/caller.h"
#include "launch.h"
#include "output.h"
#include "report.h"

enum { ASK_MS = 30000, LEDGER_ROOM_BYTES = 64 << 20 };

struct findings {
	int bad;
};

static void say(struct findings *f, const char *mark, const char *fmt, ...) PRINTF(3, 4);
static void say(struct findings *f, const char *mark, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	f->bad += !strcmp(mark, "bad");
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	output_line(stdout, "%-5s%s", mark, text ? text : "");
	free(text);
}

static bool on_path(const char *program)
{
	const char *path = getenv("PATH");

	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		CLEANUP(free_text) char *full = xasprintf("%.*s/%s", (int)n, p, program);
		if (n && access(full, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

static void check_machine(struct cmd_context *ctx, struct findings *f)
{
	int64_t room = path_free_bytes(ctx->state_dir);

	if (room >= 0 && room < LEDGER_ROOM_BYTES)
		say(f, "bad", "%s: only %lld MB free; nothing can be rented that cannot be written down", ctx->state_dir,
		    (long long)(room >> 20));
	else
		say(f, "ok", "ledger in %s", ctx->state_dir);
	say(f, on_path("ffmpeg") ? "ok" : "warn", on_path("ffmpeg") ? "ffmpeg: joining can set the loudness" :
	    "ffmpeg is not installed: joined tracks keep the loudness they have");
	say(f, on_path("ssh") ? "ok" : "warn", on_path("ssh") ? "ssh: `burst ssh` works" :
	    "ssh is not installed: `burst ssh` does not work (rendering does)");
}

/* Lines "ok: words", "warn: words", "bad: words" from the provider itself. */
static void print_check(struct findings *f, const char *provider, const char *text)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n"), mark = strcspn(line, ":");
		char word[8] = "ok";
		if (mark < n && mark < sizeof(word))
			snprintf(word, sizeof(word), "%.*s", (int)mark, line);
		CLEANUP(str_free) struct str shown = STR_INIT;
		const char *words = mark < n ? line + mark + 1 : line;
		words += strspn(words, " ");
		str_add_printable(&shown, words, n - (size_t)(words - line), 300);
		say(f, word, "%s: %s", provider, str_text(&shown));
		line += n + (line[n] == '\n');
	}
}

static void check_provider(struct launch *l, const struct engine_provider *p, struct findings *f)
{
	struct op_result result = {0};
	struct err err = {0};
	char text[32];

	if (caller_ask(p, OP_CHECK, NULL, ASK_MS, &result, &err) < 0)
		say(f, "bad", "%s: %s", p->ops->name, err.msg);
	else
		print_check(f, p->ops->name, str_text(&result.text));
	op_result_free(&result);
	if (caller_ask(p, OP_BALANCE, NULL, ASK_MS, &result, &err) == 0 && result.balance_microusd >= 0)
		say(f, "ok", "%s: balance %s", p->ops->name, money_show(text, sizeof(text), result.balance_microusd));
	op_result_free(&result);
	if (caller_ask(p, OP_LIST, NULL, ASK_MS, &result, &err) < 0) {
		say(f, "bad", "%s: its pods cannot be listed: %s", p->ops->name, err.msg);
		return;
	}
	int live = 0;
	for (size_t i = 0; i < result.pod_count; i++)
		live += result.pods[i].state != POD_STATE_GONE;
	say(f, live ? "warn" : "ok", "%s: %d pod%s of burst there now%s", p->ops->name, live, live == 1 ? "" : "s",
	    live ? " (see `burst ps`, `burst reap`)" : "");
	op_result_free(&result);
	(void)l;
}

static void check_ledger(struct cmd_context *ctx, struct findings *f)
{
	struct pod_row *pods = NULL;
	size_t count = 0, orphans = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		orphans += !run_is_alive(ctx, pods[i].run);
	free(pods);
	if (orphans)
		say(f, "warn", "%zu pod%s of runs without a client: `burst resume` or `burst reap`", orphans, orphans == 1 ? "" : "s");
	else
		say(f, "ok", "no pod without a client");
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct findings f = {0};
	struct launch l;

	check_machine(ctx, &f);
	check_ledger(ctx, &f);
	launch_init(&l, ctx);
	if (launch_open_providers(&l, err) < 0) {
		say(&f, "bad", "%s", err->msg);
		err_clear(err);
	}
	for (int i = 0; i < l.setup.provider_count; i++)
		check_provider(&l, &l.setup.providers[i], &f);
	launch_free(&l);
	printf("     before a pod's container runs only `burst` and `burst reap` can end it; from then on it ends itself\n");
	report_volumes(ctx->store, stdout, NULL, NULL);
	return cmd_flush(err) < 0 ? -1 : f.bad > 0;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "check these", "provider", false},
	{0},
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "check what a run needs, here and at the providers",
	.details = "Exit status 1 if something would stop a run.",
	.opts = opts,
	.needs = NEED_LEDGER | NEED_CONFIG,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
