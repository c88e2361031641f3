/* boot.c - how long a pod may take to boot, and what its provider's log shows meanwhile. */
#include "impl.h"

#include "base/clock.h"

static const char *never_came(const struct core_pod *p)
{
	if (p->phase == POD_CONNECTING)
		return "sshd never answered";
	return p->presence.running_at ? "it ran and never had an address"
				      : "its container never ran";
}

void boot_timed_out(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);
	char took[24], last[100];

	c->patience_ms = MAX(c->patience_ms, 2 * p->presence.boot_limit_ms);
	/* No reply has shown this pod yet (after a crash, lists may fail): do not blame a host that
	 * it may not have. */
	if (p->rental.view.state != POD_STATE_UNKNOWN || p->phase == POD_CONNECTING)
		resting_bad_host(c, pod, never_came(p));
	duration_show(took, sizeof(took), c->now - p->rental.create_at);
	COPY_TEXT(last, p->reason);
	pod_dismiss(c, pod, ERR_TRANSIENT, "it did not boot within %s%s%s", took,
		    last[0] ? ": " : "", last);
}

bool boot_is_under_way(const struct core_pod *p)
{
	return (p->phase == POD_BOOTING || p->phase == POD_CONNECTING) &&
	       !p->presence.connected_at && !pod_is_leaving(p);
}

void boot_read_log(struct core *c, struct core_pod *p)
{
	p->presence.log_reads++;
	/* The read at the deadline then shows what is new since this one. */
	int64_t half = p->rental.create_at + p->presence.boot_limit_ms / 2;
	p->presence.log_at = half > c->now + LOG_WAIT_MS ? half : 0;
	core_act(c, ACT_LOG, pod_index(c, p));
	c->dirty = true;
}

/* At the deadline: a pod that still pulls its image is not on a stuck host. */
bool boot_log_may_help(struct core *c, struct core_pod *p)
{
	if (p->presence.log != LOG_READ || !boot_is_under_way(p) || c->now >= pod_boot_end(c, p))
		return false;
	p->presence.log = LOG_DECIDES;
	p->deadline_at = c->now + LOG_WAIT_MS;
	boot_read_log(c, p);
	return true;
}

void boot_log_came(struct core *c, struct core_pod *p, const struct event *ev)
{
	char left[24];

	p->presence.log_reads--;
	bool moved = p->presence.log != LOG_UNREAD && !ev->err && ev->number > 0;
	if (p->presence.log == LOG_UNREAD && !ev->err)
		p->presence.log = LOG_READ;
	if (p->presence.log != LOG_DECIDES || p->presence.log_reads > 0)
		return;
	p->presence.log = LOG_READ;
	if (!boot_is_under_way(p))
		return;
	if (!moved) {
		boot_timed_out(c, p);
		return;
	}
	p->deadline_at = MIN(c->now + p->presence.boot_limit_ms, pod_boot_end(c, p));
	core_note(c, NOTE_NOTE,
		  "pod %s: still booting, but its provider's log shows progress: it gets "
		  "another %s",
		  p->rental.id, duration_show(left, sizeof(left), p->deadline_at - c->now));
}
