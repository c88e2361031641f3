/* ssh.c - `burst ssh`: opens a shell on a pod of a run. */
#include "cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/path.h"
#include "cmd/ssh/way.h"
#include "runs/runs.h"

extern char **environ;

/* way_settings as the values of -o. */
struct settings {
	char **list;
	size_t count, cap;
};

static struct settings settings_make(void)
{
	struct settings made = {0};

	for (const struct ssh_setting *s = way_settings; s->key; s++) {
		GROW(made.list, made.count, made.cap);
		made.list[made.count++] = xasprintf("%s=%s", s->key, s->value);
	}
	return made;
}

static void settings_free(struct settings *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->list[i]);
	free(s->list);
}

/* The arguments for ssh(1). They point into w, alias, file, the settings and the forwards. The
 * caller frees the array. */
static const char **ssh_arguments(const struct cmd_context *ctx, const struct way *w,
				  const char *port, const char *alias, const char *file,
				  const struct settings *settings, const struct forwards *forwards)
{
	const char *fixed[] = {"ssh",
			       "-F",
			       "none",
			       "-p",
			       port,
			       "-l",
			       way_user(&w->pod),
			       "-i",
			       path_base(w->key),
			       "-o",
			       "LogLevel=ERROR",
			       "-o",
			       "ExitOnForwardFailure=yes",
			       "-o",
			       alias,
			       "-o",
			       file};
	const char **argv = xcalloc(ARRAY_LEN(fixed) + (size_t)ctx->arg_count + 3 +
					    2 * FORWARDS_MAX + 2 * settings->count,
				    sizeof(*argv));
	size_t n = ARRAY_LEN(fixed);
	memcpy(argv, fixed, sizeof(fixed));
	for (size_t i = 0; i < settings->count; i++) {
		argv[n++] = "-o";
		argv[n++] = settings->list[i];
	}
	for (int i = 0; i < forwards->count; i++) {
		argv[n++] = "-L";
		argv[n++] = forwards->spec[i];
	}
	argv[n++] = "--";
	argv[n++] = w->pod.host;
	for (int i = 1; i < ctx->arg_count; i++)
		argv[n++] = ctx->args[i];
	return argv;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(way_free) struct way w = {.dir = NULL};
	CLEANUP(forwards_free) struct forwards forwards = {.count = 0};

	if (forwards_read(&forwards, opt_text(ctx, "forward"), err) < 0)
		return -1;
	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || way_open(ctx, &w, err) < 0)
		return -1;
	CLEANUP(free_text) char *port = xasprintf("%d", w.pod.port);
	CLEANUP(free_text) char *alias = xasprintf("HostKeyAlias=burst-%s", w.pod.attempt);
	/* use plain file names in that folder: in an option's value ssh splits at blanks and
	 * replaces "%h" and "${HOME}" */
	CLEANUP(free_text) char *file = xasprintf("UserKnownHostsFile=%s", path_base(w.known));
	if (chdir(w.dir) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", w.dir, strerror(errno));
	struct settings settings = settings_make();
	const char **argv = ssh_arguments(ctx, &w, port, alias, file, &settings, &forwards);
	environ = guard_environ();
	signal(SIGPIPE, SIG_DFL);
	guard_close_at_exec();
	guard_leave();
	execvp("ssh", (char **)argv);
	err_set(err, ERR_LOCAL, "ssh: %s (install openssh-client)", strerror(errno));
	free(argv);
	settings_free(&settings);
	return -1;
}

static const struct opt opts[] = {
	{'L', "forward", "PORT[:PORT],...",
	 "forward a port of this machine to a port of the pod (the second, or the same); several "
	 "with commas between",
	 NULL, false},
	{0},
};

const struct cmd cmd_ssh = {
	.name = "ssh",
	.args = "POD [COMMAND...]",
	.min_args = 1,
	.max_args = -1,
	.passes_on = true,
	.summary = "open a shell on a pod, or run a command there",
	.details = "Flags stand before POD; what follows POD is the command. A run with one pod "
		   "may stand for it.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
