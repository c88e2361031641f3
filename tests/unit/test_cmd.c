/* test_cmd.c - flags as hands write them, tables as terminals show them, and a pod's phases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"

/* ---- flags ---- */

static const struct opt render_opts[] = {
	{'p', "provider", "PROVIDER", "rent there", "provider", false},
	{0, "max-cost", "USD", "stop there", "caps.max_cost", false},
	{'n', "dry-run", NULL, "only show it", NULL, false},
	{0, "keep", "TIME", "keep a failed pod", NULL, true},
	{0},
};

static const struct cmd render = {.name = "render",
				  .args = "[CONFIG]",
				  .max_args = 1,
				  .summary = "render",
				  .opts = render_opts,
				  .json = true};

static const struct cmd plain = {.name = "plain", .summary = "nothing"};

static const struct cmd shell = {.name = "shell",
				 .args = "POD [COMMAND...]",
				 .min_args = 1,
				 .max_args = -1,
				 .summary = "shell",
				 .passes_on = true};

static const struct cmd raw = {
	.name = "raw", .summary = "raw", .max_args = -1, .raw = true, .hidden = true};

static const struct cmd job = {
	.name = "job", .args = "[CONFIG]", .max_args = 1, .summary = "job", .takes_command = true};

static const struct cmd *const commands[] = {&render, &plain, &shell, &raw, &job, NULL};

static const struct {
	const char *name, *line; /* words with blanks between; _: an empty one */
	const char *result;      /* of show_result(), or the error */
} lines[] = {
	{"nothing", "render", ""},
	{"an argument", "render a.cfg", "a.cfg"},
	{"long with =", "render --max-cost=5", "max-cost=5"},
	{"long with a blank", "render --max-cost 5 a", "a max-cost=5"},
	{"short with a blank", "render -p local", "provider=local"},
	{"short without", "render -plocal", "provider=local"},
	{"short with =", "render -p=local", "provider=local"},
	{"cluster", "render -qvvy", "yes quiet verbose=2"},
	{"cluster that ends in a value", "render -yp local", "provider=local yes"},
	{"-y where nothing is asked", "plain --yes -y", "yes"},
	{"the last one counts", "render --max-cost 5 --max-cost=6", "max-cost=6"},
	{"of a list all count", "render -p local --provider modal",
	 "render: --provider is given twice: write one list, like --provider \"local,modal\" (see "
	 "`burst help render`)"},
	{"a value like a flag", "render --max-cost -5", "max-cost=-5"},
	{"optional value left out", "render --keep a", "a keep="},
	{"optional value", "render --keep=5m a", "a keep=5m"},
	{"after --", "render -- -y", "-y"},
	{"a single - is an argument", "render -", "-"},
	{"flags behind arguments", "render a --json", "a json"},
	{"help wins over wrong arguments", "render a b c -h", "help"},
	{"words of another program", "shell pod ls -l --all -- x", "pod ls -l --all -- x"},
	{"flags before the pod are ours", "shell -q pod ls -q", "pod ls -q quiet"},
	{"a command behind --", "job -q a.cfg -- ls -q -- b", "a.cfg quiet $ls $-q $-- $b"},
	{"no command behind --", "job --", "$"},
	{"--dryrun is --dry-run", "render --dryrun", "dry-run="},
	{"--dryrun where there is no --dry-run", "plain --dryrun",
	 "plain: unknown flag --dryrun (see `burst help plain`)"},
	{"raw", "raw --x -h --", "--x -h --"},
	{"unknown long", "render --max-cots=1",
	 "render: unknown flag --max-cots, did you mean --max-cost? (see `burst help render`)"},
	{"unknown long, nothing near", "plain --zzzzzzzz",
	 "plain: unknown flag --zzzzzzzz (see `burst help plain`)"},
	{"unknown short", "render -z", "render: unknown flag -z (see `burst help render`)"},
	{"value missing", "render --max-cost",
	 "render: --max-cost needs a value: --max-cost USD (see `burst help render`)"},
	{"value missing, short", "render -p",
	 "render: -p needs a value: -p PROVIDER (see `burst help render`)"},
	{"value for a switch", "render --yes=1",
	 "render: --yes takes no value (see `burst help render`)"},
	{"too many", "render a b", "render: unexpected argument \"b\" (see `burst help render`)"},
	{"none taken", "plain a", "plain: takes no arguments (see `burst help plain`)"},
	{"an empty argument", "render _",
	 "render: empty argument in place of [CONFIG] (an unset variable?) (see "
	 "`burst help render`)"},
	{"an empty pod", "shell _ ls",
	 "shell: empty argument in place of POD [COMMAND...] (an unset variable?) "
	 "(see `burst help shell`)"},
	{"an empty word of another program", "shell pod grep _", "pod grep "},
	{"help wins over an empty argument", "render -h _", "help"},
	{"too few", "shell", "shell: needs POD [COMMAND...] (see `burst help shell`)"},
	{"no --json here", "plain --json", "plain: unknown flag --json (see `burst help plain`)"},
};

static int split(char *line, char **argv, int most)
{
	int n = 0;

	for (char *save, *word = strtok_r(line, " ", &save); word && n < most;
	     word = strtok_r(NULL, " ", &save))
		argv[n++] = strcmp(word, "_") ? word : word + 1;
	argv[n] = NULL;
	return n;
}

static void show_result(struct str *to, const struct cmd_context *ctx, bool help)
{
	for (int i = 0; i < ctx->arg_count; i++)
		str_addf(to, " %s", ctx->args[i]);
	for (size_t i = 0; ctx->cmd->opts && ctx->cmd->opts[i].name; i++)
		if (ctx->values[i])
			str_addf(to, " %s=%s", ctx->cmd->opts[i].name, ctx->values[i]);
	if (ctx->yes)
		str_add(to, " yes");
	if (ctx->json)
		str_add(to, " json");
	if (ctx->quiet)
		str_add(to, " quiet");
	if (ctx->verbose)
		str_addf(to, " verbose=%d", ctx->verbose);
	for (int i = 0; i < ctx->command_count; i++)
		str_addf(to, " $%s", ctx->command[i]);
	if (ctx->command && !ctx->command_count)
		str_add(to, " $");
	if (help) {
		str_reset(to);
		str_add(to, " help");
	}
	str_drop(to, 1);
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		CLEANUP(free_text) char *line = xstrdup(lines[i].line);
		CLEANUP(str_free) struct str got = STR_INIT;
		struct cmd_context ctx = {.commands = commands};
		struct err err = {0};
		char *argv[16];
		bool help = false;
		int argc = split(line, argv, 15);
		const struct cmd *cmd = cmd_find(commands, argv[0], &err);
		assert_non_null(cmd);
		if (cmd_parse(&ctx, cmd, argc, argv, &help, &err) < 0)
			str_add(&got, err.msg);
		else
			show_result(&got, &ctx, help);
		if (strcmp(str_text(&got), lines[i].result))
			fail_msg("%s: got \"%s\", want \"%s\"", lines[i].name, str_text(&got),
				 lines[i].result);
		cmd_context_free(&ctx);
	}
}

static void test_unknown_command(void **state)
{
	struct err err = {0};

	(void)state;
	assert_null(cmd_find(commands, "rendr", &err));
	assert_string_equal(
		err.msg,
		"unknown command \"rendr\", did you mean \"render\"? (`burst help` lists them)");
	assert_int_equal(err_exit_status(&err), 2);
	assert_null(cmd_find(commands, "ra", &err)); /* hidden ones are not suggested */
	assert_null(strstr(err.msg, "raw"));
}

static void test_typed_values(void **state)
{
	char *argv[] = {(char[]){"render"}, (char[]){"--max-cost"}, (char[]){"12"},
			(char[]){"--keep=90s"}, NULL};
	struct cmd_context ctx = {0};
	struct err err = {0};
	int64_t n = 7, ms = 0;
	bool help;

	(void)state;
	assert_int_equal(cmd_parse(&ctx, &render, 4, argv, &help, &err), 0);
	assert_int_equal(opt_int(&ctx, "max-cost", 0, 100, &n, &err), 0);
	assert_int_equal(n, 12);
	assert_int_equal(opt_int(&ctx, "max-cost", 0, 10, &n, &err), -1);
	assert_string_equal(err.msg, "--max-cost: \"12\" is not a whole number from 0 to 10");
	assert_int_equal(opt_duration(&ctx, "keep", &ms, &err), 0);
	assert_int_equal(ms, 90000);
	assert_int_equal(opt_int(&ctx, "provider", 0, 10, &n, &err), 0); /* not given: left alone */
	assert_int_equal(n, 12);
	assert_false(ctx.yes);
	cmd_context_free(&ctx);
}

/* ---- text and tables ---- */

static char *captured(void (*print)(FILE *to))
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	print(to);
	fclose(to);
	return text;
}

static void print_wrapped(FILE *to)
{
	fputs("  run  ", to);
	text_wrap(to, "one two three four\n\nfive", 7, 7, 16);
}

static void test_wrap(void **state)
{
	CLEANUP(free_text) char *text = captured(print_wrapped);

	(void)state;
	assert_string_equal(text, "  run  one two\n       three\n       four\n\n       five\n");
}

static void fill(struct table *t)
{
	table_column(t, "NAME", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_cell(t, "%s", "\xe5\xb1\xb1\xe5\xb1\xb1 a long name that wraps");
	table_cell(t, "%d", 1);
	table_cell(t, "e\xcc\x81 \x1b[2J");
	table_cell(t, "1000");
}

static void print_wide(FILE *to)
{
	CLEANUP(table_free) struct table *t = table_new();

	fill(t);
	table_print(t, to, 0);
}

static void print_narrow(FILE *to)
{
	CLEANUP(table_free) struct table *t = table_new();

	fill(t);
	table_print(t, to, 16);
}

/* What a person must be able to copy is not cut, what it costs is not left out. */
static void print_narrower(FILE *to)
{
	for (int width = 60; width >= 10; width -= width > 40 ? 14 : 18) {
		CLEANUP(table_free) struct table *t = table_new();
		table_column(t, "POD", TABLE_LEFT, TABLE_WHOLE);
		table_column(t, "GPU", TABLE_LEFT, 1);
		table_column(t, "REGION", TABLE_LEFT, 2);
		table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
		table_cell(t, "zvdwjhfqffdxnp");
		table_cell(t, "NVIDIA GeForce RTX 4090");
		table_cell(t, "US-KS-2");
		table_cell(t, "$0.69");
		table_print(t, to, width);
	}
}

static void print_empty(FILE *to)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "NAME", TABLE_LEFT, TABLE_SHRINKS);
	table_print(t, to, 0);
}

static void test_tables(void **state)
{
	CLEANUP(free_text) char *wide = captured(print_wide);
	CLEANUP(free_text) char *narrow = captured(print_narrow);
	CLEANUP(free_text) char *narrower = captured(print_narrower);
	CLEANUP(free_text) char *empty = captured(print_empty);

	assert_string_equal(narrower, "POD             GPU                      REGION    COST\n"
				      "zvdwjhfqffdxnp  NVIDIA GeForce RTX 4090  US-KS-2  $0.69\n"
				      "POD             GPU             REGION    COST\n"
				      "zvdwjhfqffdxnp  NVIDIA GeForce  US-KS-2  $0.69\n"
				      "                RTX 4090\n"
				      "POD              COST\n"
				      "zvdwjhfqffdxnp  $0.69\n"
				      "(no room for GPU, REGION: widen the terminal)\n"
				      "POD              COST\n"
				      "zvdwjhfqffdxnp  $0.69\n"
				      "(no room for GPU, REGION: widen the terminal)\n");

	(void)state;
	assert_string_equal(wide, "NAME                          $/H\n"
				  "\xe5\xb1\xb1\xe5\xb1\xb1 a long name that wraps     1\n"
				  "e\xcc\x81 \\x1b[2J                    1000\n");
	assert_string_equal(narrow, "NAME         $/H\n"
				    "\xe5\xb1\xb1\xe5\xb1\xb1 a         1\n"
				    "long name\n"
				    "that wraps\n"
				    "e\xcc\x81 \\x1b[2J   1000\n");
	assert_string_equal(empty, "");
}

static void test_fit(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	(void)state;
	text_fit(&text, "abcdef", 6);
	assert_string_equal(str_text(&text), "abcdef");
	str_reset(&text);
	text_fit(&text, "abcdefg", 6);
	assert_string_equal(str_text(&text), "abcde\xe2\x80\xa6");
	assert_int_equal(text_width("\xf0\x9f\x98\x80"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),        cmocka_unit_test(test_unknown_command),
		cmocka_unit_test(test_typed_values), cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_tables),       cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests_name("cmd", tests, NULL, NULL);
}
