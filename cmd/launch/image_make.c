/* image_make.c - makes the image of a job's pods: its base, its Dockerfile, its build at a
 * provider. */
#include "image_make.h"

#include <string.h>

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/show/templates.h"
#include "cmd/show/output.h"
#include "launch.h"

/* The provider's image if pod.image is not set. NULL: it runs no images. */
static const char *image_of_provider(const struct config *config, const char *name)
{
	const struct section *s = config_provider(config, name);

	for (const struct option_spec *o = s ? section_table(s) : NULL; o && o->key; o++)
		if (!strcmp(o->key, "image"))
			return section_text(s, "image");
	return NULL;
}

/* The image of a run's pods: the config's, else that of its first provider that runs images. NULL:
 * none has a default. */
static const char *usual_image(const struct config *config)
{
	const struct section *top = config_top(config);
	const char *image = section_text(section_group(top, "pod"), "image");

	for (size_t i = 0; !image && i < section_count(top, "provider"); i++)
		image = image_of_provider(config, section_item(top, "provider", i));
	return image;
}

static int choose_base(const struct cmd_context *ctx, const char **from, struct err *err)
{
	const char *given = opt_text(ctx, "from");

	*from = given ? given : usual_image(ctx->config);
	if (!*from)
		return err_set(err, ERR_USAGE,
			       "image: no provider of this config names an image to build on; name "
			       "one: --from debian:bookworm");
	if (!provider_is_image(*from))
		return err_set(err, ERR_USAGE,
			       "--from: \"%s\" is not an image name, like \"ghcr.io/me/voices:1\"",
			       *from);
	return 0;
}

static void say_missing(const struct job_needs *needs, bool whole)
{
	if (!needs->setup)
		log_line(LOG_NOTE, "this job has no set-up: only sshd%s are put into the image",
			 needs->packages ? " and its Debian packages" : " and curl");
	else if (!whole && image_has_parts(needs))
		log_line(LOG_NOTE, "the image will have no weights: a pod fetches them, unless its "
				   "volume has them (--with-weights puts them in)");
}

int image_make_dockerfile(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	bool whole = opt_has(ctx, "with-weights");
	struct dockerfile_want want = {.job = config_job_name(ctx->config),
				       .has = whole ? IMAGE_HAS_ALL : IMAGE_HAS_PACKAGES};
	CLEANUP(str_free) struct str command = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;

	if (choose_base(ctx, &want.from, err) < 0 || launch_read_job(l, err) < 0)
		return -1;
	want.needs = l->run.setup.job_ops->needs(l->run.setup.job);
	str_addf(&command, "burst image%s", whole ? " --with-weights" : "");
	if (opt_has(ctx, "from"))
		str_addf(&command, " --from %s", want.from);
	want.command = str_text(&command);
	dockerfile_add(&text, &want);
	say_missing(want.needs, whole);
	if (want.needs->setup && want.needs->env_names && want.needs->env_names[0])
		log_line(LOG_NOTE, "job.env: give its variables to the build with --secret, as the "
				   "file's first lines show");
	fputs(str_text(&text), stdout);
	return cmd_flush(err);
}

/* ---- at a provider that builds images ---- */

static void print_lines(void *ctx, const char *lines)
{
	const char *line;
	size_t len;

	(void)ctx;
	while ((line = str_next_line(&lines, &len))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len)
			log_line(LOG_NOTE, "modal: image: %s", str_text(&shown));
	}
}

int image_make_at_modal(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	bool whole = opt_has(ctx, "with-weights");
	char id[IMAGE_MAX];

	if (opt_has(ctx, "from"))
		return err_set(err, ERR_USAGE,
			       "image: --modal builds on the image of pod.image or "
			       "providers.modal.image; --from is for Dockerfiles only");
	if (launch_read_job(l, err) < 0 || run_open_account(&l->run, "modal", err) < 0)
		return -1;
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	l->run.setup.image = section_text(section_group(config_top(ctx->config), "pod"), "image");
	say_missing(needs, whole);
	if (needs->setup && needs->env_names && needs->env_names[0])
		log_line(LOG_NOTE, "job.env: its variables are not sent to Modal's build");
	if (image_build(&l->run.setup, &l->run.setup.providers[0], needs,
			whole ? IMAGE_HAS_ALL : IMAGE_HAS_PACKAGES, print_lines, NULL, id, err) < 0)
		return err_wrap(err, "modal");
	output_line(stdout,
		    "%s: runs of job \"%s\" at Modal use this image until its set-up changes", id,
		    config_job_name(ctx->config));
	return cmd_flush(err);
}
