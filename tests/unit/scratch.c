/* scratch.c - makes and removes folders and files of tests. */
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"

void new_folder_at(char to[FOLDER_MAX])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(to, FOLDER_MAX, "%s/burst-unit-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(to))
		fail_msg("no folder %s", to);
}

char *new_folder(void)
{
	char path[FOLDER_MAX];

	new_folder_at(path);
	return xstrdup(path);
}

int remove_folder(char *path)
{
	int result = path_remove_tree(path, NULL);

	free(path);
	return result;
}

void put_bytes(const char *path, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *dir = path_dir(path);
	struct err err = {0};

	if (path_mkdirs(dir, 0755, &err) < 0 || path_write(path, bytes, len, 0600, &err) < 0)
		fail_msg("%s: %s", path, err.msg);
}

void write_text(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}
