/* Prints what the kit says: `bootstrap` or `script`. For shell tests. */
#include <stdio.h>
#include <string.h>

#include "job.h"

int main(int argc, char **argv)
{
	const struct pod_kit *kit = pod_kit();

	return fputs(argc > 1 && !strcmp(argv[1], "script") ? kit->start_script : kit->bootstrap, stdout) < 0;
}
