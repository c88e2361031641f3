/* ssh.c - `burst ssh` opens a shell on a pod; `burst ssh-config` lets ssh and editors reach pods by
 * a host name. */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "runs/runs.h"

extern char **environ;

/* ---- forward ----
 * Reads the ports that `burst ssh -L` forwards. */

/* Most ports of one command. */
enum { FORWARDS_MAX = 16 };

struct forwards {
	char *spec[FORWARDS_MAX]; /* in the form of ssh's -L */
	int count;
};

static void forwards_free_cleanup(struct forwards *f)
{
	for (int i = 0; i < f->count; i++)
		free(f->spec[i]);
}

/* "8080", or "8080:9090" for another port on the pod, as ssh's -L wants it, between the loopback
 * addresses. NULL: invalid. The caller frees it. */
static char *forward_spec(const char *text, size_t length)
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

/* Reads "8080,9000:90"; NULL: none. ERR_USAGE names the word that is no port. */
static int forwards_parse(struct forwards *f, const char *text, struct err *err)
{
	while (text) {
		const char *comma = strchrnul(text, ',');
		size_t length = (size_t)(comma - text);

		if (f->count == FORWARDS_MAX)
			return err_set(err, ERR_USAGE, "ssh: -L forwards at most %d ports",
				       FORWARDS_MAX);
		if (!(f->spec[f->count] = forward_spec(text, length)))
			return err_set(err, ERR_USAGE,
				       "ssh: -L %.*s: give a port, as in -L 8080, two, as in -L "
				       "8080:80 (here, on the pod), or several with commas between",
				       (int)MIN(length, (size_t)40), text);
		f->count++;
		text = *comma ? comma + 1 : NULL;
	}
	return 0;
}

/* ---- ssh way ----
 * Finds the address and the keys with which ssh reaches a pod. */

/* Weak algorithms that ssh removes from its own lists, in the form of ssh_config(5). */
#define KEX_ALGORITHMS "-*-sha1"
#define CIPHERS        "-*-cbc"
#define MACS           "-*sha1*,*md5*,umac-64*"

/* The settings that keep ssh safe from a pod, whatever the user's own ssh config says of all hosts.
 * Only options that OpenSSH 7.8 (2018) knows: an older ssh would refuse the user's whole config.
 *
 * A pod is not trusted: it gets no agent, no display, no tunnel and no password, no program of this
 * machine is run for it, except the one through which its provider connects, and only the key that
 * burst made for it says who it is. ssh takes the first SetEnv alone, so ours keeps the user's
 * away. ProxyCommand and ProxyJump stay the user's, as does what ssh adds up and no earlier entry
 * can end: SendEnv, IdentityFile, CertificateFile, and forwardings (ClearAllForwardings would end
 * those of the command line too). */
static const char *const settings[] = {
	"IdentitiesOnly yes",
	"IdentityAgent none",
	"PreferredAuthentications publickey",
	"PasswordAuthentication no",
	"AddKeysToAgent no",
	"ForwardAgent no",
	"ForwardX11 no",
	"ForwardX11Trusted no",
	"SetEnv BURST_POD=1",
	"Tunnel no",
	"GatewayPorts no",
	"PermitLocalCommand no",
	"ControlMaster no",
	"ControlPath none",
	"StrictHostKeyChecking yes",
	"GlobalKnownHostsFile /dev/null",
	"UpdateHostKeys no",
	"VerifyHostKeyDNS no",
	"NoHostAuthenticationForLocalhost no",
	"CheckHostIP no",
	"CanonicalizeHostname no",
	"HostKeyAlgorithms ssh-ed25519",
	"KexAlgorithms " KEX_ALGORITHMS,
	"Ciphers " CIPHERS,
	"MACs " MACS,
};

struct ssh_way {
	struct pod_row pod; /* set by the caller before ssh_way_open() */
	char *dir;          /* folder of its run, with the two files */
	char *key, *known;
	char *proxy; /* "ProxyCommand ...", where a child process connects; NULL: host and port do
		      */
};

static void ssh_way_free_cleanup(struct ssh_way *w)
{
	free(w->dir);
	free(w->key);
	free(w->known);
	free(w->proxy);
}

/* ERR_USAGE: the pod has no address now. ERR_UNTRUSTED: ssh might misread the address. */
static int check_address(const struct pod_row *pod, struct err *err)
{
	const char *called = pod_row_called(pod);

	if (pod_row_over(pod))
		return err_set(err, ERR_USAGE, "pod %s is gone", called);
	if (!pod->reach)
		return err_set(err, ERR_USAGE,
			       "pod %s has no address yet (see `burst ps`): try again in a moment",
			       called);
	if (pod->reach == REACH_DIAL)
		return 0;
	const char *wrong = provider_bad_address(pod->host, pod->port, pod->user);
	if (wrong)
		return err_set(
			err, ERR_UNTRUSTED,
			"pod %s: not connected: in the provider's answer %s is not valid for ssh",
			called, wrong);
	return 0;
}

/* For ssh_config(5), where "%" begins a token and stands doubled. */
static void append_without_tokens(struct str *to, const char *text)
{
	for (; *text; text++)
		str_addf(to, *text == '%' ? "%%%c" : "%c", *text);
}

/* A line of ssh_config(5) that runs the child by the user's shell. NULL: one of its arguments has a
 * line break. */
static char *proxy_setting(const struct call *dial)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	struct str proxy = STR_INIT;

	for (size_t i = 0; i < dial->argc; i++) {
		str_add(&line, i ? " " : "");
		str_add_shell(&line, dial->argv[i]);
	}
	if (strpbrk(str_text(&line), "\r\n"))
		return NULL;
	str_add(&proxy, "ProxyCommand ");
	append_without_tokens(&proxy, str_text(&line));
	return str_detach(&proxy);
}

/* Asks the pod's provider for the child process that connects to it. */
static int ask_provider_for_way(struct cmd_context *ctx, struct ssh_way *w, struct err *err)
{
	struct pod_view view = {.reach = REACH_DIAL, .port = w->pod.port};
	struct call dial = {.kind = CALL_CHILD};
	struct engine_provider account = {0};

	COPY_TEXT(view.id, w->pod.id);
	COPY_TEXT(view.host, w->pod.host);
	COPY_TEXT(view.user, w->pod.user);
	if (ctx->runs.open_account(ctx, w->pod.provider, &account, err) < 0)
		return -1;
	int asked = provider_dial(account.ops, account.handle, &view, &dial, err);
	if (asked == 0 && !(w->proxy = proxy_setting(&dial)))
		asked = err_set(err, ERR_CONFIG,
				"pod %s: ssh cannot use %s, which connects to it: one of its "
				"arguments has a line break",
				pod_row_called(&w->pod), dial.argv[0]);
	call_free(&dial);
	account.ops->close(account.handle);
	/* ssh uses it as a name alone */
	snprintf(w->pod.host, sizeof(w->pod.host), "burst-%s", w->pod.attempt);
	w->pod.port = 22;
	return asked;
}

/* Sets the paths of *w, and writes its known-hosts file with the host key that burst made, so that
 * ssh neither prompts nor trusts an unknown host. */
static int ssh_way_open(struct cmd_context *ctx, struct ssh_way *w, struct err *err)
{
	const struct pod_row *pod = &w->pod;
	CLEANUP(str_free) struct str line = STR_INIT;

	if (check_address(pod, err) < 0 ||
	    (pod->reach == REACH_DIAL && ask_provider_for_way(ctx, w, err) < 0))
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

/* The user to log in as. */
static const char *ssh_way_user(const struct pod_row *pod)
{
	return pod->user[0] ? pod->user : "root";
}

/* ---- burst ssh ---- */

/* The arguments for ssh(1), NULL-terminated. The caller frees the array; its texts are borrowed. */
static const char **ssh_arguments(const struct cmd_context *ctx, const struct ssh_way *w,
				  const char *port, const char *alias, const char *file,
				  const struct forwards *forwards)
{
	/* clang-format off */
	const char *fixed[] = {"ssh", "-F", "none", "-p", port, "-l", ssh_way_user(&w->pod),
			       "-i", path_base(w->key), "-o", "LogLevel=ERROR",
			       "-o", "ExitOnForwardFailure=yes", "-o", alias, "-o", file};
	/* clang-format on */
	size_t n = ARRAY_LEN(fixed);
	const char **argv = xcalloc(n + 2 * (ARRAY_LEN(settings) + FORWARDS_MAX + 1) +
					    (size_t)ctx->arg_count + 3,
				    sizeof(*argv));

	memcpy(argv, fixed, sizeof(fixed));
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		argv[n++] = "-o";
		argv[n++] = settings[i];
	}
	if (w->proxy) {
		argv[n++] = "-o";
		argv[n++] = w->proxy;
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

static int run_ssh(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(ssh_way_free) struct ssh_way w = {.dir = NULL};
	CLEANUP(forwards_free) struct forwards forwards = {.count = 0};

	if (forwards_parse(&forwards, opt_text(ctx, "forward"), err) < 0)
		return -1;
	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || ssh_way_open(ctx, &w, err) < 0)
		return -1;
	CLEANUP(free_text) char *port = xasprintf("%d", w.pod.port);
	CLEANUP(free_text) char *alias = xasprintf("HostKeyAlias=burst-%s", w.pod.attempt);
	/* use plain file names in that folder: in an option's value ssh splits at blanks and
	 * replaces "%h" and "${HOME}" */
	CLEANUP(free_text) char *file = xasprintf("UserKnownHostsFile=%s", path_base(w.known));
	if (chdir(w.dir) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", w.dir, strerror(errno));
	const char **argv = ssh_arguments(ctx, &w, port, alias, file, &forwards);
	environ = guard_environ();
	signal(SIGPIPE, SIG_DFL);
	guard_close_at_exec();
	guard_restore_limits();
	execvp("ssh", (char **)argv);
	err_set(err, ERR_LOCAL, "ssh: %s (install openssh-client)", strerror(errno));
	free(argv);
	return -1;
}

static const struct opt opts[] = {
	{'L', "forward", "PORT[:PORT],...",
	 "forward a port of this machine to a port of the pod (the second, or the same); several "
	 "with commas between"},
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
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_ssh,
};

/* ---- burst ssh-config ----
 * Writes the entries by which ssh and editors find pods. */

static void append_quoted_path(struct str *to, const char *key, const char *path)
{
	str_addf(to, "    %s \"", key);
	append_without_tokens(to, path);
	str_add(to, "\"\n");
}

static void append_host_entry(struct str *to, const struct ssh_way *w)
{
	str_addf(to, "Host burst-%s\n    HostName %s\n    Port %d\n    User %s\n",
		 pod_row_called(&w->pod), w->pod.host, w->pod.port, ssh_way_user(&w->pod));
	append_quoted_path(to, "IdentityFile", w->key);
	append_quoted_path(to, "UserKnownHostsFile", w->known);
	str_addf(to, "    HostKeyAlias burst-%s\n", w->pod.attempt);
	if (w->proxy)
		str_addf(to, "    %s\n", w->proxy);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		str_addf(to, "    %s\n", settings[i]);
}

/* Writes an entry for each pod that can be reached now. The new file replaces the old one, with its
 * stale entries. */
static int host_entries_write(struct cmd_context *ctx, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	str_add(&text, "# written by `burst ssh-config`: the pods that can be reached\n"
		       "# ssh adds the SendEnv, IdentityFile, CertificateFile and forwards of your "
		       "other entries for all hosts; `burst ssh` uses none of them\n");
	for (size_t i = 0; i < count; i++) {
		CLEANUP(ssh_way_free) struct ssh_way w = {.pod = pods[i]};
		struct err why = {0};
		if (ssh_way_open(ctx, &w, &why) == 0)
			append_host_entry(&text, &w);
	}
	free(pods);
	return path_write(path, str_text(&text), text.len, 0600, err);
}

/* Replaces the file's whole contents, synced. On failure errno is set, and old and new may mix. */
static bool overwrite_file(int fd, const void *bytes, size_t len)
{
	return lseek(fd, 0, SEEK_SET) == 0 && fd_write_all(fd, bytes, len) == 0 &&
	       ftruncate(fd, (off_t)len) == 0 && (fsync(fd) == 0 || errno == EINVAL);
}

/* Replaces the text of the user's own file in place: its mode, owner, links and other rights stay
 * as they are. The new text first goes to "PATH.burst-new", which is left if this process dies in
 * between. */
static int rewrite_in_place(const char *path, const void *bytes, size_t len, struct err *err)
{
	CLEANUP(free_text) char *beside = xasprintf("%s.burst-new", path);
	CLEANUP(str_free) struct str before = STR_INIT;
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return path_write(path, bytes, len, 0600, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_LOCAL, "%s: is not a regular file", path);
	if (fd_read_all(fd, path, SIZE_MAX, &before, err) < 0 ||
	    path_write(beside, bytes, len, 0600, err) < 0)
		return -1;
	bool written = overwrite_file(fd, bytes, len);
	if (!written) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		overwrite_file(fd, str_text(&before), before.len);
	}
	unlink(beside);
	return written ? 0 : -1;
}

/* Asks, then adds an Include of path at the top of the user's ssh config, where it applies to all
 * hosts, unless it is there. ERR_USAGE: the user declines. */
static int host_entries_include(struct cmd_context *ctx, const char *path, struct err *err)
{
	const char *home = getenv("HOME");
	CLEANUP(free_text) char *line = xasprintf("Include \"%s\"\n", path);
	CLEANUP(free_text) char *dir = xasprintf("%s/.ssh", home ? home : "");
	CLEANUP(free_text) char *named = path_join(dir, "config");
	/* the config may be a link into a folder of dotfiles */
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
		       : rewrite_in_place(file, str_text(&text), text.len, err);
}

static int run_ssh_config(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ssh_config");
	CLEANUP(ssh_way_free) struct ssh_way w = {.dir = NULL};

	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || ssh_way_open(ctx, &w, err) < 0)
		return -1;
	if (host_entries_write(ctx, path, err) < 0 || host_entries_include(ctx, path, err) < 0)
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
		   "state folder, adds a line to ~/.ssh/config that includes it, where there is "
		   "none yet (it asks; -y adds it), and prints the host's name: `ssh burst-POD`, "
		   "and the same name in an editor that works over ssh.",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_ssh_config,
};
