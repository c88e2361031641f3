/* tts_jobs.c - a tts job from a config. */
#include "tts_jobs.h"

#include "tts_helpers.h"

struct job *load_job(const char *input, const struct setting *settings, size_t count,
		     struct err *err)
{
	struct section *conf = section_new(job_tts.options, "burst.cfg:1");
	CLEANUP(free_text) char *out = in_folder("out");
	struct job_setup setup = {.conf = conf, .base_dir = folder, .output_dir = out, .name = "t"};
	CLEANUP(free_text) char *path = in_folder(input);
	struct job *job = NULL;

	section_set_text(conf, "input", path, "burst.cfg:2");
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(settings[i].key, "options"))
			section_add_item(conf, "options", settings[i].text, "burst.cfg:3");
		else if (!strcmp(settings[i].text, "true"))
			section_set_bool(conf, settings[i].key, true, "burst.cfg:3");
		else if (strspn(settings[i].text, "-0123456789") == strlen(settings[i].text))
			section_set_int(conf, settings[i].key, atoi(settings[i].text),
					"burst.cfg:3");
		else
			section_set_text(conf, settings[i].key, settings[i].text, "burst.cfg:3");
	}
	if (job_tts.load(&job, &setup, err) < 0)
		job = NULL;
	section_free(conf);
	return job;
}

bool has_file(const struct job_needs *needs, const char *name)
{
	for (size_t i = 0; i < needs->file_count; i++)
		if (!strcmp(needs->files[i].name, name))
			return needs->files[i].len > 0;
	return false;
}
