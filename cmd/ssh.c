/* ssh.c - `burst ssh`: opens a shell on a pod of a run. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/path.h"
#include "cmd.h"
#include "runs/runs.h"
#include "cmd/show/output.h"
#include "cmd/launch/find_run.h"

extern char **environ;

/* ---- the way to a pod ---- */

struct way {
	struct pod_row pod;
	char *dir; /* of its run, with the two files */
	char *key, *known;
};

static void way_free(struct way *w)
{
	free(w->dir);
	free(w->key);
	free(w->known);
}

static inline void way_free_cleanup(struct way *w)
{
	way_free(w);
}

static int check_address(const struct pod_row *pod, struct err *err)
{
	const char *called = pod_row_called(pod);

	if (pod_row_over(pod))
		return err_set(err, ERR_USAGE, "pod %s is gone", called);
	if (!pod->port)
		return err_set(err, ERR_USAGE,
			       "pod %s has no address yet (see `burst ps`): try again in a moment",
			       called);
	const char *wrong = provider_bad_address(pod->host, pod->port, pod->user);
	if (wrong)
		return err_set(
			err, ERR_UNTRUSTED,
			"pod %s: not connected: in the provider's answer %s is not valid for ssh",
			called, wrong);
	return 0;
}

/* With the key and the host key that we made there is nothing to type, and nothing to trust at
 * first sight. */
static int open_way(struct cmd_context *ctx, struct way *w, struct err *err)
{
	const struct pod_row *pod = &w->pod;
	CLEANUP(str_free) struct str line = STR_INIT;

	if (check_address(pod, err) < 0)
		return -1;
	w->dir = run_path(&ctx->runs, pod->run, NULL);
	w->key = xasprintf("%s/%s.key", w->dir, pod->attempt);
	w->known = xasprintf("%s/%s.known", w->dir, pod->attempt);
	CLEANUP(free_text) char *host = xasprintf("%s/%s.host", w->dir, pod->attempt);
	str_addf(&line, "burst-%s ", pod->attempt);
	if (path_read(host, 4096, &line, err) < 0 || !path_exists(w->key))
		return err_set(err, ERR_USAGE, "pod %s: its keys are not on this machine",
			       pod_row_called(pod));
	str_addc(&line, '\n');
	return path_write(w->known, line.s, line.len, 0600, err);
}

static const char *user_of(const struct pod_row *pod)
{
	return pod->user[0] ? pod->user : "root";
}

#define KEX_ALGORITHMS "-*-sha1"
#define CIPHERS        "-*-cbc"
#define MACS           "-*sha1*,*md5*,umac-64*"

/* ---- burst ssh ---- */

/* The most ports that one command forwards. */
enum { FORWARDS_MAX = 16 };

struct forwards {
	char *spec[FORWARDS_MAX]; /* as ssh's -L takes it */
	int count;
};

static void forwards_free(struct forwards *f)
{
	for (int i = 0; i < f->count; i++)
		free(f->spec[i]);
}

static inline void forwards_free_cleanup(struct forwards *f)
{
	forwards_free(f);
}

/* "8080", or "8080:9090" for another port there: to a service of the pod's that listens on itself.
 * NULL: it is neither. */
static char *forward_of(const char *text, size_t length)
{
	CLEANUP(free_text) char *word = xasprintf("%.*s", (int)length, text);
	unsigned here = 0, there = 0;
	int end = 0;

	if (sscanf(word, "%5u%n", &here, &end) == 1 && !word[end])
		there = here;
	else if (sscanf(word, "%5u:%5u%n", &here, &there, &end) != 2 || word[end])
		here = 0;
	if (!here || !there || here > 65535 || there > 65535)
		return NULL;
	return xasprintf("127.0.0.1:%u:127.0.0.1:%u", here, there);
}

/* "8080,9000:90": with commas between. ERR_USAGE names the word that is no port. */
static int read_forwards(struct forwards *f, const char *text, struct err *err)
{
	while (text) {
		const char *comma = strchrnul(text, ',');
		size_t length = (size_t)(comma - text);

		if (f->count == FORWARDS_MAX)
			return err_set(err, ERR_USAGE, "ssh: -L forwards at most %d ports",
				       FORWARDS_MAX);
		if (!(f->spec[f->count] = forward_of(text, length)))
			return err_set(err, ERR_USAGE,
				       "ssh: -L %.*s: give a port, as in -L 8080, two, as in -L "
				       "8080:80 (here, on the pod), or several with commas between",
				       (int)MIN(length, (size_t)40), text);
		f->count++;
		text = *comma ? comma + 1 : NULL;
	}
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(way_free) struct way w = {.dir = NULL};
	CLEANUP(forwards_free) struct forwards forwards = {.count = 0};

	if (read_forwards(&forwards, opt_text(ctx, "forward"), err) < 0)
		return -1;
	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || open_way(ctx, &w, err) < 0)
		return -1;
	CLEANUP(free_text) char *port = xasprintf("%d", w.pod.port);
	CLEANUP(free_text) char *alias = xasprintf("HostKeyAlias=burst-%s", w.pod.attempt);
	/* in that folder its files have plain names: ssh splits an option's value at blanks and
	 * replaces "%h" and "${HOME}" in it */
	CLEANUP(free_text) char *file = xasprintf("UserKnownHostsFile=%s", path_base(w.known));
	const char *fixed[] = {"ssh",
			       "-F",
			       "none",
			       "-p",
			       port,
			       "-l",
			       user_of(&w.pod),
			       "-i",
			       path_base(w.key),
			       "-o",
			       "IdentitiesOnly=yes",
			       "-o",
			       "StrictHostKeyChecking=yes",
			       "-o",
			       "HostKeyAlgorithms=ssh-ed25519",
			       "-o",
			       "KexAlgorithms=" KEX_ALGORITHMS,
			       "-o",
			       "Ciphers=" CIPHERS,
			       "-o",
			       "MACs=" MACS,
			       "-o",
			       "LogLevel=ERROR",
			       "-o",
			       "ExitOnForwardFailure=yes",
			       "-o",
			       alias,
			       "-o",
			       file};
	const char **argv = xcalloc(
		ARRAY_LEN(fixed) + (size_t)ctx->arg_count + 3 + 2 * FORWARDS_MAX, sizeof(*argv));
	size_t n = ARRAY_LEN(fixed);
	memcpy(argv, fixed, sizeof(fixed));
	for (int i = 0; i < forwards.count; i++) {
		argv[n++] = "-L";
		argv[n++] = forwards.spec[i];
	}
	argv[n++] = "--";
	argv[n++] = w.pod.host;
	for (int i = 1; i < ctx->arg_count; i++)
		argv[n++] = ctx->args[i];
	if (chdir(w.dir) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", w.dir, strerror(errno));
	environ = guard_environ();
	signal(SIGPIPE, SIG_DFL);
	guard_close_at_exec();
	guard_leave();
	execvp("ssh", (char **)argv);
	err_set(err, ERR_LOCAL, "ssh: %s (install openssh-client)", strerror(errno));
	free(argv);
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

/* ---- burst ssh-config ---- */

/* In quotes, as ssh_config(5) has them; "%" begins a token there. */
static void add_path(struct str *to, const char *key, const char *path)
{
	str_addf(to, "    %s \"", key);
	for (; *path; path++)
		str_addf(to, *path == '%' ? "%%%c" : "%c", *path);
	str_add(to, "\"\n");
}

static void add_entry(struct str *to, const struct way *w)
{
	str_addf(to, "Host burst-%s\n    HostName %s\n    Port %d\n    User %s\n",
		 pod_row_called(&w->pod), w->pod.host, w->pod.port, user_of(&w->pod));
	add_path(to, "IdentityFile", w->key);
	add_path(to, "UserKnownHostsFile", w->known);
	str_addf(to,
		 "    HostKeyAlias burst-%s\n    IdentitiesOnly yes\n    StrictHostKeyChecking "
		 "yes\n    HostKeyAlgorithms ssh-ed25519\n"
		 "    KexAlgorithms " KEX_ALGORITHMS "\n    Ciphers " CIPHERS "\n    MACs " MACS
		 "\n",
		 w->pod.attempt);
}

/* Of every pod that can be reached now: entries of those that are gone go with the old file. */
static int write_entries(struct cmd_context *ctx, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	str_add(&text, "# written by `burst ssh-config`: the pods that can be reached\n");
	for (size_t i = 0; i < count; i++) {
		CLEANUP(way_free) struct way w = {.pod = pods[i]};
		struct err why = {0};
		if (open_way(ctx, &w, &why) == 0)
			add_entry(&text, &w);
	}
	free(pods);
	return path_write(path, str_text(&text), text.len, 0600, err);
}

/* The user's own file of ssh takes ours in by one line at its top: below a Host it would be that
 * host's alone. */
static int include(struct cmd_context *ctx, const char *path, struct err *err)
{
	const char *home = getenv("HOME");
	CLEANUP(free_text) char *line = xasprintf("Include \"%s\"\n", path);
	CLEANUP(free_text) char *dir = xasprintf("%s/.ssh", home ? home : "");
	CLEANUP(free_text) char *named = path_join(dir, "config");
	/* it may be a link to a folder of dotfiles */
	CLEANUP(free_text) char *real = realpath(named, NULL);
	const char *file = real ? real : named;
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, line);
	if (!home || !*home)
		return err_set(err, ERR_LOCAL,
			       "HOME is not set: put this line into your ssh config: %s", line);
	if (path_exists(file) && path_read(file, 1 << 20, &text, err) < 0)
		return -1;
	if (strstr(str_text(&text) + strlen(line), line))
		return 0;
	if (!cmd_confirm(ctx, "Add a line to %s, so that ssh and editors find the pod?", file))
		return err_set(err, ERR_USAGE,
			       "%s was not changed: -y adds this line at its top: Include \"%s\"",
			       file, path);
	return path_mkdirs(dir, 0700, err) < 0
		       ? -1
		       : path_write(file, str_text(&text), text.len, 0600, err);
}

static int run_config(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ssh_config");
	CLEANUP(way_free) struct way w = {.dir = NULL};

	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || open_way(ctx, &w, err) < 0)
		return -1;
	if (write_entries(ctx, path, err) < 0 || include(ctx, path, err) < 0)
		return -1;
	output_line(stdout, "burst-%s", pod_row_called(&w.pod));
	return cmd_flush(err);
}

const struct cmd cmd_ssh_config = {
	.name = "ssh-config",
	.args = "POD",
	.min_args = 1,
	.max_args = 1,
	.summary = "let ssh and editors reach a pod by a host name",
	.details = "Writes an entry for each pod that can be reached into ssh_config in burst's "
		   "state folder, adds a line to ~/.ssh/config "
		   "that includes it, where there is none yet (it asks; -y adds it), and prints "
		   "the host's name: `ssh burst-POD`, and the same "
		   "name in an editor that works over ssh.",
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run_config,
};
