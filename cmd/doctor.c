/* doctor.c - `burst doctor`: checks this machine, the job, what it would rent, and the accounts. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/volume.h"
#include "cmd/launch/decide.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/caller.h"
#include "engine/past.h"
#include "jobs/renders.h"
#include "store/facts.h"

enum { CHECK_ASK_MS = 30000 }; /* limit for one provider's reply */

/* ---- findings, a line each ---- */

struct findings {
	int bad;
	int usable;   /* providers from which this job could rent, now or later */
	int accounts; /* cloud accounts that answered */
};

/* Prints a finding on stdout and counts it if it is "bad". mark: "ok", "warn", "bad" or "". */
static void findings_say(struct findings *f, const char *mark, const char *fmt, ...) PRINTF(3, 4);
static void findings_say(struct findings *f, const char *mark, const char *fmt, ...)
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

/* Prints each line of the provider's report ("ok: words", "warn: words", "bad: words") as a
 * finding; a line without a mark is "ok". */
static void findings_say_lines(struct findings *f, const char *provider, const char *text)
{
	const char *line;
	size_t n;

	while ((line = str_next_line(&text, &n))) {
		size_t mark = strcspn(line, ":");
		char word[8] = "ok";
		if (mark < n && mark < sizeof(word))
			snprintf(word, sizeof(word), "%.*s", (int)mark, line);
		CLEANUP(str_free) struct str shown = STR_INIT;
		const char *words = mark < n ? line + mark + 1 : line;
		words += strspn(words, " ");
		str_add_printable(&shown, words, n - (size_t)(words - line), 300);
		findings_say(f, word, "%s: %s", provider, str_text(&shown));
	}
}

/* ---- machine ----
 * Checks this machine: its ledger, its render cache, its programs. */

enum { LEDGER_ROOM_BYTES = 64 * 1000 * 1000 };

static void check_renders(const struct cmd_context *ctx, struct findings *f)
{
	CLEANUP(free_text) char *dir = config_renders_dir();
	int64_t limit_mb = section_int(config_top(ctx->config), "render_cache_mb");
	struct renders_size size;
	struct err err = {0};

	if (!dir || !limit_mb)
		findings_say(f, "ok", "no render cache");
	else if (renders_measure(dir, &size, &err) < 0)
		findings_say(f, "warn", "%s: the render cache is off", err.msg);
	else
		findings_say(f, "ok", "render cache in %s: %lld of %lld MB used", dir,
			     (long long)(size.bytes / 1000000), (long long)limit_mb);
}

static void check_machine(struct cmd_context *ctx, struct findings *f)
{
	int64_t room = path_free_bytes(ctx->state_dir);

	if (room >= 0 && room < LEDGER_ROOM_BYTES)
		findings_say(f, "bad",
			     "%s: only %lld MB free; burst rents nothing that it cannot record",
			     ctx->state_dir, (long long)(room / 1000000));
	else
		findings_say(f, "ok", "ledger in %s", ctx->state_dir);
	check_renders(ctx, f);
	findings_say(f, program_exists("ffmpeg") ? "ok" : "warn",
		     program_exists("ffmpeg") ? "ffmpeg: joining can set the loudness"
					      : "ffmpeg is not installed: joined tracks keep their "
						"loudness, and voice samples must be WAV files");
	findings_say(f, program_exists("ssh") ? "ok" : "warn",
		     program_exists("ssh")
			     ? "ssh: `burst ssh` works"
			     : "ssh is not installed: `burst ssh` does not work (rendering does)");
}

/* Warns of pods whose run has no client. */
static void check_ledger(struct cmd_context *ctx, struct findings *f)
{
	struct pod_row *pods = NULL;
	size_t count = 0, orphans = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		orphans += !run_is_alive(&ctx->runs, pods[i].run);
	free(pods);
	if (orphans)
		findings_say(f, "warn",
			     "%zu pod%s of runs without a client: `burst resume` or `burst reap`",
			     orphans, orphans == 1 ? "" : "s");
	else
		findings_say(f, "ok", "no pod without a client");
}

/* ---- job ----
 * Checks the job of this folder, and the volumes that it may use. */

/* Checks the job of this folder, if there is one. Loads the job or, if it has mistakes, only its
 * needs; l->run.setup.job stays NULL if even these cannot be read. */
static void check_job(struct launch *l, struct findings *f)
{
	struct err err = {0};
	size_t count;

	if (!config_job(l->ctx->config))
		return;
	if (launch_peek_job(l, &err) < 0) {
		const struct mistakes *m = &l->ctx->mistakes;
		for (size_t i = 0; i < m->count; i++)
			findings_say(f, "bad", "%s", m->list[i].err.msg);
		if (!m->count)
			findings_say(f, "bad", "%s", err.msg);
		/* launch_peek_job() can fail before it reads the job (output_dir is NULL then):
		 * read it, so that its offers are reported */
		if (!l->run.output_dir)
			launch_read_job(l, &err);
		return;
	}
	l->run.setup.job_ops->segments(l->run.setup.job, &count);
	findings_say(f, "ok", "job \"%s\": %zu segment%s", config_job_name(l->ctx->config), count,
		     count == 1 ? "" : "s");
}

/* Reports a prompt that a run would show on a terminal: under cron it stops the run. */
static void check_volume(struct launch *l, int provider, struct findings *f)
{
	struct err why = {0};

	if (config_job(l->ctx->config) &&
	    volume_trust_check(l->ctx, &l->order, &l->run.setup.providers[provider], &why) < 0 &&
	    why.kind == ERR_CONFIG)
		findings_say(f, "bad", "%s", why.msg);
}

/* Tells users without a cloud account that a neural voice runs on this machine. */
static void suggest_local_voice(const struct cmd_context *ctx, struct findings *f)
{
	const struct section *job = config_job(ctx->config);
	const char *engine = job && !strcmp(config_job_ops(ctx->config)->type, "tts")
				     ? section_text(job, "engine")
				     : NULL;
	bool espeak = engine && !strcmp(engine, "espeak") && !section_has(job, "worker");

	if (!f->accounts && (!job || espeak))
		findings_say(f, "",
			     "a neural voice needs no GPU and no account: job.engine = \"piper\" "
			     "(jobs/README.md)");
}

/* ---- offers ----
 * Checks what this job would rent, and whether its caps can pay for it. */

/* The mark for what prevents renting from one provider: a run still works with another. */
static const char *mark_for_one_provider(const struct launch *l)
{
	return l->run.setup.provider_count > 1 ? "warn" : "bad";
}

/* Reports the account's balance. Returns false if it cannot pay a run's cap; true if the provider
 * reports no balance. */
static bool check_balance(struct launch *l, const struct engine_provider *p, struct findings *f)
{
	int64_t cap =
		l->run.setup.job
			? section_int(section_group(config_top(l->ctx->config), "caps"), "max_cost")
			: 0;
	struct op_result result = {0};
	struct err err = {0};
	char text[32], most[32];
	bool enough = true;

	if (caller_perform(p, OP_BALANCE, NULL, CHECK_ASK_MS, &result, &err) == 0 &&
	    result.balance_microusd >= 0) {
		money_show(text, sizeof(text), result.balance_microusd);
		enough = result.balance_microusd >= cap;
		if (!enough)
			findings_say(f, mark_for_one_provider(l),
				     "%s: balance %s cannot pay a run's cap of %s: add credit, or "
				     "lower caps.max_cost",
				     p->ops->name, text, money_show(most, sizeof(most), cap));
		else
			findings_say(f, "ok", "%s: balance %s", p->ops->name, text);
	}
	op_result_free(&result);
	return enough;
}

/* Prints the offer that a run would take first: the most preferred GPU, then the lowest price. */
static void print_first_offer(struct findings *f, const char *provider, const struct offer *offers,
			      size_t count)
{
	const struct offer *best = offers;
	char price[32];

	for (size_t i = 1; i < count; i++)
		if (offers[i].wish < best->wish ||
		    (offers[i].wish == best->wish &&
		     offers[i].price_microusd_h < best->price_microusd_h))
			best = &offers[i];
	findings_say(f, "ok", "%s: %zu offer%s for this job, first %s, %s", provider, count,
		     count == 1 ? "" : "s", gpu_called(best->gpu),
		     price_show(price, best->provider, best->price_microusd_h));
}

/* Reports what this job would rent. Returns false if the job can rent nothing from this provider,
 * now or later; true if that is unknown. */
static bool check_offers(struct launch *l, int provider, struct findings *f)
{
	const char *name = l->run.setup.providers[provider].ops->name;
	CLEANUP(wanted_free)
	struct wanted wanted = {.order = &l->order, .store = l->ctx->store};
	struct op_result result = {0};
	struct err err = {0};
	char price[32];
	size_t len;

	if (!l->run.setup.job)
		return true;
	if (offers_fetch(&l->order, &l->run.setup.providers[provider], OFFERS_AT_VOLUME,
			 OFFERS_ASK_MS, &result, &err) < 0) {
		findings_say(f, err.kind == ERR_CONFIG ? mark_for_one_provider(l) : "warn",
			     "%s: %s", name, err.msg);
		return err.kind != ERR_CONFIG;
	}
	for (const char *at = str_text(&result.text), *line; (line = str_next_line(&at, &len));)
		findings_say(f, "warn", "%s: %.*s", name, (int)len, line);
	wanted_add(&wanted, result.offers, result.offer_count);
	wanted_end(&wanted);
	bool above_max_price = !wanted.count && wanted.left_out[NOT_AT_PRICE];
	if (wanted.count)
		print_first_offer(f, name, wanted.list, wanted.count);
	else if (above_max_price)
		findings_say(f, mark_for_one_provider(l),
			     "%s: the cheapest offer for this job is %s an hour, above "
			     "caps.max_price_per_hour",
			     name,
			     money_show(price, sizeof(price), wanted.cheapest.price_microusd_h));
	else
		findings_say(f, "warn", "%s: no offers now%s", name,
			     wanted.left_out[NOT_WITH_NEEDS] ? " with what job.needs names" : "");
	op_result_free(&result);
	return !above_max_price;
}

/* ---- provider ----
 * Checks an account: its key, its pods, and the ledger's facts about them. */

/* Prints what the provider's pods reported about their dead-man's switch. The ledger's fact reads
 * "WORD DATE REASON", where WORD is "ok", "bad" or another for "answered, but not yet seen". */
static void report_switch(struct launch *l, const char *provider, struct findings *f)
{
	char fact[200], word[16] = "", day[16] = "";

	if (!fact_get(l->ctx->store, FACT_SWITCH, provider, NULL, fact, sizeof(fact)) ||
	    sscanf(fact, "%15s %15s", word, day) != 2)
		findings_say(f, "", "%s: no pod has reported yet whether it can end itself",
			     provider);
	else if (!strcmp(word, "bad"))
		findings_say(f, "warn",
			     "%s: on %s a pod could not end itself (%s): such pods get no work "
			     "unless pod.allow_unproven_switch is true",
			     provider, day,
			     fact + MIN(strlen(fact), strlen(word) + strlen(day) + 2));
	else if (!strcmp(word, "ok"))
		findings_say(f, "ok", "%s: its pods can end themselves (seen on %s)", provider,
			     day);
	else
		findings_say(f, "ok",
			     "%s: the pods' call to end themselves answered on %s; no pod was seen "
			     "to end that way yet",
			     provider, day);
}

/* Prints the cards that are skipped because an earlier pod of this image could not use them. With
 * --forget-cards, lets runs rent them again. */
static void report_unfit_cards(struct launch *l, const char *provider, struct findings *f)
{
	const struct past_image of = {
		section_text(section_group(config_top(l->ctx->config), "pod"), "image"),
		l->run.setup.job ? l->run.setup.job_ops->needs(l->run.setup.job)->setup : NULL};
	size_t count;
	const struct gpu *cards = gpu_catalog(&count);
	char why[200], day[32];
	int64_t since_ms;

	for (size_t i = 0; l->run.setup.job && i < count; i++) {
		if (!past_card_is_unfit(l->ctx->store, &of, provider, cards[i].name,
					clock_wall_ms(), why, sizeof(why), &since_ms))
			continue;
		if (opt_has(l->ctx, "forget-cards") &&
		    past_card_forget(l->ctx->store, &of, provider, cards[i].name))
			findings_say(f, "ok", "%s: %s may be rented again", provider,
				     cards[i].name);
		else
			findings_say(
				f, "warn",
				"%s: %s skipped since %.10s: %s (--forget-cards: try it again)",
				provider, cards[i].name, clock_rfc3339(day, sizeof(day), since_ms),
				why);
	}
}

/* Counts burst's pods at the provider. If it refuses to list them, looks up those of the ledger by
 * id, as runs do. was_bad: a failed check is already printed, so a failed list is not. */
static void check_pods(struct launch *l, const struct engine_provider *p, bool was_bad,
		       struct findings *f)
{
	CLEANUP(core_ids_free) char **ids = run_pod_ids(&l->ctx->runs, p->ops->name);
	struct op_result result = {0};
	struct err err = {0};
	int64_t now_ms;
	int live = 0;

	if (caller_list(p, ids, CHECK_ASK_MS, &result, &now_ms, &err) < 0) {
		if (!was_bad)
			findings_say(f, "bad", "%s: cannot list its pods: %s", p->ops->name,
				     err.msg);
		return;
	}
	if (result.partial)
		findings_say(f, "warn", "%s", str_text(&result.text));
	for (size_t i = 0; i < result.pod_count; i++)
		live += result.pods[i].state != POD_STATE_GONE;
	findings_say(f, live ? "warn" : "ok", "%s: %d pod%s with burst's marker now%s%s",
		     p->ops->name, live, live == 1 ? "" : "s",
		     result.partial ? ", among those in this machine's ledger" : "",
		     live ? " (see `burst ps`, `burst reap`)" : "");
	op_result_free(&result);
}

/* Checks everything about one provider, with its offers. Counts it in f->accounts and f->usable. */
static void check_provider(struct launch *l, int provider, struct findings *f)
{
	const struct engine_provider *p = &l->run.setup.providers[provider];
	struct op_result result = {0};
	struct err err = {0};
	int before = f->bad;

	if (caller_perform(p, OP_CHECK, NULL, CHECK_ASK_MS, &result, &err) < 0)
		findings_say(f, "bad", "%s: %s", p->ops->name, err.msg);
	else
		findings_say_lines(f, p->ops->name, str_text(&result.text));
	op_result_free(&result);
	bool bad = f->bad > before, can_pay = check_balance(l, p, f);
	f->accounts += !bad && strcmp(p->ops->name, "local") != 0;
	if (!bad && check_offers(l, provider, f) && can_pay)
		f->usable++;
	report_unfit_cards(l, p->ops->name, f);
	report_switch(l, p->ops->name, f);
	check_pods(l, p, bad, f);
}

/* Names the providers with pods or volumes in the ledger that the config's `provider` leaves out:
 * they were not checked. */
static void say_unnamed_providers(struct launch *l, struct findings *f)
{
	char **known = providers_of_ledger(l->ctx);

	for (char **name = known; *name; name++) {
		bool named = false;
		for (size_t i = 0; i < section_count(config_top(l->ctx->config), "provider"); i++)
			named = named || !strcmp(*name, section_item(config_top(l->ctx->config),
								     "provider", i));
		if (!named && strcmp(*name, "local"))
			findings_say(f, "",
				     "%s: not asked, because `provider` does not name it; the "
				     "ledger has pods or volumes there: burst doctor -p %s",
				     *name, *name);
	}
	texts_free(known);
}

/* ---- the command ---- */

/* Prints what the config's providers need of their vendors, as files for the vendors' own tools. */
static int print_rights(struct cmd_context *ctx, struct err *err)
{
	const struct section *top = config_top(ctx->config);
	int printed = 0;

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const char *name = section_item(top, "provider", i);
		const struct provider_ops *ops = provider_find(name);
		const struct section *account = config_account(ctx->config, name, err);
		if (!account)
			return -1;
		if (!ops->rights)
			continue;
		CLEANUP(free_text) char *text = ops->rights(account);
		printf("%s", text);
		printed++;
	}
	if (!printed)
		return err_set(err, ERR_USAGE,
			       "--rights: none of these providers has rights of its own");
	return cmd_flush(err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct findings f = {0};
	struct launch l;

	if (opt_has(ctx, "rights"))
		return print_rights(ctx, err);

	check_machine(ctx, &f);
	check_ledger(ctx, &f);
	launch_init(&l, ctx);
	check_job(&l, &f);
	if (launch_open_providers(&l.order, &l.run, err) < 0) {
		findings_say(&f, "bad", "%s", err->msg);
		err_clear(err);
	}
	for (int i = 0; i < l.run.setup.provider_count; i++) {
		check_provider(&l, i, &f);
		check_volume(&l, i, &f);
	}
	if (l.run.setup.provider_count > 1 && !f.usable)
		findings_say(&f, "bad", "none of these providers is ready to rent from");
	say_unnamed_providers(&l, &f);
	suggest_local_voice(ctx, &f);
	launch_free(&l);
	printf("     until a pod's container runs, only `burst` and `burst reap` can release it; "
	       "after that it ends itself\n");
	report_volumes(ctx->store, stdout, NULL, NULL);
	return cmd_flush(err) < 0 ? -1 : f.bad > 0;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "check these providers", "provider"},
	{0, "rights", NULL, "print the least rights that the providers' credentials need"},
	{0, "forget-cards", NULL, "try GPUs again that could not run the job's image"},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths"},
	{0},
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "check what a run needs, here and at the providers",
	.details = "Exit status 1 if something would stop a run.",
	.opts = opts,
	.needs = NEED_LEDGER | NEED_CONFIG | CHECKS_ALL,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
