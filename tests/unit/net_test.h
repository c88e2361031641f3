/* net_test.h - what the tests of net/ share: turning the loop until something is true, sockets on
 * loopback. */
#ifndef BURST_TESTS_NET_TEST_H
#define BURST_TESTS_NET_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop.h"

enum { PATIENCE_MS = 60000 }; /* a test that is not done by then has failed */

/* Turns the loop until the condition holds; fails the test when it never does. */
#define TURN_UNTIL(loop, condition)                                                                \
	do {                                                                                       \
		int64_t late_ = clock_boot_ms() + PATIENCE_MS;                                     \
		while (!(condition)) {                                                             \
			if (clock_boot_ms() > late_)                                               \
				fail_msg("%s:%d: never: %s", __FILE__, __LINE__, #condition);      \
			loop_turn((loop), 100);                                                    \
		}                                                                                  \
	} while (0)

static inline int listen_on_loopback(int *port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (void *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (void *)&at, &len) < 0)
		fail_msg("no listening socket on loopback");
	*port = ntohs(at.sin_port);
	return fd;
}

/* -1 when nobody listens. */
static inline int connect_to_loopback(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)port)};

	if (fd < 0 || connect(fd, (void *)&at, sizeof(at)) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

#endif
