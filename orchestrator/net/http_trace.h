/* http_trace.h - prints HTTP for --trace without secrets, and knows the names that secrets have. */
#ifndef BURST_NET_HTTP_TRACE_H
#define BURST_NET_HTTP_TRACE_H

#include "provider.h"

/* One line each at LOG_TRACE for the request line, every header and the body. */
void http_trace_call(const struct call *call, const char *shown_url);
/* to_bytes: how much of the body went to a file. */
void http_trace_reply(const char *method, const char *shown_url, const struct reply *reply,
		      int64_t to_bytes);
/* The URL with the values of query keys that look like credentials replaced; the caller frees it.
 * Also for messages. */
char *http_trace_url(const char *url);
/* Whether a header, a key or a variable of this name has a secret value. */
bool http_trace_hides(const char *name);

#endif
