/* release.c - releases a pod; where its provider's log ends with it, reads that first. */
#include "release.h"

#include "base/clock.h"
#include "handed.h"
#include "impl.h"
#include "pod_log.h"
#include "post.h"
#include "request.h"

enum {
	LOG_FRESH_MS = 5000,
	LAST_LOG_MS = 4000, /* less than the proof that it is gone takes */
};

static void release_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_RELEASED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .number = err ? RELEASE_TAKEN : (int)result->release};

	post(a->e, &ev, err);
	request_free(a);
}

static void send_release(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	request_begin(a, OP_RELEASE, release_done);
}

static void logs_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;

	pod_log_show(a->e, a->pod, !err && result ? str_text(&result->text) : "");
	if (!a->released)
		send_release(a->e, a->pod);
	request_free(a);
}

/* The pod bills: what has come of its log by now will do, and what comes later is shown as well. */
static void logs_waited_for(void *ctx)
{
	struct request *a = ctx;

	a->timer = NULL;
	a->released = true;
	send_release(a->e, a->pod);
}

/* Why a pod never came up stands, if anywhere, in its provider's log. Where that ends with the pod
 * it is asked for first. */
void release_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a;

	if (handed_over(e, pod))
		return;
	if (e->pods[pod].logs_asked || !core_log_first(p, clock_boot_ms())) {
		send_release(e, pod);
		return;
	}
	e->pods[pod].logs_asked = true;
	if (e->pods[pod].log_read_at && clock_boot_ms() - e->pods[pod].log_read_at < LOG_FRESH_MS) {
		pod_log_show(e, pod, str_text(&e->pods[pod].log));
		send_release(e, pod);
		return;
	}
	bool outlives = e->setup->providers[p->rental.provider].ops->logs_outlive;
	if (outlives)
		send_release(e, pod);
	a = request_new(e, p->rental.provider, pod);
	COPY_TEXT(a->want.id, p->rental.id);
	a->want.log_ms = LAST_LOG_MS;
	a->released = outlives;
	if (!outlives)
		a->timer = loop_timer(e->loop, CORE_LOG_READ_MS, logs_waited_for, a);
	request_begin(a, OP_LOGS, logs_done);
}
