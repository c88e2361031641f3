/* parse.c - reads the command line against the tables of commands and options. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/unattended/commit_tree.h"
#include "jobs/tts/engines.h"

enum {
	COMMON_HELP,
	COMMON_JSON,
	COMMON_QUIET,
	COMMON_YES,
	COMMON_VERBOSE,
	COMMON_TRACE,
	COMMON_NO_COLOR,
	COMMON_COUNT
};

/* clang-format off */
const struct opt common_opts[] = {
	[COMMON_HELP] = {'h', "help", NULL, "show what the command does"},
	[COMMON_JSON] = {0, "json", NULL, "results as JSON on stdout"},
	[COMMON_QUIET] = {'q', "quiet", NULL, "only warnings and errors"},
	[COMMON_YES] = {'y', "yes", NULL, "ask nothing: continue, but grant a project nothing "
		"new"},
	[COMMON_VERBOSE] = {'v', "verbose", NULL, "print more; twice: much more"},
	[COMMON_TRACE] = {0, "trace", NULL, "show every call to a provider, without secrets"},
	[COMMON_NO_COLOR] = {0, "no-color", NULL, "no colours (NO_COLOR does the same)"},
	[COMMON_COUNT] = {0},
};
/* clang-format on */

struct parser {
	struct cmd_context *ctx;
	const struct cmd *cmd;
	int argc, at;
	char **argv;
	bool *help;
	struct err *err;
};

static const struct opt no_opts[] = {{0}};

static const struct opt *opts_of(const struct cmd *cmd)
{
	return cmd->opts ? cmd->opts : no_opts;
}

static size_t count_opts(const struct opt *opts)
{
	size_t n = 0;

	while (opts[n].name)
		n++;
	return n;
}

static int usage_error(const struct parser *p, const char *fmt, ...) PRINTF(2, 3);
static int usage_error(const struct parser *p, const char *fmt, ...)
{
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(p->err, ERR_USAGE, "%s: %s (see `burst help %s`)", p->cmd->name, what,
		       p->cmd->name);
}

/* ---- finding a flag ---- */

/* The row with this name of len bytes, or with this letter; NULL: none. name NULL or letter 0:
 * search by the other alone. */
static const struct opt *find_opt(const struct opt *opts, const char *name, size_t len, char letter)
{
	for (; opts->name; opts++) {
		if (name && strlen(opts->name) == len && !strncmp(opts->name, name, len))
			return opts;
		if (letter && opts->letter == letter)
			return opts;
	}
	return NULL;
}

struct opt cmd_common_opt(const struct cmd *cmd, const struct opt *common)
{
	struct opt shown = *common;

	if (cmd && find_opt(opts_of(cmd), common->name, strlen(common->name), 0))
		shown.name = NULL;
	return shown;
}

/* The command's own flag, else the common one. NULL: unknown, or --json of a command without it.
 * --dryrun counts as --dry-run. */
static const struct opt *find_flag(const struct cmd *cmd, const char *name, size_t len, char letter)
{
	const struct opt *found = find_opt(opts_of(cmd), name, len, letter);

	if (!found && name && len == strlen("dryrun") && !strncmp(name, "dryrun", len))
		found = find_opt(opts_of(cmd), "dry-run", strlen("dry-run"), 0);
	if (!found)
		found = find_opt(common_opts, name, len, letter);
	return found == &common_opts[COMMON_JSON] && !cmd->json ? NULL : found;
}

static const char *nearest_flag(const struct cmd *cmd, const char *name)
{
	const char *words[96];
	size_t n = 0;

	for (const struct opt *o = opts_of(cmd); o->name && n < 80; o++)
		words[n++] = o->name;
	for (const struct opt *o = common_opts; o->name; o++)
		if (cmd->json || o != &common_opts[COMMON_JSON])
			words[n++] = o->name;
	words[n] = NULL;
	return nearest_word(name, words);
}

/* ---- parsing flags ---- */

static void apply_common_flag(struct parser *p, const struct opt *o)
{
	struct cmd_context *ctx = p->ctx;

	switch (o - common_opts) {
	case COMMON_HELP: *p->help = true; break;
	case COMMON_JSON: ctx->json = true; break;
	case COMMON_QUIET: ctx->quiet = true; break;
	case COMMON_YES: ctx->yes = true; break;
	case COMMON_VERBOSE: ctx->verbose++; break;
	case COMMON_TRACE: ctx->trace = true; break;
	case COMMON_NO_COLOR: ctx->color = false; break;
	}
}

/* Sets the flag's value in ctx; the last one counts. A list given twice is an error, since the
 * first would be lost. */
static int store_value(struct parser *p, const struct opt *o, const char *value)
{
	bool is_list = o->key && (!strcmp(o->key, "provider") || !strcmp(o->key, "gpu") ||
				  config_key_accumulates(o->key));

	if (o >= common_opts && o < common_opts + COMMON_COUNT) {
		apply_common_flag(p, o);
		return 0;
	}
	const char **at = &p->ctx->values[o - opts_of(p->cmd)];
	if (is_list && *at && strcmp(*at, value) != 0)
		return usage_error(p,
				   "--%s is given twice: write one list, like --%s \"%.60s,%.60s\"",
				   o->name, o->name, *at, value);
	*at = value;
	return 0;
}

/* "--gpu=L4", "--gpu L4", "--spot". Consumes the next word if the flag needs it as its value. */
static int parse_long_flag(struct parser *p, const char *word)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct opt *o = find_flag(p->cmd, name, len, 0);

	if (!o) {
		CLEANUP(free_text) char *bare = xstrndup(name, len);
		const char *near = nearest_flag(p->cmd, bare);
		return near ? usage_error(p, "unknown flag --%.40s, did you mean --%s?", bare, near)
			    : usage_error(p, "unknown flag --%.40s", bare);
	}
	if (!o->arg && value)
		return usage_error(p, "--%s takes no value", o->name);
	if (o->arg && !value && !o->optional) {
		if (p->at >= p->argc)
			return usage_error(p, "--%s needs a value: --%s %s", o->name, o->name,
					   o->arg);
		value = p->argv[p->at++];
	}
	return store_value(p, o, value ? value : "");
}

/* "-qv", "-p local", "-plocal". Consumes the next word if the last letter needs a value. */
static int parse_short_flags(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct opt *o = find_flag(p->cmd, NULL, 0, *c);
		if (!o)
			return usage_error(
				p, "unknown flag -%.*s",
				(int)MAX(utf8_sequence((const unsigned char *)c, strlen(c)), 1), c);
		if (!o->arg || o->optional) {
			store_value(p, o, "");
			continue;
		}
		if (c[1])
			return store_value(p, o, c[1] == '=' ? c + 2 : c + 1);
		if (p->at < p->argc)
			return store_value(p, o, p->argv[p->at++]);
		return usage_error(p, "-%c needs a value: -%c %s", *c, *c, o->arg);
	}
	return 0;
}

/* Sorts all words into flags, arguments and, behind "--", the command. */
static int parse_words(struct parser *p)
{
	struct cmd_context *ctx = p->ctx;
	bool flags_over = p->cmd->raw;

	while (p->at < p->argc) {
		const char *word = p->argv[p->at++];
		bool is_flag = !flags_over && word[0] == '-' && word[1];
		if (is_flag && !strcmp(word, "--") && p->cmd->takes_command) {
			ctx->command = p->argv + p->at;
			ctx->command_count = p->argc - p->at;
			return 0;
		}
		if (is_flag && !strcmp(word, "--"))
			flags_over = true;
		else if (is_flag && (word[1] == '-' ? parse_long_flag(p, word)
						    : parse_short_flags(p, word)) < 0)
			return -1;
		else if (!is_flag)
			ctx->args[ctx->arg_count++] = word;
		if (!is_flag && p->cmd->passes_on)
			flags_over = true;
	}
	return 0;
}

/* An empty argument is usually a script's variable that was never set. Only the first one is
 * checked if the rest goes to another program. */
static int reject_empty_args(const struct parser *p)
{
	int n = p->cmd->passes_on ? MIN(p->ctx->arg_count, 1) : p->ctx->arg_count;

	for (int i = 0; i < n; i++)
		if (!p->ctx->args[i][0])
			return usage_error(p, "empty argument in place of %s (an unset variable?)",
					   p->cmd->args);
	return 0;
}

static int check_args(const struct parser *p)
{
	int n = p->ctx->arg_count;

	if (p->cmd->raw)
		return 0;
	if (n < p->cmd->min_args)
		return usage_error(p, "needs %s", p->cmd->args);
	if (p->cmd->max_args >= 0 && n > p->cmd->max_args)
		return p->cmd->args ? usage_error(p, "unexpected argument \"%.60s\"",
						  p->ctx->args[p->cmd->max_args])
				    : usage_error(p, "takes no arguments");
	return reject_empty_args(p);
}

int cmd_parse(struct cmd_context *ctx, const struct cmd *cmd, int argc, char **argv, bool *help,
	      struct err *err)
{
	struct parser p = {.ctx = ctx,
			   .cmd = cmd,
			   .argc = argc,
			   .at = 1,
			   .argv = argv,
			   .help = help,
			   .err = err};

	ctx->cmd = cmd;
	ctx->args = xcalloc((size_t)argc + 1, sizeof(*ctx->args));
	ctx->values = xcalloc(count_opts(opts_of(cmd)) + 1, sizeof(*ctx->values));
	*help = false;
	if (parse_words(&p) < 0)
		return -1;
	return *help ? 0 : check_args(&p);
}

void cmd_context_free(struct cmd_context *ctx)
{
	free(ctx->args);
	free(ctx->values);
	free(ctx->state_dir);
	config_free(ctx->config);
	commit_tree_free(ctx->tree);
	mistakes_free(&ctx->mistakes);
	quick_free(ctx->quick);
	store_close(ctx->store);
	*ctx = (struct cmd_context){0};
}

/* Words of other tools, and burst's command for each. */
static const struct {
	const char *words[4], *hint;
} foreign_words[] = {
	{{"list", "ls"},
	 "`burst ps` shows what runs now, `burst ledger` past runs, `burst volume ls` volumes"},
	{{"stop", "kill", "down", "terminate"},
	 "`burst cancel [RUN]` stops a run and releases its pods, `burst reap` releases pods "
	 "without a client"},
	{{"up", "launch", "start"},
	 "`burst run` rents pods, renders the job and releases the pods"},
	{{"exec"},
	 "`burst ssh POD COMMAND` runs a command on a pod, `burst run -- COMMAND` on a new one"},
	{{"login", "auth"},
	 "put the key of your account into the environment (RUNPOD_API_KEY, or MODAL_TOKEN_ID and "
	 "MODAL_TOKEN_SECRET); `burst doctor` checks it"},
	{{"delete", "rm", "remove"},
	 "`burst cancel [RUN]` releases a run's pods, `burst reap [POD]` pods without a client, "
	 "`burst volume rm` removes a volume"},
	{{"cost"}, "`burst plan` says what a run would cost, `burst ledger` what runs have cost"},
};

/* NULL: the word is not another tool's. */
static const char *hint_for(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(foreign_words); i++)
		for (size_t k = 0;
		     k < ARRAY_LEN(foreign_words[i].words) && foreign_words[i].words[k]; k++)
			if (!strcmp(foreign_words[i].words[k], word))
				return foreign_words[i].hint;
	return NULL;
}

const struct cmd *cmd_find(const struct cmd *const *commands, const char *name, struct err *err)
{
	const char *words[64];
	size_t n = 0;

	for (; *commands; commands++) {
		if (!strcmp((*commands)->name, name))
			return *commands;
		if (!(*commands)->hidden && n < ARRAY_LEN(words) - 1)
			words[n++] = (*commands)->name;
	}
	words[n] = NULL;
	if (hint_for(name)) {
		err_set(err, ERR_USAGE, "unknown command \"%s\": %s", name, hint_for(name));
		return NULL;
	}
	if (path_exists(name) && (strchr(name, '.') || strchr(name, '/'))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, name, strlen(name), 100);
		err_set(err, ERR_USAGE,
			"unknown command \"%s\": it is a file: `burst run %s` renders it",
			str_text(&shown), str_text(&shown));
		return NULL;
	}
	if (engine_find(name)) {
		err_set(err, ERR_USAGE,
			"unknown command \"%s\": it is an engine: `burst engines` describes it, "
			"and engine = \"%s\" in burst.cfg chooses it",
			name, name);
		return NULL;
	}
	const char *near = nearest_word(name, words);
	err_set(err, ERR_USAGE, "unknown command \"%.40s\"%s%s%s (`burst help` lists them)", name,
		near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	return NULL;
}

/* ---- results ---- */

/* The flag's row in the command's table; aborts if there is none. */
static size_t opt_index(const struct cmd_context *ctx, const char *name)
{
	const struct opt *opts = opts_of(ctx->cmd);

	for (size_t i = 0; opts[i].name; i++)
		if (!strcmp(opts[i].name, name))
			return i;
	fprintf(stderr, "burst: bug: %s has no flag --%s\n", ctx->cmd->name, name);
	abort();
}

bool opt_has(const struct cmd_context *ctx, const char *name)
{
	return opt_text(ctx, name) != NULL;
}

const char *opt_text(const struct cmd_context *ctx, const char *name)
{
	return ctx->values ? ctx->values[opt_index(ctx, name)] : NULL;
}

int opt_int(const struct cmd_context *ctx, const char *name, int64_t least, int64_t most,
	    int64_t *out, struct err *err)
{
	const char *text = opt_text(ctx, name);
	char *end;

	if (!text)
		return 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || *end || value < least || value > most)
		return err_set(err, ERR_USAGE,
			       "--%s: \"%.40s\" is not a whole number from %lld to %lld", name,
			       text, (long long)least, (long long)most);
	*out = value;
	return 0;
}

int opt_duration(const struct cmd_context *ctx, const char *name, int64_t *out_ms, struct err *err)
{
	const char *text = opt_text(ctx, name);

	if (!text || duration_parse(text, out_ms, err) == 0)
		return 0;
	return err_wrap(err, "--%s", name);
}

double number_parse(const char *text, char **end)
{
	double number = strtod(text, end);

	if (memchr(text, 'x', (size_t)(*end - text)) || memchr(text, 'X', (size_t)(*end - text)))
		*end = (char *)text;
	return number;
}

const char *share_parse(const char *text, double *out)
{
	char *end;
	double share = number_parse(text, &end);
	bool percent = *end == '%';

	*out = percent || share > 1 ? share / 100 : share;
	return end == text || !(*out > 0 && *out <= 1) ? NULL : end + percent;
}

int opt_number(const struct cmd_context *ctx, const char *name, double *out, struct err *err)
{
	const char *text = opt_text(ctx, name);
	char *end;

	if (!text)
		return 0;
	*out = number_parse(text, &end);
	if (*end || end == text || !(*out > 0 && *out < 1e12))
		return err_set(err, ERR_USAGE, "--%s: \"%.40s\" must be a number above 0", name,
			       text);
	return 0;
}

int opt_seconds(const struct cmd_context *ctx, const char *name, double *out, struct err *err)
{
	int64_t ms = 0;

	if (!opt_has(ctx, name))
		return 0;
	if (opt_duration(ctx, name, &ms, err) < 0)
		return -1;
	*out = (double)ms / 1000;
	return 0;
}

/* Returns true only for a typed yes; false also without a terminal. */
static bool prompt_yes_no(const char *fmt, va_list ap)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	char question[1024], answer[16];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	vformat_text(question, sizeof(question), fmt, ap);
	str_add_printable(&shown, question, strlen(question), 0);
	fprintf(stderr, "%s [y/N] ", str_text(&shown));
	fflush(stderr);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

bool cmd_confirm(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	bool yes = ctx->yes || prompt_yes_no(fmt, ap);
	va_end(ap);
	return yes;
}

bool cmd_confirm_typed(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	bool yes = !ctx->yes && prompt_yes_no(fmt, ap);
	va_end(ap);
	return yes;
}

/* A reader that closes early (`burst ledger | head`) is no error. */
int cmd_flush(struct err *err)
{
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
		return 0;
	return err_set(err, ERR_LOCAL, "cannot write the output: %s", strerror(errno));
}

int cmd_apply_flags(struct cmd_context *ctx, struct err *err)
{
	struct mistakes *m = config_mistakes(ctx->config);
	const struct opt *o = ctx->cmd->opts;

	for (size_t i = 0; o && o[i].name; i++) {
		const char *value = ctx->values[i];
		CLEANUP(free_text) char *flag = xasprintf("--%s", o[i].name);
		if (!o[i].key || !value)
			continue;
		if (config_override(ctx->config, o[i].key, o[i].arg ? value : "true", flag, err) <
			    0 &&
		    mistakes_note(m, o[i].key, err) < 0)
			return -1;
	}
	return 0;
}
