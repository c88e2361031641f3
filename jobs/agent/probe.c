/* probe.c - keeps workers' measurements for the next pod, in cache/probe.jsonl on the volume. */
#include "probe.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "env.h"
#include "files.h"

#define PROBE_FILE "cache/probe.jsonl"

#define PROBE_KEY_MOST 512

/* Reads the volume's list, complete lines only. Leaves it empty on failure. */
static void probe_read(int volume, struct str *list)
{
	struct stat st;
	int fd = open_below(volume, PROBE_FILE, &st);
	if (fd < 0 || read_all(fd, PROBE_LIST_MOST, list) < 0)
		str_drop(list, list->len);
	close_fd(&fd);
	while (list->len && list->s[list->len - 1] != '\n')
		list->len--;
}

bool probe_add(struct str *list, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = str_text(list); (at = strstr(at, line)); at++)
		if (at == list->s || at[-1] == '\n')
			return false;
	while (list->len + len > PROBE_LIST_MOST) {
		const char *end = memchr(list->s, '\n', list->len);
		str_drop(list, end ? (size_t)(end - list->s) + 1 : list->len);
	}
	str_add(list, line);
	return true;
}

/* Writes the list below root atomically: several pods may use the volume. */
static void probe_write(const struct agent *a, int root, const char *path, struct str *list)
{
	const char *name;
	int dir = open_parent(root, path, true, &name);
	char *temp = xasprintf(".%s.%s", name, a->attempt);
	int fd = dir < 0 ? -1
			 : openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				  0644);
	bool written = fd >= 0 && fd_write_all(fd, str_text(list), list->len) == 0;
	close_fd(&fd);
	if (!written || renameat(dir, temp, dir, name) < 0)
		unlinkat(dir, temp, 0);
	close_fd(&dir);
	free(temp);
}

static char *probe_path(const struct agent *a)
{
	return xasprintf("tree/%d/probe.jsonl", a->starts);
}

void probe_bring(struct agent *a)
{
	struct str list = {0};
	char *path = probe_path(a), *whole = xasprintf("%s/%s", a->disk, path);
	probe_read(a->volume_fd, &list);
	if (list.len)
		probe_write(a, a->disk_fd, path, &list);
	env_set(&a->start_env, "BURST_PROBE", whole);
	free(whole);
	free(path);
	str_free(&list);
}

void probe_keep(struct agent *a, const struct json *hello)
{
	const struct json *probe = json_get(hello, "probe");
	if (!probe || probe->type != J_OBJECT)
		return;
	const char *key = json_text(probe, "key", "");
	int64_t most = json_int(probe, "max_batch", 0);
	if (!*key || strlen(key) > PROBE_KEY_MOST || most < 1 || most > (int64_t)1 << 20)
		return;
	struct str line = {0}, list = {0};
	str_addc(&line, '{');
	js_text(&line, "key", key);
	js_int(&line, "max_batch", most);
	str_add(&line, "}\n");
	probe_read(a->volume_fd, &list);
	if (probe_add(&list, str_text(&line))) {
		char *path = probe_path(a);
		probe_write(a, a->volume_fd, PROBE_FILE, &list);
		probe_write(a, a->disk_fd, path, &list);
		free(path);
	}
	str_free(&line);
	str_free(&list);
}
