/* ssh_keys.c - the two SSH keys of each attempt: the client's, and the pod's host key. They lie in
 * the run's folder (0600) so that a later client can connect, until the pod is gone. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "impl.h"

void keys_free(struct ssh_keys *k)
{
	ssh_key_free(&k->client);
	ssh_key_free(&k->host);
	free(k->host_public);
}

void keys_forget_host(struct engine *e, int pod)
{
	ssh_key_free(&e->pods[pod].keys.host);
}

/* what: "key", the client's, or "host". The caller frees it. */
static char *key_path(const struct engine *e, int pod, const char *what)
{
	return xasprintf("%s/%s.%s", e->setup->run_dir, core_pod_at(e->core, pod)->rental.attempt,
			 what);
}

int keys_make(struct engine *e, int pod, struct err *err)
{
	struct ssh_keys *k = &e->pods[pod].keys;
	CLEANUP(free_text) char *client = key_path(e, pod, "key");
	CLEANUP(free_text) char *host = key_path(e, pod, "host");

	if (k->host.private_pem) /* a create that is sent again: its first copy may have made the
				    pod */
		return 0;
	ssh_key_make(&k->client, "burst");
	ssh_key_make(&k->host, "burst-pod");
	free(k->host_public);
	k->host_public = xstrdup(k->host.public_line);
	if (path_write(client, k->client.private_pem, strlen(k->client.private_pem), 0600, err) <
		    0 ||
	    path_write(host, k->host_public, strlen(k->host_public), 0600, err) < 0)
		return -1;
	return 0;
}

int keys_load(struct engine *e, int pod, struct err *err)
{
	struct ssh_keys *k = &e->pods[pod].keys;
	CLEANUP(free_text) char *client = key_path(e, pod, "key");
	CLEANUP(free_text) char *host = key_path(e, pod, "host");
	struct str pem = STR_INIT, line = STR_INIT;

	if (k->client.private_pem && k->host_public)
		return 0;
	if (path_read(client, 65536, &pem, err) < 0 || path_read(host, 65536, &line, err) < 0) {
		str_free(&pem);
		str_free(&line);
		return -1;
	}
	free(k->client.private_pem);
	free(k->host_public);
	k->client.private_pem = str_detach(&pem);
	k->host_public = str_detach(&line);
	return 0;
}

/* By the start of the name, to remove the temporary file of a client that died, too. */
void engine_drop_keys(const char *dir, const char *attempt)
{
	size_t len = strlen(attempt);
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (!strncmp(entry->d_name, attempt, len) && entry->d_name[len] == '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
}

void keys_drop(struct engine *e, int pod)
{
	struct ssh_keys *k = &e->pods[pod].keys;

	if (k->dropped)
		return;
	k->dropped = true;
	engine_drop_keys(e->setup->run_dir, core_pod_at(e->core, pod)->rental.attempt);
	ssh_key_free(&k->client);
	ssh_key_free(&k->host);
}
