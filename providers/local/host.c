/* host.c - burst-host: the local vendor as a static program of its own, which burst installs on
 * other machines.
 *
 *	burst-host VERB DIR ...		the verbs of local.h
 *	burst-host connect DIR ID	stdin and stdout become a connection to the sshd of this pod
 *	burst-host supervise DIR FD	the rest of a rent, in a control group (group.c)
 *	burst-host group		prints whether this control group's memory is bounded
 *
 * DIR holds records and volumes; a relative one is below the user's home. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "local.h"
#include "vendor.h"

enum { COPY_BYTES = 64 << 10 };

/* Copies until the end of `from`, or until `to` is closed. */
static void copy_to_end(int from, int to)
{
	static char buf[COPY_BYTES];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && fd_write_all(to, buf, (size_t)n) < 0)
			return;
}

/* Opens a connection to the pod's sshd, which listens on this machine's loopback. -1: *err. */
static int open_pod(const struct pod_record *record, struct err *err)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)record->view.port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (record->ended_ms || !record->started_ms)
		err_set(err, ERR_NOT_FOUND, "pod %s does not run", record->view.id);
	else if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		err_set(err, ERR_TRANSIENT, "pod %s: %s", record->view.id, strerror(errno));
	else
		return fd;
	fd_close(fd);
	return -1;
}

/* One process for each direction, so that neither waits for the other. Ends when the pod does. */
static int carry(int pod)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		copy_to_end(STDIN_FILENO, pod);
		shutdown(pod, SHUT_WR);
		_exit(0);
	}
	if (child < 0)
		return -1;
	close(STDIN_FILENO);
	copy_to_end(pod, STDOUT_FILENO);
	kill(child, SIGKILL);
	return 0;
}

static int connect_pod(const char *dir, const char *id)
{
	struct store store;
	struct pod_record record;
	struct err err = {0};
	int pod = -1;

	signal(SIGPIPE, SIG_IGN);
	if (cloud_store_open(&store, dir, &err) == 0 && record_load(&store, id, &record, &err) == 0)
		pod = open_pod(&record, &err);
	if (pod < 0 || carry(pod) < 0) {
		dprintf(STDERR_FILENO, "burst-host: %s\n", err.msg[0] ? err.msg : strerror(errno));
		return 1;
	}
	return 0;
}

static int supervise_pod(const char *dir, const char *plan)
{
	struct store store;
	struct err err = {0};

	if (cloud_store_open(&store, dir, &err) == 0)
		return pod_supervise(&store, atoi(plan));
	dprintf(STDERR_FILENO, "burst-host: %s\n", err.msg);
	return 1;
}

int main(int argc, char **argv)
{
	const char *home = getenv("HOME");

	umask(077);
	if (argc == 2 && !strcmp(argv[1], "group"))
		return puts(group_bounds_memory() ? "memory" : "no memory") < 0;
	if (argc > 2 && argv[2][0] != '/')
		argv[2] = path_join(home ? home : "/", argv[2]);
	if (argc == 4 && !strcmp(argv[1], "connect"))
		return connect_pod(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "supervise"))
		return supervise_pod(argv[2], argv[3]);
	return local_cloud_main(argc, argv);
}
