/* scratch.c - makes and removes the folder of one test. */
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"

char *new_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path = xasprintf("%s/burst-unit-XXXXXX", tmp ? tmp : "/tmp");

	if (!mkdtemp(path))
		fail_msg("no folder %s", path);
	return path;
}

int remove_folder(char *path)
{
	int result = path_remove_tree(path, NULL);

	free(path);
	return result;
}
