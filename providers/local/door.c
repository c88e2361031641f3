/* door.c - lets the machine reach the port of a pod that has a network of its own. */
#include "supervisor.h"

#include <errno.h>
#include <netinet/in.h>

#include "base/jsonx.h"
#include "forward.h"

bool supervisor_shares_network(const struct supervisor *s)
{
	return s->plan->conf->shared_network || !s->record->namespaces;
}

static int port_inside(const struct supervisor *s)
{
	int port = atoi(jsonx_text(s->plan->env, "BURST_SSH_PORT", "22"));

	return port > 0 && port < 65536 ? port : 22;
}

int supervisor_open_door(struct supervisor *s, struct err *err)
{
	if (supervisor_shares_network(s))
		return 0;
	if (listen(s->listen_fd, 64) < 0)
		return err_set(err, ERR_LOCAL, "listen: %s", strerror(errno));
	s->forward = forward_new(s->listen_fd, port_inside(s), s->plan->conf->round_trip_ms);
	s->listen_fd = -1;
	return 0;
}
