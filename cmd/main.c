/* main.c - the table of commands: finds the command, runs it, and prints the one error at the end.
 */
#include "cmd.h"

#include "base/clock.h"
#include "base/guard.h"
#include "base/err.h"
#include "cmd/line/perform.h"
#include "cmd/show/output.h"
#include "config/secrets.h"

/* In the order of help. To add a command, add a file and a line here. */
static const struct cmd *const commands[] = {
	&cmd_run,    &cmd_submit,     &cmd_queue,       &cmd_plan,      &cmd_offers,
	&cmd_gpus,   &cmd_engines,    &cmd_ps,          &cmd_status,    &cmd_ledger,
	&cmd_report, &cmd_breakeven,  &cmd_size,        &cmd_calibrate, &cmd_logs,
	&cmd_attach, &cmd_resume,     &cmd_cancel,      &cmd_reap,      &cmd_fetch,
	&cmd_ssh,    &cmd_ssh_config, &cmd_schedule,    &cmd_init,      &cmd_hook,
	&cmd_volume, &cmd_image,      &cmd_cache,       &cmd_doctor,    &cmd_completion,
	&cmd_help,   &cmd_words,      &cmd_local_cloud, &cmd_keep,      NULL,
};

/* Flags before the command's name belong to the command: `burst -v run` is `burst run -v`. */
static int command_index(int argc, char **argv)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-')
		i++;
	return i;
}

static void move_to_front(char **argv, int index)
{
	char *name = argv[index];

	memmove(argv + 2, argv + 1, (size_t)(index - 1) * sizeof(*argv));
	argv[1] = name;
}

static int parse_and_perform(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	bool help;
	const struct cmd *cmd = cmd_find(commands, argv[0], err);

	if (!cmd || cmd_parse(ctx, cmd, argc, argv, &help, err) < 0)
		return -1;
	output_setup(ctx);
	if (!help)
		return perform(ctx, err);
	help_one(stdout, cmd);
	return cmd_flush(err);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return !strcmp(word, a) || !strcmp(word, b);
}

static int without_command(int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		if (is_one_of(argv[i], "--version", "-V") || !strcmp(argv[i], "version")) {
			puts("burst " BURST_VERSION);
			return cmd_flush(err);
		}
		if (!is_one_of(argv[i], "--help", "-h"))
			return err_set(err, ERR_USAGE, "unknown flag %.40s (see `burst help`)",
				       argv[i]);
	}
	help_all(stdout, commands);
	return cmd_flush(err);
}

/* Also for a command line that could not be parsed. */
static bool wants_json(char **argv)
{
	for (; *argv && strcmp(*argv, "--"); argv++)
		if (!strcmp(*argv, "--json"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct cmd_context ctx = {.commands = commands, .began_ms = clock_wall_ms()};
	struct err err = {0};

	int index = command_index(argc, argv);

	start_open_files();
	start_reset_signals();
	guard_begin(index >= argc || strcmp(argv[index], cmd_local_cloud.name));
	perform_load_providers(index < argc ? argv[index] : "");
	secrets_hide(provider_registry);
	start_find_self(argv[0]);
	start_read_terminal(&ctx);
	output_setup(&ctx);
	int status;
	if (index >= argc || !strcmp(argv[index], "version")) {
		status = without_command(argc, argv, &err);
	} else {
		move_to_front(argv, index);
		ctx.argv = argv;
		status = parse_and_perform(&ctx, argc - 1, argv + 1, &err);
	}
	if (status < 0)
		status = cmd_tell_failure(&ctx, &err, wants_json(argv));
	log_setup(LOG_ERROR, NULL, NULL);
	perform_free();
	cmd_context_free(&ctx);
	return status;
}
