/* killer.c - a shared object for LD_PRELOAD: the program dies of SIGKILL right before or after its
 * N-th call of one kind, whichever of its threads makes it. Its children do not: strace -f cannot
 * tell them apart, and pods would die with it.
 *
 *     KILL_AT="before|during|after CALL N"    N 0: it lives. CALL:
 *         rename (renameat too), fsync, fdatasync
 *         ledger    whatever changes one of the ledger's files or makes it durable
 *         net       a request to a vendor. Before it is sent; during: all of it has been sent,
 * nothing of the reply read; after: the reply has come, and burst has not looked at it. Connections
 * to pods do not count order     a child process, as the local provider's orders are. During: it
 * has been started agent     an order to an agent. Before it is given to the connection; after: it
 * has been sent KILL_LOG=FILE    each such call is a line there: number, wall clock ms, call, file
 * (net: method, path) KILL_ONLY=COMMAND: not the program itself, but the one below it whose first
 * argument is this word */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt /* a macro that makes sure of three arguments */

#include <dlfcn.h>
#include <fcntl.h>
#include <libssh2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char when[8], which[16];
static int number, log_fd = -1;
static pid_t victim;
static atomic_int calls;

/* The program's first argument is this word. */
static bool is_command(const char *word)
{
	char line[256] = {0};
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, line, sizeof(line) - 1);
	close(fd);
	size_t program = strlen(line) + 1;
	return n > (ssize_t)program && !strcmp(line + program, word);
}

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KILL_AT"), *log = getenv("KILL_LOG"), *only = getenv("KILL_ONLY");

	if (only && !is_command(only))
		return;
	unsetenv("KILL_ONLY");

	if (at && sscanf(at, "%7s %15s %d", when, which, &number) == 3)
		victim = getpid();
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	unsetenv("KILL_AT");
	unsetenv("KILL_LOG");
	unsetenv("LD_PRELOAD");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *name_of(int fd, char *buf, size_t size)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
	return base_name(buf);
}

static int one_more(const char *call, const char *file)
{
	char line[160];
	struct timespec now;
	int count = atomic_fetch_add(&calls, 1) + 1;

	if (log_fd >= 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		int n = snprintf(line, sizeof(line), "%d %lld %s %.80s\n", count,
				 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, call, file);
		if (write(log_fd, line, (size_t)n) != n)
			abort();
	}
	return count;
}

static int counted(const char *call, const char *path)
{
	const char *file = base_name(path);

	if (victim != getpid() ||
	    !(strcmp(which, "ledger") ? !strcmp(which, call) : !strncmp(file, "ledger.db", 9)))
		return 0;
	return one_more(call, file);
}

static int counted_fd(const char *call, int fd)
{
	char path[4096];

	return victim == getpid() ? counted(call, name_of(fd, path, sizeof(path))) : 0;
}

static void die(const char *moment, int count)
{
	if (count && count == number && !strcmp(moment, when))
		kill(getpid(), SIGKILL);
}

/* The real function by its type, then the call between two chances to die. */
#define AROUND(result_type, is_counted, real_name, type, ...)                                      \
	type *real = (type *)dlsym(RTLD_NEXT, real_name);                                          \
	int count = is_counted;                                                                    \
	die("before", count);                                                                      \
	result_type result = real(__VA_ARGS__);                                                    \
	die("after", count);                                                                       \
	return result

typedef int on_fd(int);
typedef int on_paths(const char *, const char *);
typedef int on_paths_at(int, const char *, int, const char *);
typedef int on_path(const char *);
typedef int on_length(int, off_t);
typedef ssize_t on_bytes(int, const void *, size_t, off_t);

int fsync(int fd)
{
	AROUND(int, counted_fd("fsync", fd), "fsync", on_fd, fd);
}

int fdatasync(int fd)
{
	AROUND(int, counted_fd("fdatasync", fd), "fdatasync", on_fd, fd);
}

int rename(const char *from, const char *to)
{
	AROUND(int, counted("rename", from), "rename", on_paths, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	AROUND(int, counted("rename", from), "renameat", on_paths_at, from_dir, from, to_dir, to);
}

int unlink(const char *path)
{
	AROUND(int, counted("unlink", path), "unlink", on_path, path);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	AROUND(ssize_t, counted_fd("pwrite", fd), "pwrite64", on_bytes, fd, bytes, len, at);
}

int ftruncate64(int fd, off_t len)
{
	AROUND(int, counted_fd("ftruncate", fd), "ftruncate64", on_length, fd, len);
}

/* ---- child processes ---- */

enum { CHILDREN = 256 };

static struct {
	pid_t pid;
	int number;
} children[CHILDREN];

pid_t fork(void)
{
	typedef pid_t on_fork(void);
	on_fork *real = (on_fork *)dlsym(RTLD_NEXT, "fork");
	int count = victim == getpid() && !strcmp(which, "order") ? one_more("order", "-") : 0;

	die("before", count);
	pid_t pid = real();
	if (pid > 0 && count) {
		children[count % CHILDREN].pid = pid;
		children[count % CHILDREN].number = count;
		die("during", count);
	}
	return pid;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	typedef pid_t on_wait(pid_t, int *, int);
	pid_t ended = ((on_wait *)dlsym(RTLD_NEXT, "waitpid"))(pid, status, options);

	for (size_t i = 0; ended > 0 && i < CHILDREN; i++)
		if (children[i].pid == ended) {
			children[i].pid = 0;
			die("after", children[i].number);
		}
	return ended;
}

/* ---- orders to agents ----
 * Each is a line of JSON, the first of those that lie ready counts. One thread has all connections:
 * what it sends next is that. */

static const char *refused; /* the connection had no room for it: it comes again */
static int to_be_sent, refused_number;
static void *libssh2;

ssize_t libssh2_channel_write_ex(LIBSSH2_CHANNEL *channel, int stream, const char *bytes,
				 size_t len)
{
	typedef ssize_t on_write(LIBSSH2_CHANNEL *, int, const char *, size_t);
	static const char begins[] = "{\"op\":\"";
	int count = 0;

	if (victim == getpid() && !strcmp(which, "agent") && len > sizeof(begins) &&
	    !memcmp(bytes, begins, sizeof(begins) - 1)) {
		char name[17] = "";
		sscanf(bytes + sizeof(begins) - 1, "%16[a-z_-]", name);
		count = bytes == refused ? refused_number : one_more("agent", name);
	}
	die("before", count);
	ssize_t n = ((on_write *)dlsym(libssh2, "libssh2_channel_write_ex"))(channel, stream, bytes,
									     len);
	refused = count && n <= 0 ? bytes : NULL;
	refused_number = count;
	if (count && n > 0)
		to_be_sent = count;
	return n;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	typedef ssize_t on_bytes_sent(int, const void *, size_t, int);
	ssize_t n = ((on_bytes_sent *)dlsym(RTLD_NEXT, "send"))(fd, bytes, len, flags);

	if (to_be_sent && n == (ssize_t)len) {
		die("after", to_be_sent);
		to_be_sent = 0;
	}
	return n;
}

/* ---- requests ----
 * burst loads libcurl and libssh2 when it needs them, and looks their functions up in what it
 * loaded: it gets all that is loaded, where ours come first. */

enum { REQUESTS = 256 };

typedef CURLcode on_setopt(CURL *, CURLoption, ...);
typedef CURLMcode on_handle(CURLM *, CURL *);
typedef CURLMsg *on_info(CURLM *, int *);
typedef void on_cleanup(CURL *);

static struct request {
	CURL *easy;
	int number;
	int64_t body, sent;
	bool connects;
	char method[16], path[120];
} requests[REQUESTS];
static void *libcurl;

void *dlopen(const char *file, int flags)
{
	typedef void *on_open(const char *, int);
	on_open *real = (on_open *)dlsym(RTLD_NEXT, "dlopen");

	void **ours = !file                                                    ? NULL
		      : !strncmp(file, "libcurl.", 8) && !strcmp(which, "net") ? &libcurl
		      : !strncmp(file, "libssh2.", 8)                          ? &libssh2
									       : NULL;

	if (!ours)
		return real(file, flags);
	*ours = real(file, RTLD_NOW | RTLD_GLOBAL);
	return *ours ? real(NULL, RTLD_NOW) : NULL;
}

/* What is known of this handle; of a new one, nothing. */
static struct request *request_of(CURL *easy)
{
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < REQUESTS; i++)
			if (requests[i].easy == (round ? NULL : easy)) {
				requests[i].easy = easy;
				return &requests[i];
			}
	abort();
}

static void note_url(struct request *r, const char *url)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;

	snprintf(r->path, sizeof(r->path), "%s", path ? path : "/");
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	struct request *r = request_of(easy);
	va_list ap;

	va_start(ap, option);
	void *value = va_arg(ap, void *); /* a long, a pointer and a 64-bit number travel alike */
	va_end(ap);
	switch ((int)option) {
	case CURLOPT_CONNECT_ONLY: r->connects = value != NULL; break;
	case CURLOPT_URL: note_url(r, value); break;
	case CURLOPT_CUSTOMREQUEST:
		snprintf(r->method, sizeof(r->method), "%s", (const char *)value);
		break;
	case CURLOPT_POSTFIELDSIZE_LARGE: r->body = (int64_t)(intptr_t)value; break;
	}
	return ((on_setopt *)dlsym(libcurl, "curl_easy_setopt"))(easy, option, value);
}

/* An answer that comes before all was sent is as good. */
static int on_wire(CURL *easy, curl_infotype what, char *bytes, size_t len, void *ctx)
{
	struct request *r = ctx;

	(void)easy, (void)bytes;
	if (what == CURLINFO_DATA_OUT)
		r->sent += (int64_t)len;
	if (what == CURLINFO_HEADER_IN ||
	    ((what == CURLINFO_HEADER_OUT || what == CURLINFO_DATA_OUT) && r->sent >= r->body))
		die("during", r->number);
	return 0;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	on_handle *real = (on_handle *)dlsym(libcurl, "curl_multi_add_handle");
	on_setopt *setopt = (on_setopt *)dlsym(libcurl, "curl_easy_setopt");
	struct request *r = request_of(easy);

	if (!r->connects && victim == getpid())
		r->number = one_more(r->method[0] ? r->method : "HEAD", r->path);
	die("before", r->number);
	if (r->number && r->number == number && !strcmp(when, "during")) {
		setopt(easy, CURLOPT_DEBUGFUNCTION, on_wire);
		setopt(easy, CURLOPT_DEBUGDATA, r);
		setopt(easy, CURLOPT_VERBOSE, 1L);
	}
	return real(multi, easy);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	CURLMsg *msg = ((on_info *)dlsym(libcurl, "curl_multi_info_read"))(multi, left);

	if (msg && msg->msg == CURLMSG_DONE)
		die("after", request_of(msg->easy_handle)->number);
	return msg;
}

void curl_easy_cleanup(CURL *easy)
{
	if (easy)
		memset(request_of(easy), 0, sizeof(struct request));
	((on_cleanup *)dlsym(libcurl, "curl_easy_cleanup"))(easy);
}
