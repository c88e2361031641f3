/* host_entry.c - writes the entries by which ssh and editors find pods. */
#include "host_entry.h"

#include <stdlib.h>

#include "base/path.h"
#include "cmd/cmd.h"
#include "way.h"

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
		       : path_rewrite(file, str_text(&text), text.len, 0600, err);
}
