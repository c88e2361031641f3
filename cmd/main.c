/* main.c - starts burst: standard files, options, config, providers, the command, and the one error
 * at the end. */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/launch/check.h"
#include "cmd/launch/quick.h"
#include "cmd/show/output.h"
#include "config/secrets.h"
#include "net/child.h"

/* In the order of help. Adding a command is a file and a line here. */
static const struct cmd *const commands[] = {
	&cmd_run,    &cmd_submit,     &cmd_queue,       &cmd_plan,      &cmd_offers,
	&cmd_gpus,   &cmd_engines,    &cmd_ps,          &cmd_status,    &cmd_ledger,
	&cmd_report, &cmd_breakeven,  &cmd_size,        &cmd_calibrate, &cmd_logs,
	&cmd_attach, &cmd_resume,     &cmd_cancel,      &cmd_reap,      &cmd_fetch,
	&cmd_ssh,    &cmd_ssh_config, &cmd_schedule,    &cmd_init,      &cmd_hook,
	&cmd_volume, &cmd_image,      &cmd_cache,       &cmd_doctor,    &cmd_completion,
	&cmd_help,   &cmd_words,      &cmd_local_cloud, &cmd_keep,      NULL,
};

/* cron and daemons may start us with these closed; the ledger must not become file 2. */
static void open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Children that are "burst" again (the local provider, a detached client) are this very program. */
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

static void read_terminal_size(struct cmd_context *ctx)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");

	ctx->live = isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
	ctx->color = ctx->live && !(no_color && *no_color);
}

/* ---- what a command needs ---- */

static int open_state(struct cmd_context *ctx, struct err *err)
{
	mode_t before = umask(077);
	int result = 0;

	ctx->state_dir = config_state_dir(err);
	if (!ctx->state_dir)
		result = -1;
	if (result == 0 && (ctx->cmd->needs & NEED_LEDGER)) {
		CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ledger.db");
		result = store_open(&ctx->store, path, err);
		if (result < 0 && (ctx->cmd->needs & LEDGER_IF_ANY)) {
			ctx->no_ledger = *err;
			ctx->store = store_memory();
			result = 0;
		}
	}
	umask(before);
	cmd_open_runs(ctx);
	return result;
}

/* By the first argument, or by --config where a command has it. */
static const char *config_file(const struct cmd_context *ctx)
{
	const struct opt *o = ctx->cmd->opts;

	if ((ctx->cmd->needs & CONFIG_ARG) && ctx->arg_count)
		return ctx->args[0];
	for (size_t i = 0; o && o[i].name; i++)
		if (!strcmp(o[i].name, "config"))
			return ctx->values[i];
	return NULL;
}

static int open_config(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	struct config_source ask = {
		.file = config_file(ctx),
		.need_job = needs & NEED_JOB,
		.user_only = !(needs & (NEED_CONFIG | NEED_JOB)),
		.mistakes = needs & (NEED_CONFIG | NEED_JOB) ? &ctx->mistakes : NULL,
		.providers = provider_registry,
		.jobs = job_registry,
	};

	bool has_commit = ctx->cmd == &cmd_run || ctx->cmd == &cmd_plan;
	if (has_commit && quick_from_words(ctx, err) < 0)
		return -1;
	if (ctx->quick) {
		ask.file = ctx->quick->path;
		ask.text = ctx->quick->text;
	}
	if (cmd_open_config(ctx, &ask, has_commit ? opt_text(ctx, "commit") : NULL, err) < 0 ||
	    cmd_apply_flags(ctx, err) < 0)
		return -1;
	if (config_check(ctx->config, err) == 0)
		return 0;
	if (needs & CHECKS_ALL)
		check_rest(ctx);
	return -1;
}

/* ---- providers outside the tree ---- */

/* One that cannot be used stops nothing by itself: pods at other vendors must be given back all the
 * same. */
static struct str bad_providers;

static void load_providers(const char *command)
{
	if (strcmp(command, cmd_local_cloud.name) != 0)
		providers_load(getenv("BURST_PROVIDER_PATH"), &bad_providers);
}

static void tell_bad_providers(void)
{
	const char *at = str_text(&bad_providers), *line;
	size_t len;

	while ((line = str_next_line(&at, &len)))
		log_line(LOG_WARN, "BURST_PROVIDER_PATH: %.*s; continuing without it", (int)len,
			 line);
}

static int perform(struct cmd_context *ctx, struct err *err)
{
	unsigned needs = ctx->cmd->needs;
	bool configured = needs & (NEED_ACCOUNTS | NEED_CONFIG | NEED_JOB);

	if (configured)
		tell_bad_providers();
	if (configured && open_config(ctx, err) < 0)
		return -1;
	if ((needs & (NEED_STATE | NEED_LEDGER)) && open_state(ctx, err) < 0)
		return -1;
	return ctx->cmd->run(ctx, err);
}

/* ---- the command line ---- */

/* Flags before the command's name are flags of the command: `burst -v run` is `burst run -v`. */
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

/* Also when the command line itself was wrong. */
static bool wants_json(char **argv)
{
	for (; *argv && strcmp(*argv, "--"); argv++)
		if (!strcmp(*argv, "--json"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct cmd_context ctx = {.commands = commands};
	struct err err = {0};

	int index = command_index(argc, argv);

	open_standard_files();
	guard_begin(index >= argc || strcmp(argv[index], cmd_local_cloud.name));
	load_providers(index < argc ? argv[index] : "");
	secrets_hide(provider_registry);
	find_self(argv[0]);
	signal(SIGPIPE, SIG_IGN);
	read_terminal_size(&ctx);
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
	str_free(&bad_providers);
	cmd_context_free(&ctx);
	return status;
}
