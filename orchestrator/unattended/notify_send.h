/* notify_send.h - sends one notification: over HTTP, to a command, or to the desktop. Each function
 * blocks for at most ten seconds. */
#ifndef BURST_UNATTENDED_NOTIFY_SEND_H
#define BURST_UNATTENDED_NOTIFY_SEND_H

#include "base/err.h"
#include "base/str.h"

/* How ntfy shows it: its priority and its emoji. */
struct notice_style {
	const char *priority, *tags;
};

struct notice {
	const char *event, *run, *job;
	const char *title, *summary; /* one line each */
	const struct str *body;
	bool json; /* the body is JSON */
	struct notice_style looks;
};

/* POSTs to a URL that no message shows, since it may hold a key. */
int notify_post(const char *url, const struct notice *n, struct err *err);
/* Runs a shell command with the body as stdin, and BURST_EVENT, BURST_RUN and BURST_JOB in an
 * environment without our keys. */
int notify_command(const char *command, const struct notice *n, struct err *err);
int notify_desktop(const struct notice *n, bool urgent, struct err *err);

#endif
