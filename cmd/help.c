/* help.c - `burst help`: prints the usage of all commands or of one, the man pages burst(1) and
 * burst.cfg(5), and the reference of burst.cfg. */
#include "cmd.h"

#include <string.h>

#include "base/str.h"
#include "cmd/show/output.h"
#include "config/example.h"

#define WIDTH       80
#define HELP_COLUMN 30 /* where a flag's description begins */

/* ---- usage ---- */

static const char *const group_titles[CMD_GROUPS] = {
	[CMD_GROUP_RENDER] = "Rendering",
	[CMD_GROUP_RUNS] = "Runs and pods",
	[CMD_GROUP_SETUP] = "Setting up",
	[CMD_GROUP_OTHER] = "Other",
};

/* Prints the group's title and its commands with their summaries; nothing for an empty group. */
static void show_group(FILE *to, const struct cmd *const *commands, enum cmd_group group)
{
	bool first = true;

	for (; *commands; commands++) {
		const struct cmd *c = *commands;
		if (c->hidden || c->group != group)
			continue;
		if (first)
			fprintf(to, "\n%s\n", group_titles[group]);
		first = false;
		int at = fprintf(to, "  %-12s", c->name);
		text_wrap(to, c->summary, at, 14, WIDTH);
	}
}

/* Writes "  -p, --provider NAME", or "  -p" if the flag's name is NULL. Returns `out`. */
static char *flag_as_text(char *out, size_t room, const struct opt *opt)
{
	char letter[8] = "    ";

	if (opt->letter)
		snprintf(letter, sizeof(letter), "-%c, ", opt->letter);
	if (!opt->name) {
		snprintf(out, room, "  -%c", opt->letter);
		return out;
	}
	snprintf(out, room, "  %s--%s%s%s%s", letter, opt->name,
		 opt->arg ? (opt->optional ? "[=" : " ") : "", opt->arg ? opt->arg : "",
		 opt->arg && opt->optional ? "]" : "");
	return out;
}

static void show_opt(FILE *to, const struct opt *o)
{
	char flag[80];
	int at = fprintf(to, "%-*s", HELP_COLUMN - 1, flag_as_text(flag, sizeof(flag), o));

	if (at >= HELP_COLUMN) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", HELP_COLUMN - at, "");
	text_wrap(to, o->help, HELP_COLUMN, HELP_COLUMN, WIDTH);
}

/* Prints the flags of every command, as this one has them; cmd NULL: without --json. */
static void show_common_opts(FILE *to, const struct cmd *cmd)
{
	for (const struct opt *o = common_opts; o->name; o++) {
		struct opt shown = cmd_common_opt(cmd, o);

		if ((cmd && cmd->json) || strcmp(o->name, "json"))
			show_opt(to, &shown);
	}
}

void help_all(FILE *to, const struct cmd *const *commands)
{
	fputs("burst rents a GPU for exactly as long as a render needs it.\n\n"
	      "usage: burst COMMAND [ARGUMENTS] [FLAGS]\n",
	      to);
	for (int group = 0; group < CMD_GROUPS; group++)
		show_group(to, commands, (enum cmd_group)group);
	fputs("\nFlags of every command\n", to);
	show_common_opts(to, NULL);
	fputs("\nBegin with `burst init`, then `burst run`. `burst help COMMAND` explains a\n"
	      "command, `burst help burst.cfg` every key of a config. The manual has examples,\n"
	      "exit statuses, files and environment variables: `burst help --man | man -l -`.\n",
	      to);
}

void help_one(FILE *to, const struct cmd *cmd)
{
	const struct opt *o = cmd->opts;

	fprintf(to, "usage: burst %s%s%s%s\n\n", cmd->name, cmd->args ? " " : "",
		cmd->args ? cmd->args : "", o && o->name ? " [FLAGS]" : "");
	text_wrap(to, cmd->summary, 0, 0, WIDTH);
	if (cmd->details) {
		fputc('\n', to);
		text_wrap(to, cmd->details, 0, 0, WIDTH);
	}
	fputs("\nFlags\n", to);
	for (; o && o->name; o++)
		show_opt(to, o);
	show_common_opts(to, cmd);
}

/* ---- roff ---- */

/* Escapes what roff would obey: a dot or a quote at the start of a line, and a plain -. */
static void roff_text(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
	}
}

/* ".SH" or ".SS", with a title. */
static void roff_heading(FILE *to, const char *macro, const char *title)
{
	fprintf(to, "%s ", macro);
	roff_text(to, title);
	fputc('\n', to);
}

/* Lines of text. An empty line begins a paragraph; other line breaks stay. */
static void roff_paragraph(FILE *to, const char *text)
{
	for (; *text; text++) {
		const char *end = strchr(text, '\n');
		CLEANUP(free_text)
		char *line = end ? xstrndup(text, (size_t)(end - text)) : xstrdup(text);
		roff_text(to, line);
		fputs(*line ? "\n" : ".PP\n", to);
		if (!end)
			break;
		if (*line && end[1] != '\n')
			fputs(".br\n", to);
		text = end;
	}
}

/* A name in bold, with its description indented below it. */
static void roff_item(FILE *to, const char *name, const char *text)
{
	fputs(".TP\n.B ", to);
	roff_text(to, name);
	fputc('\n', to);
	roff_paragraph(to, text);
}

/* Indents lines and keeps them as they are. text ends with a newline. */
static void roff_example(FILE *to, const char *text)
{
	fputs(".PP\n.RS 4\n.nf\n", to);
	roff_text(to, text);
	fputs(".fi\n.RE\n", to);
}

/* ---- burst(1) ---- */

static const struct {
	const char *name, *text;
} statuses[] =
	{
		{"0", "Everything is done and every pod is confirmed gone."},
		{"1", "The job failed, in part or as a whole, or this machine failed."},
		{"2", "The command line or the config is wrong."},
		{"3", "Credentials were refused, or the account cannot pay."},
		{"4", "No capacity in time."},
		{"5", "A cap was reached: cost or duration."},
		{"6", "The provider or the network failed."},
		{"7", "The same job is already running."},
		{"9", "A release could not be confirmed: a pod may still bill. The message names "
		      "the pod and the command that releases it."},
		{"129, 130, 143", "Interrupted by a signal; the pods are confirmed gone."},
},
  files[] =
	  {
		  {"./burst.cfg",
		   "The job: what to render and on what. It comes with a project and is not "
		   "trusted: it cannot name commands to run here, endpoints, keys, or paths "
		   "outside the project. See burst.cfg(5)."},
		  {"${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg",
		   "Your accounts and defaults, and what projects may do."},
		  {"${BURST_STATE_DIR:-${XDG_STATE_HOME:-~/.local/state}/burst}",
		   "The ledger (ledger.db), the logs of runs (runs/), and the volumes of the local "
		   "provider (volumes/)."},
		  {"${BURST_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/burst}/renders",
		   "The render cache. If BURST_CACHE_DIR is set and empty, there is none."},
		  {"~/.runpod/config.toml, ~/.modal.toml, ~/.config/vastai/vast_api_key",
		   "Keys, as the providers' own tools store them."},
		  {".burstignore, .gitignore",
		   "What is not synced to the pods; git's other rules count as well."},
},
  variables[] = {
	  {"RUNPOD_API_KEY", "The key of the RunPod account."},
	  {"MODAL_TOKEN_ID, MODAL_TOKEN_SECRET", "The keys of the Modal account."},
	  {"VAST_API_KEY", "The key of the Vast.ai account."},
	  {"RUNPOD_API_URL, RUNPOD_S3_URL, MODAL_SERVER_URL, VAST_API_URL",
	   "Other endpoints, for tests."},
	  {"RUNPOD_S3_ACCESS_KEY, RUNPOD_S3_SECRET_KEY",
	   "Keys of RunPod's S3-compatible API: files of a volume are read without a pod."},
	  {"BURST_PROVIDER_PATH", "Providers outside this program: absolute paths of shared "
				  "objects or of folders of them, with \":\" between."},
	  {"BURST_STATE_DIR, BURST_CACHE_DIR, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_CONFIG_HOME, "
	   "HOME",
	   "Absolute paths of the folders above."},
	  {"NO_COLOR", "If set to anything, no colours are used."},
};

static void man_flag(FILE *to, const struct opt *o)
{
	char text[80];

	roff_item(to, flag_as_text(text, sizeof(text), o) + strspn(text, " "), o->help);
}

static void man_command(FILE *to, const struct cmd *c)
{
	fputs(".SS ", to);
	roff_text(to, c->name);
	if (c->args) {
		fputc(' ', to);
		roff_text(to, c->args);
	}
	fputc('\n', to);
	roff_paragraph(to, c->summary);
	if (c->details) {
		fputs(".PP\n", to);
		roff_paragraph(to, c->details);
	}
	for (const struct opt *o = c->opts; o && o->name; o++)
		man_flag(to, o);
	for (const struct opt *o = common_opts; c->json && o->name; o++)
		if (!strcmp(o->name, "json"))
			man_flag(to, o);
}

static void man_commands(FILE *to, const struct cmd *const *commands)
{
	fputs(".SH COMMANDS\n", to);
	for (; *commands; commands++)
		if (!(*commands)->hidden)
			man_command(to, *commands);
	fputs(".SH FLAGS OF EVERY COMMAND\n", to);
	for (const struct opt *o = common_opts; o->name; o++)
		if (strcmp(o->name, "json"))
			man_flag(to, o);
}

static const struct example {
	const char *text, *lines;
} examples[] = {
	{"First sound, without an account or a GPU:", "burst init -y\nburst run\n"},
	{"Rent, render, and return once the pods need this machine no more:",
	 "burst run -d\nburst attach\n"},
	{"See what a run would cost before it rents anything:",
	 "burst plan\nburst plan --deadline 07:00 --explain\n"},
	{"End everything that this machine started:", "burst ps\nburst cancel RUN\nburst reap\n"},
	{"Render every night, and what is committed:",
	 "burst schedule add nightly daily 02:00\nburst hook install\n"},
};

static void man_examples(FILE *to, const struct example *list, size_t count)
{
	fputs(".SH EXAMPLES\n", to);
	for (size_t i = 0; i < count; i++) {
		if (i)
			fputs(".PP\n", to);
		roff_paragraph(to, list[i].text);
		roff_example(to, list[i].lines);
	}
}

static void print_man_page(FILE *to, const struct cmd *const *commands)
{
	fputs(".TH BURST 1 \"\" \"burst " BURST_VERSION "\" \"User Commands\"\n.SH NAME\n"
	      "burst \\- rent a GPU for exactly as long as a render needs it\n.SH SYNOPSIS\n.B "
	      "burst\n"
	      "COMMAND [ARGUMENTS] [FLAGS]\n.SH DESCRIPTION\n",
	      to);
	roff_paragraph(to, "burst reads a job (burst.cfg(5)), rents pods, syncs the code over SSH "
			   "and runs the job in batches. It fetches the outputs while the job "
			   "runs, releases the pods and proves that they are gone. It records "
			   "billed seconds beside compute seconds.\n\n"
			   "Results go to standard output, everything else to standard error.");
	man_examples(to, examples, ARRAY_LEN(examples));
	man_commands(to, commands);
	fputs(".SH EXIT STATUS\n", to);
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		roff_item(to, statuses[i].name, statuses[i].text);
	fputs(".SH FILES\n", to);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		roff_item(to, files[i].name, files[i].text);
	fputs(".SH ENVIRONMENT\n", to);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		roff_item(to, variables[i].name, variables[i].text);
	fputs(".SH SEE ALSO\n.BR burst.cfg (5)\n", to);
}

/* ---- burst.cfg: text, Markdown and burst.cfg(5), from the tables of keys ---- */

/* A key's type, default, range and who may set it: "integer, default 4, required". The caller frees
 * it. */
static char *key_facts(const struct reference_row *row)
{
	struct str text = STR_INIT;

	str_add(&text, row->kind);
	if (row->value)
		str_addf(&text, ", default %s", row->value);
	if (row->range)
		str_addf(&text, ", %s", row->range);
	if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_SECRET))
		str_add(&text, ", required");
	if (row->flags & OPTION_USER_ONLY)
		str_add(&text, ", only in your own file");
	return str_detach(&text);
}

/* ---- text ---- */

static void text_section(void *ctx, const char *title, const char *text)
{
	fprintf(ctx, "\n%s\n", title);
	if (*text)
		text_wrap(ctx, text, 0, 0, WIDTH);
}

static void text_row(void *ctx, const struct reference_row *row)
{
	CLEANUP(free_text) char *about = key_facts(row);
	CLEANUP(free_text) char *text = xasprintf("%s (%s)", row->help, about);

	fprintf(ctx, "\n  %s\n      ", row->path);
	text_wrap(ctx, text, 6, 6, WIDTH);
}

static void print_keys_text(FILE *to)
{
	const struct reference_reader reader = {to, text_section, text_row};

	fputs("burst.cfg: every key, its type and its default\n", to);
	reference_read(&reader, job_registry, provider_registry);
}

/* ---- Markdown ---- */

/* Escapes bars, which would end the table's cell. */
static void markdown_cell(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', to);
		fputc(*text, to);
	}
}

static void markdown_section(void *ctx, const char *title, const char *text)
{
	fprintf(ctx, "\n### %s\n\n", title);
	if (*text)
		fprintf(ctx, "%s\n\n", text);
	fputs("| key | type | default | what |\n| --- | --- | --- | --- |\n", ctx);
}

static void markdown_row(void *ctx, const struct reference_row *row)
{
	fprintf(ctx, "| `%s` | %s | ", row->path, row->kind);
	if (row->value) {
		fputc('`', ctx);
		markdown_cell(ctx, row->value);
		fputs("` ", ctx);
	}
	fputs("| ", ctx);
	markdown_cell(ctx, row->help);
	if (row->range)
		fprintf(ctx, "; allowed: %s", row->range);
	if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_SECRET))
		fputs("; **required**", ctx);
	if (row->flags & OPTION_USER_ONLY)
		fputs("; **your own file only**", ctx);
	fputs(" |\n", ctx);
}

static void print_keys_markdown(FILE *to)
{
	const struct reference_reader reader = {to, markdown_section, markdown_row};

	reference_read(&reader, job_registry, provider_registry);
}

/* ---- the man page ---- */

static void man_section(void *ctx, const char *title, const char *text)
{
	roff_heading(ctx, ".SS", title);
	roff_paragraph(ctx, text);
}

static void man_row(void *ctx, const struct reference_row *row)
{
	CLEANUP(free_text) char *about = key_facts(row);
	CLEANUP(free_text) char *text = xasprintf("%s (%s)", row->help, about);

	roff_item(ctx, row->path, text);
}

static const char description[] =
	"burst.cfg says what to render, and on what. burst reads the one in the current folder, or "
	"the one that the command line names. Your accounts and defaults stand in a second file, "
	"~/.config/burst/burst.cfg. A flag goes before the project's file, and the project's file "
	"before yours.\n\n"
	"A line is key = value; and # begins a comment. Texts stand in quotes, lists in [ ], "
	"groups in { }. Durations are texts: \"90s\", \"20m\", \"2h\". Relative paths are relative "
	"to the file in which they stand. An unknown key, a wrong type or a value out of range is "
	"an error that names the line. burst checks everything before it rents.\n\n"
	"A project's file comes with a repository and is not trusted. It cannot set keys marked "
	"\"only in your own file\", and its paths stay inside the project unless your own file has "
	"them in allow_paths.";

static const char local_example[] = "provider = [\"local\"];\n"
				    "caps     = { max_cost = 1.00; max_duration = \"30m\"; };\n"
				    "job = {\n"
				    "    name   = \"quiz\";\n"
				    "    type   = \"tts\";\n"
				    "    engine = \"espeak\";\n"
				    "    input  = \"quiz.jsonl\";\n"
				    "    output = \"out\";\n"
				    "};\n";

static const char own_example[] =
	"allow_paths = [\"/data/voices\"];\n"
	"caps        = { per_day = 5.00; };\n"
	"notify      = { command = \"mail -s burst me@example.org\"; };\n"
	"providers   = { runpod = { api_key_command = \"pass runpod\"; }; };\n";

static const struct example config_examples[] = {
	{"Speech on this machine:", local_example},
	{"Your own file, ~/.config/burst/burst.cfg:", own_example},
};

static void print_keys_man(FILE *to)
{
	const struct reference_reader reader = {to, man_section, man_row};

	fputs(".TH BURST.CFG 5 \"\" \"burst " BURST_VERSION "\" \"File Formats\"\n.SH NAME\n"
	      "burst.cfg \\- what burst renders, and on what\n.SH DESCRIPTION\n",
	      to);
	roff_paragraph(to, description);
	man_examples(to, config_examples, ARRAY_LEN(config_examples));
	fputs(".PP\nMore are in config/examples of burst's source.\n", to);
	fputs(".SH KEYS\n", to);
	reference_read(&reader, job_registry, provider_registry);
	fputs(".SH FILES\n", to);
	roff_item(to, "./burst.cfg", "The project's file.");
	roff_item(to, "${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg", "Your own file.");
	fputs(".SH SEE ALSO\n.BR burst (1)\n", to);
}

/* ---- the command ---- */

static int run(struct cmd_context *ctx, struct err *err)
{
	bool man = opt_has(ctx, "man"), markdown = opt_has(ctx, "markdown");

	if (ctx->arg_count && !strcmp(ctx->args[0], "burst.cfg")) {
		(man ? print_keys_man : markdown ? print_keys_markdown : print_keys_text)(stdout);
	} else if (markdown) {
		return err_set(
			err, ERR_USAGE,
			"--markdown goes with burst.cfg alone: burst help burst.cfg --markdown");
	} else if (man) {
		print_man_page(stdout, ctx->commands);
	} else if (ctx->arg_count == 0) {
		help_all(stdout, ctx->commands);
	} else {
		const struct cmd *cmd = cmd_find(ctx->commands, ctx->args[0], err);
		if (!cmd)
			return -1;
		help_one(stdout, cmd);
	}
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "man", NULL, "as a man page: burst help --man | man -l -"},
	{0, "markdown", NULL, "the keys of burst.cfg as tables in Markdown"},
	{0},
};

const struct cmd cmd_help = {
	.name = "help",
	.args = "[COMMAND]",
	.max_args = 1,
	.summary = "show what burst or one command does; burst.cfg: every key",
	.opts = opts,
	.group = CMD_GROUP_OTHER,
	.run = run,
};
