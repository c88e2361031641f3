/* detour.c - a shared object for LD_PRELOAD: what the program under test believes to be a
 * connection to a pod (a port of the loopback from 1024 up) goes to relay.c, which is told first
 * which port was meant. Nothing of it is in the product.
 *
 *     DETOUR="SOCKET PORT": the relay's datagram socket, and the port it listens on
 *     DETOUR_NOT=" PORT PORT ": these are no pods'
 *     DETOUR_AWAY=FILE: while it exists, the ports in it (" PORT PORT ", or "*": all) refuse
 * connections DETOUR_NAMES=FILE: a name that ends in .test is this machine; while FILE exists no
 * such name can be looked up */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int connect_fn(int, const struct sockaddr *, socklen_t);

/* The relay knows a connection by its source port, so that is settled and told before it is made.
 */
static int announce(int fd, const char *path, int meant)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(from);
	char line[64];

	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&from, &len) < 0)
		return -1;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	int n = snprintf(line, sizeof(line), "%d %d", ntohs(from.sin_port), meant);
	int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t sent =
		out < 0 ? -1 : sendto(out, line, (size_t)n, 0, (struct sockaddr *)&to, sizeof(to));
	if (out >= 0)
		close(out);
	return sent == n ? 0 : -1;
}

static int is_away(int port)
{
	const char *path = getenv("DETOUR_AWAY");
	FILE *f = path ? fopen(path, "re") : NULL;
	char ports[256] = "", wanted[16];

	if (!f)
		return 0;
	(void)!fgets(ports, sizeof(ports), f);
	fclose(f);
	snprintf(wanted, sizeof(wanted), " %d ", port);
	return strchr(ports, '*') || strstr(ports, wanted);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		dlsym(RTLD_NEXT, "getaddrinfo");
	const char *path = getenv("DETOUR_NAMES"), *end = name ? strstr(name, ".test") : NULL;

	if (!path || !end || end[5])
		return real(name, service, hints, out);
	return access(path, F_OK) == 0 ? EAI_AGAIN : real("127.0.0.1", service, hints, out);
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	connect_fn *real = (connect_fn *)dlsym(RTLD_NEXT, "connect");
	const char *detour = getenv("DETOUR");
	struct sockaddr_in to;
	char path[108];
	int port;

	if (!detour || address->sa_family != AF_INET ||
	    sscanf(detour, "%107s %d", path, &port) != 2)
		return real(fd, address, len);
	memcpy(&to, address, sizeof(to));
	int meant = ntohs(to.sin_port);
	char spared[16];
	snprintf(spared, sizeof(spared), " %d ", meant);
	if (to.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && is_away(meant)) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (to.sin_addr.s_addr != htonl(INADDR_LOOPBACK) || meant < 1024 ||
	    (getenv("DETOUR_NOT") && strstr(getenv("DETOUR_NOT"), spared)))
		return real(fd, address, len);
	if (announce(fd, path, meant) < 0) {
		errno = ECONNREFUSED;
		return -1;
	}
	to.sin_port = htons((uint16_t)port);
	return real(fd, (struct sockaddr *)&to, sizeof(to));
}
