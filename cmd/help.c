/* help.c - `burst help`: prints the usage of all commands or of one. */
#include "cmd.h"

#include "cmd/show/manual.h"
#include "cmd/show/output.h"

#define WIDTH 80
#define GAP   30 /* column of a flag's description */

static const char *const group_titles[CMD_GROUPS] = {
	[CMD_GROUP_RENDER] = "Rendering",
	[CMD_GROUP_RUNS] = "Runs and pods",
	[CMD_GROUP_SETUP] = "Setting up",
	[CMD_GROUP_OTHER] = "Other",
};

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

static void show_opt(FILE *to, const struct opt *o)
{
	char flag[80];
	int at = fprintf(to, "%-*s", GAP - 1, text_flag(flag, sizeof(flag), o));

	if (at >= GAP) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", GAP - at, "");
	text_wrap(to, o->help, GAP, GAP, WIDTH);
}

/* cmd NULL: for every command. */
static void show_common(FILE *to, const struct cmd *cmd)
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
	show_common(to, NULL);
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
	show_common(to, cmd);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	bool man = opt_has(ctx, "man"), markdown = opt_has(ctx, "markdown");

	if (ctx->arg_count && !strcmp(ctx->args[0], "burst.cfg")) {
		(man ? keys_man : markdown ? keys_markdown : keys_text)(stdout);
	} else if (markdown) {
		return err_set(err, ERR_USAGE,
			       "--markdown goes with burst.cfg alone: burst help "
			       "burst.cfg --markdown");
	} else if (man) {
		man_print(stdout, ctx->commands);
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
	{0, "man", NULL, "as a man page: burst help --man | man -l -", NULL, false},
	{0, "markdown", NULL, "the keys of burst.cfg as tables in Markdown", NULL, false},
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
