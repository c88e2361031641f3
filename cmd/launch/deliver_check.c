/* deliver_check.c - finds mistakes of a delivery before anything is rented. */
#include "deliver.h"

#include "jobs/common.h"
#include "jobs/foreign.h"

void deliver_check(const struct config *c, struct mistakes *m)
{
	const struct section *top = config_top(c), *conf = section_group(top, "deliver");
	struct err err = {0};

	if (!section_has(top, "deliver"))
		return;
	if (!section_text(conf, "run") || !section_text(conf, "run")[0]) {
		err_set(&err, ERR_CONFIG,
			"%s: deliver needs run = \"...\", the command that delivers",
			section_where(conf, NULL));
		mistakes_note(m, NULL, &err);
	}
	if (strcmp(section_text(conf, "on"), "cpu")) {
		err_set(&err, ERR_CONFIG, "%s: deliver.on must be \"cpu\" or absent",
			section_where(conf, "on"));
		mistakes_note(m, NULL, &err);
	}
	if (!section_text(section_group(top, "volume"), "name")) {
		err_set(&err, ERR_CONFIG,
			"%s: deliver needs a volume, which holds the outputs: "
			"set volume.name",
			section_where(conf, NULL));
		mistakes_note(m, NULL, &err);
	}
	if (job_check_outputs(conf, &err) < 0)
		mistakes_note(m, NULL, &err);
	if (job_check_env(conf, &err) < 0)
		mistakes_note(m, NULL, &err);
}

int deliver_check_output(const struct launch *l, struct err *err)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "deliver");
	CLEANUP(manifest_free) struct manifest m = {0};

	if (l->ctx->overwrite || !section_count(conf, "outputs"))
		return 0;
	if (manifest_read(l->run.output_dir, false, &m, err) < 0)
		return -1;
	const char *const *also = m.present && l->run.setup.job_ops->finish_names
					  ? l->run.setup.job_ops->finish_names(l->run.setup.job)
					  : NULL;
	char **patterns = job_texts(conf, "outputs");
	int result = foreign_check(l->run.output_dir, (const char *const *)patterns, &m, also, err);
	job_texts_free(patterns);
	return result;
}
