/* kit_print.c - prints what pods are told: `bootstrap`, `script`, `install ENGINE` or `setup ENGINE
 * [VOICE...]` ($MIRROR of the weights; $WORDS: a model of job.check.words). For shell tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/agent/kit.h"
#include "jobs/tts/engines.h"

int main(int argc, char **argv)
{
	const struct pod_kit *kit = pod_kit();

	if (argc > 2 && strcmp(argv[1], "bootstrap") && strcmp(argv[1], "script")) {
		const struct engine *engine = engine_find(argv[2]);
		char *text = !strcmp(argv[1], "install")
				     ? environment_install(engine)
				     : environment_setup(engine, (const char *const *)argv + 3,
							 getenv("MIRROR"),
							 whisper_find(getenv("WORDS")));
		bool failed = fputs(text, stdout) < 0;
		free(text);
		return failed;
	}
	return fputs(argc > 1 && !strcmp(argv[1], "script") ? kit->start_script : kit->bootstrap,
		     stdout) < 0;
}
