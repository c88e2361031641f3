/* test_warm_job.c - the job that fills a volume: what it keeps of the user's job, and what not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/warm/warm.h"

static bool freed;
static struct job_needs real_needs;

static const struct job_needs *needs_of_real(struct job *job)
{
	(void)job;
	return &real_needs;
}

static void free_real(struct job *job)
{
	(void)job;
	freed = true;
}

static const struct job_ops real_ops = {.abi = JOB_ABI, .needs = needs_of_real, .free = free_real};

static struct job *make(void)
{
	static const char *const packages[] = {"sox", NULL}, *const names[] = {"HF_TOKEN", NULL},
				 *const outputs[] = {"*.wav", NULL};

	freed = false;
	real_needs = (struct job_needs){.engine = "voice",
					.gpu = true,
					.stream = true,
					.vram_gb = 16,
					.workers = 4,
					.max_batch = 32,
					.max_batch_weight = 500,
					.tries = 3,
					.hang_ms = 60000,
					.worker = "python3 worker.py",
					.outputs = outputs,
					.packages = packages,
					.install = "apt-get install sox",
					.setup = "pip install voice",
					.setup_packages = "pip",
					.setup_memory_gb = 8,
					.env_names = names};
	return warm_job(&real_ops, NULL);
}

static void test_it_prepares_what_the_job_needs(void **state)
{
	struct job *job = make();
	const struct job_needs *n = job_warm.needs(job);

	(void)state;
	assert_string_equal(n->engine, "voice");
	assert_string_equal(n->install, "apt-get install sox");
	assert_string_equal(n->setup, "pip install voice");
	assert_string_equal(n->setup_packages, "pip");
	assert_int_equal(n->setup_memory_gb, 8);
	assert_ptr_equal(n->packages, real_needs.packages);
	assert_ptr_equal(n->env_names, real_needs.env_names);
	job_warm.free(job);
}

static void test_it_renders_nothing(void **state)
{
	struct job *job = make();
	const struct job_needs *n = job_warm.needs(job);
	size_t count = 0;

	(void)state;
	assert_false(n->gpu || n->stream || n->vram_gb);
	assert_true(n->command);
	assert_null(n->worker);
	assert_null(n->outputs);
	assert_int_equal(n->workers, 1);
	assert_int_equal(n->max_batch, 1);
	assert_int_equal(n->tries, 1);
	assert_int_equal(n->hang_ms, 0);
	job_warm.segments(job, &count);
	assert_int_equal(count, 1);
	json_t *task = job_warm.task(job, 0, 0);
	assert_string_equal(json_string_value(json_object_get(task, "run")), "true");
	json_decref(task);
	job_warm.free(job);
}

static void test_it_owns_the_real_job(void **state)
{
	struct job *job = make();

	(void)state;
	job_warm.free(job);
	assert_true(freed);
	job_warm.free(NULL);
}

static void test_no_config_can_name_it(void **state)
{
	(void)state;
	for (const struct job_ops *const *ops = job_registry; *ops; ops++)
		assert_string_not_equal((*ops)->type, JOB_WARM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_prepares_what_the_job_needs),
		cmocka_unit_test(test_it_renders_nothing),
		cmocka_unit_test(test_it_owns_the_real_job),
		cmocka_unit_test(test_no_config_can_name_it),
	};

	return cmocka_run_group_tests_name("warm_job", tests, NULL, NULL);
}
