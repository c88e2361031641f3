/* ssh.c - `burst ssh`: opens a shell on a pod of a run. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/path.h"
#include "cmd.h"
#include "names.h"
#include "runs.h"

extern char **environ;

/* OpenSSH's own client, with the key and the host key that we made: nothing to type, nothing to
 * trust at first sight. */
static int run(struct cmd_context *ctx, struct err *err)
{
	struct pod_row pod;

	if (named_pod(ctx->store, ctx->args[0], &pod, err) < 0)
		return -1;
	const char *called = pod_row_called(&pod);
	if (pod_row_over(&pod))
		return err_set(err, ERR_USAGE, "pod %s is gone", called);
	if (!pod.port)
		return err_set(err, ERR_USAGE,
			       "pod %s has no address yet (see `burst ps`): try again in a moment",
			       called);
	const char *wrong = provider_bad_address(pod.host, pod.port, pod.user);
	if (wrong)
		return err_set(
			err, ERR_UNTRUSTED,
			"pod %s: not connected: in the provider's answer %s is not valid for ssh",
			called, wrong);
	CLEANUP(free_text) char *dir = run_path(ctx, pod.run, NULL);
	CLEANUP(free_text) char *key = xasprintf("%s/%s.key", dir, pod.attempt);
	CLEANUP(free_text) char *host = xasprintf("%s/%s.host", dir, pod.attempt);
	CLEANUP(free_text) char *known = xasprintf("%s/%s.known", dir, pod.attempt);
	CLEANUP(str_free) struct str line = STR_INIT;

	str_addf(&line, "burst-%s ", pod.attempt);
	if (path_read(host, 4096, &line, err) < 0 || !path_exists(key))
		return err_set(err, ERR_USAGE, "pod %s: its keys are not on this machine", called);
	str_addc(&line, '\n');
	if (path_write(known, line.s, line.len, 0600, err) < 0)
		return -1;
	CLEANUP(free_text) char *port = xasprintf("%d", pod.port);
	CLEANUP(free_text) char *alias = xasprintf("HostKeyAlias=burst-%s", pod.attempt);
	/* in that folder its files have plain names: ssh splits an option's value at blanks and
	 * replaces "%h" and "${HOME}" in it */
	CLEANUP(free_text) char *file = xasprintf("UserKnownHostsFile=%s", path_base(known));
	const char *fixed[] = {"ssh",
			       "-F",
			       "none",
			       "-p",
			       port,
			       "-l",
			       pod.user[0] ? pod.user : "root",
			       "-i",
			       path_base(key),
			       "-o",
			       "IdentitiesOnly=yes",
			       "-o",
			       "StrictHostKeyChecking=yes",
			       "-o",
			       "HostKeyAlgorithms=ssh-ed25519",
			       "-o",
			       "KexAlgorithms=-*-sha1",
			       "-o",
			       "Ciphers=-*-cbc",
			       "-o",
			       "MACs=-*sha1*,*md5*,umac-64*",
			       "-o",
			       "LogLevel=ERROR",
			       "-o",
			       alias,
			       "-o",
			       file,
			       "--",
			       pod.host};
	const char **argv = xcalloc(ARRAY_LEN(fixed) + (size_t)ctx->arg_count + 1, sizeof(*argv));
	memcpy(argv, fixed, sizeof(fixed));
	for (int i = 1; i < ctx->arg_count; i++)
		argv[ARRAY_LEN(fixed) + (size_t)i - 1] = ctx->args[i];
	if (chdir(dir) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	environ = guard_environ();
	signal(SIGPIPE, SIG_DFL);
	guard_close_at_exec();
	guard_leave();
	execvp("ssh", (char **)argv);
	err_set(err, ERR_LOCAL, "ssh: %s (install openssh-client)", strerror(errno));
	free(argv);
	return -1;
}

const struct cmd cmd_ssh = {
	.name = "ssh",
	.args = "POD [COMMAND...]",
	.min_args = 1,
	.max_args = -1,
	.passes_on = true,
	.summary = "open a shell on a pod, or run a command there",
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
