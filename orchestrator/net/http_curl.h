/* http_curl.h - libcurl, loaded when the first connection is made (base/late.h): it brings some
 * forty libraries along, which take longer to load than most commands run (ps, help, completion,
 * each order to the local provider). */
#ifndef BURST_NET_HTTP_CURL_H
#define BURST_NET_HTTP_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt /* macros of exactly three arguments */
#undef curl_easy_getinfo
#undef curl_multi_setopt

#include "base/late.h"

/* clang-format off */
#define CURL_FUNCTIONS(X)                                                                                                  \
	X(easy_cleanup) X(easy_getinfo) X(easy_init) X(easy_setopt) X(easy_strerror) X(free) X(global_init)                \
	X(multi_add_handle) X(multi_cleanup) X(multi_info_read) X(multi_init) X(multi_perform) X(multi_poll)               \
	X(multi_remove_handle) X(multi_setopt) X(slist_append) X(slist_free_all) X(url) X(url_cleanup) X(url_get) X(url_set)          \
	X(version_info)
/* clang-format on */

struct curl_functions {
#define MEMBER(name) LATE_MEMBER(curl_, name)
	CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct curl_functions curl_lib; /* usable after http_ready() has succeeded */

#endif
