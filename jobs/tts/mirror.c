/* mirror.c - checks the URL of a mirror of weights. */
#include "mirror.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

static bool is_loopback(const char *host, size_t len)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (len == strlen(names[i]) && !strncmp(host, names[i], len))
			return true;
	return false;
}

static size_t host_length(const char *host)
{
	return *host == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL)
			    : strcspn(host, ":/");
}

static const char *fault(const char *url)
{
	bool plain = starts_with(url, "http://");

	if (!plain && !starts_with(url, "https://"))
		return "it must begin with https://";
	const char *host = strchr(url, ':') + 3;
	size_t len = host_length(host),
	       port = host[len] == ':' ? strspn(host + len + 1, "0123456789") : 0;
	if (strpbrk(host, "@?#"))
		return "it must have no password, query or fragment";
	for (const char *p = url; *p; p++)
		if (!isgraph((unsigned char)*p) || strchr("\"'\\$`<>", *p))
			return "it has a character that no such address has";
	if (!len || (host[len] == ':' && !port) ||
	    (host[len] == ':' ? host[len + 1 + port] : host[len]) !=
		    (strchr(host + len, '/') ? '/' : '\0'))
		return "it names no host";
	return plain && !is_loopback(host, len)
		       ? "http is for this machine alone; others need https"
		       : NULL;
}

int mirror_check(const char *url, struct err *err)
{
	const char *why = fault(url);
	CLEANUP(str_free) struct str shown = STR_INIT;

	if (!why)
		return 0;
	str_add_printable(&shown, url, MIN(strcspn(url, "@?"), (size_t)60), 60);
	return err_set(err, ERR_CONFIG, "weights_url \"%s\": %s", str_text(&shown), why);
}
