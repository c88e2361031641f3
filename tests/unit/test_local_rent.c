/* test_local_rent.c - local pods are rented: names, room, planned failures, boot delays, spot,
 * volumes. */
#include "local_pods.h"

#include <unistd.h>

static void the_volume_outlives_the_pod(void)
{
	bool apart = !strcmp(kind->isolation, "namespaces");
	CLEANUP(free_text) char *id = rent_pod("echo kept > $BURST_VOLUME/f", NULL);

	json_decref(wait_state(id, "gone"));
	CLEANUP(free_text)
	char *second = rent_pod("cat $BURST_VOLUME/f; touch /usr/x$TAG 2>&1; ls -d $HOME", NULL);
	json_decref(wait_state(second, "gone"));
	CLEANUP(json_decref) json_t *logs = ask("logs", of(second));
	assert_true(starts_with(jsonx_text(logs, "text", ""), "kept\n"));
	CLEANUP(free_text) char *touched = xasprintf("/usr/x%s", tag);
	if (apart)
		assert_false(path_exists(touched));
	unlink(touched);
}

static void a_name_is_used_once(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);
	char name[32];

	snprintf(name, sizeof(name), "burst-%d", serial);
	refused("rent", order(name, STAY, NULL), "refused");
	release_pod(id);
	refused("rent", order(name, STAY, NULL), "refused");
	refused("rent", order("../../x", STAY, NULL), "refused");
	refused("rent", order("", STAY, NULL), "refused");
	nothing_remains();
}

static void there_is_so_much_room(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "capacity", 1));
	CLEANUP(json_decref)
	json_t *offers = ask("offers", json_pack("{s:{s:i, s:s}}", "conf", "capacity", 1,
						 "isolation", kind->isolation));

	assert_int_equal(json_array_size(json_object_get(offers, "offers")), 0);
	assert_int_equal(jsonx_bool(offers, "sandbox_works", false),
			 !strcmp(kind->isolation, "namespaces"));
	refused("rent", order("burst-one-more", STAY, json_pack("{s:i}", "capacity", 1)),
		"no_capacity");
	release_pod(id);
	free(TAKE(id));
	/* a pod that ends by itself makes room too */
	id = rent_pod("exit 0", json_pack("{s:i}", "capacity", 1));
	json_decref(wait_state(id, "gone"));
	nothing_remains();
}

static void rents_fail_on_purpose(void)
{
	refused("rent", order("burst-f1", STAY, json_pack("{s:i}", "fail_rents", 2)),
		"no_capacity");
	refused("rent", order("burst-f2", STAY, json_pack("{s:i}", "fail_rents", 2)),
		"no_capacity");
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "fail_rents", 2));
	release_pod(id);
	nothing_remains();
}

static void booting_takes_its_time(void)
{
	int64_t began = clock_boot_ms();
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "boot_delay_ms", 300));
	CLEANUP(json_decref) json_t *pod = look(id);

	if (clock_boot_ms() - began < 250) {
		assert_string_equal(jsonx_text(pod, "state", ""), "creating");
		assert_int_equal(jsonx_int(pod, "port", -1), 0);
	}
	CLEANUP(json_decref) json_t *up = wait_state(id, "running");
	assert_true(jsonx_int(up, "started_ms", 0) - jsonx_int(up, "created_ms", 0) >= 299);
	assert_true(jsonx_int(up, "port", 0) > 0);
	release_pod(id);
	/* one that never came up is released at once */
	free(TAKE(id));
	id = rent_pod(STAY, json_pack("{s:i}", "boot_delay_ms", 3600000));
	release_pod(id);
	json_decref(wait_state(id, "gone"));
	nothing_remains();
}

static void spot_pods_are_taken_away(void)
{
	json_t *conf = json_pack("{s:i, s:b, s:I}", "preempt_after_ms", 50, "preempt_all", 1,
				 "price", (json_int_t)3600000000);
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, conf);
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	CLEANUP(json_decref) json_t *bill = ask("billing", of(id));

	assert_true(jsonx_bool(pod, "preempted", false));
	assert_true(jsonx_int(bill, "cost", 0) >= 50 * 1000); /* $3600 an hour: a dollar a second */
	assert_int_equal(jsonx_int(bill, "cost", 0), jsonx_int(bill, "billed_ms", 0) * 1000);
	nothing_remains();
	refused("rent",
		json_pack("{s:s, s:b, s:s, s:{}, s:{}}", "name", "burst-s", "spot", 1, "script", "",
			  "env", "conf"),
		"refused");
}

static void a_pod_that_cannot_be_made_says_why(void)
{
	json_t *request = order("burst-unmade", STAY, NULL);

	if (strcmp(kind->isolation, "namespaces")) {
		json_decref(request);
		return;
	}
	json_object_set_new(request, "mount", json_string("/usr/no-such-place"));
	json_decref(ask("rent", request));
	CLEANUP(json_decref) json_t *pod = wait_state("local-unmade", "gone");
	assert_non_null(strstr(jsonx_text(pod, "detail", ""), "no-such-place"));
	nothing_remains();
}

static void listings_show_the_marker(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);
	CLEANUP(json_decref) json_t *list = ask("list", json_object());
	json_t *pod;
	size_t i;
	int seen = 0;

	json_array_foreach (json_object_get(list, "pods"), i, pod) {
		if (strcmp(jsonx_text(pod, "id", ""), id))
			continue;
		seen++;
		assert_string_equal(jsonx_text(json_object_get(pod, "marker"), "machine", ""), "m");
	}
	assert_int_equal(seen, 1);
	release_pod(id);
}

static void volumes_in_use_stay(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);

	refused("volume-remove", of("vol"), "refused");
	release_pod(id);
	json_decref(ask("volume-remove", of("vol")));
	refused("volume-remove", of("vol"), "not_found");
	refused("volume", json_pack("{s:s, s:b}", "name", "../x", "create", 1), "config");
	refused("volume", json_pack("{s:s, s:b}", "name", ".x", "create", 1), "config");
	json_decref(ask("volume", json_pack("{s:s, s:b}", "name", "vol", "create", 1)));
}

int main(void)
{
	static void (*const bodies[])(void) = {
		the_volume_outlives_the_pod,
		a_name_is_used_once,
		there_is_so_much_room,
		rents_fail_on_purpose,
		booting_takes_its_time,
		spot_pods_are_taken_away,
		a_pod_that_cannot_be_made_says_why,
		listings_show_the_marker,
		volumes_in_use_stay,
	};

	return local_pods_run(bodies, ARRAY_LEN(bodies));
}
