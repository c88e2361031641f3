/* pods.c - reads, lists and releases pods, with their logs and bills */
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- reading ---- */

static enum pod_state state_of_status(const char *status)
{
	static const struct {
		const char *word;
		enum pod_state state;
	} words[] = {
		{"PROVISIONING", POD_STATE_CREATING}, {"STARTING", POD_STATE_CREATING},
		{"RUNNING", POD_STATE_RUNNING},       {"EXITED", POD_STATE_STOPPED},
		{"ERROR", POD_STATE_FAILED},          {"TERMINATED", POD_STATE_GONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(status, words[i].word))
			return words[i].state;
	return POD_STATE_UNKNOWN;
}

static void read_marker(const json_t *env, struct marker *out)
{
	(void)marker_read(out, jsonx_text(env, "BURST_MACHINE", ""),
			  jsonx_text(env, "BURST_RUN", ""), jsonx_text(env, "BURST_ATTEMPT", ""),
			  jsonx_text(env, "BURST_HARD_END", ""));
}

enum { SSHD_PORT = 22, PORT_MOST = 65535 };

static void set_address_if_valid(struct pod_view *view, const char *host, int64_t port,
				 const char *user)
{
	if (!host[0] || strlen(host) >= sizeof(view->host) || port < 1 || port > PORT_MOST ||
	    !user[0] || strlen(user) >= sizeof(view->user))
		return;
	COPY_TEXT(view->host, host);
	COPY_TEXT(view->user, user);
	view->port = (int)port;
}

/* Uses ssh.direct, else the mapping of port 22. Never ssh.proxy, which cannot transfer files. */
static void read_address(const json_t *from, struct pod_view *view)
{
	const json_t *direct = json_object_get(json_object_get(from, "ssh"), "direct"), *port;
	size_t i;

	set_address_if_valid(view, jsonx_text(direct, "host", ""), jsonx_int(direct, "port", 0),
			     jsonx_text(direct, "username", "root"));
	if (view->port)
		return;
	json_array_foreach (json_object_get(json_object_get(from, "runtime"), "ports"), i, port)
		if (jsonx_int(port, "private", 0) == SSHD_PORT &&
		    !strcmp(jsonx_text(port, "type", "tcp"), "tcp"))
			set_address_if_valid(view, jsonx_text(port, "ip", ""),
					     jsonx_int(port, "public", 0), "root");
}

/* Sets state, preempted and detail. view->spot is set before. */
static void read_state(const json_t *from, struct pod_view *view)
{
	const char *status = jsonx_text(from, "status", "");
	const json_t *gpu = json_object_get(from, "gpu");

	view->state = state_of_status(status);
	view->preempted =
		view->spot && (view->state == POD_STATE_STOPPED || view->state == POD_STATE_GONE);
	switch (view->state) {
	case POD_STATE_UNKNOWN:
		snprintf(view->detail, sizeof(view->detail), "RunPod's status is %.40s", status);
		break;
	case POD_STATE_FAILED:
		COPY_TEXT(view->detail, "RunPod's status is ERROR: its container cannot run");
		break;
	case POD_STATE_STOPPED: COPY_TEXT(view->detail, "RunPod's status is EXITED"); break;
	case POD_STATE_RUNNING:
		if (gpu && !jsonx_int(gpu, "count", 1)) {
			view->state = POD_STATE_FAILED;
			COPY_TEXT(view->detail, "it booted without a GPU");
		}
		break;
	case POD_STATE_CREATING:
	case POD_STATE_GONE:
	case POD_STATE_QUEUED: break;
	}
}

int pod_read(const json_t *from, struct pod_view *out, struct err *err)
{
	const char *id = jsonx_text(from, "id", ""),
		   *type = jsonx_text(json_object_get(from, "gpu"), "id", "");
	const json_t *env = json_object_get(from, "env");
	struct pod_view view = {0};

	if (!api_id_is_sound(id))
		return err_set(err, ERR_TRANSIENT, "a pod without a usable id");
	COPY_TEXT(view.id, id);
	COPY_TEXT(view.name, jsonx_text(from, "name", ""));
	read_marker(env, &view.marker);
	view.spot = !strcmp(jsonx_text(env, "BURST_SPOT", ""), "1");
	read_state(from, &view);
	/* a stopped pod may still show its old address */
	if (view.state == POD_STATE_RUNNING || view.state == POD_STATE_UNKNOWN)
		read_address(from, &view);
	if (type[0])
		set_gpu_name(view.gpu, type, "");
	else if (json_is_object(json_object_get(from, "cpu")))
		COPY_TEXT(view.gpu, "none");
	COPY_TEXT(view.region, jsonx_text(from, "dataCenterId", ""));
	view.price_microusd_h = web_microusd(from, "cost");
	view.created_at_s = clock_read_rfc3339(jsonx_text(from, "createdAt", ""));
	view.started_at_s = clock_read_rfc3339(jsonx_text(from, "startedAt", ""));
	*out = view;
	return 0;
}

/* ---- inspect and list ---- */

/* A pod that RunPod does not know is GONE: RunPod bills nothing for it. */
enum op_next inspect_next(struct turn *t)
{
	if (!t->reply)
		return api_request(t, CALL_POLL, "GET", NULL, "/pods/%s", t->op->want->id);
	CLEANUP(json_decref) json_t *pod = api_read_object(t, "looking at a pod");
	if (!pod && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	struct pod_view view = {.state = POD_STATE_GONE};
	COPY_TEXT(view.id, t->op->want->id);
	COPY_TEXT(view.detail, "RunPod does not know this pod");
	if (pod && pod_read(pod, &view, t->err) < 0)
		return OP_FAILED;
	err_clear(t->err);
	*op_result_add_pod(&t->op->got) = view;
	return api_done(t);
}

/* Whether the name is "burst-ATTEMPT". It stays if a user removes the marker from the environment
 * in RunPod's console; such a pod must be listed, or it would count as gone. */
static bool has_our_name(const json_t *pod)
{
	const char *name = jsonx_text(pod, "name", "");

	return starts_with(name, "burst-") && strspn(name + 6, "0123456789abcdef") == 16 &&
	       !name[22];
}

/* Adds the pods of burst on this page. Returns 1 if there are more pages, 0 if not, -1 on error. */
static int read_page(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "pods"), *item;
	struct pod_view view;
	size_t i;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "listing pods: the answer has no list");
	json_array_foreach (list, i, item) {
		struct marker marker = {0};
		read_marker(json_object_get(item, "env"), &marker);
		if (!marker.attempt[0] && !has_our_name(item))
			continue; /* not burst's */
		if (pod_read(item, &view, t->err) < 0)
			return err_wrap(t->err, "listing pods");
		/* pods changed between two pages */
		if (!t->op->pages || !op_result_has_pod(&t->op->got, view.id))
			*op_result_add_pod(&t->op->got) = view;
		if (op_result_check_counts(&t->op->got, t->err) < 0)
			return -1;
	}
	return api_next_page(t, answer, "pods");
}

enum op_next list_next(struct turn *t)
{
	if (!t->reply)
		return api_request_pods(t);
	CLEANUP(json_decref) json_t *answer = api_read_object(t, "listing pods");
	int more = answer ? read_page(t, answer) : -1;
	if (more > 0)
		return api_request_pods(t);
	return more < 0 ? OP_FAILED : api_done(t);
}

/* ---- release ---- */

/* Whether the pod is gone; sets result.release. If not, t->err has the reason. */
static bool check_release_reply(struct turn *t, const char *doing)
{
	t->op->got.release = api_check(t, doing) == 0 ? RELEASE_ENDED : RELEASE_ABSENT;
	return t->op->got.release == RELEASE_ENDED || t->err->kind == ERR_NOT_FOUND;
}

/* Sends DELETE. If RunPod does not allow it (409: the pod is locked, or in the wrong state):
 * unlocks, sends DELETE again, then "terminate". */
enum op_next release_next(struct turn *t)
{
	static const char *const doing = "ending a pod";
	struct op *op = t->op;
	const char *id = op->want->id;

	switch (op->step++) {
	case 0: return api_request(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 1:
		if (check_release_reply(t, doing))
			break;
		if (t->err->kind != ERR_REFUSED && t->err->kind != ERR_CONFIG &&
		    t->err->kind != ERR_BUG)
			return OP_FAILED;
		op->first = *t->err;
		err_clear(t->err);
		return api_request(t, CALL_RELEASE, "PATCH", json_pack("{s:b}", "locked", 0),
				   "/pods/%s", id);
	case 2: /* whatever the reply to the unlocking */
		return api_request(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 3:
		if (check_release_reply(t, doing))
			break;
		err_clear(t->err);
		return api_request(t, CALL_RELEASE, "POST",
				   json_pack("{s:s}", "action", "terminate"), "/pods/%s/action",
				   id);
	default:
		if (check_release_reply(t, doing))
			break;
		*t->err = op->first;
		return OP_FAILED;
	}
	err_clear(t->err);
	return api_done(t);
}

/* ---- logs: reads a pod's log, and whether its image cannot be pulled ---- */

enum { PULLS_ENOUGH = 2, DATA_LEN = sizeof("data:") - 1 };
enum { LOG_WAIT_MS = 8000, LOG_LINES = 200, LOG_MOST = 64 << 10, BLOCK_MOST_BYTES = 1 << 20 };

/* The failed pulls of an image at the end of a log. */
struct pulls {
	int failures; /* without another line after them; PULLS_ENOUGH: it cannot be pulled */
	char last[300];
};

/* Whether the account cannot get the image, or not soon (a rate limit), however often the host
 * retries. */
static bool is_hopeless_pull(const char *line)
{
	return provider_judge_pull(line, false) != PULL_MAY_WORK;
}

static bool is_failed_pull(const char *line)
{
	return strcasestr(line, "error pulling image") || strcasestr(line, "failed to pull") ||
	       is_hopeless_pull(line);
}

/* Counts a failed pull; any other line that is not about a pull starts the count again. */
static void note_pull(struct pulls *p, const char *line)
{
	if (is_failed_pull(line)) {
		p->failures += is_hopeless_pull(line) ? PULLS_ENOUGH : 1;
		COPY_TEXT(p->last, line);
	} else if (!strcasestr(line, "pulling")) {
		p->failures = 0;
	}
}

/* Appends the line of one event (JSON) as "SOURCE: LINE". */
static void append_event(struct str *to, const struct str *data, struct pulls *pulls)
{
	CLEANUP(json_decref) json_t *event = jsonx_parse(str_text(data), data->len, NULL);
	const char *line = jsonx_text(event, "line", NULL);

	if (!line)
		return; /* truncated, or not a line of the log */
	if (!strcmp(jsonx_text(event, "source", ""), "system"))
		note_pull(pulls, line);
	str_addf(to, "%s: ", jsonx_text(event, "source", "log"));
	for (const char *p = line; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

/* Appends the lines of a text/event-stream, and "image: REASON" if it cannot be pulled. */
static void append_log_of_events(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str data = STR_MAX(BLOCK_MOST_BYTES);
	struct pulls pulls = {0};
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len))) {
		size_t shown = len && line[len - 1] == '\r' ? len - 1 : len;
		if (!line[len])
			break; /* the connection broke within this line */
		if (!shown) {
			append_event(to, &data, &pulls);
			str_reset(&data);
		} else if (shown >= DATA_LEN && !strncmp(line, "data:", DATA_LEN)) {
			size_t skip = DATA_LEN + (shown > DATA_LEN && line[DATA_LEN] == ' ');
			if (data.len)
				str_addc(&data, '\n');
			str_addn(&data, line + skip, shown - skip);
		}
	}
	append_event(to, &data, &pulls);
	if (pulls.failures < PULLS_ENOUGH)
		return;
	str_add(to, "image: ");
	for (const char *p = pulls.last; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

/* The stream never ends by itself, and sends nothing, not even its head, before the first line. The
 * time limit ends it; what arrived until then is the log. */
enum op_next logs_next(struct turn *t)
{
	if (!t->reply) {
		enum op_next next = api_request(t, CALL_POLL, "GET", NULL, "/pods/%s/logs?tail=%d",
						t->op->want->id, LOG_LINES);
		call_header(t->call, "Accept: text/event-stream");
		t->call->may_repeat = false;
		t->call->timeout_ms =
			t->op->want->log_ms ? MIN(t->op->want->log_ms, LOG_WAIT_MS) : LOG_WAIT_MS;
		return next;
	}
	if ((!t->reply->failed || !t->reply->was_sent) && api_check(t, "log of a pod") < 0)
		return OP_FAILED;
	t->op->got.text = STR_MAX(LOG_MOST);
	append_log_of_events(&t->op->got.text, str_text(&t->reply->body));
	return api_done(t);
}

/* ---- billing: reads what RunPod has billed for a pod, hour by hour ---- */

enum { CLOCKS_APART_S = 120 };
#define HOUR_MS 3600000.0
#define MS_MOST 1e15

/* Requests the hours since the pod's start. RunPod's clock may be a little behind ours. */
static enum op_next request_bill(struct turn *t)
{
	const struct op_want *want = t->op->want;
	char since[32] = "";

	if (want->since_s > CLOCKS_APART_S)
		clock_rfc3339(since, sizeof(since), (want->since_s - CLOCKS_APART_S) * 1000);
	return api_request(t, CALL_POLL, "GET", NULL, "/billing/pods?podId=%s&bucketSize=hour%s%s",
			   want->id, since[0] ? "&startTime=" : "", since);
}

static int compare_starts(const void *a, const void *b)
{
	const struct bill_hour *x = a, *y = b;

	return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* An absurd amount counts as nothing and is noted. */
static void add_hour(struct op_bill *bill, const json_t *record, size_t *cap)
{
	GROW(bill->hours, bill->hour_count, *cap);
	struct bill_hour *hour = &bill->hours[bill->hour_count++];
	hour->start_s = clock_read_rfc3339(jsonx_text(record, "startTime", ""));
	hour->end_s = clock_read_rfc3339(jsonx_text(record, "endTime", ""));
	hour->cost_microusd = web_microusd(record, "totalAmount");
	if (hour->cost_microusd == VENDOR_MOST_MICROUSD) {
		hour->cost_microusd = 0;
		COPY_TEXT(bill->note, "RunPod's bill has an amount that cannot be right and does "
				      "not count: check RunPod's console");
	}
	bill->cost_microusd += hour->cost_microusd;
}

/* Derives the billed time from the pod's price (with disk): RunPod reports dollars only. */
static void set_billed_time(struct op_bill *bill, const struct op_want *want)
{
	if (want->bill.price_microusd_h <= 0)
		return;
	double ms = (double)bill->cost_microusd * HOUR_MS / (double)want->bill.price_microusd_h;
	bill->billed_ms = (int64_t)MIN(ms, MS_MOST);
}

/* ERR_NOT_FOUND: RunPod has no hour of this pod yet. */
static int read_bill(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "records"), *item;
	struct op_bill *bill = &t->op->got.billing;
	size_t i, cap = 0;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "billing: the answer has no records");
	json_array_foreach (list, i, item) {
		if (strcmp(jsonx_text(item, "podId", ""), t->op->want->id))
			continue;
		add_hour(bill, item, &cap);
	}
	if (!bill->hour_count)
		return err_set(t->err, ERR_NOT_FOUND, "RunPod has no record of pod %s's costs yet",
			       t->op->want->id);
	if (bill->hour_count)
		qsort(bill->hours, bill->hour_count, sizeof(*bill->hours), compare_starts);
	set_billed_time(bill, t->op->want);
	return 0;
}

enum op_next billing_next(struct turn *t)
{
	if (!t->reply)
		return request_bill(t);
	CLEANUP(json_decref) json_t *answer = api_read_object(t, "billing");
	return answer && read_bill(t, answer) == 0 ? api_done(t) : OP_FAILED;
}
