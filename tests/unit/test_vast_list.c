/* test_vast_list.c - instances are listed, inspected and released; their logs and bills, and the
 * account, are read. */
#include "vast_play.h"

#define PORTS ",\"ports\":{\"22/tcp\":[{\"HostIp\":\"0.0.0.0\",\"HostPort\":\"43210\"}]}"
#define ALL_STOPPED                                                                                \
	",\"intended_status\":\"stopped\",\"cur_state\":\"stopped\",\"next_state\":\"stopped\""

static const struct {
	const char *name, *status, *more;
	enum pod_state state;
	int port;
	bool preempted;
} states[] = {
	{"provisioned", "null", "", POD_STATE_CREATING, 0, false},
	{"created", "\"created\"", PORTS, POD_STATE_CREATING, 0, false},
	{"loading", "\"loading\"", "", POD_STATE_CREATING, 0, false},
	{"rebooting", "\"rebooting\"", PORTS, POD_STATE_CREATING, 0, false},
	{"running", "\"running\"", PORTS, POD_STATE_RUNNING, 43210, false},
	{"running without a port", "\"running\"", "", POD_STATE_RUNNING, 0, false},
	{"a port that is none", "\"running\"", ",\"ports\":{\"22/tcp\":[{\"HostPort\":\"70000\"}]}",
	 POD_STATE_RUNNING, 0, false},
	{"another's port", "\"running\"", ",\"ports\":{\"8080/tcp\":[{\"HostPort\":\"1\"}]}",
	 POD_STATE_RUNNING, 0, false},
	{"exited, stale address", "\"exited\"", PORTS, POD_STATE_STOPPED, 0, false},
	{"stopped", "\"stopped\"", "", POD_STATE_STOPPED, 0, false},
	{"frozen", "\"frozen\"", "", POD_STATE_STOPPED, 0, false},
	{"offline", "\"offline\"", PORTS, POD_STATE_STOPPED, 0, false},
	{"no heartbeat", "\"unknown\"", PORTS, POD_STATE_UNKNOWN, 43210, false},
	{"an unknown word", "\"zebra\"", PORTS, POD_STATE_UNKNOWN, 43210, false},
	{"outbid", "\"exited\"", ALL_STOPPED ",\"is_bid\":true", POD_STATE_STOPPED, 0, true},
	{"outbid before it ran", "\"loading\"", ALL_STOPPED ",\"is_bid\":true", POD_STATE_STOPPED,
	 0, true},
	{"a bid that only exited", "\"exited\"", ",\"is_bid\":true", POD_STATE_STOPPED, 0, false},
	{"no credit", "\"running\"", ALL_STOPPED, POD_STATE_STOPPED, 0, false},
	{"destroyed", "\"exited\"", ",\"cur_state\":\"unloaded\"", POD_STATE_GONE, 0, false},
	{"a failed start", "\"created\"",
	 ",\"status_msg\":\"Error response from daemon: OCI runtime create failed\"",
	 POD_STATE_FAILED, 0, false},
	{"a pull that goes on", "\"loading\"", ",\"status_msg\":\"pulling layer 3\"",
	 POD_STATE_CREATING, 0, false},
};

static void states_are_read(void **state)
{
	struct op_want want = {.id = "30000001"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		CLEANUP(free_text)
		char *text = xasprintf("{\"instances\":" INSTANCE("30000001", "%s", "%s") "}",
				       states[i].status, states[i].more);
		CLEANUP(free_text) char *body = last_wins(text);
		struct played p = PLAY(OP_INSPECT, &want, {200, body});
		check_done(states[i].name, &p);
		check_call(&p, 0, "GET", ROOT "/v0/instances/30000001/");
		const struct pod_view *v = &p.result.pods[0];
		if (v->state != states[i].state || v->port != states[i].port ||
		    v->preempted != states[i].preempted)
			fail_msg("%s: %s, port %d", states[i].name, pod_state_name(v->state),
				 v->port);
		assert_string_equal(v->gpu, "RTX 4090");
		assert_string_equal(v->region, "SE");
		assert_string_equal(v->name, "burst-00000000000000f1");
		assert_string_equal(v->marker.machine, "00000000000000aa");
		assert_int_equal(v->marker.hard_end_s, 1800000000);
		assert_int_equal(v->price_microusd_h, 410000);
		assert_int_equal(v->created_at_s, 1795216200);
		played_free(&p);
	}
}

static const struct {
	const char *name, *more, *attempt, *shown;
} markers[] = {
	{"by the label", "", "00000000000000f1", "burst-00000000000000f1"},
	{"the label was changed",
	 ",\"label\":\"mine\",\"extra_env\":[[\"A\",\"B\"],[\"BURST_MARKER\",\"" LABEL "\"]]",
	 "00000000000000f1", "burst-00000000000000f1"},
	{"as a single instance has it",
	 ",\"label\":null,\"extra_env\":[\"BURST_MARKERS=x\",\"BURST_MARKER=" LABEL "\"]",
	 "00000000000000f1", "burst-00000000000000f1"},
	{"half a label", ",\"label\":\"burst-00000000000000f1/00000000000000aa\"", "",
	 "burst-00000000000000f1"},
	{"a stranger's", ",\"label\":\"training\"", NULL, NULL},
	{"none", ",\"label\":null", NULL, NULL},
	{"nearly ours", ",\"label\":\"burst-00000000000000f1x\"", NULL, NULL},
};

static void ours_are_told_from_strangers(void **state)
{
	struct op_want want = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(markers); i++) {
		CLEANUP(free_text)
		char *text = xasprintf("{\"success\":true,\"total_instances\":1,\"next_token\":"
				       "null,\"instances\":[" INSTANCE("1", "null", "%s") "]}",
				       markers[i].more);
		CLEANUP(free_text) char *body = last_wins(text);
		struct played p = PLAY(OP_LIST, &want, {200, body});
		check_done(markers[i].name, &p);
		if (p.result.pod_count != (size_t)(markers[i].shown != NULL))
			fail_msg("%s: %zu pods", markers[i].name, p.result.pod_count);
		if (markers[i].shown) {
			assert_string_equal(p.result.pods[0].name, markers[i].shown);
			assert_string_equal(p.result.pods[0].marker.attempt, markers[i].attempt);
		}
		played_free(&p);
	}
}

#define PAGE(instances, total, token)                                                              \
	"{\"success\":true,\"instances\":[" instances "],\"total_instances\":" total               \
	",\"next_token\":" token "}"
#define ONE INSTANCE("1", "\"running\"", "")
#define TWO INSTANCE("2", "\"running\"", "")

static void pages_are_read_to_the_end(void **state)
{
	struct op_want want = {0};
	struct played p = PLAY(OP_LIST, &want, {200, PAGE(ONE, "2", "\"a=/b\"")},
			       {200, PAGE(ONE "," TWO, "2", "null")});

	(void)state;
	check_done("pages", &p);
	check_call(&p, 0, "GET", ROOT "/v1/instances/?limit=25");
	check_call(&p, 1, "GET", ROOT "/v1/instances/?limit=25&after_token=a%3D%2Fb");
	assert_int_equal(p.result.pod_count, 2); /* one was on both */
	played_free(&p);
}

static const struct {
	const char *name;
	struct answer first, second;
	enum err_kind kind;
} bad_lists[] = {
	{"fewer than Vast counts", {200, PAGE(ONE, "2", "null")}, {-2}, ERR_TRANSIENT},
	{"the same page again",
	 {200, PAGE(ONE, "2", "\"a\"")},
	 {200, PAGE(TWO, "2", "\"a\"")},
	 ERR_BUG},
	{"a token that is refused",
	 {200, PAGE(ONE, "2", "\"a\"")},
	 {400, REFUSAL("invalid_token", "bad")},
	 ERR_TRANSIENT},
	{"no list", {200, "{\"success\":true}"}, {-2}, ERR_TRANSIENT},
	{"an instance without an id",
	 {200, PAGE("{\"label\":\"x\"}", "1", "null")},
	 {-2},
	 ERR_TRANSIENT},
	{"success false", {200, "{\"success\":false,\"msg\":\"no\"}"}, {-2}, ERR_REFUSED},
};

static void a_part_never_passes_for_the_whole(void **state)
{
	struct op_want want = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_lists); i++) {
		struct played p = PLAY(OP_LIST, &want, bad_lists[i].first, bad_lists[i].second);
		check_failed(bad_lists[i].name, &p, bad_lists[i].kind);
		played_free(&p);
	}
}

static void an_unknown_instance_is_gone(void **state)
{
	struct op_want want = {.id = "30000001"};
	static const struct answer answers[] = {
		{200, "{\"instances\":null}"},
		{404, REFUSAL("no_such_instance", "no")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct played p = PLAY(OP_INSPECT, &want, answers[i]);
		check_done("unknown", &p);
		assert_int_equal(p.result.pods[0].state, POD_STATE_GONE);
		played_free(&p);
	}
	struct played p = PLAY(OP_INSPECT, &want, {200, "{}"});
	check_failed("says nothing", &p, ERR_TRANSIENT);
	played_free(&p);
}

static const struct {
	const char *name;
	struct answer answer;
	enum err_kind kind; /* ERR_NONE: accepted */
	enum release_word word;
} releases[] = {
	{"taken", {200, "{\"success\":true,\"msg\":\"m\"}"}, ERR_NONE, RELEASE_ENDED},
	{"absent", {404, REFUSAL("no_such_instance", "no")}, ERR_NONE, RELEASE_ABSENT},
	{"absent with 200", {200, REFUSAL("no_such_instance", "no")}, ERR_NONE, RELEASE_ABSENT},
	{"refused with 200", {200, REFUSAL("x", "no")}, ERR_REFUSED, RELEASE_TAKEN},
	{"a revoked key",
	 {404, REFUSAL("auth_error", "Invalid user key")},
	 ERR_CREDENTIALS,
	 RELEASE_TAKEN},
	{"500", {500, ""}, ERR_TRANSIENT, RELEASE_TAKEN},
	{"lost", {0}, ERR_NETWORK, RELEASE_TAKEN},
};

static void a_release_is_a_delete(void **state)
{
	struct op_want want = {.id = "30000001"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(releases); i++) {
		struct played p = PLAY(OP_RELEASE, &want, releases[i].answer);
		check_call(&p, 0, "DELETE", ROOT "/v0/instances/30000001/");
		if (releases[i].kind)
			check_failed(releases[i].name, &p, releases[i].kind);
		else
			check_done(releases[i].name, &p);
		if (!releases[i].kind && p.result.release != releases[i].word)
			fail_msg("%s: %d", releases[i].name, (int)p.result.release);
		played_free(&p);
	}
}

static void ids_that_are_none_reach_no_url(void **state)
{
	static const char *const ids[] = {"", "../x", "12x", "-1", "1234567890123456789"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct op_want want = {0};
		COPY_TEXT(want.id, ids[i]);
		struct played p = PLAY(OP_RELEASE, &want, {-2});
		check_failed(ids[i], &p, ERR_REFUSED);
		assert_int_equal(p.calls, 0);
		played_free(&p);
	}
}

#define STATUS(words) "{\"instances\":{\"id\":30000001,\"status_msg\":\"" words "\"}}"
#define LOG_URL       "{\"success\":true,\"result_url\":\"https://s3.example/x.log\"}"

static void a_log_is_fetched_once_it_is_there(void **state)
{
	struct op_want want = {.id = "30000001"};
	struct played p = PLAY(OP_LOGS, &want, {200, STATUS("loading")}, {200, LOG_URL},
			       {403, "<Error/>"}, {200, "one\n\x1b[2Jtwo\n"});

	(void)state;
	check_done("log", &p);
	assert_int_equal(p.waits, 1);
	assert_string_equal(str_text(&p.result.text),
			    "container: one\ncontainer: \\x1b[2Jtwo\nvast: loading\n");
	/* that address is another server's */
	assert_string_equal(p.call[2].url, "https://s3.example/x.log");
	assert_int_equal(p.call[2].header_count, 0);
	played_free(&p);
}

static void a_log_is_not_waited_for_longer_than_wanted(void **state)
{
	struct op_want want = {.id = "30000001", .log_ms = 1500};
	struct played p = PLAY(OP_LOGS, &want, {200, STATUS("loading")}, {200, LOG_URL},
			       {403, "<Error/>"}, {403, "<Error/>"}, {403, "<Error/>"});

	(void)state;
	check_done("log", &p);
	assert_int_equal(p.waits, 2);
	assert_string_equal(str_text(&p.result.text), "vast: loading\n");
	played_free(&p);
}

static void an_image_that_cannot_be_pulled_is_the_last_line(void **state)
{
	struct op_want want = {.id = "30000001"};
	struct played p =
		PLAY(OP_LOGS, &want, {200, STATUS("access to the resource is denied")},
		     {404, "{\"error\":\"invalid_id\",\"msg\":\"Invalid instance id.\"}"});

	(void)state;
	check_done("log", &p);
	assert_string_equal(str_text(&p.result.text), "image: access to the resource is denied\n");
	played_free(&p);
}

#define CHARGE(source, amount, items)                                                              \
	"{\"source\":\"" source "\",\"amount\":" amount ",\"items\":[" items "]}"
#define CHARGES(list, token) "{\"success\":true,\"results\":[" list "],\"next_token\":" token "}"

static void a_bill_counts_traffic_beside_the_price(void **state)
{
	struct op_want want = {
		.id = "30000001", .since_s = 1795216200, .bill.price_microusd_h = 400000};
	struct played p = PLAY(OP_BILLING, &want,
			       {200, CHARGES(CHARGE("instance-3000000", "9", ""), "\"t\"")},
			       {200, CHARGES(CHARGE("instance-30000001", "0.25",
						    "{\"type\":\"gpu\",\"amount\":0.2},"
						    "{\"type\":\"bwd\",\"amount\":0.04},"
						    "{\"type\":\"bwu\",\"amount\":0.01}"),
					     "null")});

	(void)state;
	check_done("bill", &p);
	assert_non_null(
		strstr(p.call[0].url,
		       "/v0/charges/?select_filters=%7B%22day%22%3A%7B%22gte%22%3A1795129800"));
	assert_true(ends_with(p.call[1].url, "&after_token=t"));
	assert_int_equal(p.result.billing.cost_microusd, 250000);
	assert_int_equal(p.result.billing.beside_microusd, 50000);
	assert_int_equal(p.result.billing.billed_ms, 1800000);
	assert_false(p.result.billing.reported);
	played_free(&p);
	p = PLAY(OP_BILLING, &want, {200, CHARGES("", "null")});
	check_failed("not yet", &p, ERR_NOT_FOUND);
	played_free(&p);
	p = PLAY(OP_BILLING, &want,
		 {200, CHARGES(CHARGE("instance-30000001", "1e300", ""), "null")});
	check_done("absurd", &p);
	assert_int_equal(p.result.billing.cost_microusd, 0);
	assert_true(p.result.billing.note[0]);
	played_free(&p);
}

static const struct {
	const char *body;
	int64_t microusd;
} credits[] = {
	{"{\"id\":1,\"balance\":0,\"credit\":25.5}", 25500000},
	{"{\"id\":1,\"balance\":3}", 3000000},
	{"{\"id\":1,\"credit\":-2}", 0},
	{"{\"id\":1,\"credit\":1e300}", -1},
	{"{\"id\":1}", -1},
};

static void the_credit_is_read(void **state)
{
	struct op_want want = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(credits); i++) {
		struct played p = PLAY(OP_BALANCE, &want, {200, credits[i].body});
		check_done(credits[i].body, &p);
		check_call(&p, 0, "GET", ROOT "/v0/users/current/");
		assert_int_equal(p.result.balance_microusd, credits[i].microusd);
		played_free(&p);
	}
}

static const struct {
	const char *name;
	struct answer account, list;
	const char *says;
} checks[] = {
	{"fine", {200, "{\"credit\":25.5}"}, {200, PAGE("", "0", "null")}, " accepts the key\n"},
	{"no credit",
	 {200, "{\"credit\":0}"},
	 {200, PAGE("", "0", "null")},
	 "bad: the account has no credit"},
	{"may not list",
	 {200, "{\"credit\":1}"},
	 {403, REFUSAL("x", "no")},
	 "bad: listing pods: HTTP 403"},
	{"a wrong key",
	 {404, REFUSAL("auth_error", "Invalid user key")},
	 {-2},
	 "bad: asking for the account"},
};

static void doctor_hears_of_key_rights_and_credit(void **state)
{
	struct op_want want = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		struct played p = PLAY(OP_CHECK, &want, checks[i].account, checks[i].list);
		check_done(checks[i].name, &p);
		if (!strstr(str_text(&p.result.text), checks[i].says))
			fail_msg("%s: \"%s\"", checks[i].name, str_text(&p.result.text));
		played_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(states_are_read),
		T(ours_are_told_from_strangers),
		T(pages_are_read_to_the_end),
		T(a_part_never_passes_for_the_whole),
		T(an_unknown_instance_is_gone),
		T(a_release_is_a_delete),
		T(ids_that_are_none_reach_no_url),
		T(a_log_is_fetched_once_it_is_there),
		T(a_log_is_not_waited_for_longer_than_wanted),
		T(an_image_that_cannot_be_pulled_is_the_last_line),
		T(a_bill_counts_traffic_beside_the_price),
		T(the_credit_is_read),
		T(doctor_hears_of_key_rights_and_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
