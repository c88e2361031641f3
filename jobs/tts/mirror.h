/* mirror.h - a server that has the weights in place of the hub that publishes them. */
#ifndef BURST_JOBS_TTS_MIRROR_H
#define BURST_JOBS_TTS_MIRROR_H

#include "base/err.h"

/* ERR_CONFIG: not "https://HOST[:PORT][/PATH]", or http to another machine. A URL that carries a
 * password or a query is refused: it is shown in messages and kept in the environment's script. */
int mirror_check(const char *url, struct err *err);

#endif
