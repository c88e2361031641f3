/* notify_send.h - carries one notification: over HTTP, to a command, to the desktop. Each blocks,
 * for ten seconds at most. */
#ifndef BURST_UNATTENDED_NOTIFY_SEND_H
#define BURST_UNATTENDED_NOTIFY_SEND_H

#include "base/err.h"
#include "base/str.h"

/* How ntfy shows it: with a sound or not, and before which emoji. */
struct notice_style {
	const char *priority, *tags;
};

struct notice {
	const char *event, *run, *job;
	const char *title, *summary; /* one line each */
	const struct str *body;
	bool json; /* that is what the body is */
	struct notice_style looks;
};

/* A POST to an address that no message shows: it may have a key in it. */
int notify_post(const char *url, const struct notice *n, struct err *err);
/* A shell command with the body as its stdin, and BURST_EVENT, BURST_RUN and BURST_JOB in its
 * environment, which has no key of ours. */
int notify_command(const char *command, const struct notice *n, struct err *err);
int notify_desktop(const struct notice *n, bool urgent, struct err *err);

#endif
