/* recipe.c - makes the recipe of a pod's image (sshd, Debian packages of the job, the agent) and
 * its build context. */
#include "recipe.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/section.h"

enum { PACKAGE_MOST = 64 };
#define AGENT_FILE "/.burst-agent" /* its name in the build context */
#define STEP_FILE  "/.burst-step-%zu"

/* The image that the recipe starts from. */
static const char *image_name(const struct op *op)
{
	return op->want->rent.image ? op->want->rent.image
				    : section_text(op->provider->conf, "image");
}

static bool is_package(const char *name)
{
	if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name))
		return false;
	for (const char *p = name; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) &&
		    !strchr("+.-", *p))
			return false;
	return strlen(name) <= PACKAGE_MOST;
}

/* Installs sshd and the job's packages in the image, so that pods need not install them at each
 * start. Without apt, the start script searches for a way. */
static int add_install(struct recipe *r, const char *const *packages, struct err *err)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	str_add(&line, "RUN if command -v apt-get >/dev/null; then apt-get update && "
		       "DEBIAN_FRONTEND=noninteractive apt-get install -y "
		       "--no-install-recommends openssh-server rsync ca-certificates curl");
	for (; packages && *packages; packages++) {
		if (!is_package(*packages))
			return err_set(err, ERR_CONFIG,
				       "image: \"%s\" is not the name of a Debian package",
				       *packages);
		str_addf(&line, " %s", *packages);
	}
	str_add(&line, " && rm -f /etc/ssh/ssh_host_* && rm -rf /var/lib/apt/lists/*; fi; mkdir -p "
		       "/run/sshd");
	r->line[r->count++] = str_detach(&line);
	return 0;
}

/* Adds steps that the job's set-up would otherwise run on each volume. */
static int add_steps(struct recipe *r, const struct rent_request *rent, struct err *err)
{
	if (rent->step_count > STEPS_MOST)
		return err_set(err, ERR_BUG, "image: %zu steps", rent->step_count);
	for (size_t i = 0; i < rent->step_count; i++) {
		r->line[r->count++] = xasprintf("COPY " STEP_FILE " %s", i, rent->steps[i].path);
		r->line[r->count++] = xasprintf("RUN %s", rent->steps[i].run);
	}
	return 0;
}

int modal_recipe_make(const struct op *op, struct recipe *r, struct err *err)
{
	const struct rent_request *rent = &op->want->rent;
	const char *from = image_name(op);

	r->line[r->count++] = xasprintf("FROM %s", from);
	if (add_install(r, rent->packages, err) < 0 || add_steps(r, rent, err) < 0)
		return -1;
	if (rent->agent_path) {
		r->line[r->count++] = xasprintf("COPY " AGENT_FILE " %s", rent->agent_path);
		r->line[r->count++] = xasprintf("RUN chmod 755 %s", rent->agent_path);
	}
	r->line[r->count++] = xstrdup("ENTRYPOINT []");
	return 0;
}

void modal_recipe_name(const struct op *op, const struct recipe *r, char hex[SHA256_HEX])
{
	const char *const where[] = {op->provider->builder_version,
				     modal_text(section_text(op->provider->conf, "environment")),
				     modal_registry_secret(op)};
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(where); i++)
		str_addf(&text, "%s\n", where[i]);
	for (size_t i = 0; i < r->count; i++)
		str_addf(&text, "%s\n", r->line[i]);
	sha256_hex(str_text(&text), text.len, hex);
}

static void add_file(struct context *c, const void *data, size_t len)
{
	Modal__Client__ImageContextFile *file = &c->file[c->count];

	*file = (Modal__Client__ImageContextFile)MODAL__CLIENT__IMAGE_CONTEXT_FILE__INIT;
	file->filename = c->name[c->count];
	file->has_data = true;
	file->data = (ProtobufCBinaryData){len, (uint8_t *)data};
	c->files[c->count++] = file;
}

void modal_context_make(struct context *c, const struct rent_request *rent)
{
	for (size_t i = 0; i < rent->step_count; i++) {
		snprintf(c->name[i], sizeof(c->name[i]), STEP_FILE, i);
		add_file(c, rent->steps[i].text, strlen(rent->steps[i].text));
	}
	if (rent->agent_path) {
		snprintf(c->name[c->count], sizeof(c->name[0]), AGENT_FILE);
		add_file(c, rent->agent, rent->agent_len);
	}
}

const char *modal_registry_secret(const struct op *op)
{
	const char *name =
		provider_registry_name(op->provider->conf, "registry_secrets", image_name(op));

	return name ? name : "";
}
