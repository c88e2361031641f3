/* http_curl.c - loads libcurl when the first connection is made. */
#include "http_curl.h"

#include <pthread.h>

#include "http.h"

#ifdef __APPLE__
#define CURL_LIBRARY "libcurl.4.dylib"
#else
#define CURL_LIBRARY "libcurl.so.4"
#endif

struct curl_functions curl_lib;
static struct err load_error; /* kind 0: libcurl is loaded */

static void load_curl(void)
{
#define ROW(name) LATE_ROW(curl_lib, curl_, name)
	static const struct late_function functions[] = {CURL_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(CURL_LIBRARY, "libcurl4", functions, ARRAY_LEN(functions), &load_error) ==
		    0 &&
	    curl_lib.global_init(CURL_GLOBAL_DEFAULT) != 0)
		err_set(&load_error, ERR_LOCAL, "libcurl cannot be set up");
}

int http_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_curl);
	return load_error.kind ? err_set(err, load_error.kind, "%s", load_error.msg) : 0;
}
