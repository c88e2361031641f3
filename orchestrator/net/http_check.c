/* http_check.c - what an HTTP request may contain, and which hosts it may go to. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <strings.h>

#include "http_impl.h"

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	char bare[64];

	if (!strcasecmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	COPY_TEXT(bare, host + (*host == '['));
	bare[strcspn(bare, "]")] = '\0';
	return inet_pton(AF_INET6, bare, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int http_check_url(const char *url, struct target *out, struct err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL;
	CURLU *u = curl_lib.url();
	int rc = -1;

	if (!u || curl_lib.url_set(u, CURLUPART_URL, url, 0) ||
	    curl_lib.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_lib.url_get(u, CURLUPART_HOST, &host, 0))
		err_set(err, ERR_CONFIG, "not a usable URL");
	else if (strcasecmp(scheme, "https") && strcasecmp(scheme, "http"))
		err_set(err, ERR_CONFIG, "unsupported URL scheme %s: only https", scheme);
	else if (curl_lib.url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK)
		err_set(err, ERR_CONFIG, "a user name or password does not belong into a URL");
	else
		rc = 0;
	if (rc == 0) {
		out->plain = !strcasecmp(scheme, "http");
		out->loopback = is_loopback(host);
		if (out->plain && !out->loopback)
			rc = err_set(err, ERR_CONFIG,
				     "plain http is allowed only for this machine, not for %s",
				     host);
	}
	curl_lib.free(scheme);
	curl_lib.free(host);
	curl_lib.free(user);
	curl_lib.url_cleanup(u);
	return rc;
}

bool http_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return len > 0;
}

int http_check_header(const char *line, struct err *err)
{
	size_t name = strcspn(line, ":");

	if (line[name] != ':' || !http_is_token(line, name))
		return err_set(err, ERR_CONFIG, "a header has no proper name");
	for (const char *p = line + name; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 127)
			return err_set(
				err, ERR_CONFIG,
				"the value of header %.*s holds a line break or control character",
				(int)name, line);
	return 0;
}

const char *http_header_value(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 1 +
			       strspn(call->headers[i] + len + 1, " \t");
	return NULL;
}
