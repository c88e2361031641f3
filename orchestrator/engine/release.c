/* release.c - releases a pod, and reads its provider's log first if that ends with the pod. */
#include "release.h"

#include "base/clock.h"
#include "handed.h"
#include "impl.h"
#include "pod_log.h"
#include "post.h"
#include "request.h"

enum {
	LOG_FRESH_MS = 5000,
	LAST_LOG_MS = 4000, /* shorter than the proof that the pod is gone */
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

/* Releases without the log, because the pod bills. A log that arrives later is still shown. */
static void on_log_timeout(void *ctx)
{
	struct request *a = ctx;

	a->timer = NULL;
	a->released = true;
	send_release(a->e, a->pod);
}

/* Only its provider's log may say why a pod never came up. If that log ends with the pod, read it
 * first. */
void release_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a;

	if (handed_over(e, pod))
		return;
	if (e->pods[pod].logs_requested || !core_log_first(p, clock_boot_ms())) {
		send_release(e, pod);
		return;
	}
	e->pods[pod].logs_requested = true;
	if (pod_log_show_fresh(e, pod, LOG_FRESH_MS)) {
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
		a->timer = loop_timer(e->loop, CORE_LOG_READ_MS, on_log_timeout, a);
	request_begin(a, OP_LOGS, logs_done);
}
