/* test_local_rent.c - local pods are rented: names, room, volumes. */
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

/* The same order of another run, machine or attempt. */
static json_t *order_of_other(const char *name, const char *key)
{
	json_t *request = order(name, STAY, NULL);

	json_object_set_new(json_object_get(request, "marker"), key, json_string("other"));
	return request;
}

/* Sends the order again, although there is no room: it is answered with the first one's pod. */
static void answers_with_the_same(const char *name, const char *id, const char *state)
{
	CLEANUP(json_decref)
	json_t *answer = ask("rent", order(name, STAY, json_pack("{s:i}", "capacity", 1)));
	const json_t *pod = json_array_get(json_object_get(answer, "pods"), 0);

	assert_string_equal(jsonx_text(pod, "id", ""), id);
	assert_string_equal(jsonx_text(pod, "state", ""), state);
}

static void a_name_is_used_once(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);
	char name[32];

	snprintf(name, sizeof(name), "burst-%d", serial);
	json_decref(wait_state(id, "running"));
	answers_with_the_same(name, id, "running");
	for (size_t i = 0; i < 3; i++)
		refused("rent",
			order_of_other(name, (const char *[]){"machine", "run", "attempt"}[i]),
			"refused");
	local_pod_release(id);
	answers_with_the_same(name, id, "gone");
	refused("rent", order_of_other(name, "run"), "refused");
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

	assert_int_equal(jsonx_int(offers, "left", -1), 0);
	assert_int_equal(jsonx_bool(offers, "sandbox_works", false),
			 !strcmp(kind->isolation, "namespaces"));
	refused("rent", order("burst-one-more", STAY, json_pack("{s:i}", "capacity", 1)),
		"no_capacity");
	local_pod_release(id);
	free(TAKE(id));
	/* a pod that ends by itself makes room too */
	id = rent_pod("exit 0", json_pack("{s:i}", "capacity", 1));
	json_decref(wait_state(id, "gone"));
	nothing_remains();
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
	local_pod_release(id);
}

static void volumes_in_use_stay(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);

	refused("volume-remove", of("vol"), "refused");
	local_pod_release(id);
	json_decref(ask("volume-remove", of("vol")));
	refused("volume-remove", of("vol"), "not_found");
	refused("volume", json_pack("{s:s, s:b}", "name", "../x", "create", 1), "config");
	refused("volume", json_pack("{s:s, s:b}", "name", ".x", "create", 1), "config");
	json_decref(ask("volume", json_pack("{s:s, s:b}", "name", "vol", "create", 1)));
}

int main(void)
{
	static void (*const bodies[])(void) = {
		the_volume_outlives_the_pod,        a_name_is_used_once,      there_is_so_much_room,
		a_pod_that_cannot_be_made_says_why, listings_show_the_marker, volumes_in_use_stay,
	};

	return local_pods_run(bodies, ARRAY_LEN(bodies));
}
