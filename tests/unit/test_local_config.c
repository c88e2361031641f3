/* test_local_config.c - the keys of the local provider: wishes and mistakes. */
#include "local_bed.h"

/* A wish that this machine cannot fulfil is a mistake, unless its keys say that it is to be played.
 */
static void wishes(void **state)
{
	static const struct {
		const char *name, *gpu, *wish, *wish2;
		int vram_gb, needs_gb;
		bool spot;
		const char *message; /* NULL: it is offered */
	} cases[] = {
		{"nothing", "none", NULL, NULL, 0, 0, false, NULL},
		{"none where there is one", "L4", "none", NULL, 0, 0, false, NULL},
		{"a GPU where there is none", "none", "RTX 4090", NULL, 0, 0, false,
		 "gpu = [\"RTX 4090\"]: pods on this machine have no GPU: name the GPU in "
		 "providers.local.gpu (if the machine has none, pods "
		 "run without it), or run without a GPU: --gpu none"},
		{"another GPU", "L4", "RTX 4090", "H100", 0, 0, false,
		 "gpu = [\"RTX 4090\", \"H100\"]: pods on this machine have the GPU L4: name the "
		 "GPU in providers.local.gpu (if the machine has "
		 "none, pods run without it), or run without a GPU: --gpu none"},
		{"the same by another name", "RTX 4090", "NVIDIA GeForce RTX 4090", NULL, 0, 0,
		 false, NULL},
		{"the second", "RTX 4090", "H100", "4090", 0, 0, false, NULL},
		{"two of it", "L4", "L4:2", NULL, 0, 0, false,
		 "gpu = [\"L4:2\"]: pods on this machine have the GPU L4: name the GPU in "
		 "providers.local.gpu (if the machine has none, pods "
		 "run without it), or run without a GPU: --gpu none"},
		{"one that no catalogue has", "FPGA 3", "FPGA 3", NULL, 0, 0, false, NULL},
		{"none at last", "none", "RTX 4090", "none", 0, 0, false, NULL},
		{"memory where there is no GPU", "none", NULL, NULL, 0, 8, false,
		 "the job needs a GPU with 8 GB of memory, and pods on this machine have no GPU: "
		 "see providers.local.gpu and "
		 "providers.local.vram_gb"},
		{"memory as it is sold", "L4", NULL, NULL, 0, 24, false, NULL},
		{"too much of it", "L4", NULL, NULL, 0, 25, false,
		 "the job needs a GPU with 25 GB of memory, and pods on this machine have 24 GB on "
		 "L4: see providers.local.gpu and "
		 "providers.local.vram_gb"},
		{"memory as it is said", "L4", NULL, NULL, 48, 25, false, NULL},
		{"spot", "none", NULL, NULL, 0, 0, true,
		 "spot = true: this machine has no spot pods"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *gpus[] = {cases[i].wish, cases[i].wish2, NULL};
		struct op_want want = {.offers = {.gpus = gpus,
						  .vram_gb = cases[i].needs_gb,
						  .spot = cases[i].spot}};
		struct section *s;
		struct provider *p;
		struct call call = {0};
		struct op_result result = {0};
		struct err err = {0};
		int64_t wait;

		s = section_new(provider_local.options, "burst.cfg:7");
		section_set_text(s, "gpu", cases[i].gpu, "burst.cfg:8");
		section_set_int(s, "vram_gb", cases[i].vram_gb, "burst.cfg:9");
		assert_int_equal(provider_local.open(&p, s, "/state", &err), 0);
		struct op *op = provider_local.begin(p, OP_OFFERS, &want);
		enum op_next next = provider_local.next(op, NULL, &call, &wait, &result, &err);
		if (next != (cases[i].message ? OP_FAILED : OP_CALL) ||
		    strcmp(err.msg, cases[i].message ? cases[i].message : ""))
			fail_msg("%s: got \"%s\", want \"%s\"", cases[i].name, err.msg,
				 cases[i].message ? cases[i].message : "an offer");
		if (cases[i].message)
			assert_int_equal(err.kind, ERR_CONFIG);
		call_free(&call);
		provider_local.op_free(op);
		provider_local.close(p);
		section_free(s);
	}
}

static void set_bad_network(struct section *s)
{
	section_set_text(s, "network", "wifi", "burst.cfg:7");
}

static void set_bad_isolation(struct section *s)
{
	section_set_text(s, "isolation", "vm", "burst.cfg:7");
}

static void bad_words_name_their_line(void **state)
{
	void (*sets[])(struct section *) = {set_bad_network, set_bad_isolation};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct section *s;
		struct err err = {0};
		assert_null(open_with(sets[i], &s, &err));
		assert_int_equal(err.kind, ERR_CONFIG);
		assert_non_null(strstr(err.msg, "burst.cfg:7"));
		section_free(s);
	}
}

/* All of them in one reading, each at its line; wishes by their keys. */
static void all_mistakes_are_noted(void **state)
{
	static const char *const gpus[] = {"H100", NULL}, *const keys[] = {"gpu", "job.vram_gb",
									   "spot", "pod.cpu",
									   "pod.memory_gb"};
	struct section *s = section_new(provider_local.options, "burst.cfg:7");
	struct op_want want = {.offers = {.gpus = gpus,
					  .spot = true,
					  .vram_gb = 80,
					  .cpu = 1 << 20,
					  .memory_gb = 1 << 20}};
	struct mistakes m = {0};
	struct err err = {0};

	(void)state;
	set_bad_network(s);
	set_bad_isolation(s);
	section_set_int(s, "capacity", -1, "burst.cfg:8");
	assert_int_equal(provider_local.check_conf(s, &m, &err), 0);
	assert_int_equal(m.count, 3);
	for (size_t i = 0; i < m.count; i++)
		assert_true(starts_with(m.list[i].err.msg, "burst.cfg:"));
	mistakes_free(&m);
	assert_int_equal(provider_local.check_conf(s, NULL, &err), -1);
	section_free(s);

	s = section_new(provider_local.options, "burst.cfg:7");
	assert_int_equal(provider_local.check_conf(s, &m, &err), 0);
	assert_int_equal(provider_local.check_wishes(s, &(struct op_want){0}, &m, &err), 0);
	assert_int_equal(m.count, 0);
	assert_int_equal(provider_local.check_wishes(s, &want, &m, &err), 0);
	assert_int_equal(m.count, ARRAY_LEN(keys));
	for (size_t i = 0; i < m.count; i++)
		assert_string_equal(m.list[i].err.key, keys[i]);
	mistakes_free(&m);
	section_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes),
		cmocka_unit_test(bad_words_name_their_line),
		cmocka_unit_test(all_mistakes_are_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
