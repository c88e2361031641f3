/* test_card_needs.c - what a job needs of a card: the words, and which cards lack them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/card_needs.h"
#include "base/gpus.h"
#include "base/mem.h"
#include "base/str.h"

static const struct {
	const char *word;
	struct card_needs want;
	int status;
} words[] = {
	{"gpu", {.gpu = true}, 0},
	{"nvenc", {.gpu = true, .nvenc = true}, 0},
	{"bf16", {.gpu = true, .bf16 = true}, 0},
	{"compute >= 8.9", {.gpu = true, .least_capability = 89}, 0},
	{"compute>=12.0", {.gpu = true, .least_capability = 120}, 0},
	{"vram >= 24", {.gpu = true, .vram_gb = 24}, 0},
	{"cuda >= 12.8", {.cuda = "12.8"}, 0},
	{"cuda  >=  12.10", {.cuda = "12.10"}, 0},
	{"BF16", {0}, -1},
	{"", {0}, -1},
	{"nvdec", {0}, -1},
	{"cuda", {0}, -1},
	{"cuda > 12.8", {0}, -1},
	{"cuda >= 12", {0}, -1},
	{"cuda >= 12.8.1", {0}, -1},
	{"cuda >= 1234567.8", {0}, -1},
	{"compute >= 8", {0}, -1},
	{"compute >= 8.90", {0}, -1},
	{"compute >= sm_89", {0}, -1},
	{"vram >= 0", {0}, -1},
	{"vram >= 24 GB", {0}, -1},
	{"vram >= 99999", {0}, -1},
	{"vram >= -1", {0}, -1},
};

static void test_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct card_needs *want = &words[i].want;
		struct card_needs got = {0};
		if (card_needs_add(&got, words[i].word) != words[i].status ||
		    got.gpu != want->gpu || got.nvenc != want->nvenc || got.bf16 != want->bf16 ||
		    got.least_capability != want->least_capability ||
		    got.vram_gb != want->vram_gb || strcmp(got.cuda, want->cuda) != 0)
			fail_msg("\"%s\"", words[i].word);
	}
}

/* By NVIDIA's tables: T4 and V100 compute no BF16; A100, H100 and B200 have no encoder; compute
 * capability is 7.5 (T4), 8.0 (A100), 8.6 (A10), 8.9 (L4), 9.0 (H100), 12.0 (RTX 5090). */
static const struct {
	const char *need, *gpu;
	bool named;
	const char *lacks; /* NULL: nothing */
} cards[] = {
	{"bf16", "T4", false, "BF16"},
	{"bf16", "V100 16GB", true, "BF16"},
	{"bf16", "L4", false, NULL},
	{"nvenc", "A100 80GB SXM", false, "NVENC"},
	{"nvenc", "NVIDIA H100 80GB HBM3", false, "NVENC"},
	{"nvenc", "B200", false, "NVENC"},
	{"nvenc", "T4", false, NULL},
	{"compute >= 8.9", "A10", false, "compute capability"},
	{"compute >= 8.9", "L4", false, NULL},
	{"compute >= 8.0", "A100 40GB", false, NULL},
	{"compute >= 8.0", "T4", false, "compute capability"},
	{"compute >= 9.0", "H100 PCIe", false, NULL},
	{"compute >= 12.0", "H200 SXM", false, "compute capability"},
	{"compute >= 12.0", "RTX 5090", false, NULL},
	{"compute >= 8.0", "MI300X", false, "compute capability"},
	{"gpu", GPU_NONE, false, "a GPU"},
	{"nvenc", GPU_NONE, false, "a GPU"},
	{"cuda >= 12.8", GPU_NONE, false, NULL},
	{"gpu", "Foo 9000", false, NULL},
	{"vram >= 24", "Foo 9000", false, NULL},
	{"bf16", "Foo 9000", false, "a row in `burst gpus`"},
	{"bf16", "Foo 9000", true, NULL},
};

static void test_cards(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
		struct card_needs needs = {0};
		const char *why = "?";
		assert_int_equal(card_needs_add(&needs, cards[i].need), 0);
		bool lacks = card_needs_lack(&needs, cards[i].gpu, cards[i].named, &why);
		if (lacks != (cards[i].lacks != NULL) || !why != !cards[i].lacks ||
		    (why && strcmp(why, cards[i].lacks) != 0))
			fail_msg("%s, %s: %s", cards[i].need, cards[i].gpu, why ? why : "nothing");
	}
}

static void test_versions(void **state)
{
	(void)state;
	assert_true(card_cuda_is_newer("12.10", "12.8"));
	assert_true(card_cuda_is_newer("13.0", "12.10"));
	assert_true(card_cuda_is_newer("12.4", ""));
	assert_false(card_cuda_is_newer("12.8", "12.8"));
	assert_false(card_cuda_is_newer("11.8", "12.4"));
	assert_false(card_cuda_is_newer("", "11.8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
