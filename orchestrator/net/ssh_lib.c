/* ssh_lib.c - loads libssh2 when the first connection is made. */
#include <pthread.h>

#include "base/late.h"
#include "ssh.h"
#include "ssh_impl.h"

#ifdef __APPLE__
#define SSH_LIBRARY "libssh2.1.dylib"
#else
#define SSH_LIBRARY "libssh2.so.1"
#endif

struct ssh_lib ssh_lib;
static struct err lib_error; /* why it is not loaded */

static void load_library(void)
{
#define ROW(name) LATE_ROW(ssh_lib, libssh2_, name)
	static const struct late_function functions[] = {SSH_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(SSH_LIBRARY, "libssh2-1", functions, ARRAY_LEN(functions), &lib_error) == 0 &&
	    ssh_lib.init(0) != 0)
		err_set(&lib_error, ERR_LOCAL, "libssh2 cannot be set up");
}

int ssh_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	return lib_error.kind ? err_set(err, lib_error.kind, "%s", lib_error.msg) : 0;
}
