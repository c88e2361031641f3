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

static void offer(const struct answer *a, const char *word, const char *meaning)
{
	if (starts_with(word, a->begins))
		printf("%s\t%s\n", word, meaning);
}

/* What a row calls itself stands at the beginning of each. */
static void offer_rows(const struct answer *a, const char *first, size_t size, size_t count)
{
	for (size_t i = 0; i < count; i++)
		offer(a, first + i * size, "");
}

/* ---- lists ---- */

static struct store *open_ledger(const struct answer *a)
{
	CLEANUP(free_text) char *path = path_join(a->ctx->state_dir, "ledger.db");
	struct store *store = NULL;

	return store_open_to_read(&store, path, NULL) < 0 ? NULL : store;
}

static void offer_runs(const struct answer *a, struct store *store, bool living)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (store_runs(store, NULL, living, 50, &rows, &count, NULL) == 0 && count)
		offer_rows(a, rows->id, sizeof(*rows), count);
	free(rows);
}

static void all_runs(const struct answer *a, struct store *store)
{
	offer_runs(a, store, false);
}

static void living_runs(const struct answer *a, struct store *store)
{
	offer_runs(a, store, true);
}

static void pods(const struct answer *a, struct store *store)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	store_pods(store, NULL, true, &rows, &count, NULL);
	for (size_t i = 0; i < count; i++)
		offer(a, pod_row_called(&rows[i]), rows[i].gpu);
	free(rows);
}

static void volumes(const struct answer *a, struct store *store)
{
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (store_volumes(store, &rows, &count, NULL) == 0 && count)
		offer_rows(a, rows->name, sizeof(*rows), count);
	free(rows);
}

static void schedules(const struct answer *a, struct store *store)
{
	struct schedule_row *rows = NULL;
	size_t count = 0;

	if (store_schedules(store, &rows, &count, NULL) == 0 && count)
		offer_rows(a, rows->name, sizeof(*rows), count);
	free(rows);
}

static void requests(const struct answer *a, struct store *store)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(store, NULL, true, &rows, &count, NULL) == 0 && count)
		offer_rows(a, rows->id, sizeof(*rows), count);
	free(rows);
}

static void gpus(const struct answer *a, struct store *store)
{
	size_t count;
	const struct gpu *list = gpu_catalog(&count);

	(void)store;
	for (size_t i = 0; i < count; i++)
		offer(a, list[i].name, "");
	offer(a, "none", "no GPU");
	offer(a, "auto", "burst chooses");
}

static void providers(const struct answer *a, struct store *store)
{
	(void)store;
	for (const struct provider_ops *const *p = provider_registry; *p; p++)
		offer(a, (*p)->name, "");
}

static void commands(const struct answer *a, struct store *store)
{
	(void)store;
	for (const struct cmd *const *c = a->ctx->commands; *c; c++)
		if (!(*c)->hidden)
			offer(a, (*c)->name, (*c)->summary);
}

/* What a word of the tables of arguments and flags stands for. command NULL: of all commands
 * without a row of their own. */
static const struct {
	const char *word, *command;
	bool from_ledger;
	void (*list)(const struct answer *a, struct store *store);
} lists[] = {
	{"RUN", "attach", true, living_runs},
	{"RUN", "cancel", true, living_runs},
	{"RUN", NULL, true, all_runs},
	{"POD", NULL, true, pods},
	{"NAME", "volume", true, volumes},
	{"NAME", "schedule", true, schedules},
	{"CONFIG|REQUEST", NULL, true, requests},
	{"PROVIDER", NULL, false, providers},
	{"GPU", NULL, false, gpus},
	{"COMMAND", "help", false, commands},
};

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
		lists[i].list(a, store);
	store_close(store);
	return true;
}

/* "N|auto": auto; "tts|command": both. */
static void offer_choices(const struct answer *a, const char *choices)
{
	puts("words");
	while (*choices) {
		size_t len = strcspn(choices, "|");
		CLEANUP(free_text) char *word = xstrndup(choices, len);
		if (strcmp(word, "N") != 0) /* any number */
			offer(a, word, "");
		choices += len + (choices[len] == '|');
	}
}

/* The values of a word in the tables: "CONFIG", "FILE", "POD", "tts|command"; "": none. */
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

static bool is_flag(const struct opt *o, const char *word)
{
	return o->name && word[1] == '-' ? !strcmp(word + 2, o->name)
					 : o->letter && word[1] == o->letter && !word[2];
}

/* A command's own flag goes before a common one. NULL: there is none. */
static const struct opt *flag_of(const struct cmd *cmd, const char *word)
{
	const struct opt *o = cmd->opts;

	while (o && o->name && !is_flag(o, word))
		o++;
	if (o && o->name)
		return o;
	for (o = common_opts; o->name && !is_flag(o, word);)
		o++;
	return o->name ? o : NULL;
}

static void offer_flag(const struct answer *a, const struct opt *o)
{
	char letter[] = {'-', o->letter, '\0'};

	if (o->name) {
		CLEANUP(free_text) char *word = xasprintf("--%s", o->name);
		offer(a, word, o->help);
	}
	if (o->letter)
		offer(a, letter, o->help);
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

/* The n-th word of "[CONFIG|TEXT] [-- COMMAND...]", of which the last may be repeated; or "". */
static void argument_word(const char *args, int n, char *out, size_t room)
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

/* words: what follows the command's name; the last one is completed. */
static void answer_for(const struct answer *a, const struct cmd *cmd, const char **words, int count)
{
	const struct opt *flag = NULL; /* the word before, if it needs a value */
	int arguments = 0;
	char word[60];

	for (int i = 0; i < count - 1; i++) {
		bool is_value = flag;
		flag = !is_value && words[i][0] == '-' ? flag_of(cmd, words[i]) : NULL;
		flag = flag && flag->arg && !flag->optional ? flag : NULL;
		arguments += !is_value && words[i][0] != '-';
	}
	if (flag) {
		offer_values(a, cmd, flag->arg);
	} else if (a->begins[0] == '-') {
		offer_flags(a, cmd);
	} else {
		argument_word(cmd->args, arguments, word, sizeof(word));
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
		answer_for(&a, cmd, ctx->args + at + 1, last - at);
	} else if (at >= last) {
		puts("words");
		commands(&a, NULL);
		offer(&a, "--version", "show the version");
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
