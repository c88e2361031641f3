/* folder.c - makes and removes a test program's folder. */
#include "folder.h"

#include <unistd.h>

#include "base/path.h"

char folder[FOLDER_MAX];

int make_folder(void **state)
{
	(void)state;
	new_folder_at(folder);
	return 0;
}

int drop_folder(void **state)
{
	(void)state;
	return path_remove_tree(folder, NULL);
}

int enter_folder(void **state)
{
	return make_folder(state) < 0 || chdir(folder) < 0 ? -1 : 0;
}

int leave_folder(void **state)
{
	return chdir("/") < 0 ? -1 : drop_folder(state);
}

char *in_folder(const char *name)
{
	return path_join(folder, name);
}
