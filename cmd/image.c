/* image.c - `burst image`: makes an image with what pods would otherwise set up. */
#include "cmd.h"

#include <stdlib.h>

#include "base/err.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "engine/image.h"

/* ---- the Dockerfile: the image has what a job's pods would otherwise set up ---- */

struct dockerfile_want {
	const char *from;    /* base image, a checked reference */
	const char *job;     /* name of the job, for comments */
	const char *command; /* command that prints this file, for comments: "burst image
				--with-weights" */
	const struct job_needs *needs;
	enum image_has has;
};

/* The step that installs sshd and the job's Debian packages, as each pod otherwise does at its
 * start. */
static void add_debian_packages(struct str *to, const struct job_needs *needs)
{
	str_add(to, "RUN if command -v apt-get >/dev/null; then apt-get update && "
		    "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
		    "openssh-server rsync ca-certificates curl");
	for (const char *const *package = needs->packages; package && *package; package++)
		str_addf(to, " %s", *package);
	str_add(to, " && rm -f /etc/ssh/ssh_host_* && rm -rf /var/lib/apt/lists/*; fi; mkdir -p "
		    "/run/sshd\n");
}

/* Whether one line of the text equals `line`. */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return true;
	return false;
}

/* An end mark for the here-document that no line of the script equals. The caller frees it. */
static char *unused_end_mark(const char *script)
{
	char *end = xstrdup("END_OF_SCRIPT");

	for (int i = 2; has_line(script, end); i++) {
		free(end);
		end = xasprintf("END_OF_SCRIPT_%d", i);
	}
	return end;
}

/* Adds a set-up script and the step that runs it. The user's variables are build secrets, which no
 * layer keeps. */
static void add_setup_step(struct str *to, const struct job_needs *needs,
			   const struct image_steps *steps, size_t at)
{
	const struct image_step *step = &steps->step[at];
	CLEANUP(free_text) char *end = unused_end_mark(step->text);
	size_t len = strlen(step->text);

	str_addf(to, "\nCOPY <<'%s' %s\n%s%s%s\nRUN", end, step->path, step->text,
		 len && step->text[len - 1] == '\n' ? "" : "\n", end);
	for (const char *const *name = needs->env_names; name && *name; name++)
		str_addf(to, " --mount=type=secret,id=%s,env=%s", *name, *name);
	str_addf(to, " %s\n", step->run);
	str_addf(to, "LABEL burst.environment.%s=\"%s\"\n", steps->name[at], steps->key[at]);
}

static void add_comment(struct str *to, const struct dockerfile_want *want)
{
	const struct job_needs *n = want->needs;

	str_addf(to, "# Made by `%s` (burst " BURST_VERSION ") for job \"", want->command);
	str_add_printable(to, want->job, strlen(want->job), 60);
	str_add(to, "\", engine ");
	str_add_printable(to, n->engine, strlen(n->engine), 60);
	str_add(to, ".\n");
	str_addf(to, "#\n#   %s | docker build -t YOU/NAME:1", want->command);
	for (const char *const *name = n->env_names; name && *name; name++)
		str_addf(to, " --secret id=%s,env=%s", *name, *name);
	str_add(to, " -\n#   docker push YOU/NAME:1\n#\n");
	str_add(to, "# Then name it in burst.cfg: pod = { image = \"YOU/NAME:1\"; };\n");
}

/* Whether the word can stand in a LABEL without escapes. */
static bool is_label_word(const char *word)
{
	return !word[strspn(word,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")];
}

static void add_dockerfile(struct str *to, const struct dockerfile_want *want)
{
	const struct job_needs *n = want->needs;
	CLEANUP(image_steps_free) struct image_steps steps;

	image_steps_make(&steps, n, want->has);
	str_add(to, "# syntax=docker/dockerfile:1\n");
	add_comment(to, want);
	str_addf(to, "FROM %s\nUSER root\n", want->from);
	add_debian_packages(to, n);
	for (size_t i = 0; i < steps.count; i++)
		add_setup_step(to, n, &steps, i);
	str_add(to, "\nLABEL burst.version=\"" BURST_VERSION "\"");
	if (is_label_word(n->engine)) /* a user's own engine may have any name */
		str_addf(to, " burst.engine=\"%s\"", n->engine);
	str_add(to, "\n");
}

/* ---- the command ---- */

/* The image of a provider's own section, which its pods use if pod.image is not set. NULL: none, or
 * the provider has no key for one. */
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

/* Sets *from to --from, else to the image of the job's pods. */
static int choose_base_image(const struct cmd_context *ctx, const char **from, struct err *err)
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

/* whole: the image gets the weights, too. */
static void tell_what_is_left_out(const struct job_needs *needs, bool whole)
{
	if (!needs->setup)
		log_line(LOG_NOTE, "this job has no set-up: only sshd%s are put into the image",
			 needs->packages ? " and its Debian packages" : " and curl");
	else if (!whole && image_has_parts(needs))
		log_line(LOG_NOTE, "the image will have no weights: a pod fetches them, unless its "
				   "volume has them (--with-weights puts them in)");
}

/* Prints a Dockerfile for the job's set-up. */
static int make_dockerfile(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	bool whole = opt_has(ctx, "with-weights");
	struct dockerfile_want want = {.job = config_job_name(ctx->config),
				       .has = whole ? IMAGE_HAS_ALL : IMAGE_HAS_PACKAGES};
	CLEANUP(str_free) struct str command = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;

	if (choose_base_image(ctx, &want.from, err) < 0 || launch_read_job(l, err) < 0)
		return -1;
	want.needs = l->run.setup.job_ops->needs(l->run.setup.job);
	str_addf(&command, "burst image%s", whole ? " --with-weights" : "");
	if (opt_has(ctx, "from"))
		str_addf(&command, " --from %s", want.from);
	want.command = str_text(&command);
	add_dockerfile(&text, &want);
	tell_what_is_left_out(want.needs, whole);
	if (want.needs->setup && want.needs->env_names && want.needs->env_names[0])
		log_line(LOG_NOTE, "job.env: give its variables to the build with --secret, as the "
				   "file's first lines show");
	fputs(str_text(&text), stdout);
	return cmd_flush(err);
}

/* ---- at a provider that builds images ---- */

static void print_build_log(void *ctx, const char *lines)
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

/* Lets Modal build the image. The ledger keeps its id for later runs of the job. */
static int make_at_modal(struct launch *l, struct err *err)
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
	tell_what_is_left_out(needs, whole);
	if (needs->setup && needs->env_names && needs->env_names[0])
		log_line(LOG_NOTE, "job.env: its variables are not sent to Modal's build");
	if (image_build(&l->run.setup, &l->run.setup.providers[0], needs,
			whole ? IMAGE_HAS_ALL : IMAGE_HAS_PACKAGES, print_build_log, NULL, id,
			err) < 0)
		return err_wrap(err, "modal");
	output_line(stdout,
		    "%s: runs of job \"%s\" at Modal use this image until its set-up changes", id,
		    config_job_name(ctx->config));
	return cmd_flush(err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = opt_has(ctx, "modal") ? make_at_modal(&l, err) : make_dockerfile(&l, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{0, "with-weights", NULL, "put the weights and voices into the image, too"},
	{0, "modal", NULL, "build the image at Modal, and use it in later runs of this job there"},
	{0, "from", "IMAGE", "base image (default: the one that the job's pods use now)"},
	{0},
};

const struct cmd cmd_image = {
	.name = "image",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "make an image whose pods need no set-up: a Dockerfile, or at Modal",
	.details = "The image has sshd, the job's Debian packages and its Python packages, locked "
		   "by their hashes, and with --with-weights the weights. Build it (`burst image | "
		   "docker build -t YOU/NAME:1 -`, with Docker 23 or later), push it, and name it "
		   "in burst.cfg: pod = { image = \"YOU/NAME:1\"; }. A pod that finds its job's "
		   "environment in its image skips the set-up, whatever its volume has. An image "
		   "made for another set-up (another engine, another version of burst) is used "
		   "like any other image. With --modal, Modal builds the image and keeps it; "
		   "nothing is printed, pushed or named.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
