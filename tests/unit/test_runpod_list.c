/* test_runpod_list.c - pods are listed, inspected and released; their logs and bills are read. */
#include "runpod_play.h"

#define DIRECT                                                                                     \
	",\"runtime\":{\"uptime\":3},\"ssh\":{\"proxy\":{\"host\":\"ssh.runpod.io\",\"port\":22,"  \
	"\"username\":\"u-1\","                                                                    \
	"\"command\":\"ssh\"},\"direct\":{\"host\":\"203.0.113.9\",\"port\":43210,\"username\":"   \
	"\"root\",\"command\":\"ssh\"}}"

static const struct {
	const char *name, *status, *more;
	enum pod_state state;
	int port;
} states[] = {
	{"F9: provisioning", "PROVISIONING", "", POD_STATE_CREATING, 0},
	{"starting", "STARTING", DIRECT, POD_STATE_CREATING, 0},
	{"running", "RUNNING", DIRECT, POD_STATE_RUNNING, 43210},
	{"F10: running, no runtime", "RUNNING",
	 ",\"runtime\":null,\"ssh\":{\"proxy\":null,\"direct\":null}", POD_STATE_RUNNING, 0},
	{"F10: running, empty runtime", "RUNNING", ",\"runtime\":{}", POD_STATE_RUNNING, 0},
	{"by its mapping", "RUNNING",
	 ",\"runtime\":{\"ports\":[{\"private\":8888,\"public\":1,\"type\":\"http\",\"ip\":\"x\"},{"
	 "\"private\":22,\"public\":40022,"
	 "\"type\":\"tcp\",\"ip\":\"203.0.113.9\"}]}",
	 POD_STATE_RUNNING, 40022},
	{"a port that is none", "RUNNING",
	 ",\"ssh\":{\"direct\":{\"host\":\"h\",\"port\":70000,\"username\":\"root\"}}",
	 POD_STATE_RUNNING, 0},
	{"F15: exited, stale address", "EXITED", DIRECT, POD_STATE_STOPPED, 0},
	{"F14: error", "ERROR", "", POD_STATE_FAILED, 0},
	{"terminated", "TERMINATED", "", POD_STATE_GONE, 0},
	{"F18: an unknown word", "RESTARTING", DIRECT, POD_STATE_UNKNOWN, 43210},
	{"F25: no GPU", "RUNNING", ",\"gpu\":{\"id\":\"NVIDIA GeForce RTX 4090\",\"count\":0}",
	 POD_STATE_FAILED, 0},
	{"F27: locked", "RUNNING", ",\"locked\":true", POD_STATE_RUNNING, 0},
};

static void states_are_read(void **state)
{
	struct op_want want = {.id = "7h9k2m4n6p"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		/* the later of two members of one name counts */
		CLEANUP(free_text)
		char *body =
			xasprintf("{\"id\":\"7h9k2m4n6p\",\"name\":\"n\",\"status\":\"%s\"%s," ENV
				  ",\"createdAt\":\"2026-11-20T23:10:00Z\",\"startedAt\":\"2026-11-"
				  "21T00:10:01+01:00\"}",
				  states[i].status, states[i].more);
		struct played p = PLAY(OP_INSPECT, &want, {200, body});
		check_done(states[i].name, &p);
		const struct pod_view *v = &p.result.pods[0];
		if (v->state != states[i].state || v->port != states[i].port)
			fail_msg("%s: %s, port %d", states[i].name, pod_state_name(v->state),
				 v->port);
		assert_int_equal(v->created_at_s, 1795216200);
		assert_int_equal(v->started_at_s, 1795216201);
		assert_int_equal(v->marker.hard_end_s, 1800000000);
		played_free(&p);
	}
}

static void a_preempted_spot_pod_is_known(void **state)
{
	struct op_want want = {.id = "a"};
	struct played p =
		PLAY(OP_INSPECT, &want,
		     {200, "{\"id\":\"a\",\"status\":\"EXITED\",\"env\":{\"BURST_SPOT\":\"1\"}}"});

	(void)state;
	assert_true(p.result.pods[0].preempted);
	played_free(&p);
	p = PLAY(OP_INSPECT, &want, {200, "{\"id\":\"a\",\"status\":\"EXITED\",\"env\":{}}"});
	assert_false(p.result.pods[0].preempted);
	played_free(&p);
	p = PLAY(OP_INSPECT, &want, {404, PROBLEM(404, "pod not found")});
	check_done("forgotten", &p);
	assert_int_equal(p.result.pods[0].state, POD_STATE_GONE);
	played_free(&p);
}

/* The list shows of each pod all that it was created with. */
static void a_thousand_pods_can_be_listed(void **state)
{
	struct op_want want = a_rent(), none = {0};

	(void)state;
	want.rent.start_script = pod_kit()->start_script;
	struct played rent = PLAY(OP_RENT, &want, {201, CREATED});
	struct played list = PLAY(OP_LIST, &none, {200, "{\"pods\":[]}"});
	assert_true(rent.calls == 1 && list.calls == 1);
	assert_true(rent.call[0].body.len > 10000);
	assert_true(list.call[0].max_bytes > 1000 * (rent.call[0].body.len + 2000));
	played_free(&rent);
	played_free(&list);
}

static void only_marked_pods_are_listed(void **state)
{
	static const char list[] = "{\"pods\":[" POD_OF(
		"p1", "RUNNING",
		DIRECT) ",{\"id\":\"stranger\",\"status\":\"RUNNING\",\"env\":{}},"
			"{\"id\":\"no/id of "
			"ours\",\"env\":{}},{\"id\":\"half\",\"env\":{\"BURST_RUN\":\"r\",\"BURST_"
			"ATTEMPT\":\"a\","
			"\"BURST_MACHINE\":\"m\",\"BURST_HARD_END\":\"soon\"}}," POD_OF(
				"p2", "RUNNING", "") "],\"unknown\":{\"x\":[]}}";
	struct op_want want = {0};
	struct played p = PLAY(OP_LIST, &want, {200, list});

	(void)state;
	check_done("F28, F29", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods");
	assert_int_equal(p.result.pod_count, 2);
	assert_string_equal(p.result.pods[0].id, "p1");
	assert_string_equal(p.result.pods[0].host, "203.0.113.9");
	assert_string_equal(p.result.pods[0].user, "root");
	assert_string_equal(p.result.pods[0].gpu, "RTX 4090");
	assert_string_equal(p.result.pods[1].id, "p2");
	played_free(&p);
	/* an end beyond all time is one that can be reckoned with */
	p = PLAY(OP_LIST, &want,
		 {200, "{\"pods\":[{\"id\":\"p6\",\"env\":{\"BURST_RUN\":\"r\",\"BURST_ATTEMPT\":"
		       "\"a\",\"BURST_MACHINE\":\"m\","
		       "\"BURST_HARD_END\":\"99999999999999999999\"}}]}"});
	check_done("no end", &p);
	assert_int_equal(p.result.pod_count, 1);
	assert_int_equal(p.result.pods[0].marker.hard_end_s, EPOCH_MOST_S);
	assert_false(pod_is_overdue(p.result.pods[0].marker.hard_end_s, INT64_C(1800000000000)));
	played_free(&p);
	/* somebody has edited its environment: it bills all the same */
	p = PLAY(OP_LIST, &want,
		 {200,
		  "{\"pods\":[{\"id\":\"p3\",\"name\":\"burst-0123456789abcdef\",\"status\":"
		  "\"RUNNING\",\"env\":{}},"
		  "{\"id\":\"p4\",\"name\":\"burst-pipe\",\"status\":\"RUNNING\"},"
		  "{\"id\":\"p5\",\"name\":\"burst-0123456789abcdef0\",\"status\":\"RUNNING\"}]}"});
	check_done("its mark is gone", &p);
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "p3");
	assert_string_equal(p.result.pods[0].marker.attempt, "");
	played_free(&p);
}

#define POD_ROW(id)      "{\"id\":\"" id "\",\"name\":\"burst-0123456789abcdef\",\"status\":\"RUNNING\"}"
#define PAGE(rows, more) "{\"pods\":[" rows "],\"pagination\":" more "}"

static void a_list_of_several_pages_is_read_to_its_end(void **state)
{
	struct op_want want = {0};
	struct played p =
		PLAY(OP_LIST, &want, {200, PAGE(POD_ROW("p1") "," POD_ROW("p2"), MORE("a+b/c="))},
		     {200, PAGE(POD_ROW("p2") "," POD_ROW("p3"), MORE("z"))},
		     {200, PAGE(POD_ROW("p4"), "{\"hasNextPage\":false,\"nextCursor\":null}")});

	(void)state;
	check_done("three pages", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods");
	check_call(&p, 1, "GET", ROOT "/v2/pods?cursor=a%2Bb%2Fc%3D");
	check_call(&p, 2, "GET", ROOT "/v2/pods?cursor=z");
	assert_int_equal(p.result.pod_count, 4); /* what stood on two of them is one */
	assert_string_equal(p.result.pods[3].id, "p4");
	played_free(&p);
	p = PLAY(OP_LIST, &want, {200, PAGE(POD_ROW("p1"), MORE("a"))}, {500, "oops"});
	check_failed("half a list is none", &p, ERR_TRANSIENT);
	played_free(&p);

	static const struct {
		const char *name, *page;
		bool failed;
	} pages[] = {
		{"the same page repeatedly", PAGE("", MORE("a")), true},
		{"more, and not where", PAGE("", "{\"hasNextPage\":true,\"nextCursor\":null}"),
		 true},
		{"in a way of its own", PAGE("", "{\"next\":\"abc\"}"), true},
		{"by a number", PAGE("", "{\"next\":2}"), true},
		{"by a word alone", "{\"pods\":[],\"hasMore\":true}", true},
		{"by a link", "{\"pods\":[],\"links\":{\"self\":\"/a\",\"next\":\"/b\"}}", true},
		{"by a link that is an object",
		 "{\"pods\":[],\"_links\":{\"next\":{\"href\":\"/b\"}}}", true},
		{"by how many there are", "{\"pods\":[" POD_ROW("p2") "],\"total\":3}", true},
		{"all that there are",
		 "{\"pods\":[" POD_ROW("p2") "," POD_ROW("p3") "],\"total\":3}", false},
		{"no more",
		 "{\"pods\":[],\"hasMore\":false,\"total\":900,\"links\":{\"next\":null}}", false},
		{"the last one",
		 "{\"pods\":[],\"nextCursor\":null,\"next\":\"\",\"hasNextPage\":false}", false},
		{"the last one, which says where it is itself",
		 "{\"pods\":[],\"pagination\":{\"cursor\":\"abc\",\"nextCursor\":\"abc\","
		 "\"hasNextPage\":false}}",
		 false},
	};
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		p = PLAY(OP_LIST, &want,
			 {200, "{\"pods\":[" POD_ROW("p1") "],\"nextCursor\":\"a\"}"},
			 {200, pages[i].page});
		if (pages[i].failed) {
			check_failed(pages[i].name, &p, ERR_BUG);
			assert_non_null(strstr(p.err.msg, "has further pages"));
		} else {
			check_done(pages[i].name, &p);
		}
		played_free(&p);
	}
	static const struct answer linked[] = {
		{200, "{\"pods\":[]}",
		 "HTTP/1.1 200\r\nLink: </a>; rel=\"prev\", </b>; rel=\"next\""},
		{200, "{\"pods\":[]}",
		 "HTTP/1.1 200\r\nLink: </a>; rel=\"prev\", </b>; rel=\"nextdoor\""},
	};
	p = runpod_play(OP_LIST, &want, &linked[0], 1);
	check_failed("by a header", &p, ERR_BUG);
	assert_non_null(strstr(p.err.msg, "has further pages (by its Link header)"));
	played_free(&p);
	p = runpod_play(OP_LIST, &want, &linked[1], 1);
	check_done("another header", &p);
	played_free(&p);
}

/* A row is compared with all before it, and each may become a pod to release. */
static void a_list_without_end_is_left_early(void **state)
{
	struct op_want want = {0};
	CLEANUP(str_free) struct str page = STR_INIT;

	(void)state;
	str_add(&page, "{\"pods\":[");
	for (int i = 0; i <= 5000; i++)
		str_addf(&page, "%s{\"id\":\"p%d\",\"name\":\"burst-0123456789abcdef\"}",
			 i ? "," : "", i);
	str_add(&page, "],\"pagination\":{\"hasNextPage\":true,\"nextCursor\":\"a\"}}");
	struct played p = PLAY(OP_LIST, &want, {200, str_text(&page)});
	check_failed("5001 pods and more", &p, ERR_UNTRUSTED);
	assert_non_null(strstr(p.err.msg, "too many pods"));
	played_free(&p);
}

/* Neither a price that no cap pays nor a date without meaning hides the pod. */
static void figures_beyond_all_bounds(void **state)
{
	struct op_want want = {.id = "a"};
	struct played p = PLAY(OP_INSPECT, &want,
			       {200, "{\"id\":\"a\",\"status\":\"RUNNING\",\"cost\":1e308,"
				     "\"createdAt\":\"9999-12-31T23:59:59Z\"}"});
	struct err err = {0};

	(void)state;
	check_done("a dear pod of the future", &p);
	assert_int_equal(p.result.pods[0].price_microusd_h, VENDOR_MOST_MICROUSD);
	assert_int_equal(p.result.pods[0].created_at_s, 0);
	assert_int_equal(provider_check_answer(&p.result, &err), 0);
	played_free(&p);
}

static void a_release_is_done_when_accepted_or_gone(void **state)
{
	struct op_want want = {.id = "7h9k2m4n6p"};
	struct played p = PLAY(OP_RELEASE, &want, {204});

	(void)state;
	check_done("204", &p);
	assert_int_equal(p.result.release, RELEASE_ENDED);
	check_call(&p, 0, "DELETE", ROOT "/v2/pods/7h9k2m4n6p");
	assert_int_equal(p.call[0].class, CALL_RELEASE);
	assert_true(p.call[0].may_repeat);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {404, PROBLEM(404, "pod not found")});
	check_done("404", &p);
	assert_int_equal(p.result.release, RELEASE_ABSENT);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {500});
	check_failed("F16: 500", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {401});
	check_failed("401", &p, ERR_CREDENTIALS);
	played_free(&p);
}

static void a_locked_pod_is_unlocked(void **state)
{
	struct op_want want = {.id = "a"};
	struct played p =
		PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "locked")}, {200, "{}"}, {204});

	(void)state;
	check_done("F27", &p);
	check_call(&p, 1, "PATCH", ROOT "/v2/pods/a");
	assert_string_equal(str_text(&p.call[1].body), "{\"locked\":false}");
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "locked")}, {409}, {409}, {204});
	check_done("F27: by action", &p);
	check_call(&p, 3, "POST", ROOT "/v2/pods/a/action");
	assert_string_equal(str_text(&p.call[3].body), "{\"action\":\"terminate\"}");
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "of a cluster")}, {500}, {500}, {500});
	check_failed("F27: in vain", &p, ERR_REFUSED);
	assert_non_null(strstr(p.err.msg, "of a cluster"));
	played_free(&p);
}

static void what_is_no_id_never_stands_in_a_url(void **state)
{
	static const enum op_kind kinds[] = {OP_INSPECT, OP_RELEASE, OP_LOGS, OP_BILLING,
					     OP_VOLUME_REMOVE};
	static const char *const ids[] = {"", "../x", "a/b", "a?b", "a%2f", "a b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
			struct op_want want = {0};
			COPY_TEXT(want.id, ids[k]);
			struct played p = runpod_play(kinds[i], &want, NULL, 0);
			check_failed(ids[k], &p, ERR_REFUSED);
		}
}

static void logs_are_what_came_in_time(void **state)
{
	static const char stream[] =
		"id: 2026-06-01T12:02:03Z/000000000001\r\n"
		"data: {\"ts\":\"2026-06-01T12:02:03Z\",\"source\":\"system\",\"line\":\"start "
		"container\"}\r\n\r\n"
		": comment\nid: 2\ndata: {\"source\":\"container\",\ndata: "
		"\"line\":\"Model\\nloaded.\"}\n\n"
		"data: nonsense\n\ndata: {\"source\":\"container\",\"li";
	struct op_want want = {.id = "a"};
	struct played p = PLAY(OP_LOGS, &want, {0, stream});

	(void)state;
	check_done("F20: the stream never ends", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods/a/logs?tail=200");
	assert_false(p.call[0].may_repeat);
	assert_true(p.call[0].timeout_ms <= 10000);
	assert_string_equal(str_text(&p.result.text),
			    "system: start container\ncontainer: Model loaded.\n");
	played_free(&p);
	p = PLAY(OP_LOGS, &want, {0});
	check_done("F20: no line yet", &p);
	assert_string_equal(str_text(&p.result.text), "");
	played_free(&p);
	p = PLAY(OP_LOGS, &want, {404});
	check_failed("gone", &p, ERR_NOT_FOUND);
	played_free(&p);
}

#define SYSTEM(line)    "data: {\"source\":\"system\",\"line\":\"" line "\"}\n\n"
#define CONTAINER(line) "data: {\"source\":\"container\",\"line\":\"" line "\"}\n\n"

/* A pull that fails once may go well the next time; one that fails over and over, or in words that
 * leave no hope, will not. */
static void logs_tell_what_cannot_be_pulled(void **state)
{
	static const struct {
		const char *name, *stream, *why; /* NULL: nothing is wrong */
	} cases[] = {
		{"no such image",
		 SYSTEM("pulling image a/b:1") SYSTEM("error pulling image: manifest unknown"),
		 "error pulling image: manifest unknown"},
		{"... and it tries again",
		 SYSTEM("pull access denied for a/b") SYSTEM("pulling image a/b:1"),
		 "pull access denied for a/b"},
		{"once, for another reason", SYSTEM("error pulling image: connection reset"), NULL},
		{"twice",
		 SYSTEM("failed to pull: reset") SYSTEM("pulling image")
			 SYSTEM("failed to pull: i/o timeout"),
		 "failed to pull: i/o timeout"},
		{"in the end it came",
		 SYSTEM("error pulling image: toomanyrequests") SYSTEM("image a/b:1 pulled")
			 SYSTEM("create container"),
		 NULL},
		{"its own container says so",
		 CONTAINER("manifest unknown") CONTAINER("pull access denied"), NULL},
		{"between lines of its container", SYSTEM("unauthorized: no") CONTAINER("hello"),
		 "unauthorized: no"},
		{"a name with such a word", SYSTEM("pulling image me/fail-denied:unknown"), NULL},
		{"lines in it", SYSTEM("manifest unknown\\nimage: x"), "manifest unknown image: x"},
	};
	struct op_want want = {.id = "a"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = PLAY(OP_LOGS, &want, {0, cases[i].stream});
		check_done(cases[i].name, &p);
		const char *text = str_text(&p.result.text), *found = strstr(text, "\nimage: ");
		CLEANUP(free_text)
		char *line = cases[i].why ? xasprintf("\nimage: %s\n", cases[i].why) : NULL;
		if (line ? !found || strcmp(found, line) : found || starts_with(text, "image: "))
			fail_msg("%s: \"%s\"", cases[i].name, text);
		played_free(&p);
	}
}

#define RECORD(pod, total, gpu)                                                                    \
	"{\"startTime\":\"2026-11-20T23:00:00Z\",\"endTime\":\"2026-11-21T00:00:00Z\",\"podId\":"  \
	"\"" pod "\",\"totalAmount\":" total ",\"gpuAmount\":" gpu                                 \
	",\"cpuAmount\":0,\"diskAmount\":0.01}"

static void bills_are_dollars_and_imply_seconds(void **state)
{
	struct op_want want = {.id = "a", .since_s = 1795216200};
	struct played p = PLAY(OP_BILLING, &want, {200, "{\"records\":[],\"metadata\":{}}"});

	(void)state;
	check_failed("no record yet", &p, ERR_NOT_FOUND);
	check_call(&p, 0, "GET",
		   ROOT "/v2/billing/pods?podId=a&bucketSize=hour&startTime=2026-11-20T23:08:00Z");
	played_free(&p);
	p = PLAY(OP_BILLING, &want, {200, "{\"records\":[" RECORD("a", "0.13", "0.12") "]}"});
	check_done("a price that is not known implies nothing", &p);
	assert_int_equal(p.result.billing.cost_microusd, 130000);
	assert_int_equal(p.result.billing.billed_ms, 0);
	played_free(&p);
	want.bill.price_microusd_h = want.bill.list_microusd_h = 720000;
	p = PLAY(OP_BILLING, &want,
		 {200, "{\"records\":[" RECORD("a", "0.13", "0.12") "," RECORD(
			       "a", "0.07", "0.06") "," RECORD("b", "9", "9") "]}"});
	check_done("records", &p);
	assert_int_equal(p.result.billing.cost_microusd, 200000);
	assert_int_equal(p.result.billing.billed_ms, 1000000);
	assert_int_equal(p.result.billing.beside_microusd, 0);
	assert_false(p.result.billing.reported);
	assert_int_equal(p.result.billing.hour_count, 2);
	assert_int_equal(p.result.billing.hours[1].cost_microusd, 70000);
	assert_int_equal(p.result.billing.hours[0].start_s, 1795215600);
	assert_int_equal(p.result.billing.hours[0].end_s, 1795215600 + 3600);
	played_free(&p);
	p = PLAY(OP_BILLING, &want,
		 {200, "{\"records\":[" RECORD("a", "999999", "999999") "," RECORD("a", "1e300",
										   "-4") "]}"});
	check_done("absurd amounts", &p);
	assert_int_equal(p.result.billing.cost_microusd, INT64_C(999999000000));
	assert_non_null(strstr(p.result.billing.note, "cannot be right"));
	assert_true(p.result.billing.billed_ms > 0 &&
		    p.result.billing.billed_ms <= INT64_C(1000000000000000));
	played_free(&p);
	p = PLAY(OP_BILLING, &want, {401, PROBLEM(401, "invalid token")});
	check_failed("a wrong key", &p, ERR_CREDENTIALS);
	played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(states_are_read),
		T(a_preempted_spot_pod_is_known),
		T(a_thousand_pods_can_be_listed),
		T(only_marked_pods_are_listed),
		T(a_list_of_several_pages_is_read_to_its_end),
		T(a_list_without_end_is_left_early),
		T(figures_beyond_all_bounds),
		T(a_release_is_done_when_accepted_or_gone),
		T(a_locked_pod_is_unlocked),
		T(what_is_no_id_never_stands_in_a_url),
		T(logs_are_what_came_in_time),
		T(logs_tell_what_cannot_be_pulled),
		T(bills_are_dollars_and_imply_seconds),
	};

	return cmocka_run_group_tests_name("runpod look", tests, NULL, NULL);
}
