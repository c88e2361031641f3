/* main.c - the program that burst puts on every pod: one static file without dependencies, for
 * Linux.
 *
 *	burst-agent attach    talk to the pod's one `serve` over stdin and stdout (and start it if
 *	                      there is none)
 *	burst-agent serve     workers, queue, event log, lease; survives lost connections
 *	burst-agent send      files of the volume to stdout
 *	burst-agent tree      a tar stream into a folder of the volume
 *	burst-agent copy      a tree of the volume, checked, into a folder
 *	burst-agent ls, rm    for `burst volume gc`
 *
 * CONTROL.md says what it obeys and answers, ../PROTOCOL.md what workers and it say to each other.
 * One thread, one poll loop. Nothing that comes from outside is trusted: lines have a cap, names
 *are checked, links are not followed. */
#include "main.h"

#include <stdio.h>
#include <string.h>

#include "attach.h"
#include "files.h"
#include "lanes.h"
#include "send.h"
#include "serve.h"
#include "tree.h"
#include "volume.h"

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "--version") || !strcmp(what, "version"))
		return printf("burst-agent %s\n", BURST_VERSION) < 0;
	if (!strcmp(what, "attach"))
		return agent_attach();
	if (!strcmp(what, "serve"))
		return agent_serve();
	if (!strcmp(what, "send"))
		return agent_send();
	if (!strcmp(what, "tree"))
		return agent_tree(argc, argv);
	if (!strcmp(what, "copy") && argc == 4)
		return agent_copy(argv[2], argv[3]);
	if (!strcmp(what, "lane") && argc == 3 && name_safe(argv[2]))
		return agent_lane(argv[2]);
	if (!strcmp(what, "ls") && argc == 3)
		return agent_ls(argv[2]);
	if (!strcmp(what, "rm") && argc > 2)
		return agent_rm(argc - 2, argv + 2);
	fprintf(stderr, "usage: burst-agent attach | serve | send | tree ... | copy TREE DIR | "
			"lane ID | ls DIR | rm PATH... | --version\n");
	return 2;
}
