/* local.h - pods on this machine: the translator, and the small "vendor" behind it.
 *
 * The translator (local.c) is a provider like the others and does no I/O. Each operation becomes a
 * child process of this program, `burst local-cloud VERB STATE_DIR ...` (a hidden subcommand;
 * cloud.c). The vendor records its pods in STATE_DIR/local and keeps volumes in STATE_DIR/volumes.
 * It does not use burst's ledger and outlives burst. */
#ifndef BURST_PROVIDERS_LOCAL_H
#define BURST_PROVIDERS_LOCAL_H

#include "provider.h"

#define LOCAL_NAME "local" /* of the provider, in offers and volumes as well */
extern const struct provider_ops provider_local;

/* The hidden subcommand. argv[0] is "local-cloud", argv[1] the verb, argv[2] the state folder:
 *
 *	check|offers|volume|volumes|volume-remove|rent|inspect|list|release|billing|logs  STATE_DIR
 *		request: one JSON object on stdin (may be empty), answer: one JSON object on stdout
 *	stage STATE_DIR VOLUME PATH [MAX [LEAST]]	the file's bytes on stdin; answer on stdout
 *	fetch STATE_DIR VOLUME PATH OFFSET [MAX]	the file's bytes on stdout; answer on stderr
 *
 * Returns the exit status: 0 and an answer, or 1 and {"error":{"kind","message"}} as the last line
 *of stderr. Must be called while the process has one thread. With `rent` a supervisor process goes
 *on in the background; the call itself returns. */
int local_cloud_main(int argc, char **argv);

#endif
