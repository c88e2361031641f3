/* ssh_keys.c - the two SSH keys of each attempt: ours to log in with, and the pod's own to be known
 * by. They live in the run's folder (0600) so that another life of the run can come back, and are
 * removed when the pod is gone or never was. */
#include "ssh_keys.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "impl.h"

static char *key_path(const struct engine *e, int pod, const char *what)
{
	return xasprintf("%s/%s.%s", e->setup->run_dir, core_pod_at(e->core, pod)->rental.attempt,
			 what);
}

int keys_make(struct engine *e, int pod, struct err *err)
{
	struct epod *p = &e->pods[pod];
	CLEANUP(free_text) char *client = key_path(e, pod, "key");
	CLEANUP(free_text) char *host = key_path(e, pod, "host");

	ssh_key_make(&p->client, "burst");
	ssh_key_make(&p->host, "burst-pod");
	free(p->host_public);
	p->host_public = xstrdup(p->host.public_line);
	if (path_write(client, p->client.private_pem, strlen(p->client.private_pem), 0600, err) <
		    0 ||
	    path_write(host, p->host_public, strlen(p->host_public), 0600, err) < 0)
		return -1;
	return 0;
}

int keys_load(struct engine *e, int pod, struct err *err)
{
	struct epod *p = &e->pods[pod];
	CLEANUP(free_text) char *client = key_path(e, pod, "key");
	CLEANUP(free_text) char *host = key_path(e, pod, "host");
	struct str pem = STR_INIT, line = STR_INIT;

	if (p->client.private_pem && p->host_public)
		return 0;
	if (path_read(client, 65536, &pem, err) < 0 || path_read(host, 65536, &line, err) < 0) {
		str_free(&pem);
		str_free(&line);
		return -1;
	}
	free(p->client.private_pem);
	free(p->host_public);
	p->client.private_pem = str_detach(&pem);
	p->host_public = str_detach(&line);
	return 0;
}

/* Also what a client left that died while it wrote them. */
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
	struct epod *p = &e->pods[pod];

	if (p->gone_over)
		return;
	p->gone_over = true;
	engine_drop_keys(e->setup->run_dir, core_pod_at(e->core, pod)->rental.attempt);
	ssh_key_free(&p->client);
	ssh_key_free(&p->host);
}
