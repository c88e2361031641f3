/* runpod_play.c - plays RunPod to its translator. */
#include "runpod_play.h"

#include <sys/mount.h>
#include <unistd.h>

struct section *runpod_conf;

int runpod_set_up(void **state)
{
	(void)state;
	runpod_conf = section_new(provider_runpod.options, "burst.cfg:1");
	section_set_text(runpod_conf, "api_key", "rpa_key123", "test");
	return 0;
}

int runpod_tear_down(void **state)
{
	(void)state;
	section_free(runpod_conf);
	return 0;
}

struct played runpod_play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count)
{
	return play(&provider_runpod, runpod_conf, kind, want, answers, count);
}

struct op_want a_rent(void)
{
	static char name1[] = "BURST_AUTHORIZED_KEY", value1[] = "ssh-ed25519 AAAA burst",
		    name2[] = "BURST_HOST_KEY_B64", value2[] = "aG9zdGtleQ==";
	static struct env_pair env[] = {{name1, value1, false}, {name2, value2, true}};
	struct op_want want = {.rent = {.start_script = "#!/bin/sh\necho it\\'s \"me\" $HOME\n",
					.mount = "/workspace",
					.env = env,
					.env_count = 2,
					.marker.hard_end_s = 1800000000}};

	COPY_TEXT(want.rent.offer.id, "SECURE/EU-RO-1/2/NVIDIA GeForce RTX 4090");
	want.rent.offer.price_microusd_h = 1380000;
	COPY_TEXT(want.rent.name, "burst-00000000000000f1");
	COPY_TEXT(want.rent.marker.machine, "00000000000000aa");
	COPY_TEXT(want.rent.marker.run, "1121-r1");
	COPY_TEXT(want.rent.marker.attempt, "00000000000000f1");
	want.rent.volume =
		(struct volume){.id = "agv6w2qcg7", .name = "cache", .region = "EU-RO-1"};
	return want;
}

const char *const no_gpu[] = {"none", NULL};
