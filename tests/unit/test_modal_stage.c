/* test_modal_stage.c - files go to a volume without a sandbox. */
#include "modal_play.h"

typedef Modal__Client__VolumePutFiles2Response__MissingBlock Missing;

static Missing missing_block(uint64_t index, const char *url)
{
	return (Missing){.base = MESSAGE(volume_put_files2_response__missing_block),
			 .has_block_index = true,
			 .block_index = index,
			 .put_url = (char *)url};
}

static void test_stage(void **state)
{
	(void)state;
	/* the third is the first once more, the fourth has only zeros */
	struct file_block row[] = {{"AAAA", 8388608}, {"BBBB", 100}, {"AAAA", 8388608}, {"", 0}};
	struct op_want want = {.file = {.volume = {.id = "vo-1"},
					.path = "staged/t.0",
					.local = "/tmp/x",
					.blocks = {row, 4, 3 * 8388608 + 5}}};
	Missing m[] = {missing_block(0, "https://s3.example/a?sig=1"),
		       missing_block(1, "https://s3.example/b?sig=2"),
		       missing_block(2, "https://s3.example/a?sig=3"),
		       missing_block(3, "https://s3.example/d?sig=4"),
		       missing_block(1, "https://s3.example/b?sig=5")};
	Missing *all[] = {&m[0], &m[1], &m[2], &m[3]}, *one[] = {&m[4]}, *first[] = {&m[0]},
		*last[] = {&m[3]};
	Modal__Client__VolumePutFiles2Response all_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 4,
		.missing_blocks = all};
	Modal__Client__VolumePutFiles2Response one_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = one};
	Modal__Client__VolumePutFiles2Response first_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = first};
	Modal__Client__VolumePutFiles2Response last_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = last};
#define PUT_FILES(m) {"VolumePutFiles2", 0, m, NULL}
#define PUT_BLOCK(url, status, said)                                                               \
	{                                                                                          \
		url, status, NULL, NULL, NULL, 0, said                                             \
	}
	modal_token_take(&modal_provider->token, "token-one");
	/* put where it is missing, each content once; what the PUTs said is brought back */
	const struct answer whole[] = {PUT_FILES(&all_missing), PUT_BLOCK(m[0].put_url, 200, "one"),
				       PUT_BLOCK(m[1].put_url, 200, "two"),
				       PUT_BLOCK(m[3].put_url, 200, ""), PUT_FILES(NULL)};
	struct played p = modal_play(OP_STAGE, &want, whole, 5);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 3 * 8388608 + 5);
	UNPACKED(VolumePutFiles2Request, asked, &p.call[0], volume_put_files2_request);
	assert_string_equal(asked->volume_id, "vo-1");
	assert_int_equal(asked->n_files, 1);
	assert_string_equal(asked->files[0]->path, "staged/t.0");
	assert_int_equal(asked->files[0]->size, 3 * 8388608 + 5);
	assert_int_equal(asked->files[0]->n_blocks, 4);
	for (int i = 0; i < 4; i++) {
		assert_false(asked->files[0]->blocks[i]->has_put_response);
		assert_int_equal(asked->files[0]->blocks[i]->contents_sha256.len, 32);
		assert_memory_equal(asked->files[0]->blocks[i]->contents_sha256.data, row[i].sha256,
				    32);
	}
	assert_false(asked->disallow_overwrite_existing_files);
	assert_string_equal(p.call[2].method, "PUT");
	assert_string_equal(p.call[2].body_from, "/tmp/x");
	assert_int_equal(p.call[2].body_from_offset, 8388608);
	assert_int_equal(p.call[2].body_from_bytes, 100);
	assert_true(p.call[2].may_repeat && p.call[2].unlimited);
	assert_int_equal(p.call[2].header_count, 1); /* none of our tokens goes there */
	assert_string_equal(p.call[2].headers[0], "Content-Type: application/octet-stream");
	assert_null(p.call[3].body_from);
	UNPACKED(VolumePutFiles2Request, brought, &p.call[4], volume_put_files2_request);
	static const char *const said[] = {"one", "two", "one", ""};
	for (int i = 0; i < 4; i++) {
		assert_true(brought->files[0]->blocks[i]->has_put_response);
		assert_int_equal(brought->files[0]->blocks[i]->put_response.len, strlen(said[i]));
		assert_memory_equal(brought->files[0]->blocks[i]->put_response.data, said[i],
				    strlen(said[i]));
	}
	modal_played_free(&p);
	/* all of it is there; there is nothing in it */
	p = modal_play(OP_STAGE, &want, (const struct answer[]){PUT_FILES(NULL)}, 1);
	assert_int_equal(p.last, OP_DONE);
	modal_played_free(&p);
	struct op_want empty = want;
	empty.file.blocks = (struct file_blocks){0};
	p = modal_play(OP_STAGE, &empty, (const struct answer[]){PUT_FILES(NULL)}, 1);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(VolumePutFiles2Request, nothing, &p.call[0], volume_put_files2_request);
	assert_true(nothing->files[0]->has_size && !nothing->files[0]->size &&
		    !nothing->files[0]->n_blocks);
	modal_played_free(&p);
	/* an address whose time is over: new ones, with what is known by then; a block that is
	 * missed again is put again */
	const struct answer expired[] = {PUT_FILES(&all_missing),
					 PUT_BLOCK(m[0].put_url, 200, "one"),
					 PUT_BLOCK(m[1].put_url, 403, "expired"),
					 PUT_FILES(&one_missing),
					 PUT_BLOCK(m[4].put_url, 400, "expired"),
					 PUT_FILES(&one_missing),
					 PUT_BLOCK(m[4].put_url, 200, "two"),
					 PUT_FILES(&last_missing),
					 PUT_BLOCK(m[3].put_url, 200, "x"),
					 PUT_FILES(NULL)};
	p = modal_play(OP_STAGE, &want, expired, 10);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(VolumePutFiles2Request, part, &p.call[3], volume_put_files2_request);
	for (int i = 0; i < 4; i++)
		assert_int_equal(part->files[0]->blocks[i]->has_put_response, i == 0 || i == 2);
	modal_played_free(&p);
	const struct answer never[] = {PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has \x1b[2Jexpired")};
	p = modal_play(OP_STAGE, &want, never, 10);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_string_equal(
		p.err.msg,
		"putting staged/t.0 on the volume: HTTP 403 Request has \\x1b[2Jexpired");
	modal_played_free(&p);
	/* what passes is waited for, a while */
	const struct answer busy[] = {
		PUT_FILES(&first_missing),           PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, -1, NULL),   PUT_BLOCK(m[0].put_url, 429, NULL),
		PUT_BLOCK(m[0].put_url, 200, "one"), PUT_FILES(NULL)};
	p = modal_play(OP_STAGE, &want, busy, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 3);
	assert_int_equal(p.waited_ms, 500 + 1000 + 2000);
	modal_played_free(&p);
	const struct answer down[] = {
		PUT_FILES(&first_missing),          PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, "down")};
	p = modal_play(OP_STAGE, &want, down, 8);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
	p = modal_play(OP_STAGE, &want,
		       (const struct answer[]){PUT_FILES(&first_missing),
					       PUT_BLOCK(m[0].put_url, 413, "too large")},
		       2);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	modal_played_free(&p);
	p = modal_play(OP_STAGE, &want,
		       (const struct answer[]){{"VolumePutFiles2", 9, NULL, "of version 1"}}, 1);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	modal_played_free(&p);
	/* taken for ever and never there */
	struct answer greedy[CALLS_MAX + 2];
	int n = 0;
	while (n < CALLS_MAX) {
		greedy[n++] = (struct answer)PUT_FILES(&first_missing);
		greedy[n++] = (struct answer)PUT_BLOCK(m[0].put_url, 200, "one");
	}
	p = modal_play(OP_STAGE, &want, greedy, 42);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
	/* what no store may say */
	Missing odd[] = {missing_block(4, "https://s3.example/e"),
			 missing_block(0, "http://127.0.0.1:631/"),
			 missing_block(0, "ftp://s3.example/")};
	odd[1].has_file_index = true;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		Missing *list[] = {&odd[i]};
		Modal__Client__VolumePutFiles2Response strange = {
			.base = MESSAGE(volume_put_files2_response),
			.n_missing_blocks = 1,
			.missing_blocks = list};
		for (odd[i].file_index = 0; odd[i].file_index < 2; odd[i].file_index++) {
			odd[i].has_file_index = true;
			p = modal_play(OP_STAGE, &want,
				       (const struct answer[]){PUT_FILES(&strange)}, 1);
			assert_int_equal(p.err.kind, ERR_UNTRUSTED);
			modal_played_free(&p);
		}
	}
	/* blocks that do not fit, paths that lead out */
	struct op_want bad = want;
	bad.file.blocks.count = 3;
	p = modal_play(OP_STAGE, &bad, NULL, 0);
	assert_int_equal(p.err.kind, ERR_BUG);
	modal_played_free(&p);
	bad = want;
	bad.file.path = "../x";
	p = modal_play(OP_STAGE, &bad, NULL, 0);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stage, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal stage", tests, NULL, NULL);
}
