/* test_local_ends.c - how a local pod ends: released, killed in parts, by its own script. */
#include "local_pods.h"

#include <sys/wait.h>

static void wait_tagged(int at_least)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;

	while (count_tagged("cmdline", NULL) < at_least) {
		if (clock_boot_ms() > until)
			fail_msg("%s: the pod's processes did not boot", kind->name);
		usleep(5000);
	}
}

static void wait_no_tagged(void)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;

	while (count_tagged("cmdline", NULL)) {
		if (clock_boot_ms() > until)
			fail_msg("%s: processes of the pod survive", kind->name);
		usleep(20000);
	}
}

static void release_kills_what_was_daemonised(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(2);
	local_pod_release(id);
	CLEANUP(json_decref) json_t *pod = look(id);
	assert_string_equal(jsonx_text(pod, "state", ""), "gone");
	assert_string_equal(jsonx_text(pod, "detail", ""), "released");
	nothing_remains();
	local_pod_release(id);
}

static pid_t supervisor_of(const char *id)
{
	CLEANUP(json_decref) json_t *pod = look(id);

	return (pid_t)jsonx_int(json_object_get(pod, "supervisor"), "pid", 0);
}

static pid_t init_of(const char *id)
{
	CLEANUP(json_decref) json_t *pod = look(id);

	return (pid_t)jsonx_int(json_object_get(pod, "init"), "pid", 0);
}

static void a_killed_supervisor_takes_its_pod_along(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(supervisor_of(id), SIGKILL), 0);
	wait_no_tagged();
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	assert_string_equal(jsonx_text(pod, "detail", ""), "its supervisor was killed");
	nothing_remains();
}

static void a_killed_first_process_ends_the_pod(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(init_of(id), SIGKILL), 0);
	json_decref(wait_state(id, "gone"));
	wait_no_tagged();
	nothing_remains();
}

static void both_killed_at_once_are_cleaned_up_at_the_next_look(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);
	pid_t supervisor, init;

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	supervisor = supervisor_of(id);
	init = init_of(id);
	kill(supervisor, SIGSTOP);
	kill(init, SIGKILL);
	kill(supervisor, SIGKILL);
	json_decref(wait_state(id, "gone"));
	wait_no_tagged();
	nothing_remains();
}

static void a_deleted_record_ends_its_pod(void)
{
	if (kind->ordinary)
		return; /* the same for all, and it takes a beat */
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);
	CLEANUP(free_text) char *alive = xasprintf("%s/local/pods/%s/alive", state_dir, id);
	CLEANUP(free_text) char *record = xasprintf("%s/local/pods/%s/pod.json", state_dir, id);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(unlink(alive), 0);
	assert_int_equal(unlink(record), 0);
	wait_no_tagged();
	nothing_remains();
}

static void a_stopped_supervisor_is_no_obstacle(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(supervisor_of(id), SIGSTOP), 0);
	local_pod_release(id);
	nothing_remains();
}

static void the_scripts_end_is_the_pods(void)
{
	CLEANUP(free_text)
	char *id =
		rent_pod("mkdir -p $HOME/a/b; : > $HOME/a/b/c; chmod 0 $HOME/a/b $HOME/a; " DAEMON
			 "echo said; exit 7",
			 NULL);
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	CLEANUP(json_decref) json_t *logs = ask("logs", of(id));
	CLEANUP(json_decref) json_t *bill = ask("billing", of(id));

	assert_string_equal(jsonx_text(pod, "detail", ""), "the start script ended with code 7");
	assert_true(jsonx_int(pod, "ended_ms", 0) >= jsonx_int(pod, "created_ms", 0));
	assert_string_equal(jsonx_text(logs, "text", ""), "said\n");
	assert_int_equal(jsonx_int(bill, "billed_ms", -1),
			 jsonx_int(pod, "ended_ms", 0) - jsonx_int(pod, "created_ms", 0));
	local_pod_release(id);
	nothing_remains();
}

int main(void)
{
	static void (*const bodies[])(void) = {
		release_kills_what_was_daemonised,
		a_killed_supervisor_takes_its_pod_along,
		a_killed_first_process_ends_the_pod,
		both_killed_at_once_are_cleaned_up_at_the_next_look,
		a_deleted_record_ends_its_pod,
		a_stopped_supervisor_is_no_obstacle,
		the_scripts_end_is_the_pods,
	};

	return local_pods_run(bodies, ARRAY_LEN(bodies));
}
