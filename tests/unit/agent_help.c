/* agent_help.c - a scratch folder for the tests of the agent. */
#include "agent_help.h"

#include <fcntl.h>

int make_root(char *path)
{
	strcpy(path, "/tmp/burst-tar.XXXXXX");
	assert_non_null(mkdtemp(path));
	return open(path, O_RDONLY | O_DIRECTORY);
}
