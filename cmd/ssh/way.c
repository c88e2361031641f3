/* way.c - finds the address and the keys with which ssh reaches a pod. */
#include "way.h"

#include <stdlib.h>

#include "base/path.h"
#include "cmd/cmd.h"
#include "runs/runs.h"

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
