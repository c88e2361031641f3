/* dockerfile.c - writes a Dockerfile for an image with what a job's pods would otherwise set up. It
 * needs no build context: scripts are here-documents, which BuildKit (Docker 23 or later) and
 * Buildah 1.33 or later accept. */
#include "dockerfile.h"

#include <string.h>

/* Installs sshd and the job's Debian packages, which each pod would otherwise install at its start.
 */
static void add_debian(struct str *to, const struct job_needs *needs)
{
	str_add(to, "RUN if command -v apt-get >/dev/null; then apt-get update && "
		    "DEBIAN_FRONTEND=noninteractive apt-get install -y"
		    " --no-install-recommends openssh-server rsync ca-certificates curl");
	for (const char *const *package = needs->packages; package && *package; package++)
		str_addf(to, " %s", *package);
	str_add(to, " && rm -f /etc/ssh/ssh_host_* && rm -rf /var/lib/apt/lists/*; fi; mkdir -p "
		    "/run/sshd\n");
}

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return true;
	return false;
}

/* An end mark that the script does not contain. */
static char *end_of(const char *script)
{
	char *end = xstrdup("END_OF_SCRIPT");

	for (int i = 2; has_line(script, end); i++) {
		free(end);
		end = xasprintf("END_OF_SCRIPT_%d", i);
	}
	return end;
}

/* Writes a set-up script and the step that runs it. The user's variables are build secrets, which
 * no layer keeps. */
static void add_step(struct str *to, const struct job_needs *needs, const struct image_steps *steps,
		     size_t at)
{
	const struct image_step *step = &steps->step[at];
	CLEANUP(free_text) char *end = end_of(step->text);
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

static bool is_plain(const char *word)
{
	return !word[strspn(word,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")];
}

void dockerfile_add(struct str *to, const struct dockerfile_want *want)
{
	const struct job_needs *n = want->needs;
	CLEANUP(image_steps_free) struct image_steps steps;

	image_steps_make(&steps, n, want->has);
	str_add(to, "# syntax=docker/dockerfile:1\n");
	add_comment(to, want);
	str_addf(to, "FROM %s\nUSER root\n", want->from);
	add_debian(to, n);
	for (size_t i = 0; i < steps.count; i++)
		add_step(to, n, &steps, i);
	str_add(to, "\nLABEL burst.version=\"" BURST_VERSION "\"");
	if (is_plain(n->engine)) /* a user's own engine may have any name */
		str_addf(to, " burst.engine=\"%s\"", n->engine);
	str_add(to, "\n");
}
