/* mirror.h - checks the URL of a mirror, a server that has the weights in place of the hub. */
#ifndef BURST_JOBS_TTS_MIRROR_H
#define BURST_JOBS_TTS_MIRROR_H

#include "base/err.h"

/* ERR_CONFIG unless the URL is "https://HOST[:PORT][/PATH]", or http to this machine. Refuses a
 * password or query, since messages and the environment's script show the URL. */
int mirror_check(const char *url, struct err *err);

#endif
