/* impl.h - what the files of the ssh provider share */
#ifndef BURST_PROVIDERS_SSH_IMPL_H
#define BURST_PROVIDERS_SSH_IMPL_H

#include "providers/wired.h"

#define SSH_NAME "ssh"

/* ---- host.c: one call of burst-host on one host ---- */

/* A host's name is part of ids, regions and command lines: "box1", "me@box2", "me@box2:2222". */
enum { HOST_MAX = REGION_MAX };
/* NULL: it can be one; else what must be different. */
const char *host_check(const char *host);
/* Splits an id of a pod or a volume. Returns what follows the host; NULL: no id of this provider.
 */
const char *host_of_id(const char *id, char host[HOST_MAX]);

/* volume_dir as hosts take it: absolute, or below the home. Borrowed. */
const char *host_folder(const struct provider *p);
/* Adds the words of a command line that runs burst-host on this host with the arguments of
 * `inner`, and takes over its input and output. */
void host_add_command(const struct provider *p, const char *host, struct call *inner,
		      struct call *call);
/* Adds those that install burst-host there, for burst's own kind of machine or the other one.
 * ERR_LOCAL: this build of burst carries none for its own kind. */
int host_add_install(const struct provider *p, const char *host, bool other, struct call *call,
		     struct err *err);

enum host_answer {
	HOST_ANSWERED,    /* *answer: as if burst-host had been a child of this machine */
	HOST_LACKS,       /* burst-host is not installed there */
	HOST_LACKS_OTHER, /* the same, and that machine is of the other kind */
	HOST_FAILED       /* *err */
};
/* Reads the reply to such a command. `answer` borrows from reply, except its body and head. */
enum host_answer host_read(const struct op *op, const char *host, const struct reply *reply,
			   struct reply *answer, struct err *err);
/* Reads the reply to an install. */
int host_read_install(const struct op *op, const char *host, const struct reply *reply,
		      struct err *err);
extern const struct child_word host_words[];

#endif
