/* vast_play.c - plays Vast.ai to its translator. */
#include "vast_play.h"

struct section *vast_conf;

int vast_set_up(void **state)
{
	(void)state;
	vast_conf = section_new(provider_vast.options, "burst.cfg:1");
	section_set_text(vast_conf, "api_key", "vast_key123", "test");
	return 0;
}

int vast_tear_down(void **state)
{
	(void)state;
	section_free(vast_conf);
	return 0;
}

struct op_want a_vast_rent(void)
{
	static char name1[] = "BURST_AUTHORIZED_KEY", value1[] = "ssh-ed25519 AAAA burst",
		    name2[] = "BURST_HOST_KEY_B64", value2[] = "aG9zdGtleQ==";
	static struct env_pair env[] = {{name1, value1, false}, {name2, value2, true}};
	struct op_want want = {.rent = {.start_script = "#!/bin/sh\necho it\\'s \"me\" $HOME\n",
					.mount = "/workspace",
					.env = env,
					.env_count = 2,
					.marker.hard_end_s = 1800000000}};

	COPY_TEXT(want.rent.offer.id, "7000001/0/1900000000");
	COPY_TEXT(want.rent.offer.gpu, "RTX 4090");
	want.rent.offer.price_microusd_h = 430000;
	COPY_TEXT(want.rent.name, "burst-00000000000000f1");
	COPY_TEXT(want.rent.marker.machine, "00000000000000aa");
	COPY_TEXT(want.rent.marker.run, "1121-r1");
	COPY_TEXT(want.rent.marker.attempt, "00000000000000f1");
	return want;
}

char *last_wins(const char *json)
{
	CLEANUP(json_decref) json_t *value = json_loads(json, 0, NULL);

	assert_non_null(value);
	return jsonx_line(value);
}
