/* completion.c - completion for three shells, from the command tables. What an argument offers
 * follows from its word: CONFIG config files, FILE files, DIR folders, RUN POD PROVIDER GPU COMMAND
 * and some others what `burst words` lists, a|b|c these three, all else nothing. */
#include "cmd.h"

#include <stdlib.h>

#include "text.h"

struct shell {
	FILE *to;
	const struct cmd *const *commands;
};

enum offer_kind {
	OFFER_NOTHING,
	OFFER_FILES,
	OFFER_ENDINGS, /* files with one of these endings, and folders */
	OFFER_DIRS,
	OFFER_LIST,
	OFFER_CHOICES
};

/* command NULL: of all commands that have no row of their own. */
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

/* out: the argument of `burst words`, or the choices or endings with blanks between. */
static enum offer_kind offered(const struct cmd *cmd, const char *word, char *out, size_t room)
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
		return OFFER_DIRS;
	if (starts_with(word, "N|")) /* any number */
		word += 2;
	else if (!strchr(word, '|'))
		return OFFER_NOTHING;
	snprintf(out, room, "%s", word);
	for (char *p = out; (p = strchr(p, '|'));)
		*p = ' ';
	return OFFER_CHOICES;
}

static bool takes(const struct cmd *cmd, const struct opt *common)
{
	return cmd->json || strcmp(common->name, "json");
}

/* ---- bash ---- */

static void bash_offer(FILE *to, const struct cmd *cmd, const char *word)
{
	char out[120];

	switch (offered(cmd, word, out, sizeof(out))) {
	case OFFER_NOTHING: fputs(":", to); break;
	case OFFER_ENDINGS: fprintf(to, "_burst_files \"$cur\" %s", out); break;
	case OFFER_FILES: fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", to); break;
	case OFFER_DIRS: fputs("COMPREPLY=($(compgen -d -- \"$cur\"))", to); break;
	case OFFER_LIST: fprintf(to, "_burst_list \"$cur\" %s", out); break;
	case OFFER_CHOICES: fprintf(to, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"))", out); break;
	}
}

static void bash_flags(FILE *to, const struct opt *opts, const struct cmd *cmd, bool common)
{
	for (const struct opt *o = opts; o && o->name; o++)
		if (!common || takes(cmd, o)) {
			fprintf(to, " --%s", o->name);
			if (o->letter)
				fprintf(to, " -%c", o->letter);
		}
}

static void bash_values(FILE *to, const struct cmd *cmd)
{
	fputs("\t\tcase $prev in\n", to);
	for (const struct opt *o = cmd->opts; o && o->name; o++) {
		if (!o->arg || o->optional)
			continue;
		fputs("\t\t", to);
		if (o->letter)
			fprintf(to, "-%c | ", o->letter);
		fprintf(to, "--%s) ", o->name);
		bash_offer(to, cmd, o->arg);
		fputs("; return ;;\n", to);
	}
	fputs("\t\tesac\n", to);
}

/* Each argument by its place; the last one's offers hold for those behind it. */
static void bash_arguments(FILE *to, const struct cmd *cmd)
{
	char word[2][60] = {"", ""};
	const char *args = cmd->args;
	int more;

	for (int i = 0; i < 2 && text_arg(word[i], sizeof(word[i]), &args, &more); i++)
		;
	fputs("\t\t\t_burst_count \"", to);
	for (const struct opt *o = cmd->opts; o && o->name; o++) {
		if (o->arg && !o->optional)
			fprintf(to, " --%s ", o->name);
		if (o->arg && !o->optional && o->letter)
			fprintf(to, " -%c ", o->letter);
	}
	fputs("\"\n\t\t\tcase $n in\n\t\t\t0) ", to);
	bash_offer(to, cmd, word[0]);
	fputs(" ;;\n\t\t\t*) ", to);
	bash_offer(to, cmd, word[1]);
	fputs(" ;;\n\t\t\tesac\n", to);
}

static void bash_command(FILE *to, const struct cmd *cmd)
{
	fprintf(to, "\t%s)\n", cmd->name);
	if (cmd->opts && cmd->opts->name)
		bash_values(to, cmd);
	fputs("\t\tif [[ $cur == -* ]]; then\n\t\t\tCOMPREPLY=($(compgen -W '", to);
	bash_flags(to, cmd->opts, cmd, false);
	bash_flags(to, common_opts, cmd, true);
	fputs("' -- \"$cur\"))\n\t\telse\n", to);
	bash_arguments(to, cmd);
	fputs("\t\tfi\n\t\t;;\n", to);
}

static void print_bash(const struct shell *sh)
{
	fputs("# completion of burst for bash: source <(burst completion bash)\n"
	      "_burst_list() {\n"
	      "\tlocal IFS=$'\\n' word\n"
	      "\tCOMPREPLY=()\n"
	      "\twhile read -r word; do\n"
	      "\t\t[[ $word == \"$1\"* ]] && COMPREPLY+=(\"$(printf '%q' \"$word\")\")\n"
	      "\tdone < <(burst words \"$2\" 2>/dev/null)\n"
	      "}\n"
	      "_burst_files() { # folders, and files with these endings\n"
	      "\tlocal IFS=$'\\n' ending\n"
	      "\tCOMPREPLY=($(compgen -d -- \"$1\"))\n"
	      "\tfor ending in \"${@:2}\"; do\n"
	      "\t\tCOMPREPLY+=($(compgen -f -X \"!*.$ending\" -- \"$1\"))\n"
	      "\tdone\n"
	      "}\n"
	      "_burst_count() { # arguments before this one; $1: flags that take a value\n"
	      "\tn=-1\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t[[ ${COMP_WORDS[i]} == -* || $1 == *\" ${COMP_WORDS[i-1]} \"* ]] || n=$((n + "
	      "1))\n"
	      "\tdone\n"
	      "}\n"
	      "_burst() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i n\n"
	      "\tCOMPREPLY=()\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t[[ ${COMP_WORDS[i]} != -* ]] && { cmd=${COMP_WORDS[i]}; break; }\n"
	      "\tdone\n"
	      "\tcase $cmd in\n",
	      sh->to);
	for (const struct cmd *const *c = sh->commands; *c; c++)
		if (!(*c)->hidden)
			bash_command(sh->to, *c);
	fputs("\t'')\n\t\tCOMPREPLY=($(compgen -W '--version", sh->to);
	for (const struct cmd *const *c = sh->commands; *c; c++)
		if (!(*c)->hidden)
			fprintf(sh->to, " %s", (*c)->name);
	fputs("' -- \"$cur\"))\n\t\t;;\n\tesac\n}\ncomplete -o filenames -F _burst burst\n",
	      sh->to);
}

/* ---- zsh ---- */

/* Inside '...' and, in _arguments' specs, with : and brackets escaped. */
static void zsh_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", to);
		else if (strchr("[]:\\", *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

static void zsh_action(FILE *to, const struct cmd *cmd, const char *word)
{
	char out[120];

	switch (offered(cmd, word, out, sizeof(out))) {
	case OFFER_NOTHING: fputs(" ", to); break;
	case OFFER_ENDINGS:
		for (char *p = out; (p = strchr(p, ' '));)
			*p = '|';
		fprintf(to, "_files -g \"*.(%s)\"", out);
		break;
	case OFFER_FILES: fputs("_files", to); break;
	case OFFER_DIRS: fputs("_files -/", to); break;
	case OFFER_LIST: fprintf(to, "_burst_list %s", out); break;
	case OFFER_CHOICES: fprintf(to, "(%s)", out); break;
	}
}

static void zsh_opt(FILE *to, const struct cmd *cmd, const struct opt *o)
{
	if (o->letter)
		fprintf(to, " \\\n\t\t\t'(-%c --%s)'{-%c,--%s", o->letter, o->name, o->letter,
			o->name);
	else
		fprintf(to, " \\\n\t\t\t'--%s", o->name);
	if (o->arg)
		fputs(o->optional ? "=-" : o->letter ? "" : "=", to);
	fputs(o->letter ? "}'[" : "[", to);
	zsh_text(to, o->help);
	fputc(']', to);
	if (o->arg) {
		fputc(':', to);
		if (o->optional)
			fputc(':', to);
		zsh_text(to, o->arg);
		fputc(':', to);
		zsh_action(to, cmd, o->arg);
	}
	fputc('\'', to);
}

static void zsh_command(FILE *to, const struct cmd *cmd)
{
	const char *args = cmd->args;
	char word[60];
	int more;

	fprintf(to, "\t\t%s)\n\t\t\t_arguments -s", cmd->name);
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		zsh_opt(to, cmd, o);
	for (const struct opt *o = common_opts; o->name; o++)
		if (takes(cmd, o))
			zsh_opt(to, cmd, o);
	while (text_arg(word, sizeof(word), &args, &more)) {
		fprintf(to, " \\\n\t\t\t'%s:", more ? "*" : "");
		zsh_text(to, word);
		fputc(':', to);
		zsh_action(to, cmd, word);
		fputc('\'', to);
		if (more)
			break;
	}
	fputs("\n\t\t\t;;\n", to);
}

static void print_zsh(const struct shell *sh)
{
	FILE *to = sh->to;

	fputs("#compdef burst\n# completion of burst for zsh: burst completion zsh > a folder of "
	      "$fpath, as _burst\n"
	      "_burst_list() {\n"
	      "\tlocal -a found\n"
	      "\tfound=(${(f)\"$(burst words $argv[-1] 2>/dev/null)\"})\n"
	      "\tcompadd \"${(@)argv[1,-2]}\" -a found\n" /* _arguments puts words of its own in
							     front of ours */
	      "}\n"
	      "_burst() {\n"
	      "\tlocal context state line\n"
	      "\tlocal -a commands\n"
	      "\tcommands=(\n",
	      to);
	for (const struct cmd *const *c = sh->commands; *c; c++)
		if (!(*c)->hidden) {
			fprintf(to, "\t\t'%s:", (*c)->name);
			zsh_text(to, (*c)->summary);
			fputs("'\n", to);
		}
	fputs("\t)\n"
	      "\t_arguments -C -A '-*' '--version[show the version]'",
	      to);
	for (const struct opt *o = common_opts; o->name; o++)
		zsh_opt(to, NULL, o);
	fputs(" \\\n\t\t'1:command:->command' '*::argument:->argument' && return\n"
	      "\tcase $state in\n"
	      "\tcommand) _describe command commands ;;\n"
	      "\targument)\n"
	      "\t\tcase $words[1] in\n",
	      to);
	for (const struct cmd *const *c = sh->commands; *c; c++)
		if (!(*c)->hidden)
			zsh_command(to, *c);
	fputs("\t\tesac\n\t\t;;\n\tesac\n}\n"
	      "if [ \"$funcstack[1]\" = _burst ]; then\n\t_burst \"$@\"\nelse\n\tcompdef _burst "
	      "burst\nfi\n",
	      to);
}

/* ---- fish ---- */

static void fish_text(FILE *to, const char *text)
{
	fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('\'', to);
}

static void fish_offer(FILE *to, const struct cmd *cmd, const char *word)
{
	char out[120];

	switch (offered(cmd, word, out, sizeof(out))) {
	case OFFER_NOTHING: break;
	case OFFER_ENDINGS: fputs(" -k -a '(__fish_complete_suffix .cfg)'", to); break;
	case OFFER_FILES: fputs(" -F", to); break;
	case OFFER_DIRS: fputs(" -a '(__fish_complete_directories)'", to); break;
	case OFFER_LIST: fprintf(to, " -a '(burst words %s 2>/dev/null)'", out); break;
	case OFFER_CHOICES: fprintf(to, " -a '%s'", out); break;
	}
}

static void fish_opt(FILE *to, const struct cmd *cmd, const struct opt *o)
{
	fputs("complete -c burst", to);
	if (cmd)
		fprintf(to, " -n '__fish_seen_subcommand_from %s'", cmd->name);
	fprintf(to, " -l %s", o->name);
	if (o->letter)
		fprintf(to, " -s %c", o->letter);
	if (o->arg && !o->optional) {
		fputs(" -r", to);
		fish_offer(to, cmd, o->arg);
	}
	fputs(" -d ", to);
	fish_text(to, o->help);
	fputc('\n', to);
}

static void fish_command(FILE *to, const struct cmd *cmd)
{
	const char *args = cmd->args;
	char word[60], second[60], choices[120];
	int more;

	fprintf(to, "complete -c burst -n __fish_use_subcommand -a %s -d ", cmd->name);
	fish_text(to, cmd->summary);
	fputc('\n', to);
	if (text_arg(word, sizeof(word), &args, &more)) {
		bool first = offered(cmd, word, choices, sizeof(choices)) == OFFER_CHOICES &&
			     text_arg(second, sizeof(second), &args, &more);
		fprintf(to, "complete -c burst -n '__fish_seen_subcommand_from %s", cmd->name);
		if (first)
			fprintf(to, "; and not __fish_seen_subcommand_from %s", choices);
		fputc('\'', to);
		fish_offer(to, cmd, word);
		if (first) {
			fprintf(to,
				"\ncomplete -c burst -n '__fish_seen_subcommand_from %s; and "
				"__fish_seen_subcommand_from %s'",
				cmd->name, choices);
			fish_offer(to, cmd, second);
		}
		fputc('\n', to);
	}
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		fish_opt(to, cmd, o);
	if (cmd->json)
		fish_opt(to, cmd, &common_opts[1]);
}

static void print_fish(const struct shell *sh)
{
	fputs("# completion of burst for fish: burst completion fish | source\ncomplete -c burst "
	      "-f\n",
	      sh->to);
	for (const struct cmd *const *c = sh->commands; *c; c++)
		if (!(*c)->hidden)
			fish_command(sh->to, *c);
	for (const struct opt *o = common_opts; o->name; o++)
		if (strcmp(o->name, "json"))
			fish_opt(sh->to, NULL, o);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	static const struct {
		const char *name;
		void (*print)(const struct shell *sh);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
	struct shell sh = {stdout, ctx->commands};

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (!strcmp(shells[i].name, ctx->args[0])) {
			shells[i].print(&sh);
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
	.run = run,
};
