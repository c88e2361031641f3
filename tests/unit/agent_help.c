/* agent_help.c - a scratch folder for the tests of the agent. */
#include "agent_help.h"

#include <fcntl.h>

int make_root(char path[FOLDER_MAX])
{
	new_folder_at(path);
	return open(path, O_RDONLY | O_DIRECTORY);
}
