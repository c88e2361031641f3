/* http_impl.h - what the files around libcurl share: the library, transfers, and the state of a
 * call */
#ifndef BURST_NET_HTTP_IMPL_H
#define BURST_NET_HTTP_IMPL_H

#include "http.h"

/* ---- http curl ----
 * Libcurl, loaded when the first connection is made (base/guard.h): it brings some forty libraries
 * along, which take longer to load than most commands run (ps, help, completion, each order to
 * the local provider). */

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt /* macros of exactly three arguments */
#undef curl_easy_getinfo
#undef curl_multi_setopt

#include "base/guard.h"

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

/* http.c: one transfer of libcurl, whose CURLOPT_PRIVATE points here. It is the first member of the
 * struct that owns it (http_call, http_connect). */
struct transfer {
	struct http *http;
	struct transfer *next; /* in http's list */
	CURL *easy;            /* NULL before http_transfer_easy() and after its end */
	/* libcurl has ended the transfer. */
	void (*finish)(struct transfer *t, CURLcode rc);
	/* Frees the owner without a callback. Calls http_transfer_remove(). */
	void (*drop)(struct transfer *t);
	char problem[CURL_ERROR_SIZE]; /* libcurl's words for the failure; "": none */
};

struct http {
	struct loop *loop;
	CURLM *multi;
	char *user_agent;
	struct transfer *transfers;
	struct http_guard *guard;
	bool flooded;        /* the guard has closed all connections in this turn */
	long silence_s;      /* how long a file's transfer may stand still; a test sets it */
	int64_t fresh_until; /* http_call.c: until then each call has a connection of its own */
};

/* Puts t into http's list. finish and drop are set. */
void http_transfer_add(struct http *http, struct transfer *t);
/* A new easy handle, with the options that every transfer needs. Aborts if memory is out. */
CURL *http_transfer_easy(struct transfer *t);
void http_transfer_start(struct transfer *t);
/* Closes the easy handle, started or not; finish() is not called then. */
void http_transfer_end(struct transfer *t);
/* http_transfer_end(), and takes t out of http's list. */
void http_transfer_remove(struct transfer *t);
/* The kind and the message of a failure; rc is not CURLE_OK. The kind with t NULL: by rc alone. */
enum err_kind http_transfer_kind(const struct transfer *t, CURLcode rc);
const char *http_transfer_problem(const struct transfer *t, CURLcode rc);

/* http.c, and for tests: a thread that shuts down every connection of libcurl once one turn of
 * libcurl takes stuck_ms. A server that sends GOAWAY or empty frames without end would otherwise
 * keep libcurl 7.88 in multi_perform(), whatever the call's timeout, and no pod could be released.
 */
struct http_guard *http_guard_new(int64_t stuck_ms);
void http_guard_free(struct http_guard *g);

struct http_call {
	struct transfer transfer; /* first */
	/* of a call that ended outside libcurl: reports it in the next turn */
	struct timer *report;
	char *method, *shown_url;
	bool may_resend; /* false: libcurl must not send its body a second time */
	struct curl_slist *headers;
	void (*done)(void *ctx, struct reply *reply);
	void *ctx;

	struct { /* the body of the request, from memory or from a part of a file */
		struct str body;
		size_t body_sent; /* only without may_resend */
		FILE *file;
		int64_t file_offset, file_bytes, file_left;
	} up;

	struct {               /* the reply */
		char *path;    /* the file that the body goes to; NULL: none */
		int fd;        /* of path; -1: not open */
		int64_t bytes; /* of the body that went to the file or to on_piece() */
		size_t max_bytes;
		bool ranged;     /* the request has a Range that does not begin at 0 */
		bool head_whole; /* the empty line after the head has arrived */
		http_on_piece *on_piece;
		struct reply reply;
	} down;
};

#endif
