/* image.c - the image of sandboxes: its app, its recipe and build context, and its build */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/section.h"

/* ---- the recipe of a pod's image, and its build context ---- */

enum { PACKAGE_MOST = 64 };
enum { STEPS_MOST = 4, LINES_MOST = 5 + 2 * STEPS_MOST };

struct recipe {
	char *line[LINES_MOST];
	size_t count;
};

static void recipe_free_cleanup(struct recipe *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->line[i]);
}

/* The files that the COPY lines name. */
struct context {
	Modal__Client__ImageContextFile file[STEPS_MOST + 1], *files[STEPS_MOST + 1];
	char name[STEPS_MOST + 1][24];
	size_t count;
};

#define AGENT_FILE "/.burst-agent" /* its name in the build context */
#define STEP_FILE  "/.burst-step-%zu"

/* The image that the recipe starts from. */
static const char *base_image(const struct op *op)
{
	return op->want->rent.image ? op->want->rent.image
				    : section_text(op->provider->conf, "image");
}

/* Name of the secret for a private registry; "": the image is public. */
static const char *registry_secret_name(const struct op *op)
{
	const char *name =
		provider_registry_name(op->provider->conf, "registry_secrets", base_image(op));

	return name ? name : "";
}

/* Whether Debian allows this name for a package: it becomes a word of a shell command. */
static bool is_package_name(const char *name)
{
	if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name))
		return false;
	for (const char *p = name; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) &&
		    !strchr("+.-", *p))
			return false;
	return strlen(name) <= PACKAGE_MOST;
}

/* Adds the line that installs sshd and the job's packages, so that pods need not install them at
 * each start. In an image without apt it does nothing: there the start script installs sshd. */
static int add_install_line(struct recipe *r, const char *const *packages, struct err *err)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	str_add(&line, "RUN if command -v apt-get >/dev/null; then apt-get update && "
		       "DEBIAN_FRONTEND=noninteractive apt-get install -y "
		       "--no-install-recommends openssh-server rsync ca-certificates curl");
	for (; packages && *packages; packages++) {
		if (!is_package_name(*packages))
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

/* Adds the lines of the caller's steps, which pods would otherwise run on each volume. */
static int add_step_lines(struct recipe *r, const struct rent_request *rent, struct err *err)
{
	if (rent->step_count > STEPS_MOST)
		return err_set(err, ERR_BUG, "image: %zu steps", rent->step_count);
	for (size_t i = 0; i < rent->step_count; i++) {
		r->line[r->count++] = xasprintf("COPY " STEP_FILE " %s", i, rent->steps[i].path);
		r->line[r->count++] = xasprintf("RUN %s", rent->steps[i].run);
	}
	return 0;
}

/* Fills *r, which the caller frees. ERR_CONFIG: a bad package name; ERR_BUG: too many steps. */
static int make_recipe(const struct op *op, struct recipe *r, struct err *err)
{
	const struct rent_request *rent = &op->want->rent;
	const char *from = base_image(op);

	r->line[r->count++] = xasprintf("FROM %s", from);
	if (add_install_line(r, rent->packages, err) < 0 || add_step_lines(r, rent, err) < 0)
		return -1;
	if (rent->agent_path) {
		r->line[r->count++] = xasprintf("COPY " AGENT_FILE " %s", rent->agent_path);
		r->line[r->count++] = xasprintf("RUN chmod 755 %s", rent->agent_path);
	}
	r->line[r->count++] = xstrdup("ENTRYPOINT []");
	return 0;
}

/* Sets hex to the SHA-256 of all that an image depends on. */
static void hash_recipe(const struct op *op, const struct recipe *r, char hex[SHA256_HEX])
{
	const char *const where[] = {op->provider->builder_version,
				     modal_text(section_text(op->provider->conf, "environment")),
				     registry_secret_name(op)};
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(where); i++)
		str_addf(&text, "%s\n", where[i]);
	for (size_t i = 0; i < r->count; i++)
		str_addf(&text, "%s\n", r->line[i]);
	sha256_hex(str_text(&text), text.len, hex);
}

/* Borrows data. The caller has set the file's name. */
static void add_context_file(struct context *c, const void *data, size_t len)
{
	Modal__Client__ImageContextFile *file = &c->file[c->count];

	*file = (Modal__Client__ImageContextFile)MODAL__CLIENT__IMAGE_CONTEXT_FILE__INIT;
	file->filename = c->name[c->count];
	file->has_data = true;
	file->data = (ProtobufCBinaryData){len, (uint8_t *)data};
	c->files[c->count++] = file;
}

/* Collects the files of the recipe's COPY lines in *c, which is empty. Borrows from rent. */
static void collect_context_files(struct context *c, const struct rent_request *rent)
{
	for (size_t i = 0; i < rent->step_count; i++) {
		snprintf(c->name[i], sizeof(c->name[i]), STEP_FILE, i);
		add_context_file(c, rent->steps[i].text, strlen(rent->steps[i].text));
	}
	if (rent->agent_path) {
		snprintf(c->name[c->count], sizeof(c->name[0]), AGENT_FILE);
		add_context_file(c, rent->agent, rent->agent_len);
	}
}

/* ---- the image: known and checked by one request, or built, with its log shown ---- */

enum {
	JOIN_S = 5, /* length of one stream of a build's log; its lines are shown this much late */
	JOIN_PAUSE_MS = 300,
	BUILD_MOST_MS = 3600 * 1000,
	REBUILDS_MOST = 2,
	BROKEN_MOST = 3,
	DETAIL_MOST = 300,
	REGISTRY_AUTH_NAME_AND_PASSWORD = 4, /* Image.registry_auth_type: both are in a secret */
};

enum {
	ASKED_APP = 1,
	ASKED_BUILDER_VERSION,
	ASKED_REGISTRY_SECRET,
	ASKED_KNOWN,
	ASKED_IMAGE,
	ASKED_BUILD_LOG,
	BUILD_PAUSE
};

static enum op_next fail_image(struct turn *t, enum err_kind kind, const char *what)
{
	return turn_fail(t, kind, "image: %s", what);
}

/* ---- the app ---- */

enum op_next modal_call_app(struct turn *t, enum modal_missing missing)
{
	const struct section *conf = t->op->provider->conf;
	Modal__Client__AppGetOrCreateRequest request =
		MODAL__CLIENT__APP_GET_OR_CREATE_REQUEST__INIT;

	request.app_name = (char *)section_text(conf, "app");
	request.environment_name = (char *)section_text(conf, "environment");
	request.has_object_creation_type = missing == MODAL_MAKE_MISSING;
	request.object_creation_type =
		MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_CREATE_IF_MISSING;
	return modal_call(t, CALL_POLL, "AppGetOrCreate", &request.base, 0);
}

int modal_read_app_reply(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__AppGetOrCreateResponse, answer, t, "looking for the app",
		      modal__client__app_get_or_create_response__descriptor);

	if (!answer)
		return -1;
	if (!modal_id_is_sound(answer->app_id, "ap-"))
		return err_set(t->err, ERR_TRANSIENT,
			       "looking for the app: the answer has no usable id");
	COPY_TEXT(t->op->provider->app_id, answer->app_id);
	return 0;
}

/* ---- the builder's version ---- */

static enum op_next request_builder_version(struct turn *t)
{
	Modal__Client__EnvironmentGetOrCreateRequest request =
		MODAL__CLIENT__ENVIRONMENT_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)section_text(t->op->provider->conf, "environment");
	t->op->step = ASKED_BUILDER_VERSION;
	return modal_call(t, CALL_POLL, "EnvironmentGetOrCreate", &request.base, 0);
}

/* Sets the provider's builder_version. */
static int read_builder_version_reply(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__EnvironmentGetOrCreateResponse, answer, t,
		      "asking for the environment",
		      modal__client__environment_get_or_create_response__descriptor);
	const Modal__Client__EnvironmentSettings *settings =
		answer && answer->metadata ? answer->metadata->settings : NULL;
	const char *version = settings ? modal_text(settings->image_builder_version) : "";

	if (!answer)
		return -1;
	if (!*version || strlen(version) >= sizeof(t->op->provider->builder_version))
		return err_set(t->err, ERR_TRANSIENT,
			       "asking for the environment: it names no image builder (set "
			       "MODAL_IMAGE_BUILDER_VERSION, as \"2025.06\")");
	COPY_TEXT(t->op->provider->builder_version, version);
	return 0;
}

/* ---- the secret of a private registry ---- */

static enum op_next request_registry_secret(struct turn *t)
{
	Modal__Client__SecretGetOrCreateRequest request =
		MODAL__CLIENT__SECRET_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)registry_secret_name(t->op);
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	t->op->step = ASKED_REGISTRY_SECRET;
	return modal_call(t, CALL_POLL, "SecretGetOrCreate", &request.base, 0);
}

/* Sets op->registry_id. */
static int read_registry_secret_reply(struct turn *t)
{
	const char *name = registry_secret_name(t->op);
	MODAL_MESSAGE(Modal__Client__SecretGetOrCreateResponse, answer, t,
		      "looking for the secret of the image's registry",
		      modal__client__secret_get_or_create_response__descriptor);

	if (!answer && t->err->kind == ERR_NOT_FOUND)
		return err_set(t->err, ERR_CONFIG,
			       "%s: providers.modal.registry_secrets: Modal has no secret \"%s\" "
			       "(make it there, with REGISTRY_USERNAME and REGISTRY_PASSWORD)",
			       section_where(t->op->provider->conf, "registry_secrets"), name);
	if (!answer)
		return -1;
	if (!modal_id_is_sound(answer->secret_id, "st-"))
		return err_set(t->err, ERR_TRANSIENT,
			       "looking for the secret \"%s\": the answer has no usable id", name);
	COPY_TEXT(t->op->registry_id, answer->secret_id);
	return 0;
}

/* ---- does the image exist? ---- */

/* If want.rent.known_image was built from this recipe, sets op->image_id to its id and returns
 * true. finish_with_image() writes it as "im-... RECIPE". */
static bool use_known_image(struct op *op)
{
	const char *known = op->want->rent.known_image, *blank = known ? strchr(known, ' ') : NULL;

	if (!blank || strcmp(blank + 1, op->recipe) || blank - known >= MODAL_ID_MAX)
		return false;
	copy_text(op->image_id, (size_t)(blank - known) + 1, known);
	return modal_id_is_sound(op->image_id, "im-");
}

/* op->image_id is to be used: sets it in the result. OP_DONE. */
static enum op_next finish_with_image(struct turn *t)
{
	struct op *op = t->op;

	snprintf(op->got.image, sizeof(op->got.image), "%s %s", op->image_id, op->recipe);
	if (op->kind == OP_RENT) /* rent.c goes on */
		return OP_DONE;
	op->got.text = op->said;
	op->said = (struct str){0};
	return modal_done(t);
}

static enum op_next request_known_image(struct turn *t)
{
	Modal__Client__ImageFromIdRequest request = MODAL__CLIENT__IMAGE_FROM_ID_REQUEST__INIT;

	request.image_id = t->op->image_id;
	t->op->step = ASKED_KNOWN;
	return modal_call(t, CALL_POLL, "ImageFromId", &request.base, 0);
}

static enum op_next request_image_build(struct turn *t);

/* The known image exists, or is built again. After a create that did not find an object, and while
 * the image exists, the operation fails with that create's error. */
static enum op_next on_known_image_reply(struct turn *t)
{
	bool again = t->op->refusal.kind != ERR_NONE;
	enum err_kind kind;

	if (modal_check_reply(t, "looking for the image") == 0) {
		if (!again)
			return finish_with_image(t);
		*t->err = t->op->refusal; /* another object was not found */
		return OP_FAILED;
	}
	kind = t->err->kind;
	if (again && kind == ERR_REFUSED)
		*t->err = t->op->refusal;
	if (kind != ERR_NOT_FOUND && (again || kind != ERR_REFUSED))
		return OP_FAILED;
	err_clear(t->err);
	str_addf(&t->op->said, "%s is gone: building it again\n", t->op->image_id);
	return request_image_build(t);
}

enum op_next modal_recheck_image(struct turn *t)
{
	if (!t->op->trusted)
		return OP_FAILED;
	t->op->trusted = false;
	t->op->refusal = *t->err;
	err_clear(t->err);
	return request_known_image(t);
}

/* ---- building ---- */

/* Requests the image of this recipe: Modal returns its id and builds it if it is new. */
static enum op_next request_image_build(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	CLEANUP(recipe_free) struct recipe recipe = {0};
	struct context context = {0};
	Modal__Client__ImageRegistryConfig registry = MODAL__CLIENT__IMAGE_REGISTRY_CONFIG__INIT;
	Modal__Client__Image image = MODAL__CLIENT__IMAGE__INIT;
	Modal__Client__ImageGetOrCreateRequest request =
		MODAL__CLIENT__IMAGE_GET_OR_CREATE_REQUEST__INIT;

	if (make_recipe(t->op, &recipe, t->err) < 0)
		return OP_FAILED;
	image.n_dockerfile_commands = recipe.count;
	image.dockerfile_commands = recipe.line;
	collect_context_files(&context, rent);
	image.n_context_files = context.count;
	image.context_files = context.files;
	if (t->op->registry_id[0]) {
		registry.has_registry_auth_type = true;
		registry.registry_auth_type = REGISTRY_AUTH_NAME_AND_PASSWORD;
		registry.secret_id = t->op->registry_id;
		image.image_registry_config = &registry;
	}
	request.image = &image;
	request.app_id = t->op->provider->app_id;
	request.builder_version = t->op->provider->builder_version;
	t->op->step = ASKED_IMAGE;
	return modal_call(t, CALL_POLL, "ImageGetOrCreate", &request.base, 0);
}

/* Follows the build for JOIN_S, from the last entry that was read on. */
static enum op_next request_build_log(struct turn *t)
{
	Modal__Client__ImageJoinStreamingRequest request =
		MODAL__CLIENT__IMAGE_JOIN_STREAMING_REQUEST__INIT;

	if (clock_boot_ms() - t->op->build_began_ms > BUILD_MOST_MS)
		return fail_image(t, ERR_CONFIG, "its build has not finished after an hour");
	request.image_id = t->op->image_id;
	request.has_timeout = true;
	request.timeout = JOIN_S;
	request.last_entry_id = t->op->last_entry;
	t->op->step = ASKED_BUILD_LOG;
	return modal_call_stream(t, "ImageJoinStreaming", &request.base, JOIN_S);
}

/* Fails with the build's error and the last lines of its log. */
static enum op_next fail_build(struct turn *t, const char *exception)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	const struct op *op = t->op;
	const char *between = ": ";

	str_add(&words, "the image cannot be built");
	if (*exception) {
		str_add(&words, between);
		str_add_printable(&words, exception, strlen(exception), DETAIL_MOST);
		between = "; its log ends: ";
	}
	for (size_t i = 0; i < ARRAY_LEN(op->tail); i++) {
		const char *line = op->tail[(op->tail_at + i) % ARRAY_LEN(op->tail)];
		if (!line[0])
			continue;
		str_addf(&words, "%s%s", between, line);
		between = " | ";
	}
	return fail_image(t, ERR_CONFIG, str_text(&words));
}

/* The build ended: done, started again if Modal terminated it, or failed. */
static enum op_next on_build_result(struct turn *t, const Modal__Client__GenericResult *result)
{
	if (result->status == MODAL__CLIENT__GENERIC_STATUS__GENERIC_STATUS_SUCCESS)
		return finish_with_image(t);
	if (result->status == MODAL__CLIENT__GENERIC_STATUS__GENERIC_STATUS_TERMINATED &&
	    t->op->rebuilds++ < REBUILDS_MOST)
		return request_image_build(t);
	return fail_build(t, modal_text(result->exception));
}

static enum op_next on_image_reply(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__ImageGetOrCreateResponse, answer, t, "asking for the image",
		      modal__client__image_get_or_create_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_id_is_sound(answer->image_id, "im-"))
		return fail_image(t, ERR_TRANSIENT, "the answer has no usable id");
	COPY_TEXT(t->op->image_id, answer->image_id);
	t->op->last_entry[0] = '\0';
	t->op->build_began_ms = clock_boot_ms();
	if (answer->result && answer->result->status)
		return on_build_result(t, answer->result);
	str_addf(&t->op->said, "%s is being built\n", t->op->image_id);
	return request_build_log(t);
}

/* Keeps these lines of the build's log: all to be shown next, the last ones for an error. */
static void keep_log_lines(struct op *op, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\r\n"), used = len;
		while (used && text[used - 1] == ' ')
			used--;
		if (used) {
			CLEANUP(str_free) struct str line = STR_INIT;
			str_add_printable(&line, text, used, DETAIL_MOST);
			str_addf(&op->said, "%s\n", str_text(&line));
			COPY_TEXT(op->tail[op->tail_at], str_text(&line));
			op->tail_at = (op->tail_at + 1) % ARRAY_LEN(op->tail);
		}
		text += len + (text[len] != '\0');
	}
}

/* Reads the messages of the build's log up to the result. Returns the build's status, with *what
 * the next step; 0: the build has not ended, and *what is unchanged. */
static int32_t read_build_log(struct turn *t, enum op_next *what)
{
	const struct str *body = &t->reply->body;
	const void *message;
	size_t at = 0, len;
	int32_t status = 0;

	while (!status && modal_next_message(body, &at, &message, &len)) {
		Modal__Client__ImageJoinStreamingResponse *m = modal_unpack(
			&modal__client__image_join_streaming_response__descriptor, len, message);
		if (!m)
			continue;
		for (size_t i = 0; i < m->n_task_logs; i++)
			if (!m->task_logs[i]->task_progress)
				keep_log_lines(t->op, modal_text(m->task_logs[i]->data));
		if (modal_text(m->entry_id)[0] && strlen(m->entry_id) < sizeof(t->op->last_entry))
			COPY_TEXT(t->op->last_entry, m->entry_id);
		if (m->result && m->result->status) {
			status = m->result->status;
			*what = on_build_result(t, m->result);
		}
		modal__client__image_join_streaming_response__free_unpacked(m, NULL);
	}
	return status;
}

static enum op_next on_build_log_reply(struct turn *t)
{
	enum op_next what = OP_FAILED;

	if (read_build_log(t, &what))
		return what;
	/* reopen a broken stream at its last entry, a few times in a row */
	if (modal_check_reply(t, "building the image") == 0)
		t->op->broken = 0;
	else if ((t->err->kind != ERR_NETWORK && t->err->kind != ERR_TRANSIENT) ||
		 ++t->op->broken > BROKEN_MOST)
		return OP_FAILED;
	err_clear(t->err);
	t->op->step = BUILD_PAUSE;
	return turn_wait(t, JOIN_PAUSE_MS);
}

/* ---- the sequence of steps ---- */

/* Uses the known image of this recipe, or requests a build. */
static enum op_next find_or_build_image(struct turn *t)
{
	CLEANUP(recipe_free) struct recipe recipe = {0};

	if (make_recipe(t->op, &recipe, t->err) < 0)
		return OP_FAILED;
	hash_recipe(t->op, &recipe, t->op->recipe);
	if (!use_known_image(t->op))
		return request_image_build(t);
	if (t->op->kind == OP_IMAGE)
		return request_known_image(t);
	t->op->trusted = true; /* until a create reports otherwise */
	return finish_with_image(t);
}

/* Requests the first unknown of: app, builder version, the registry's secret. Then the image. */
static enum op_next request_next_prerequisite(struct turn *t)
{
	struct op *op = t->op;

	if (!op->provider->app_id[0]) {
		op->step = ASKED_APP;
		return modal_call_app(t, MODAL_MAKE_MISSING);
	}
	if (!op->provider->builder_version[0])
		return request_builder_version(t);
	if (*registry_secret_name(op) && !op->registry_id[0])
		return request_registry_secret(t);
	return find_or_build_image(t);
}

enum op_next modal_image_next(struct turn *t)
{
	switch (t->op->step) {
	case 0: return request_next_prerequisite(t);
	case ASKED_APP:
		return modal_read_app_reply(t) < 0 ? OP_FAILED : request_next_prerequisite(t);
	case ASKED_BUILDER_VERSION:
		return read_builder_version_reply(t) < 0 ? OP_FAILED : request_next_prerequisite(t);
	case ASKED_REGISTRY_SECRET:
		return read_registry_secret_reply(t) < 0 ? OP_FAILED : request_next_prerequisite(t);
	case ASKED_KNOWN: return on_known_image_reply(t);
	case ASKED_IMAGE: return on_image_reply(t);
	case ASKED_BUILD_LOG: return on_build_log_reply(t);
	case BUILD_PAUSE: return request_build_log(t);
	}
	return fail_image(t, ERR_BUG, "no such step");
}
