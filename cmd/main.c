/* main.c - the table of commands: finds the command, runs it, and prints the error at the end. */
#include "cmd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/err.h"
#include "cmd/show/output.h"
#include "config/secrets.h"
#include "net/child.h"

/* In the order of help. To add a command, add a file and a line here. */
static const struct cmd *const commands[] = {
	&cmd_run,      &cmd_submit,    &cmd_queue,       &cmd_plan,
	&cmd_offers,   &cmd_gpus,      &cmd_engines,     &cmd_listen,
	&cmd_voices,   &cmd_ps,        &cmd_status,      &cmd_ledger,
	&cmd_report,   &cmd_breakeven, &cmd_size,        &cmd_calibrate,
	&cmd_logs,     &cmd_attach,    &cmd_resume,      &cmd_cancel,
	&cmd_reap,     &cmd_fetch,     &cmd_ssh,         &cmd_ssh_config,
	&cmd_schedule, &cmd_init,      &cmd_hook,        &cmd_volume,
	&cmd_image,    &cmd_cache,     &cmd_doctor,      &cmd_completion,
	&cmd_help,     &cmd_words,     &cmd_local_cloud, &cmd_keep,
	NULL,
};

/* ---- before the command line is read ---- */

/* Opens closed standard files: cron and daemons may start burst without them, and the ledger must
 * not become file 2. */
static void open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Undoes what the caller may have left: with SIGCHLD ignored the system drops the exit statuses of
 * our programs, and a blocked signal does not stop us. A hangup that nohup ignores stays ignored. A
 * peer that closes a connection is an error of the write, not a signal. */
static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

/* Finds this program's path for children that run burst (the local provider, a detached client).
 * name: argv[0]. */
static void find_self(const char *name)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0) {
		path[n] = '\0';
		child_set_self(path);
	} else if (realpath(name, path)) {
		child_set_self(path);
	}
}

/* Sets ctx->live and ctx->color. */
static void read_terminal(struct cmd_context *ctx)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");

	ctx->live = isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
	ctx->color = ctx->live && !(no_color && *no_color);
}

/* ---- the command line ---- */

/* Returns where the command's name stands; argc: nowhere. Flags before it belong to the command:
 * `burst -v run` is `burst run -v`. */
static int command_index(int argc, char **argv)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-')
		i++;
	return i;
}

static void move_command_to_front(char **argv, int index)
{
	char *name = argv[index];

	memmove(argv + 2, argv + 1, (size_t)(index - 1) * sizeof(*argv));
	argv[1] = name;
}

/* argv[0] is the command's name. Returns the exit status, or -1 with *err. */
static int parse_and_perform(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	bool help;
	const struct cmd *cmd = cmd_find(commands, argv[0], err);

	if (!cmd || cmd_parse(ctx, cmd, argc, argv, &help, err) < 0)
		return -1;
	output_setup(ctx);
	if (!help)
		return cmd_perform(ctx, err);
	help_one(stdout, cmd);
	return cmd_flush(err);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return !strcmp(word, a) || !strcmp(word, b);
}

/* Prints the version or the help, which need no command. Any other flag is ERR_USAGE. */
static int answer_without_command(int argc, char **argv, struct err *err)
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

/* Reads argv itself, since cmd_parse() may have failed before it set ctx->json. */
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

	open_standard_files();
	reset_signals();
	guard_begin();
	if (index >= argc || strcmp(argv[index], cmd_local_cloud.name))
		guard_close_memory();
	cmd_load_providers(index < argc ? argv[index] : "");
	secrets_hide(provider_registry);
	find_self(argv[0]);
	read_terminal(&ctx);
	output_setup(&ctx);
	int status;
	if (index >= argc || !strcmp(argv[index], "version")) {
		status = answer_without_command(argc, argv, &err);
	} else {
		move_command_to_front(argv, index);
		ctx.argv = argv;
		status = parse_and_perform(&ctx, argc - 1, argv + 1, &err);
	}
	if (status < 0)
		status = cmd_tell_failure(&ctx, &err, wants_json(argv));
	log_setup(LOG_ERROR, NULL, NULL);
	cmd_free_warnings();
	cmd_context_free(&ctx);
	return status;
}
