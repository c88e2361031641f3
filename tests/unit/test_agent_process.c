/* test_agent_process.c - the agent's children end with it, also if it dies before they could ask
 * for that. */
#include "agent_help.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jobs/agent/agent.h"
#include "jobs/agent/files.h"

static pid_t mother; /* of the child that asks; its word comes when the mother is dead */

int prctl(int option, ...)
{
	va_list ap;
	va_start(ap, option);
	unsigned long arg = va_arg(ap, unsigned long);
	va_end(ap);
	for (time_t until = time(NULL) + 20; getppid() == mother && time(NULL) < until;)
		sched_yield();
	return (int)syscall(SYS_prctl, option, arg, 0, 0, 0);
}

static int out = -1;

static int says_that_it_lives(struct agent *a)
{
	(void)a;
	return write(out, "lives", 5) < 0;
}

static void begins_work_of_its_own(struct agent *a)
{
	spawn_own(a, says_that_it_lives, NULL);
}

static void begins_a_script(struct agent *a)
{
	struct env env = {0};
	env_set(&env, "PATH", "/usr/bin:/bin");
	a->place.home = (char *)"/";
	spawn(a, &(struct spawn){
			 .script = "echo lives", .env = &env, .in = -1, .out = out, .err = out});
}

static void ends_with_a_dead_agent(void (*begin)(struct agent *a))
{
	int ends[2];
	char said[100];
	assert_int_equal(pipe(ends), 0);
	out = ends[1];
	pid_t pid = fork();
	if (pid == 0) {
		struct agent a = {0};
		mother = getpid();
		begin(&a);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ssize_t n = read(ends[0], said, sizeof(said)); /* until the child is gone, too */
	close(ends[0]);
	if (n)
		fail_msg("its child went on: \"%.*s\"", (int)MAX(n, 0), said);
}

static void children_of_a_dead_agent(void **state)
{
	(void)state;
	ends_with_a_dead_agent(begins_work_of_its_own);
	ends_with_a_dead_agent(begins_a_script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_of_a_dead_agent),
	};

	return cmocka_run_group_tests_name("agent process", tests, NULL, NULL);
}
