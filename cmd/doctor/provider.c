/* provider.c - checks an account: its key, its pods, and the ledger's facts about them. */
#include "checks.h"

#include "base/clock.h"
#include "base/gpus.h"
#include "cmd/launch/known_providers.h"
#include "engine/caller.h"
#include "engine/past.h"
#include "store/facts.h"

/* Prints what its pods reported about their switch: "WORD DATE WORDS". */
static void check_switch(struct launch *l, const char *provider, struct findings *f)
{
	char fact[200], word[16] = "", day[16] = "";

	if (!fact_get(l->ctx->store, FACT_SWITCH, provider, NULL, fact, sizeof(fact)) ||
	    sscanf(fact, "%15s %15s", word, day) != 2)
		findings_say(f, "", "%s: no pod has reported yet whether it can end itself",
			     provider);
	else if (!strcmp(word, "bad"))
		findings_say(
			f, "warn",
			"%s: on %s a pod could not end itself (%s): such pods get no work unless "
			"pod.allow_unproven_switch is true",
			provider, day, fact + MIN(strlen(fact), strlen(word) + strlen(day) + 2));
	else if (!strcmp(word, "ok"))
		findings_say(f, "ok", "%s: its pods can end themselves (seen on %s)", provider,
			     day);
	else
		findings_say(
			f, "ok",
			"%s: the pods' call to end themselves answered on %s; no pod was seen to "
			"end that way yet",
			provider, day);
}

/* Prints what an earlier pod of such an image reported about its card. */
static void check_cards(struct launch *l, const char *provider, struct findings *f)
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

/* If the provider refuses its list, looks pods up by id, as runs do. */
static void check_pods(struct launch *l, const struct engine_provider *p, bool was_bad,
		       struct findings *f)
{
	CLEANUP(core_ids_free) char **ids = run_pod_ids(&l->ctx->runs, p->ops->name);
	struct op_result result = {0};
	struct err err = {0};
	int64_t now_ms;
	int live = 0;

	if (caller_list(p, ids, CHECK_ASK_MS, &result, &now_ms, &err) < 0) {
		if (!was_bad) /* else it is printed already */
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

void check_provider(struct launch *l, int provider, struct findings *f)
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
	check_cards(l, p->ops->name, f);
	check_switch(l, p->ops->name, f);
	check_pods(l, p, bad, f);
}

void check_unnamed(struct launch *l, struct findings *f)
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
	names_free(known);
}
