/* way.c - how ssh reaches a pod: its address and keys, the ports that it forwards, the entries by
 * which ssh and editors find it */
#include "way.h"

#include <stdio.h>
#include <sys/stat.h>
#include <stdlib.h>

#include "base/path.h"
#include "cmd/cmd.h"
#include "runs/runs.h"

/* ---- forward ----
 * Reads the ports that `burst ssh -L` forwards. */

void forwards_free(struct forwards *f)
{
	for (int i = 0; i < f->count; i++)
		free(f->spec[i]);
}

/* "8080", or "8080:9090" for another port there: forwards to the pod's loopback. NULL: invalid. */
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

int forwards_read(struct forwards *f, const char *text, struct err *err)
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

/* ---- way ----
 * Finds the address and the keys with which ssh reaches a pod. */

/* A pod is not trusted: it gets no agent, no display, no tunnel and no password, no program of this
 * machine is run for it, and only the key that burst made for it says who it is. ssh takes the
 * first SetEnv alone, so ours keeps the user's away. ProxyCommand and ProxyJump stay the user's, as
 * does what ssh adds up and no earlier entry can end: SendEnv, IdentityFile, CertificateFile, and
 * forwardings (ClearAllForwardings would end those of the command line too). */
const struct ssh_setting way_settings[] = {
	{"IdentitiesOnly", "yes"},
	{"IdentityAgent", "none"},
	{"PreferredAuthentications", "publickey"},
	{"PasswordAuthentication", "no"},
	{"AddKeysToAgent", "no"},
	{"ForwardAgent", "no"},
	{"ForwardX11", "no"},
	{"ForwardX11Trusted", "no"},
	{"SetEnv", "BURST_POD=1"},
	{"Tunnel", "no"},
	{"GatewayPorts", "no"},
	{"PermitLocalCommand", "no"},
	{"ControlMaster", "no"},
	{"ControlPath", "none"},
	{"StrictHostKeyChecking", "yes"},
	{"GlobalKnownHostsFile", "/dev/null"},
	{"UpdateHostKeys", "no"},
	{"VerifyHostKeyDNS", "no"},
	{"NoHostAuthenticationForLocalhost", "no"},
	{"CheckHostIP", "no"},
	{"CanonicalizeHostname", "no"},
	{"HostKeyAlgorithms", "ssh-ed25519"},
	{"KexAlgorithms", KEX_ALGORITHMS},
	{"Ciphers", CIPHERS},
	{"MACs", MACS},
	{0},
};

void way_free(struct way *w)
{
	free(w->dir);
	free(w->key);
	free(w->known);
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

int way_open(struct cmd_context *ctx, struct way *w, struct err *err)
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

const char *way_user(const struct pod_row *pod)
{
	return pod->user[0] ? pod->user : "root";
}

/* ---- host entry ----
 * Writes the entries by which ssh and editors find pods. */

/* Quotes for ssh_config(5), where "%" begins a token. */
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
		 pod_row_called(&w->pod), w->pod.host, w->pod.port, way_user(&w->pod));
	add_path(to, "IdentityFile", w->key);
	add_path(to, "UserKnownHostsFile", w->known);
	str_addf(to, "    HostKeyAlias burst-%s\n", w->pod.attempt);
	for (const struct ssh_setting *s = way_settings; s->key; s++)
		str_addf(to, "    %s %s\n", s->key, s->value);
}

int host_entries_write(struct cmd_context *ctx, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	str_add(&text,
		"# written by `burst ssh-config`: the pods that can be reached\n"
		"# ssh adds the SendEnv, IdentityFile, CertificateFile and forwards of your other "
		"entries for all hosts; `burst ssh` uses none of them\n");
	for (size_t i = 0; i < count; i++) {
		CLEANUP(way_free) struct way w = {.pod = pods[i]};
		struct err why = {0};
		if (way_open(ctx, &w, &why) == 0)
			add_entry(&text, &w);
	}
	free(pods);
	return path_write(path, str_text(&text), text.len, 0600, err);
}

int host_entries_include(struct cmd_context *ctx, const char *path, struct err *err)
{
	const char *home = getenv("HOME");
	CLEANUP(free_text) char *line = xasprintf("Include \"%s\"\n", path);
	CLEANUP(free_text) char *dir = xasprintf("%s/.ssh", home ? home : "");
	CLEANUP(free_text) char *named = path_join(dir, "config");
	/* it may be a link into a folder of dotfiles */
	CLEANUP(free_text) char *real = realpath(named, NULL);
	const char *file = real ? real : named;
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;

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
	mode_t mode = stat(file, &st) == 0 ? st.st_mode & 0777 : 0600;
	return path_mkdirs(dir, 0700, err) < 0
		       ? -1
		       : path_write(file, str_text(&text), text.len, mode, err);
}
