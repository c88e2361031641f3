/* chatterbox.c - the weights that from_local() of Chatterbox and Chatterbox-Turbo reads.
 *
 * Several independent projects pin these sizes and hashes. They were not compared with the hub
 * itself. */
#include "chatterbox.h"

#define REGULAR "ResembleAI/chatterbox", "5bb1f6ee58e50c3b8d408bc82a6d3740c2db6e18"
#define TURBO   "ResembleAI/chatterbox-turbo", "749d1c1a46eb10492095d68fbcf55691ccf137cd"

/* clang-format off */
const struct engine_weight chatterbox_weights[] = {
	{REGULAR, "ve.safetensors", "f0921cab452fa278bc25cd23ffd59d36f816d7dc5181dd1bef9751a7fb61f63c", 5695784},
	{REGULAR, "t3_cfg.safetensors", "914cb1696f47527fe8852ca8f1fe1fa63cb34f76f9c715e84e067b744dd0da81", 2129653744},
	{REGULAR, "s3gen.safetensors", "2b78103c654207393955e4900aac14a12de8ef25f4b09424f1ef91941f161d4e", 1056484620},
	{REGULAR, "tokenizer.json", "d71e3a44eabb1784df9a68e9f95b251ecbf1a7af6a9f50835856b2ca9d8c14a5", 25470},
	{REGULAR, "conds.pt", "6552d70568833628ba019c6b03459e77fe71ca197d5c560cef9411bee9d87f4e", 107374},
	{0},
};

const struct engine_weight chatterbox_turbo_weights[] = {
	{TURBO, "ve.safetensors", "f0921cab452fa278bc25cd23ffd59d36f816d7dc5181dd1bef9751a7fb61f63c", 5695784},
	{TURBO, "t3_turbo_v1.safetensors", "fcf1f8c1d651bb7e3acd69ee5be269b4ac10c02980b7708213d598bc9f7cdf87", 1915480052},
	{TURBO, "s3gen_meanflow.safetensors", "d65cb687a2ed581ee6cc297e919ffefa63386944f42364ae13b78a594945514f", 1064875036},
	{TURBO, "conds.pt", "b1852099306fd6a7814eb9d0bd10186caba7249596cc23868f78a0eefbfa5033", 169454},
	{TURBO, "added_tokens.json", "72e4ab6acb0d9309ac3df4b526ae5fd80a2da5bc5ab7bb02d85096a374f69193", 418},
	{TURBO, "merges.txt", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5", 456318},
	{TURBO, "special_tokens_map.json", "92ba8063bf40aa163eadebbfe0de07c2aebe44cf0d4a9e8726580b0781fd2640", 470},
	{TURBO, "tokenizer_config.json", "bca16a2ac1ddbd78b8d6228f0031884cc74b6ea54b967d6f6d2ebae9ccde23e6", 3878},
	{TURBO, "vocab.json", "f6bd25a65e4e63ca31360e9fb11c7e4f9a391a78385d640acd814092dd6eee4f", 999186},
	{0},
};
/* clang-format on */
