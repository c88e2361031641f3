/* http_trace.h - prints HTTP for --trace without secrets, and knows the names that secrets have. */
#ifndef BURST_NET_HTTP_TRACE_H
#define BURST_NET_HTTP_TRACE_H

#include "provider.h"

/* Logs a line at LOG_TRACE for the request line, for every header and for the body. */
void http_trace_call(const struct call *call, const char *shown_url);
/* Logs a reply in the same way. to_bytes: bytes of the body that went to a file. */
void http_trace_reply(const char *method, const char *shown_url, const struct reply *reply,
		      int64_t to_bytes);
/* Returns the URL without known secrets and without the values of query keys that name credentials,
 * for messages and traces. The caller frees it. */
char *http_trace_url(const char *url);
/* Whether the name of a header, a key or a variable says that its value is a secret. */
bool http_trace_hides(const char *name);
/* Those of the names (NULL-terminated, or NULL) that http_trace_hides(), NULL-terminated. The names
 * are borrowed; the caller frees the list. */
const char **http_trace_secrets(const char *const *names);

#endif
