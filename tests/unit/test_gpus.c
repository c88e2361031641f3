/* test_gpus.c - one GPU under its many names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "base/gpus.h"
#include "base/mem.h"
#include "base/str.h"

static const struct {
	const char *text, *name; /* NULL: unknown */
} names[] = {
	{"RTX 5090", "RTX 5090"},
	{"5090", "RTX 5090"},
	{"NVIDIA GeForce RTX 5090", "RTX 5090"},
	{"rtx-5090", "RTX 5090"},
	{"geforce_rtx_5090", "RTX 5090"},
	{"L40S:2", "L40S"},
	{"l40", "L40"},
	{"NVIDIA  RTX A4500", "RTX A4500"},
	{"A4500", "RTX A4500"},
	{"Tesla T4", "T4"},
	{"NVIDIA A100-SXM4-80GB", "A100 80GB SXM"},
	{"A100-40GB", "A100 40GB"},
	{"A100", "A100 80GB SXM"},
	{"H100", "H100 SXM"},
	{"H100!", "H100 SXM"},
	{"NVIDIA H100 80GB HBM3", "H100 SXM"},
	{"NVIDIA H100 PCIe", "H100 PCIe"},
	{"H200", "H200 SXM"},
	{"AMD Instinct MI300X OAM", "MI300X"},
	{"RTX-PRO-6000", "RTX PRO 6000"},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"},
	{"RTX 6000 Ada", "RTX 6000 Ada"},
	{"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"},
	{"B200+", "B200"},
	{"RTX 4090 Ti Super", NULL},
	{"", NULL},
	{"NVIDIA", NULL},
	{":2", NULL},
	{"none", NULL},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct gpu *g = gpu_find(names[i].text);
		if (!g != !names[i].name || (g && strcmp(g->name, names[i].name)))
			fail_msg("%s: got %s", names[i].text, g ? g->name : "nothing");
	}
}

/* Every GPU that RunPod's published API names (both versions, and its page of GPU types), every one
 * that Modal's gpu= accepts, and those of Vast.ai that are called so there. */
static const struct {
	const char *id, *name;
} published[] = {
	{"AMD Instinct MI300X OAM", "MI300X"},
	{"NVIDIA  A30", "A30"},
	{"NVIDIA  RTX A4500", "RTX A4500"},
	{"NVIDIA A100 80GB PCIe", "A100 80GB PCIe"},
	{"NVIDIA A100-SXM4-40GB", "A100 40GB"},
	{"NVIDIA A100-SXM4-80GB", "A100 80GB SXM"},
	{"NVIDIA A30", "A30"},
	{"NVIDIA A40", "A40"},
	{"NVIDIA A5000 Ada", "RTX 5000 Ada"},
	{"NVIDIA B200", "B200"},
	{"NVIDIA B300 SXM6 AC", "B300"},
	{"NVIDIA GeForce RTX 3070", "RTX 3070"},
	{"NVIDIA GeForce RTX 3080", "RTX 3080"},
	{"NVIDIA GeForce RTX 3080 Ti", "RTX 3080 Ti"},
	{"NVIDIA GeForce RTX 3080TI", "RTX 3080 Ti"},
	{"NVIDIA GeForce RTX 3090", "RTX 3090"},
	{"NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti"},
	{"NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti"},
	{"NVIDIA GeForce RTX 4080", "RTX 4080"},
	{"NVIDIA GeForce RTX 4080 SUPER", "RTX 4080 SUPER"},
	{"NVIDIA GeForce RTX 4090", "RTX 4090"},
	{"NVIDIA GeForce RTX 5080", "RTX 5080"},
	{"NVIDIA GeForce RTX 5090", "RTX 5090"},
	{"NVIDIA H100 80GB HBM3", "H100 SXM"},
	{"NVIDIA H100 NVL", "H100 NVL"},
	{"NVIDIA H100 PCIe", "H100 PCIe"},
	{"NVIDIA H200", "H200 SXM"},
	{"NVIDIA H200 NVL", "H200 NVL"},
	{"NVIDIA L4", "L4"},
	{"NVIDIA L40", "L40"},
	{"NVIDIA L40S", "L40S"},
	{"NVIDIA RTX 2000 Ada Generation", "RTX 2000 Ada"},
	{"NVIDIA RTX 4000 Ada Generation", "RTX 4000 Ada"},
	{"NVIDIA RTX 4000 SFF Ada Generation", "RTX 4000 SFF Ada"},
	{"NVIDIA RTX 4090", "RTX 4090"},
	{"NVIDIA RTX 5000 Ada Generation", "RTX 5000 Ada"},
	{"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"},
	{"NVIDIA RTX A2000", "RTX A2000"},
	{"NVIDIA RTX A30", "A30"},
	{"NVIDIA RTX A4000", "RTX A4000"},
	{"NVIDIA RTX A4500", "RTX A4500"},
	{"NVIDIA RTX A5000", "RTX A5000"},
	{"NVIDIA RTX A6000", "RTX A6000"},
	{"NVIDIA RTX PRO 4500 Blackwell", "RTX PRO 4500"},
	{"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000"},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", "RTX PRO 6000 MIG 1g.24gb"},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb", "RTX PRO 6000 MIG 2g.48gb"},
	{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000"},
	{"Tesla T4", "T4"},
	{"Tesla V100-FHHL-16GB", "V100 16GB"},
	{"Tesla V100-PCIE-16GB", "V100 16GB"},
	{"Tesla V100-PCIE-32GB", "V100 32GB"},
	{"Tesla V100-SXM2-16GB", "V100 16GB"},
	{"Tesla V100-SXM2-32GB", "V100 32GB"},
	/* Modal */
	{"T4", "T4"},
	{"L4", "L4"},
	{"A10", "A10"},
	{"A10G", "A10G"},
	{"L40S", "L40S"},
	{"A100-40GB", "A100 40GB"},
	{"A100-80GB", "A100 80GB SXM"},
	{"RTX-PRO-6000", "RTX PRO 6000"},
	{"H100", "H100 SXM"},
	{"H100!", "H100 SXM"},
	{"H200", "H200 SXM"},
	{"B200", "B200"},
	{"B200+", "B200"},
	{"B300", "B300"},
	/* Vast.ai */
	{"RTX 3080 Ti", "RTX 3080 Ti"},
	{"RTX 3090 Ti", "RTX 3090 Ti"},
};

static void test_published_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		const struct gpu *g = gpu_find(published[i].id);
		if (!g != !published[i].name || (g && strcmp(g->name, published[i].name)))
			fail_msg("%s: got %s", published[i].id, g ? g->name : "nothing");
	}
}

/* The newest file that RunPod has published, if it is on this machine: GPU names are the values of
 * "enum" lists, and begin with a maker's word. */
#define RUNPOD_FILE "../shared/reference/runpod-openapi-v1.json"

static bool is_gpu_id(const char *text)
{
	return starts_with(text, "NVIDIA ") || starts_with(text, "Tesla ") ||
	       starts_with(text, "AMD Instinct ");
}

/* Returns how many GPU names are in enum lists below the value; fails on an unknown one. */
static size_t check_enums(const json_t *value)
{
	const char *key;
	const json_t *part, *name;
	size_t i, k, count = 0;

	json_array_foreach (value, i, part)
		count += check_enums(part);
	json_object_foreach ((json_t *)value, key, part) {
		if (strcmp(key, "enum") != 0)
			count += check_enums(part);
		else
			json_array_foreach (part, k, name) {
				if (!json_is_string(name) || !is_gpu_id(json_string_value(name)))
					continue;
				count++;
				if (!gpu_find(json_string_value(name)))
					fail_msg("%s is unknown", json_string_value(name));
			}
	}
	return count;
}

static void test_published_file(void **state)
{
	json_t *file = json_load_file(RUNPOD_FILE, 0, NULL);

	(void)state;
	if (!file) {
		print_message("skipped: no " RUNPOD_FILE "\n");
		skip();
	}
	assert_true(check_enums(file) > 40);
	json_decref(file);
}

static const struct {
	const char *wish, *offered;
	bool yes;
} wishes[] = {
	{"RTX 5090", "NVIDIA GeForce RTX 5090", true},
	{"5090", "RTX 5090", true},
	{"RTX 4090", "RTX 5090", false},
	{"A100", "NVIDIA A100-SXM4-40GB", true},
	{"A100", "A100 80GB PCIe", true},
	{"A100-80GB", "A100 40GB", false},
	{"A100 80GB PCIe", "A100 80GB SXM", false},
	{"H100", "NVIDIA H100 NVL", true},
	{"H100 SXM", "H100 PCIe", false},
	{"L40", "L40S", false},
	{"A10", "A10G", true},
	{"RTX 4000 Ada", "NVIDIA RTX 4000 SFF Ada Generation", true},
	{"RTX 4000 SFF Ada", "RTX 4000 Ada", false},
	{"RTX A2000", "NVIDIA RTX A2000 12GB", true},
	{"A10G", "A10", false},
	{"L40S:2", "L40S", true},
	{"Foo 9000", "NVIDIA Foo-9000", true},
	{"Foo 9000", "Foo 9001", false},
};

static void test_wishes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (gpu_satisfies(wishes[i].wish, wishes[i].offered) != wishes[i].yes)
			fail_msg("%s by %s", wishes[i].wish, wishes[i].offered);
}

static const struct {
	const char *text, *name; /* NULL: refused */
	int count;
} counts[] = {
	{"L40S:2", "L40S", 2}, {"5090", "RTX 5090", 1}, {"Foo 9000:64", "Foo 9000", 64},
	{"L40S:0", NULL, 0},   {"L40S:65", NULL, 0},    {"L40S:", NULL, 0},
	{"L40S:x", NULL, 0},   {"L40S:2x", NULL, 0},    {"L40S:-1", NULL, 0},
	{":1", NULL, 0},       {"", NULL, 0},
};

static void test_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		char name[64] = "";
		int count = 0;
		bool ok = gpu_parse(counts[i].text, name, sizeof(name), &count);
		if (ok != (counts[i].name != NULL))
			fail_msg("%s: %d", counts[i].text, ok);
		if (ok && (strcmp(name, counts[i].name) || count != counts[i].count))
			fail_msg("%s: got %s, %d", counts[i].text, name, count);
	}
}

/* By NVIDIA's MIG user guide: 1g.10gb of an 80 GB card has 1 of 8 parts of its memory and
 * bandwidth, and 1 of 7 of its compute units; RTX PRO 6000 has 4 parts of both. */
static const struct {
	const char *text, *name; /* NULL: unknown */
	int vram_gb, bandwidth_gb_s;
	double tflops;
} slices[] = {
	{"A100-SXM4-40GB-MIG-1g.5gb", "A100 40GB MIG 1g.5gb", 5, 194, 312 / 7.0},
	{"NVIDIA A100 80GB PCIe MIG 1g.10gb", "A100 80GB PCIe MIG 1g.10gb", 10, 242, 312 / 7.0},
	{"a100_1g.5gb", "A100 40GB MIG 1g.5gb", 5, 194, 312 / 7.0},
	{"A100 MIG 1g.10gb", "A100 80GB SXM MIG 1g.10gb", 10, 255, 312 / 7.0},
	{"H100 MIG 1g.20gb", "H100 SXM MIG 1g.20gb", 20, 838, 989 / 7.0},
	{"H100 SXM MIG 3g.40gb", "H100 SXM MIG 3g.40gb", 40, 1675, 989 * 3 / 7.0},
	{"H100_SXM_MIG_3g.40gb", "H100 SXM MIG 3g.40gb", 40, 1675, 989 * 3 / 7.0},
	{"H100 NVL MIG 1g.12gb", "H100 NVL MIG 1g.12gb", 12, 492, 835 / 7.0},
	{"H200 MIG 1g.18gb:2", "H200 SXM MIG 1g.18gb", 18, 600, 989 / 7.0},
	{"H200 MIG 7g.141gb", "H200 SXM MIG 7g.141gb", 141, 4800, 989},
	{"RTX PRO 6000 MIG 1g.24gb", "RTX PRO 6000 MIG 1g.24gb", 24, 399, 125},
	{"RTX PRO 6000 MIG 2g.48gb+gfx", "RTX PRO 6000 MIG 2g.48gb", 48, 799, 250},
	{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-1g.24gb.me.all",
	 "RTX PRO 6000 MIG 1g.24gb", 24, 399, 125},
	{"RTX PRO 6000 MIG 1g.24gb-me", "RTX PRO 6000 MIG 1g.24gb-me", 24, 399, 125},
	{"RTX PRO 4500 MIG 1g.16gb", "RTX PRO 4500 MIG 1g.16gb", 16, 448, 219.7 / 2},
	{"A100-SXM4-80GB-MIG-1g.10gb.me", "A100 80GB SXM MIG 1g.10gb", 10, 255, 312 / 7.0},
	{"B200 MIG 1g.23gb", "B200 MIG 1g.23gb", 23, 1000, 2250 / 7.0},
	{"B200 MIG 3g.90gb", "B200 MIG 3g.90gb", 90, 4000, 2250 * 3 / 7.0},
	{"B300 MIG 1g.34gb", "B300 MIG 1g.34gb", 34, 1000, 2250 / 7.0},
	{"B300 MIG 1g.67gb", "B300 MIG 1g.67gb", 67, 2000, 2250 / 7.0},
	{"B300 MIG 3g.135gb", "B300 MIG 3g.135gb", 135, 4000, 2250 * 3 / 7.0},
	{"B300 MIG 7g.269gb", "B300 MIG 7g.269gb", 269, 8000, 2250},
	{"A30 MIG 2g.12gb+me", "A30 MIG 2g.12gb", 12, 467, 165 / 2.0},
	{"A100 MIG 1g.10gb-me", NULL},
	{"B300 MIG 1g.36gb", NULL},
	{"H100 MIG 1g.10gb.mex", NULL},
	{"RTX A4000.me", NULL},
	{"H100 MIG 5g.40gb", NULL},
	{"H100 MIG 1g.30gb", NULL},
	{"L4 MIG 1g.5gb", NULL},
	{"MIG 1g.5gb", NULL},
	{"1g.5gb", NULL},
	{"A100 1g.5gbx", NULL},
};

static void test_slices(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
		const struct gpu *g = gpu_find(slices[i].text);
		if (!g != !slices[i].name || (g && strcmp(g->name, slices[i].name)))
			fail_msg("%s: got %s", slices[i].text, g ? g->name : "nothing");
		if (g && (g->vram_gb != slices[i].vram_gb ||
			  g->bandwidth_gb_s != slices[i].bandwidth_gb_s ||
			  fabs(g->tflops - slices[i].tflops) > 1e-9))
			fail_msg("%s: %d GB, %d GB/s, %g", g->name, g->vram_gb, g->bandwidth_gb_s,
				 g->tflops);
	}
	assert_false(gpu_satisfies("H100", "H100 SXM MIG 3g.40gb"));
	assert_false(gpu_satisfies("H100 MIG 1g.10gb", "H100 SXM"));
	assert_false(gpu_satisfies("H100 MIG 1g.10gb", "H100 SXM MIG 1g.20gb"));
	assert_true(gpu_satisfies("H100-MIG-1g.10gb", "H100 SXM MIG 1g.10gb"));
	assert_string_equal(gpu_architecture("H100 MIG 1g.10gb"), "sm_90");
	assert_int_equal(gpu_slice_gb("1g.10gb"), 10);
	assert_int_equal(gpu_slice_gb("mig-2g.24gb.me"), 24);
	assert_int_equal(gpu_slice_gb("NVIDIA-GH200-480GB-MIG-1g.12gb:2"), 12);
	assert_int_equal(gpu_slice_gb("g.10gb"), 0);
	assert_int_equal(gpu_slice_gb("1g.gb"), 0);
	assert_int_equal(gpu_slice_gb("A100 80GB"), 0);
	assert_int_equal(gpu_slice_gb(""), 0);
	assert_true(gpu_find("RTX PRO 6000 MIG 1g.24gb")->nvenc);
	assert_false(gpu_find("RTX PRO 6000 MIG 1g.24gb-me")->nvenc);
}

/* Each row is found by each of its own names, and no other row is. */
static void test_rows_do_not_collide(void **state)
{
	size_t count;
	const struct gpu *rows = gpu_catalog(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const char *own[] = {rows[i].name,      rows[i].runpod,    rows[i].modal,
				     rows[i].others[0], rows[i].others[1], rows[i].others[2]};
		assert_true(rows[i].vram_gb > 0 && rows[i].bandwidth_gb_s > 0 &&
			    rows[i].tflops > 0);
		for (size_t k = 0; k < ARRAY_LEN(own); k++)
			if (own[k] && gpu_find(own[k]) != &rows[i])
				fail_msg("%s is taken for %s", own[k], gpu_find(own[k])->name);
	}
}

/* Each card of the catalogue has one; what is unknown is a kind of its own. */
static void architectures(void **state)
{
	size_t count;
	const struct gpu *all = gpu_catalog(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		if (gpu_architecture(all[i].name) == all[i].name)
			fail_msg("%s has no architecture", all[i].name);
	assert_string_equal(gpu_architecture("NVIDIA GeForce RTX 5090"), "sm_120");
	assert_string_equal(gpu_architecture("RTX 4090"), gpu_architecture("L40S"));
	assert_string_equal(gpu_architecture("A100 80GB SXM"), "sm_80");
	assert_string_equal(gpu_architecture("A10G"), gpu_architecture("RTX 3090"));
	assert_string_equal(gpu_architecture("RTX 9999"), "RTX 9999");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(architectures),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_wishes),          cmocka_unit_test(test_counts),
		cmocka_unit_test(test_published_names), cmocka_unit_test(test_published_file),
		cmocka_unit_test(test_slices),          cmocka_unit_test(test_rows_do_not_collide),
	};

	return cmocka_run_group_tests_name("gpus", tests, NULL, NULL);
}
