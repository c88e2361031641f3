/* completion.c - fills the completion scripts of three shells from the command tables, and
 * decides which values a shell offers */
#include "completion.h"

#include <assert.h>

#include "base/incbin.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/show/templates.h"
#include "cmd/show/output.h"

/* ---- offer ----
 * Decides which values a shell offers for an argument. */

/* command NULL: all commands without a row of their own. */
static const struct {
	const char *word, *command, *list;
} lists[] = {
	{"RUN", "attach", "living"},
	{"RUN", "cancel", "living"},
	{"RUN", "keep", "living"},
	{"RUN", NULL, "runs"},
	{"POD", NULL, "pods"},
	{"PROVIDER", NULL, "providers"},
	{"GPU", NULL, "gpus"},
	{"COMMAND", "help", "commands"},
	{"NAME", "volume", "volumes"},
	{"NAME", "schedule", "schedules"},
	{"CONFIG|REQUEST", NULL, "requests"},
};

static const char *list_for(const char *command, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (!strcmp(word, lists[i].word) &&
		    (!lists[i].command || !strcmp(command, lists[i].command)))
			return lists[i].list;
	return NULL;
}

/* out: the argument of `burst words`, or the choices or endings, separated by blanks. cmd NULL: the
 * word belongs to a flag of all commands. */
static enum offer_kind offer_of(const struct cmd *cmd, const char *word, char *out, size_t room)
{
	const char *list = list_for(cmd ? cmd->name : "", word);

	snprintf(out, room, "%s", list ? list : "");
	if (list)
		return OFFER_LIST;
	if (starts_with(word, "CONFIG")) {
		snprintf(out, room, "%s",
			 strcmp(word, "CONFIG|TEXT") ? "cfg" : "cfg txt md csv tsv jsonl");
		return OFFER_ENDINGS;
	}
	if (!strcmp(word, "FILE"))
		return OFFER_FILES;
	if (!strcmp(word, "DIR"))
		return OFFER_FOLDERS;
	if (starts_with(word, "N|")) /* any number */
		word += 2;
	else if (!strchr(word, '|'))
		return OFFER_NOTHING;
	snprintf(out, room, "%s", word);
	for (char *p = out; (p = strchr(p, '|'));)
		*p = ' ';
	return OFFER_CHOICES;
}

/* The n-th word of the command's arguments, or "". */
static void offer_argument(const struct cmd *cmd, int n, char *out, size_t room)
{
	const char *args = cmd->args;
	int more;

	for (int i = 0; i <= n; i++)
		if (!text_arg(out, room, &args, &more)) {
			*out = '\0';
			return;
		}
}

/* ---- completion ----
 * Fills the completion scripts of three shells from the command tables. Each script is a template
 * (templates.h): completion.bash, completion.zsh, completion.fish.
 *
 * @name@ set_command() and set_flag() set the variables. #: each WHAT WHAT is command or common
 * flag; in a command also flag or valued flag. #: offer KIND CODE CODE offers words of this kind
 * (completion.h). @words@ are the choices, the endings or the argument of `burst words`; @patterns@
 * has | between them. */

INCBIN(completion_bash, "cmd/line/completion.bash");
INCBIN(completion_zsh, "cmd/line/completion.zsh");
INCBIN(completion_fish, "cmd/line/completion.fish");

struct shell {
	const char *name, *script;
	const char *quote;   /* how ' is written inside '...' */
	const char *escaped; /* characters that need a backslash there */
};

struct script {
	struct template_data template; /* first, so that each() finds the script from it */
	const struct shell *shell;
	const struct cmd *const *commands;
	const struct cmd *cmd; /* NULL outside a command's lines */
};

static struct str *set(struct script *s, const char *variable)
{
	return template_set(&s->template, variable);
}

static const char *const offer_names[] = {
	[OFFER_NOTHING] = "nothing", [OFFER_FILES] = "files", [OFFER_ENDINGS] = "endings",
	[OFFER_FOLDERS] = "folders", [OFFER_LIST] = "list",   [OFFER_CHOICES] = "choices",
};

/* Writes the shell's code for the values of a word; nothing if the script has no code for its kind.
 */
static void put_offer(struct str *to, struct script *s, const char *word)
{
	char words[120], mark[40];
	enum offer_kind kind = offer_of(s->cmd, word, words, sizeof(words));
	const char *code;

	str_add(set(s, "words"), words);
	for (char *p = words; (p = strchr(p, ' '));)
		*p = '|';
	str_add(set(s, "patterns"), words);
	snprintf(mark, sizeof(mark), "\n#: offer %s ", offer_names[kind]);
	if ((code = strstr(s->shell->script, mark)))
		template_fill_line(&s->template, to, code + strlen(mark));
}

static void put_quoted(struct str *to, const struct shell *shell, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'') {
			str_add(to, shell->quote);
			continue;
		}
		if (strchr(shell->escaped, *text))
			str_addc(to, '\\');
		str_addc(to, *text);
	}
}

/* ---- flags ---- */

struct flags {
	struct opt opts[64]; /* the command's own first; name NULL: only its letter */
	size_t own, count;
};

static bool is_json(const struct opt *common)
{
	return !strcmp(common->name, "json");
}

/* The flags of a command; cmd NULL: those common to all commands. */
static struct flags flags_of(const struct cmd *cmd)
{
	struct flags f = {0};

	for (const struct opt *o = cmd ? cmd->opts : NULL; o && o->name; o++) {
		assert(f.count < ARRAY_LEN(f.opts));
		f.opts[f.count++] = *o;
	}
	f.own = f.count;
	for (const struct opt *o = common_opts; o->name; o++) {
		assert(f.count < ARRAY_LEN(f.opts));
		if (!cmd || cmd->json || !is_json(o))
			f.opts[f.count++] = cmd_common_opt(cmd, o);
	}
	return f;
}

static bool has_value(const struct opt *o)
{
	return o->arg && !o->optional;
}

/* ---- bash ---- */

/* The command's flags, or only those with a value, with a blank on each side. */
static void bash_flags(struct str *to, const struct cmd *cmd, bool valued)
{
	struct flags f = flags_of(cmd);
	const char *blank = valued ? " " : "";

	for (size_t i = 0; i < f.count; i++) {
		const struct opt *o = &f.opts[i];

		if (valued && !has_value(o))
			continue;
		if (o->name)
			str_addf(to, " --%s%s", o->name, blank);
		if (o->letter)
			str_addf(to, " -%c%s", o->letter, blank);
	}
}

/* ---- zsh ---- */

/* An argument's name and its values. A blank is the action without values. */
static void zsh_value(struct str *to, struct script *s, const char *word)
{
	size_t before;

	put_quoted(to, s->shell, word);
	str_addc(to, ':');
	before = to->len;
	put_offer(to, s, word);
	if (to->len == before)
		str_addc(to, ' ');
	str_addc(to, '\'');
}

/* '(-p --pods)'{-p,--pods}'[help]:N: ', '--pods=[help]:N: ' without a letter, or '-p[help]' without
 * a name. */
static void zsh_flag(struct str *to, struct script *s, const struct opt *o)
{
	bool both = o->letter && o->name;

	if (both)
		str_addf(to, "'(-%c --%s)'{-%c,--%s", o->letter, o->name, o->letter, o->name);
	else if (o->name)
		str_addf(to, "'--%s", o->name);
	else
		str_addf(to, "'-%c", o->letter);
	if (o->arg)
		str_add(to, o->optional ? "=-" : o->letter ? "" : "=");
	str_add(to, both ? "}'[" : "[");
	put_quoted(to, s->shell, o->help);
	str_addc(to, ']');
	if (o->arg) {
		str_add(to, o->optional ? "::" : ":");
		zsh_value(to, s, o->arg);
	} else {
		str_addc(to, '\'');
	}
}

/* Flags, and a command's arguments, for _arguments: each on a line of its own. */
static void zsh_specs(struct str *to, struct script *s)
{
	static const char continued[] = " \\\n\t\t\t";
	struct flags f = flags_of(s->cmd);
	const char *args = s->cmd ? s->cmd->args : NULL;
	char word[60];
	int more = 0;

	for (size_t i = 0; i < f.count; i++) {
		str_add(to, continued);
		zsh_flag(to, s, &f.opts[i]);
	}
	while (!more && text_arg(word, sizeof(word), &args, &more)) {
		str_addf(to, "%s'%s:", continued, more ? "*" : "");
		zsh_value(to, s, word);
	}
}

/* ---- variables ---- */

/* For fish, where common flags belong to each command: excludes commands with their own flag of
 * this name. */
static void put_unless(struct str *to, struct script *s, const struct opt *common)
{
	bool any = false;

	for (const struct cmd *const *c = s->commands; *c && !s->cmd; c++)
		if (!(*c)->hidden && !cmd_common_opt(*c, common).name) {
			str_addf(to, "%s%s", any ? " " : "-n 'not __fish_seen_subcommand_from ",
				 (*c)->name);
			any = true;
		}
	str_add(to, any ? "'" : "");
}

static void set_flag(struct script *s, const struct opt *o)
{
	struct str *pattern = set(s, "pattern"), *letter = set(s, "short");

	if (o->name)
		str_addf(set(s, "long"), "-l %s", o->name);
	else
		set(s, "long");
	put_unless(set(s, "unless"), s, o);
	put_quoted(set(s, "help"), s->shell, o->help);
	str_add(set(s, "required"), has_value(o) ? "-r" : "");
	put_offer(set(s, "value"), s, has_value(o) ? o->arg : "");
	if (o->letter)
		str_addf(letter, "-s %c", o->letter);
	if (o->letter)
		str_addf(pattern, "-%c%s", o->letter, o->name ? " | " : "");
	if (o->name)
		str_addf(pattern, "--%s", o->name);
}

static void set_command(struct script *s, const struct cmd *cmd)
{
	char first[60], second[60], words[120];
	bool chooses; /* the first argument is one of several words, and another follows */

	s->cmd = cmd;
	offer_argument(cmd, 0, first, sizeof(first));
	offer_argument(cmd, 1, second, sizeof(second));
	chooses = *second && offer_of(cmd, first, words, sizeof(words)) == OFFER_CHOICES;
	str_add(set(s, "command"), cmd->name);
	put_quoted(set(s, "summary"), s->shell, cmd->summary);
	str_add(set(s, "argument"), chooses ? "" : first);
	str_add(set(s, "choices"), chooses ? words : "");
	put_offer(set(s, "first"), s, first);
	put_offer(set(s, "rest"), s, second);
	str_add(set(s, "own"), cmd->opts && cmd->opts->name ? cmd->opts->name : "");
	bash_flags(set(s, "flags"), cmd, false);
	bash_flags(set(s, "valued"), cmd, true);
	zsh_specs(set(s, "specs"), s);
}

static void each_command(struct script *s, struct str *to, const char *lines, const char *end)
{
	for (const struct cmd *const *c = s->commands; *c; c++)
		if (!(*c)->hidden) {
			set_command(s, *c);
			template_fill(&s->template, to, lines, end);
		}
	s->cmd = NULL;
}

/* "flag": the command's own, --json (which some commands lack), and the letter of a common flag
 * whose name the command has itself; "common flag": the rest. */
static void each(struct template_data *t, struct str *to, const char *what, const char *lines,
		 const char *end)
{
	struct script *s = (struct script *)t;
	bool common = !strcmp(what, "common flag"), valued = !strcmp(what, "valued flag");
	struct flags f = flags_of(s->cmd);

	if (!strcmp(what, "command")) {
		each_command(s, to, lines, end);
		return;
	}
	assert(common || valued || !strcmp(what, "flag"));
	for (size_t i = 0; i < f.count; i++) {
		const struct opt *o = &f.opts[i];
		bool of_all = i >= f.own && o->name && !is_json(o);

		if (valued ? has_value(o) : common == of_all) {
			set_flag(s, o);
			template_fill(&s->template, to, lines, end);
		}
	}
}

static void print(const struct shell *shell, const struct cmd *const *commands)
{
	struct script s = {{.each = each}, shell, commands, NULL};
	CLEANUP(str_free) struct str out = STR_INIT;
	struct str *names = set(&s, "commands");

	for (const struct cmd *const *c = commands; *c; c++)
		if (!(*c)->hidden)
			str_addf(names, " %s", (*c)->name);
	zsh_specs(set(&s, "common"), &s);
	template_fill(&s.template, &out, shell->script, shell->script + strlen(shell->script));
	fputs(str_text(&out), stdout);
	template_free(&s.template);
}

bool completion_print(const char *name, const struct cmd *const *commands)
{
	static const struct shell shells[] = {
		{"bash", completion_bash, "'\\''", ""},
		{"zsh", completion_zsh, "'\\''", "[]:\\"},
		{"fish", completion_fish, "\\'", "\\"},
	};

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(shells[i].name, name)) {
			print(&shells[i], commands);
			return true;
		}
	return false;
}
