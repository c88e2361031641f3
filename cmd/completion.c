/* completion.c - `burst completion` prints the script by which a shell completes; that script asks
 * `burst words` what can follow. */
#include "cmd.h"

#include <stdlib.h>

#include "base/gpus.h"
#include "base/incbin.h"
#include "base/path.h"

INCBIN(completion_bash, "cmd/line/completion.bash");
INCBIN(completion_zsh, "cmd/line/completion.zsh");
INCBIN(completion_fish, "cmd/line/completion.fish");

/* ---- burst words ----
 * The first line of its answer says what follows: "words" (a line each, of which a tab separates
 * what the word means), or that the shell completes "files", "folders" or "endings cfg ..." itself.
 */

struct answer {
	const struct cmd_context *ctx;
	const char *begins; /* of the word, as far as it is typed */
};

/* Prints the word if the user's letters begin it. */
static void offer_word(const struct answer *a, const char *word, const char *meaning)
{
	if (starts_with(word, a->begins))
		printf("%s\t%s\n", word, meaning);
}

/* Offers the text at `first`, and those that follow it at each `size` bytes: one member of rows. */
static void offer_first_members(const struct answer *a, const char *first, size_t size,
				size_t count)
{
	for (size_t i = 0; i < count; i++)
		offer_word(a, first + i * size, "");
}

/* ---- lists ---- */

enum { RUNS_OFFERED = 50 };

/* NULL if there is none: completion prints no errors. The caller closes the store. */
static struct store *open_ledger(const struct answer *a)
{
	CLEANUP(free_text) char *path = path_join(a->ctx->state_dir, "ledger.db");
	struct store *store = NULL;

	return store_open_to_read(&store, path, NULL) < 0 ? NULL : store;
}

/* The newest runs; living: only those that have not ended. */
static void offer_runs(const struct answer *a, struct store *store, bool living)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (store_runs(store, NULL, living, RUNS_OFFERED, &rows, &count, NULL) == 0 && count)
		offer_first_members(a, rows->id, sizeof(*rows), count);
	free(rows);
}

static void offer_all_runs(const struct answer *a, struct store *store)
{
	offer_runs(a, store, false);
}

static void offer_living_runs(const struct answer *a, struct store *store)
{
	offer_runs(a, store, true);
}

static void offer_pods(const struct answer *a, struct store *store)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	store_pods(store, NULL, true, &rows, &count, NULL);
	for (size_t i = 0; i < count; i++)
		offer_word(a, pod_row_called(&rows[i]), rows[i].gpu);
	free(rows);
}

static void offer_volumes(const struct answer *a, struct store *store)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(store, &rows, &count, NULL) == 0 && count)
		offer_first_members(a, rows->name, sizeof(*rows), count);
	free(rows);
}

static void offer_schedules(const struct answer *a, struct store *store)
{
	struct schedule_row *rows = NULL;
	size_t count = 0;

	if (store_schedules(store, &rows, &count, NULL) == 0 && count)
		offer_first_members(a, rows->name, sizeof(*rows), count);
	free(rows);
}

static void offer_requests(const struct answer *a, struct store *store)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(store, NULL, true, &rows, &count, NULL) == 0 && count)
		offer_first_members(a, rows->id, sizeof(*rows), count);
	free(rows);
}

static void offer_gpus(const struct answer *a, struct store *store)
{
	size_t count;
	const struct gpu *list = gpu_catalog(&count);

	(void)store;
	for (size_t i = 0; i < count; i++)
		offer_word(a, list[i].name, "");
	offer_word(a, "none", "no GPU");
	offer_word(a, "auto", "burst chooses");
}

static void offer_providers(const struct answer *a, struct store *store)
{
	(void)store;
	for (const struct provider_ops *const *p = provider_registry; *p; p++)
		offer_word(a, (*p)->name, "");
}

static void offer_commands(const struct answer *a, struct store *store)
{
	(void)store;
	for (const struct cmd *const *c = a->ctx->commands; *c; c++)
		if (!(*c)->hidden)
			offer_word(a, (*c)->name, (*c)->summary);
}

/* Which list a placeholder in a command's or a flag's arguments ("RUN") stands for. command NULL:
 * in all commands without a row of their own. */
static const struct {
	const char *word, *command;
	bool from_ledger;
	void (*offer)(const struct answer *a, struct store *store); /* store NULL: not needed */
} lists[] = {
	{"RUN", "attach", true, offer_living_runs},
	{"RUN", "cancel", true, offer_living_runs},
	{"RUN", NULL, true, offer_all_runs},
	{"POD", NULL, true, offer_pods},
	{"NAME", "volume", true, offer_volumes},
	{"NAME", "schedule", true, offer_schedules},
	{"CONFIG|REQUEST", NULL, true, offer_requests},
	{"PROVIDER", NULL, false, offer_providers},
	{"GPU", NULL, false, offer_gpus},
	{"COMMAND", "help", false, offer_commands},
};

/* Returns false, and prints nothing, if no list belongs to the placeholder. */
static bool offer_list(const struct answer *a, const struct cmd *cmd, const char *word)
{
	size_t i = 0;

	while (i < ARRAY_LEN(lists) &&
	       (strcmp(word, lists[i].word) != 0 ||
		(lists[i].command && strcmp(cmd->name, lists[i].command) != 0)))
		i++;
	if (i == ARRAY_LEN(lists))
		return false;
	puts("words");
	struct store *store = lists[i].from_ledger ? open_ledger(a) : NULL;
	if (store || !lists[i].from_ledger)
		lists[i].offer(a, store);
	store_close(store);
	return true;
}

/* Offers "auto" for "N|auto", where N is any number, and both words of "tts|command". */
static void offer_choices(const struct answer *a, const char *choices)
{
	puts("words");
	while (*choices) {
		size_t len = strcspn(choices, "|");
		CLEANUP(free_text) char *word = xstrndup(choices, len);
		if (strcmp(word, "N") != 0)
			offer_word(a, word, "");
		choices += len + (choices[len] == '|');
	}
}

/* Prints what may stand for a placeholder: "CONFIG", "FILE", "POD", "tts|command"; "": nothing. */
static void offer_values(const struct answer *a, const struct cmd *cmd, const char *word)
{
	if (offer_list(a, cmd, word))
		return;
	if (!strcmp(word, "CONFIG|TEXT"))
		puts("endings cfg txt md csv tsv jsonl");
	else if (starts_with(word, "CONFIG"))
		puts("endings cfg");
	else if (!strcmp(word, "FILE"))
		puts("files");
	else if (!strcmp(word, "DIR"))
		puts("folders");
	else
		offer_choices(a, strchr(word, '|') ? word : "");
}

/* ---- flags and arguments ---- */

/* word: "--pods" or "-p". */
static bool is_this_flag(const struct opt *o, const char *word)
{
	return o->name && word[1] == '-' ? !strcmp(word + 2, o->name)
					 : o->letter && word[1] == o->letter && !word[2];
}

/* The flag that the word names: a command's own before a common one. NULL: there is none. */
static const struct opt *find_flag(const struct cmd *cmd, const char *word)
{
	const struct opt *o = cmd->opts;

	while (o && o->name && !is_this_flag(o, word))
		o++;
	if (o && o->name)
		return o;
	for (o = common_opts; o->name && !is_this_flag(o, word);)
		o++;
	return o->name ? o : NULL;
}

static void offer_flag(const struct answer *a, const struct opt *o)
{
	char letter[] = {'-', o->letter, '\0'};

	if (o->name) {
		CLEANUP(free_text) char *word = xasprintf("--%s", o->name);
		offer_word(a, word, o->help);
	}
	if (o->letter)
		offer_word(a, letter, o->help);
}

static void offer_flags(const struct answer *a, const struct cmd *cmd)
{
	puts("words");
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		offer_flag(a, o);
	for (const struct opt *o = common_opts; o->name; o++) {
		struct opt shown = cmd_common_opt(cmd, o);
		if (cmd->json || strcmp(o->name, "json"))
			offer_flag(a, &shown);
	}
}

/* Copies the n-th placeholder (from 0) of "[CONFIG|TEXT] [-- COMMAND...]", of which the last may be
 * repeated; or "". */
static void nth_argument(const char *args, int n, char *out, size_t room)
{
	const char *at = args ? args : "";
	bool found = false;

	*out = '\0';
	for (; *at && !found; n--) {
		at += strspn(at, " [");
		size_t len = strcspn(at, " [].");
		found = n == 0 || starts_with(at + len, "...");
		if (found)
			snprintf(out, room, "%.*s", (int)len, at);
		at += len + strspn(at + len, ".]");
	}
}

/* words: what follows the command's name; the last one, a->begins, is completed. */
static void complete_last_word(const struct answer *a, const struct cmd *cmd, const char **words,
			       int count)
{
	const struct opt *flag = NULL; /* the word before, if it needs a value */
	int arguments = 0;
	char word[60];

	for (int i = 0; i < count - 1; i++) {
		bool is_value = flag;
		flag = !is_value && words[i][0] == '-' ? find_flag(cmd, words[i]) : NULL;
		flag = flag && flag->arg && !flag->optional ? flag : NULL;
		arguments += !is_value && words[i][0] != '-';
	}
	if (flag) {
		offer_values(a, cmd, flag->arg);
	} else if (a->begins[0] == '-') {
		offer_flags(a, cmd);
	} else {
		nth_argument(cmd->args, arguments, word, sizeof(word));
		offer_values(a, cmd, word);
	}
}

static int run_words(struct cmd_context *ctx, struct err *err)
{
	int last = ctx->arg_count - 1, at = 0;
	struct answer a = {ctx, last >= 0 ? ctx->args[last] : ""};
	const struct cmd *cmd = NULL;

	while (at < last && ctx->args[at][0] == '-')
		at++;
	if (at < last)
		cmd = cmd_find(ctx->commands, ctx->args[at], NULL);
	if (cmd) {
		complete_last_word(&a, cmd, ctx->args + at + 1, last - at);
	} else if (at >= last) {
		puts("words");
		offer_commands(&a, NULL);
		offer_word(&a, "--version", "show the version");
	}
	return cmd_flush(err);
}

const struct cmd cmd_words = {
	.name = "words",
	.max_args = -1,
	.summary = "list what a shell may put in place of the last word of a command line",
	.needs = NEED_STATE,
	.raw = true,
	.hidden = true,
	.run = run_words,
};

/* ---- burst completion ---- */

static int run_completion(struct cmd_context *ctx, struct err *err)
{
	const struct {
		const char *name, *script;
	} shells[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(shells[i].name, ctx->args[0])) {
			fputs(shells[i].script, stdout);
			return cmd_flush(err);
		}
	return err_set(err, ERR_USAGE,
		       "completion: no shell \"%.40s\" here: it is bash, zsh or fish",
		       ctx->args[0]);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.args = "bash|zsh|fish",
	.min_args = 1,
	.max_args = 1,
	.summary = "print the completion script of a shell",
	.details = "bash: source <(burst completion bash)\n"
		   "zsh: burst completion zsh > a folder of $fpath, as _burst\n"
		   "fish: burst completion fish > ~/.config/fish/completions/burst.fish",
	.group = CMD_GROUP_SETUP,
	.run = run_completion,
};
