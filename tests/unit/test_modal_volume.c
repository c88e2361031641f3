/* test_modal_volume.c - volumes: found or made, files fetched and removed. */
#include "modal_play.h"

static void test_volume(void **state)
{
	(void)state;
	static const struct {
		const char *name, *volume;
		bool create;
		int code, version;
		enum err_kind kind;
	} cases[] = {
		{"there", "tts-cache", false, 0, 2, 0},
		{"there, and would have been made", "tts-cache", true, 0, 2, 0},
		{"missing", "tts-cache", false, 5, 0, ERR_NOT_FOUND},
		{"not taken, for whatever reason", "tts-cache", true, 3, 0, ERR_REFUSED},
		{"of the first version", "tts-cache", true, 0, 1, ERR_CONFIG},
		{"of no version, which is the first", "tts-cache", false, 0, 0, ERR_CONFIG},
		{"named so that Modal would not have it", "two words", true, -3, 0, ERR_CONFIG},
		{"without a name", "", true, -3, 0, ERR_CONFIG},
	};
	modal_token_take(&modal_provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {.volume = {.name = cases[i].volume,
						  .create = cases[i].create,
						  .size_gb = 20}};
		Modal__Client__VolumeMetadata meta = {.base = MESSAGE(volume_metadata),
						      .has_version = true,
						      .version = cases[i].version};
		Modal__Client__VolumeGetOrCreateResponse v = {
			.base = MESSAGE(volume_get_or_create_response),
			.volume_id = (char *)"vo-1",
			.metadata = &meta};
		struct played p = modal_play(
			OP_VOLUME, &want,
			(const struct answer[]){{"VolumeGetOrCreate", cases[i].code, &v, NULL}},
			cases[i].code != -3);
		if (p.err.kind != cases[i].kind || (p.last == OP_DONE) == (cases[i].kind != 0))
			fail_msg("%s: %d %s", cases[i].name, p.last, p.err.msg);
		if (p.last == OP_DONE) {
			UNPACKED(VolumeGetOrCreateRequest, r, &p.call[0],
				 volume_get_or_create_request);
			assert_string_equal(p.result.volumes[0].id, "vo-1");
			assert_string_equal(p.result.volumes[0].name, "tts-cache");
			assert_int_equal(p.result.volumes[0].price_microusd_month, 20 * 90000);
			assert_int_equal(r->object_creation_type, 0);
			assert_int_equal(r->version, 0);
		}
		modal_played_free(&p);
	}
	/* made when it is missing; then nothing more is asked, whatever is said */
	struct op_want want = {.volume = {.name = "tts-cache", .create = true}};
	Modal__Client__VolumeMetadata meta = {
		.base = MESSAGE(volume_metadata), .has_version = true, .version = 2};
	Modal__Client__VolumeGetOrCreateResponse v = {
		.base = MESSAGE(volume_get_or_create_response),
		.volume_id = (char *)"vo-1",
		.metadata = &meta};
	const struct answer made[] = {{"VolumeGetOrCreate", 5, NULL, NULL},
				      {"VolumeGetOrCreate", 0, &v, NULL}};
	struct played m = modal_play(OP_VOLUME, &want, made, 2);
	assert_int_equal(m.last, OP_DONE);
	assert_int_equal(m.err.kind, ERR_NONE);
	UNPACKED(VolumeGetOrCreateRequest, create, &m.call[1], volume_get_or_create_request);
	assert_int_equal(create->object_creation_type, 1);
	assert_int_equal(create->version, 2);
	assert_string_equal(create->deployment_name, "tts-cache");
	modal_played_free(&m);
	m = modal_play(OP_VOLUME, &want,
		       (const struct answer[]){{"VolumeGetOrCreate", 5, NULL, NULL},
					       {"VolumeGetOrCreate", 5, NULL, "no environment"}},
		       2);
	assert_int_equal(m.last, OP_FAILED);
	assert_int_equal(m.err.kind, ERR_NOT_FOUND);
	modal_played_free(&m);
	struct op_want gone = {.id = "vo-1"};
	struct played p = modal_play(OP_VOLUME_REMOVE, &gone,
				     (const struct answer[]){{"VolumeDelete", 5, NULL, NULL}}, 1);
	assert_int_equal(p.last, OP_DONE);
	modal_played_free(&p);
	COPY_TEXT(gone.id, "sb-1");
	p = modal_play(OP_VOLUME_REMOVE, &gone, NULL, 0);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	modal_played_free(&p);
}

#define BLOCK "HTTP/1.1 200 OK\r\nContent-Length: 8388608"

static void test_fetch(void **state)
{
	(void)state;
	char *urls[] = {(char *)"https://s3.example/a?sig=1", (char *)"https://s3.example/b?sig=2"},
	     *fresh[] = {(char *)"https://s3.example/c?sig=3"};
	Modal__Client__VolumeGetFile2Response two = {.base = MESSAGE(volume_get_file2_response),
						     .n_get_urls = 2,
						     .get_urls = urls,
						     .has_size = true,
						     .size = 8388608 + 100};
	Modal__Client__VolumeGetFile2Response rest = two,
					      over = {.base = MESSAGE(volume_get_file2_response),
						      .has_size = true,
						      .size = 50};
	struct op_want want = {.file = {.volume = {.id = "vo-1"},
					.path = "runs/r1/a.wav",
					.local = "/tmp/x",
					.offset = 0}};
	rest.n_get_urls = 1;
	rest.get_urls = fresh;
	modal_token_take(&modal_provider->token, "token-one");
#define GET_FILE(m)                                                                                \
	{                                                                                          \
		"VolumeGetFile2", 0, m, NULL                                                       \
	}
	struct played p =
		modal_play(OP_FETCH, &want,
			   (const struct answer[]){
				   GET_FILE(&two),
				   {urls[0], 200, NULL, BLOCK},
				   {urls[1], 200, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 100"}},
			   3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 8388708);
	assert_string_equal(p.call[1].body_to, "/tmp/x");
	/* none of our tokens goes to whoever keeps the blocks */
	assert_int_equal(p.call[1].header_count, 0);
	assert_false(p.call[1].may_repeat);
	modal_played_free(&p);
	/* an address whose time was over: new ones, from where it stands */
	p = modal_play(OP_FETCH, &want,
		       (const struct answer[]){
			       GET_FILE(&two),
			       {urls[0], 200, NULL, BLOCK},
			       {urls[1], 403, NULL, NULL},
			       GET_FILE(&rest),
			       {fresh[0], 200, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 100"}},
		       5);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 8388708);
	UNPACKED(VolumeGetFile2Request, again, &p.call[3], volume_get_file2_request);
	assert_int_equal(again->start, 8388608);
	assert_string_equal(again->path, "runs/r1/a.wav");
	modal_played_free(&p);
	const struct answer never[] = {GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL}};
	p = modal_play(OP_FETCH, &want, never, 8);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
	p = modal_play(OP_FETCH, &want,
		       (const struct answer[]){GET_FILE(&two), {urls[0], -1, NULL, NULL}}, 2);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
	fresh[0] = (char *)"http://127.0.0.1:631/";
	p = modal_play(OP_FETCH, &want, (const struct answer[]){GET_FILE(&rest)}, 1);
	assert_int_equal(p.err.kind, ERR_UNTRUSTED);
	modal_played_free(&p);
	p = modal_play(OP_FETCH, &want, (const struct answer[]){{"VolumeGetFile2", 5, NULL, NULL}},
		       1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	want.file.offset = 50; /* there is no more of it */
	want.file.max_bytes = 1000;
	p = modal_play(OP_FETCH, &want, (const struct answer[]){GET_FILE(&over)}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 0);
	UNPACKED(VolumeGetFile2Request, part, &p.call[0], volume_get_file2_request);
	assert_int_equal(part->start, 50);
	assert_int_equal(part->len, 1000);
	modal_played_free(&p);
	static const char *const unsafe[] = {"../x", "/etc/passwd", ""};
	for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
		want.file.path = unsafe[i];
		p = modal_play(OP_FETCH, &want, NULL, 0);
		assert_int_equal(p.err.kind, ERR_REFUSED);
		modal_played_free(&p);
	}
}

static Modal__Client__FileEntry entry(const char *path, int type, uint64_t mtime, uint64_t size)
{
	return (Modal__Client__FileEntry){.base = MESSAGE(file_entry),
					  .path = (char *)path,
					  .has_type = true,
					  .type = type,
					  .has_mtime = true,
					  .mtime = mtime,
					  .has_size = true,
					  .size = size};
}

static Modal__Client__VolumeListFilesResponse entries_of(Modal__Client__FileEntry **list,
							 size_t count)
{
	return (Modal__Client__VolumeListFilesResponse){
		.base = MESSAGE(volume_list_files_response), .n_entries = count, .entries = list};
}

static void test_tidy(void **state)
{
	(void)state;
	Modal__Client__FileEntry e[] = {entry("runs", 2, 5, 0),
					entry("runs/r1", 2, 100, 4096),
					entry("/runs/r2/", 2, 90, 0),
					entry("runs/a.txt", 1, 50, 7),
					entry("runs/r1/x.wav", 1, 300, 1000),
					entry("runs/r1/link", 3, 310, 0)};
	Modal__Client__FileEntry *flat[] = {&e[0], &e[1], &e[2], &e[3], &e[4]},
				 *deep[] = {&e[1], &e[4], &e[5]}, *two[] = {&e[3]},
				 *none[] = {&e[0]};
	Modal__Client__VolumeListFilesResponse m1 = entries_of(flat, 3),
					       m2 = entries_of(flat + 3, 2),
					       in = entries_of(deep, 3), file = entries_of(two, 1),
					       own = entries_of(none, 1);
	struct op_want want = {.file = {.volume = {.id = "vo-1"}, .path = "runs"}};
	modal_token_take(&modal_provider->token, "token-one");
#define LISTED(code, ...)                                                                          \
	streamed("VolumeListFiles2", code, (const void *const[]){__VA_ARGS__},                     \
		 (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))
	struct answer ls[] = {LISTED(-1, &m1), LISTED(0, &m1, &m2)}; /* half a list is none */
	struct played p = modal_play(OP_VOLUME_LS, &want, ls, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 1);
	assert_int_equal(p.result.entry_count, 3);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder);
	assert_int_equal(p.result.entries[0].bytes, -1);
	assert_int_equal(p.result.entries[0].files, -1);
	assert_int_equal(p.result.entries[0].changed_s, 0);
	assert_string_equal(p.result.entries[2].name, "a.txt");
	assert_int_equal(p.result.entries[2].bytes, 7);
	assert_int_equal(p.result.entries[2].changed_s, 50);
	UNPACKED(VolumeListFilesRequest, asked, &p.call[0], volume_list_files_request);
	assert_string_equal(asked->path, "runs");
	assert_false(asked->recursive);
	assert_int_equal(asked->max_entries, 100000);
	assert_true(p.call[0].stream && !p.call[0].stream_limit_ms &&
		    p.call[0].max_bytes == 32 << 20);
	modal_played_free(&p);
	struct answer bare[] = {LISTED(0, &own)}, is_file[] = {LISTED(0, &file)},
		      breaks[] = {LISTED(-1, &m1), LISTED(14, &m1), LISTED(-1, &m1),
				  LISTED(-1, &m1)};
	p = modal_play(OP_VOLUME_LS, &want, bare, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_LS, &want, breaks, 4);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	assert_int_equal(p.waits, 3);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_LS, &want,
		       (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	want.file.path = "runs/a.txt"; /* a file is no folder */
	p = modal_play(OP_VOLUME_LS, &want, is_file, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	static const char *const others[] = {"run/r1", "runs2/r1", "code", "", "../runs/r1"};
	want.file.path = "runs";
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		Modal__Client__FileEntry strange = entry(others[i], 1, 1, 1), *list[] = {&strange};
		Modal__Client__VolumeListFilesResponse m = entries_of(list, 1);
		struct answer a[] = {LISTED(0, &m)};
		p = modal_play(OP_VOLUME_LS, &want, a, 1);
		assert_int_equal(p.err.kind, ERR_UNTRUSTED);
		modal_played_free(&p);
		free(a[0].stream);
	}

	struct answer size[] = {LISTED(0, &in)},
		      remove[] = {LISTED(0, &in), {"VolumeRemoveFile2", 0, NULL, NULL}};
	want.file.path = "runs/r1";
	p = modal_play(OP_VOLUME_SIZE, &want, size, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.entry_count, 1);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder);
	assert_int_equal(p.result.entries[0].bytes, 1000);
	assert_int_equal(p.result.entries[0].files, 2);
	assert_int_equal(p.result.entries[0].changed_s, 310);
	UNPACKED(VolumeListFilesRequest, sized, &p.call[0], volume_list_files_request);
	assert_true(sized->recursive);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_SIZE, &want,
		       (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);

	p = modal_play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 1000);
	UNPACKED(VolumeRemoveFile2Request, removed, &p.call[1], volume_remove_file2_request);
	assert_string_equal(removed->volume_id, "vo-1");
	assert_string_equal(removed->path, "runs/r1");
	assert_true(removed->recursive);
	modal_played_free(&p);
	remove[1].code = 5; /* somebody else was faster */
	p = modal_play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	modal_played_free(&p);
	remove[1].code = 14;
	p = modal_play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_DELETE, &want,
		       (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	modal_played_free(&p);
	static const enum op_kind kinds[] = {OP_VOLUME_LS, OP_VOLUME_SIZE, OP_VOLUME_DELETE};
	static const char *const unsafe[] = {"../x", "/runs", "runs/../../x", "", "."};
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
			want.file.path = unsafe[i];
			p = modal_play(kinds[k], &want, NULL, 0);
			assert_int_equal(p.err.kind, ERR_REFUSED);
			modal_played_free(&p);
		}
	struct answer *const streams[] = {ls,         ls + 1,     bare,       is_file, breaks,
					  breaks + 1, breaks + 2, breaks + 3, size,    remove};
	for (size_t i = 0; i < ARRAY_LEN(streams); i++)
		free(streams[i]->stream);
}

/* A list that is longer than is taken: what is known of it counts, but never as a proof of age. */
static void test_long_lists(void **state)
{
	(void)state;
	enum { MANY = 100000 };
	Modal__Client__FileEntry one = entry("env/h/x", 1, 77, 3),
				 **list = xcalloc(MANY, sizeof(*list));
	struct op_want want = {.file = {.volume = {.id = "vo-1"}, .path = "env/h"}};
	for (size_t i = 0; i < MANY; i++)
		list[i] = &one;
	Modal__Client__VolumeListFilesResponse m = entries_of(list, MANY),
					       some = entries_of(list, 10);
	struct answer many[] = {LISTED(0, &m)},
		      too_long[] = {LISTED(-4, &some), {"VolumeRemoveFile2", 0, NULL, NULL}};
	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_VOLUME_SIZE, &want, many, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.entries[0].files, MANY);
	assert_int_equal(p.result.entries[0].changed_s, 0);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_LS, &want, many, 1);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	modal_played_free(&p);
	p = modal_play(OP_VOLUME_DELETE, &want, too_long, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.bytes, 30);
	modal_played_free(&p);
	free(many[0].stream);
	free(too_long[0].stream);
	free(list);
}

static void test_volumes(void **state)
{
	(void)state;
	Modal__Client__VolumeMetadata two = {.base = MESSAGE(volume_metadata),
					     .has_version = true,
					     .version = 2},
				      old = {.base = MESSAGE(volume_metadata)};
	Modal__Client__VolumeListItem items[100], *list[100];
	char ids[100][16];
	for (int i = 0; i < 100; i++) {
		snprintf(ids[i], sizeof(ids[i]), "vo-%d", i);
		items[i] = (Modal__Client__VolumeListItem){.base = MESSAGE(volume_list_item),
							   .label = ids[i] + 3,
							   .volume_id = ids[i],
							   .has_created_at = true,
							   .created_at = 1000 - i,
							   .metadata = &old};
		list[i] = &items[i];
	}
	items[3].metadata = items[7].metadata = &two;
	Modal__Client__VolumeListResponse page = {
		.base = MESSAGE(volume_list_response), .n_items = 100, .items = list};
	Modal__Client__VolumeListResponse rest = {
		.base = MESSAGE(volume_list_response), .n_items = 2, .items = list + 7};
	Modal__Client__FileEntry e[] = {entry("a", 1, 1, (uint64_t)5 << 29), entry("d", 2, 1, 0),
					entry("d/b", 1, 1, 1)},
				 *files[] = {&e[0], &e[1], &e[2]};
	Modal__Client__VolumeListFilesResponse m = entries_of(files, 3);
	struct answer known[] = {{"VolumeList", 0, &page, NULL},
				 {"VolumeList", 0, &rest, NULL},
				 LISTED(0, &m),
				 {"VolumeListFiles2", 0, NULL, NULL}};
	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_VOLUMES, NULL, known, 4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.volume_count, 2);
	const struct volume *v = p.result.volumes;
	assert_string_equal(v[0].id, "vo-3");
	assert_string_equal(v[0].name, "3");
	assert_string_equal(v[0].provider, "modal");
	assert_int_equal(v[0].used_bytes, ((int64_t)5 << 29) + 1);
	assert_int_equal(v[0].size_gb, 3);
	assert_int_equal(v[0].price_microusd_month, 3 * 90000);
	assert_string_equal(v[1].id, "vo-7");
	assert_int_equal(v[1].used_bytes, 0);
	assert_int_equal(v[1].price_microusd_month, 0);
	UNPACKED(VolumeListRequest, l1, &p.call[0], volume_list_request);
	UNPACKED(VolumeListRequest, l2, &p.call[1], volume_list_request);
	UNPACKED(VolumeListFilesRequest, l3, &p.call[2], volume_list_files_request);
	assert_int_equal(l1->pagination->max_objects, 100);
	assert_true(l1->pagination->created_before > (double)(clock_wall_ms() / 1000));
	assert_true(l2->pagination->created_before == 901);
	assert_string_equal(l3->volume_id, "vo-3");
	assert_string_equal(l3->path, "/");
	assert_true(l3->recursive);
	modal_played_free(&p);
	free(known[2].stream);
	/* one that cannot be measured is known all the same */
	p = modal_play(OP_VOLUMES, NULL,
		       (const struct answer[]){{"VolumeList", 0, &rest, NULL},
					       {"VolumeListFiles2", 13, NULL, NULL}},
		       2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.volume_count, 1);
	assert_int_equal(p.result.volumes[0].used_bytes, -1);
	modal_played_free(&p);
	/* the same page for ever; a list that fails */
	p = modal_play(OP_VOLUMES, NULL,
		       (const struct answer[]){{"VolumeList", 0, &page, NULL},
					       {"VolumeList", 0, &page, NULL},
					       {"VolumeListFiles2", 13, NULL, NULL}},
		       3);
	assert_int_equal(p.result.volume_count, 2);
	modal_played_free(&p);
	p = modal_play(OP_VOLUMES, NULL,
		       (const struct answer[]){{"VolumeList", 0, &page, NULL},
					       {"VolumeList", 14, NULL, NULL}},
		       2);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_int_equal(p.result.volume_count, 0);
	modal_played_free(&p);
	items[7].volume_id = (char *)"../x";
	p = modal_play(OP_VOLUMES, NULL, (const struct answer[]){{"VolumeList", 0, &rest, NULL}},
		       1);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_volume, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_fetch, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_tidy, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_long_lists, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_volumes, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal volume", tests, NULL, NULL);
}
