/* Prints what pods are told: `bootstrap`, `script`, `install ENGINE` or `setup ENGINE`. For shell tests. */
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "jobs/tts/engines.h"

int main(int argc, char **argv)
{
	const struct pod_kit *kit = pod_kit();

	if (argc > 2 && !strcmp(argv[1], "install"))
		return fputs(engine_find(argv[2])->install, stdout) < 0;
	if (argc > 2 && !strcmp(argv[1], "setup"))
		return fputs(engine_find(argv[2])->setup, stdout) < 0;
	return fputs(argc > 1 && !strcmp(argv[1], "script") ? kit->start_script : kit->bootstrap, stdout) < 0;
}
