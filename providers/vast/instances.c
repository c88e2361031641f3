/* instances.c - reads, lists and releases instances, with their logs and bills */
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- the marker ---- */

static bool next_part(const char **at, char *to, size_t room)
{
	size_t len = strcspn(*at, "/");

	if (len >= room)
		return false;
	memcpy(to, *at, len);
	to[len] = '\0';
	*at += len + ((*at)[len] == '/');
	return true;
}

/* Reads what rent.c writes. The name stays recognizable where the rest is cut off. */
static void read_marker(const char *text, struct pod_view *view)
{
	char name[POD_NAME_MAX], machine[40], run[40], hard_end[24];

	if (!starts_with(text, "burst-") || !next_part(&text, name, sizeof(name)))
		return;
	COPY_TEXT(view->name, name);
	if (next_part(&text, machine, sizeof(machine)) && next_part(&text, run, sizeof(run)) &&
	    next_part(&text, hard_end, sizeof(hard_end)))
		(void)marker_read(&view->marker, machine, run, name + strlen("burst-"), hard_end);
}

/* The value of a variable of "extra_env": a list has [["NAME","VALUE"],..], a single instance
 * ["NAME=VALUE",..]. "": absent. */
static const char *variable(const json_t *from, const char *name)
{
	size_t i, len = strlen(name);
	const json_t *one;

	json_array_foreach (json_object_get(from, "extra_env"), i, one) {
		const char *key = json_string_value(json_array_get(one, 0)),
			   *value = json_string_value(json_array_get(one, 1)),
			   *both = json_string_value(one);
		if (key && value && !strcmp(key, name))
			return value;
		if (both && starts_with(both, name) && both[len] == '=')
			return both + len + 1;
	}
	return "";
}

/* Whether the name is "burst-ATTEMPT". */
static bool is_our_name(const char *name)
{
	return starts_with(name, "burst-") && strspn(name + 6, "0123456789abcdef") == ATTEMPT_LEN &&
	       !name[6 + ATTEMPT_LEN];
}

/* ---- the state ---- */

enum { SSHD_PORT_MOST = 65535 };

static bool says(const json_t *from, const char *key, const char *word)
{
	return !strcmp(jsonx_text(from, key, ""), word);
}

/* By actual_status; "" where it is null: the instance is being provisioned. "created" is Docker's
 * word for a container that has not started. */
static enum pod_state state_of_status(const char *status)
{
	static const struct {
		const char *word;
		enum pod_state state;
	} words[] = {
		{"", POD_STATE_CREATING},
		{"created", POD_STATE_CREATING},
		{"loading", POD_STATE_CREATING},
		{"rebooting", POD_STATE_CREATING},
		{"running", POD_STATE_RUNNING},
		{"exited", POD_STATE_STOPPED},
		{"stopped", POD_STATE_STOPPED},
		{"frozen", POD_STATE_STOPPED},
		{"offline", POD_STATE_STOPPED},
		{"unknown", POD_STATE_UNKNOWN}, /* no recent heartbeat from the host */
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(status, words[i].word))
			return words[i].state;
	return POD_STATE_UNKNOWN;
}

/* Whether Vast has stopped the instance, whatever its container did last: outbid, or the account
 * has no credit. burst itself never stops one. */
static bool is_stopped_by_vast(const json_t *from)
{
	return says(from, "intended_status", "stopped") && says(from, "cur_state", "stopped") &&
	       says(from, "next_state", "stopped");
}

/* Whether the text of an instance that is still loading reports a failure for good. */
static bool has_failed_to_load(enum pod_state state, const char *message)
{
	return state == POD_STATE_CREATING && starts_with(message, "Error");
}

/* Sets state, preempted and detail. view->spot is set before. */
static void read_state(const json_t *from, struct pod_view *view)
{
	const char *status = jsonx_text(from, "actual_status", ""),
		   *message = jsonx_text(from, "status_msg", "");

	view->state = state_of_status(status);
	if (says(from, "cur_state", "unloaded")) {
		view->state = POD_STATE_GONE; /* destroyed, and not yet left out of the list */
	} else if (is_stopped_by_vast(from)) {
		view->state = POD_STATE_STOPPED;
		view->preempted = view->spot;
		COPY_TEXT(view->detail, view->spot ? "Vast.ai stopped it: it was outbid"
						   : "Vast.ai stopped it: has the account credit?");
	} else if (has_failed_to_load(view->state, message)) {
		view->state = POD_STATE_FAILED;
		snprintf(view->detail, sizeof(view->detail), "Vast.ai: %.180s", message);
	} else if (view->state == POD_STATE_STOPPED || view->state == POD_STATE_UNKNOWN) {
		snprintf(view->detail, sizeof(view->detail), "Vast.ai's status is %.40s%s%.120s",
			 status, message[0] ? ": " : "", message);
	}
}

/* The host's port in front of the container's sshd: "ports":{"22/tcp":[{"HostPort":"20000"}]}. */
static void read_address(const json_t *from, struct pod_view *view)
{
	const json_t *first =
		json_array_get(json_object_get(json_object_get(from, "ports"), "22/tcp"), 0);
	const char *host = jsonx_text(from, "public_ipaddr", "");
	long port = strtol(jsonx_text(first, "HostPort", ""), NULL, 10);
	size_t len;

	host += strspn(host, " \n");
	len = strcspn(host, " \n");
	if (!len || len >= sizeof(view->host) || port < 1 || port > SSHD_PORT_MOST)
		return;
	memcpy(view->host, host, len);
	view->host[len] = '\0';
	COPY_TEXT(view->user, "root");
	view->port = (int)port;
}

/* Reads an instance as Vast describes it. ERR_TRANSIENT if it is none. */
static int read_instance(const json_t *from, struct pod_view *out, struct err *err)
{
	struct pod_view view = {0};
	int64_t id = jsonx_int(from, "id", 0);
	double start_s = jsonx_number(from, "start_date", 0);

	if (id <= 0)
		return err_set(err, ERR_TRANSIENT, "an instance without a usable id");
	snprintf(view.id, sizeof(view.id), "%lld", (long long)id);
	COPY_TEXT(view.name, jsonx_text(from, "label", ""));
	read_marker(variable(from, VAST_MARKER_VAR), &view);
	if (!view.marker.attempt[0])
		read_marker(jsonx_text(from, "label", ""), &view);
	view.spot = jsonx_bool(from, "is_bid", false);
	read_state(from, &view);
	/* a stopped instance may still show its old address */
	if (view.state == POD_STATE_RUNNING || view.state == POD_STATE_UNKNOWN)
		read_address(from, &view);
	if (jsonx_text(from, "gpu_name", "")[0])
		vast_set_gpu_name(view.gpu, jsonx_text(from, "gpu_name", ""), vast_vram_gb(from));
	vast_set_region(view.region, jsonx_text(from, "geolocation", ""));
	view.price_microusd_h = web_microusd(from, "dph_total");
	if (start_s > 0 && start_s <= (double)EPOCH_MOST_S)
		view.created_at_s = (int64_t)start_s;
	*out = view;
	return 0;
}

/* ---- inspect and list ---- */

/* An instance that Vast does not know is GONE: Vast bills nothing for it. It answers 404, or 200
 * with null. */
enum op_next vast_inspect_next(struct turn *t)
{
	if (!t->reply)
		return vast_request(t, CALL_POLL, "GET", NULL, "/v0/instances/%s/",
				    t->op->want->id);
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "looking at a pod");
	if (!answer && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	const json_t *instance = json_object_get(answer, "instances");
	struct pod_view view = {.state = POD_STATE_GONE};
	COPY_TEXT(view.id, t->op->want->id);
	COPY_TEXT(view.detail, "Vast.ai does not know this instance");
	if (answer && !instance)
		return turn_fail(t, ERR_TRANSIENT, "looking at a pod: the answer has no instance");
	if (json_is_object(instance) && read_instance(instance, &view, t->err) < 0)
		return OP_FAILED;
	err_clear(t->err);
	*op_result_add_pod(&t->op->got) = view;
	return vast_done(t);
}

/* Requests the page of the list at op->token. */
static enum op_next request_page(struct turn *t)
{
	CLEANUP(str_free) struct str token = STR_INIT;

	web_escape(&token, t->op->token, "-_.~");
	return vast_request(t, CALL_POLL, "GET", NULL, "/v1/instances/?limit=25%s%s",
			    token.len ? "&after_token=" : "", str_text(&token));
}

/* Adds the pods of burst on this page. Returns 1 if there are more pages, 0 if not, -1 on error. */
static int read_page(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "instances"), *item;
	struct op *op = t->op;
	struct pod_view view;
	size_t i;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "listing pods: the answer has no list");
	json_array_foreach (list, i, item) {
		if (read_instance(item, &view, t->err) < 0)
			return err_wrap(t->err, "listing pods");
		if (!view.marker.attempt[0] && !is_our_name(view.name))
			continue; /* not burst's */
		/* instances changed between two pages */
		if (!op->pages || !op_result_has_pod(&op->got, view.id))
			*op_result_add_pod(&op->got) = view;
		if (op_result_check_counts(&op->got, t->err) < 0)
			return -1;
	}
	return vast_next_page(t, answer, "instances", json_array_size(list),
			      jsonx_int(answer, "total_instances", 0));
}

enum op_next vast_list_next(struct turn *t)
{
	if (!t->reply)
		return request_page(t);
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "listing pods");
	int more = answer ? read_page(t, answer) : -1;
	if (more > 0)
		return request_page(t);
	return more < 0 ? OP_FAILED : vast_done(t);
}

/* ---- release ---- */

/* Always DELETE: a stopped instance goes on billing its disk. */
enum op_next vast_release_next(struct turn *t)
{
	if (!t->reply)
		return vast_request(t, CALL_RELEASE, "DELETE", NULL, "/v0/instances/%s/",
				    t->op->want->id);
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "ending a pod");
	if (!answer && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	t->op->got.release = answer ? RELEASE_ENDED : RELEASE_ABSENT;
	err_clear(t->err);
	return vast_done(t);
}

/* ---- logs ---- */

enum { LOG_TRIES = 10, LOG_PAUSE_MS = 700, LOG_MOST = 64 << 10, LOG_LINES = 200, LOG_STEPS = 3 };

/* Keeps what Vast says of the instance: its own line of the log, and why its image cannot be
 * pulled as the last one. */
static void add_status_line(struct str *to, const json_t *answer)
{
	const char *message = jsonx_text(json_object_get(answer, "instances"), "status_msg", "");

	if (!message[0])
		return;
	str_add(to, provider_judge_pull(message, false) == PULL_MAY_WORK ? "vast: " : "image: ");
	str_add_printable(to, message, strlen(message), LOG_MOST / 8);
	str_addc(to, '\n');
}

/* Puts the container's lines, each with its source, before the status line. */
static void add_container_lines(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str status = *to;
	struct str lines = STR_MAX(LOG_MOST);
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len))) {
		str_add(&lines, "container: ");
		str_add_printable(&lines, line, len, 0);
		str_addc(&lines, '\n');
	}
	lines.max = 0;
	str_add(&lines, str_text(&status));
	*to = lines;
}

/* Keeps the address where Vast puts the log. It is another server's, and gets no key. */
static int read_log_url(struct turn *t)
{
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "log of a pod");
	const char *url = jsonx_text(answer, "result_url", "");

	if (!answer)
		return -1;
	if (!starts_with(url, "https://") && !starts_with(url, t->op->provider->root))
		return err_set(t->err, ERR_TRANSIENT, "log of a pod: the answer has no address");
	t->op->log_url = xstrdup(url);
	return 0;
}

static enum op_next request_log_file(struct turn *t)
{
	*t->call = (struct call){.kind = CALL_HTTP,
				 .class = CALL_POLL,
				 .unlimited = true,
				 .may_repeat = true,
				 .timeout_ms = 10000,
				 .max_bytes = 1 << 20,
				 .method = "GET",
				 .url = xstrdup(t->op->log_url)};
	return OP_CALL;
}

/* Steps: the instance's own message; the request that its host writes the log to a file; that file,
 * as soon as it is there. */
enum op_next vast_logs_next(struct turn *t)
{
	struct op *op = t->op;
	const char *id = op->want->id;

	if (op->step >= LOG_STEPS && !t->reply) /* a wait has ended */
		return request_log_file(t);
	switch (op->step++) {
	case 0: return vast_request(t, CALL_POLL, "GET", NULL, "/v0/instances/%s/", id);
	case 1: {
		CLEANUP(json_decref) json_t *answer = vast_read_object(t, "log of a pod");
		if (!answer)
			return OP_FAILED;
		add_status_line(&op->got.text, answer);
		return vast_request(t, CALL_POLL, "PUT",
				    json_pack("{s:o}", "tail", json_sprintf("%d", LOG_LINES)),
				    "/v0/instances/request_logs/%s/", id);
	}
	case 2:
		if (read_log_url(t) == 0)
			return request_log_file(t);
		if (!op->got.text.len)
			return OP_FAILED;
		break; /* its own message is better than none */
	default:
		op->step = LOG_STEPS;
		if (!t->reply->failed && t->reply->status == 200)
			add_container_lines(&op->got.text, str_text(&t->reply->body));
		else if (++op->tries < LOG_TRIES &&
			 (!op->want->log_ms || op->tries * LOG_PAUSE_MS <= op->want->log_ms))
			return turn_wait(t, LOG_PAUSE_MS);
	}
	err_clear(t->err);
	return vast_done(t);
}

/* ---- billing: what Vast has charged for an instance ---- */

enum { CHARGE_DAYS = 31, CHARGES_A_PAGE = 500 };
#define DAY_S   INT64_C(86400)
#define LATEST  INT64_C(4102444800) /* 2100-01-01 */
#define HOUR_MS 3600000.0
#define MS_MOST 1e15

/* Requests the page at op->token of the charges since the pod's first day. Vast wants both ends of
 * the range. */
static enum op_next request_charges(struct turn *t)
{
	const struct op_want *want = t->op->want;
	int64_t from = MAX(want->since_s - DAY_S, INT64_C(0));
	int64_t until = want->since_s > 0 ? from + CHARGE_DAYS * DAY_S : LATEST;
	CLEANUP(str_free) struct str filters = STR_INIT;
	CLEANUP(str_free) struct str token = STR_INIT;
	CLEANUP(json_decref)
	json_t *what = json_pack("{s:{s:I,s:I},s:{s:[s]}}", "day", "gte", (json_int_t)from, "lte",
				 (json_int_t)until, "type", "in", "instance");
	CLEANUP(free_text) char *line = jsonx_line(what);

	web_escape(&filters, line, "-_.~");
	web_escape(&token, t->op->token, "-_.~");
	return vast_request(t, CALL_POLL, "GET", NULL,
			    "/v0/charges/?select_filters=%s&latest_first=true&limit=%d%s%s",
			    str_text(&filters), CHARGES_A_PAGE, token.len ? "&after_token=" : "",
			    str_text(&token));
}

/* Derives the billed time from the pod's price: an entry has dollars, rounded to three decimals. */
static void set_billed_time(struct op_bill *bill, const struct op_want *want)
{
	if (want->bill.price_microusd_h <= 0)
		return;
	double ms = (double)(bill->cost_microusd - bill->beside_microusd) * HOUR_MS /
		    (double)want->bill.price_microusd_h;
	bill->billed_ms = (int64_t)MIN(ms, MS_MOST);
}

/* The part of an entry that is for traffic, "bwd" and "bwu": it does not grow with time. */
static int64_t traffic_of(const json_t *entry)
{
	const json_t *item;
	int64_t sum = 0;
	size_t i;

	json_array_foreach (json_object_get(entry, "items"), i, item)
		if (says(item, "type", "bwd") || says(item, "type", "bwu"))
			sum = MIN(sum + web_microusd(item, "amount"), VENDOR_MOST_MICROUSD);
	return sum;
}

/* Adds the entries of this instance. Returns how many there are. */
static int read_charges(struct op *op, const json_t *list)
{
	CLEANUP(free_text) char *source = xasprintf("instance-%s", op->want->id);
	struct op_bill *bill = &op->got.billing;
	const json_t *item;
	int count = 0;
	size_t i;

	json_array_foreach (list, i, item) {
		int64_t cost = web_microusd(item, "amount");
		if (strcmp(jsonx_text(item, "source", ""), source))
			continue;
		count++;
		if (cost == VENDOR_MOST_MICROUSD) {
			COPY_TEXT(bill->note,
				  "Vast.ai's bill has an amount that cannot be right and "
				  "does not count: check Vast's console");
			continue;
		}
		bill->cost_microusd = MIN(bill->cost_microusd + cost, VENDOR_MOST_MICROUSD);
		bill->beside_microusd =
			MIN(bill->beside_microusd + traffic_of(item), bill->cost_microusd);
	}
	return count;
}

/* ERR_NOT_FOUND: no page has this instance yet. */
enum op_next vast_billing_next(struct turn *t)
{
	struct op *op = t->op;

	if (!t->reply)
		return request_charges(t);
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "billing");
	const json_t *list = json_object_get(answer, "results");
	if (!answer)
		return OP_FAILED;
	if (!json_is_array(list))
		return turn_fail(t, ERR_TRANSIENT, "billing: the answer has no results");
	op->tries += read_charges(op, list);
	int more = vast_next_page(t, answer, "charges", json_array_size(list), 0);
	if (more > 0)
		return request_charges(t);
	if (more < 0)
		return OP_FAILED;
	if (!op->tries)
		return turn_fail(t, ERR_NOT_FOUND, "Vast.ai has no record of pod %s's costs yet",
				 op->want->id);
	set_billed_time(&op->got.billing, op->want);
	return vast_done(t);
}
