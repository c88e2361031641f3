/* image.c - knows what images and volumes hold, and has images built. */
#include "image.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/str.h"
#include "impl.h"
#include "store/facts.h"

/* ---- image ----
 * Describes the image of a job's pods: its base, Debian packages, the agent, and, if the user
 * wants it, what the job's set-up leaves. */

#define IMAGE_ENV     IMAGE_DIR "/env"
#define BUILD_MOST_MS (INT64_C(3600) * 1000)

/* ---- steps ---- */

bool image_has_parts(const struct job_needs *needs)
{
	return needs->setup && needs->setup_packages;
}

/* The command that runs a set-up script as a pod would, with the image in place of a volume. It
 * writes the completion file last. The caller frees it. */
static char *make_step_command(const struct job_needs *needs, const char *path, const char *key)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	str_add(&s, "export");
	for (const char *const *pair = needs->setup_env; pair && *pair; pair++) {
		size_t name = strcspn(*pair, "=");
		str_addf(&s, " %.*s=", (int)name, *pair);
		str_add_shell(&s, *pair + name + 1);
	}
	str_addf(&s, " BURST_ENV=" IMAGE_ENV "/%s BURST_ENV_FINAL=" IMAGE_ENV "/%s && ", key, key);
	str_addf(&s, "mkdir -p \"$BURST_ENV\" && sh %s && chmod -R a+rX,go-w " IMAGE_DIR " && ",
		 path);
	str_addf(&s, "echo %s >\"$BURST_ENV/" IMAGE_KEY_FILE "\"", key);
	return str_detach(&s);
}

static void add_step(struct image_steps *to, const struct job_needs *needs, const char *name,
		     const char *script)
{
	size_t at = to->count++;
	struct image_step *step = &to->step[at];

	to->name[at] = name;
	sha256_hex(script, strlen(script), to->key[at]);
	step->text = script;
	step->path = xasprintf(IMAGE_DIR "/%s", name);
	step->run = make_step_command(needs, step->path, to->key[at]);
}

void image_steps_make(struct image_steps *out, const struct job_needs *needs, enum image_has has)
{
	bool parts = image_has_parts(needs);

	*out = (struct image_steps){0};
	if (!needs->setup || has == IMAGE_HAS_NOTHING)
		return;
	if (parts)
		add_step(out, needs, "packages", needs->setup_packages);
	if (has == IMAGE_HAS_ALL || !parts)
		add_step(out, needs, parts ? "weights" : "setup", needs->setup);
}

void image_steps_free(struct image_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++) {
		free(steps->step[i].path);
		free(steps->step[i].run);
	}
	*steps = (struct image_steps){0};
}

/* ---- where the vendor builds it ---- */

/* Fills in the image that a provider should build. `steps` is borrowed by the request. */
static void image_recipe(struct rent_request *to, const struct engine_setup *setup,
			 const struct job_needs *needs, const struct image_steps *steps)
{
	to->image = setup->image;
	to->packages = needs ? needs->packages : NULL;
	to->agent = setup->kit->agents[0].bytes;
	to->agent_len = setup->kit->agents[0].len;
	to->agent_path = setup->kit->agent_path;
	to->steps = steps->step;
	to->step_count = steps->count;
}

/* Hashes all that goes into an image: the ledger keeps the provider's last answer about it
 * (rent_request.known_image) under this key. */
static void image_known_key(const struct rent_request *recipe, char hex[SHA256_HEX])
{
	CLEANUP(str_free) struct str made_of = STR_INIT;

	str_addf(&made_of, "%s\n%s\n", recipe->image ? recipe->image : "",
		 recipe->agent_path ? recipe->agent_path : "");
	for (const char *const *p = recipe->packages; p && *p; p++)
		str_addf(&made_of, "%s\n", *p);
	for (size_t i = 0; i < recipe->step_count; i++)
		str_addf(&made_of, "%s\n", recipe->steps[i].run);
	sha256_hex(str_text(&made_of), made_of.len, hex);
}

/* Names the fact in which `burst image` keeps what is in images for this set-up on this base. */
static void chosen_key(const struct engine_setup *setup, const struct job_needs *needs,
		       char hex[SHA256_HEX])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s", setup->image ? setup->image : "", needs->setup);

	sha256_hex(text, strlen(text), hex);
}

static const char *const has_words[] = {
	[IMAGE_HAS_NOTHING] = "", [IMAGE_HAS_PACKAGES] = "packages", [IMAGE_HAS_ALL] = "all"};

enum image_has image_wanted(const struct engine_setup *setup,
			    const struct engine_provider *provider, const struct job_needs *needs)
{
	char key[SHA256_HEX], value[16] = "";

	if (!needs || !needs->setup || !provider->ops->makes_image)
		return IMAGE_HAS_NOTHING;
	chosen_key(setup, needs, key);
	if (!fact_get(setup->store, FACT_IMAGE_WITH, provider->ops->account(provider->handle), key,
		      value, sizeof(value)))
		return IMAGE_HAS_NOTHING;
	return !strcmp(value, has_words[IMAGE_HAS_ALL])        ? IMAGE_HAS_ALL
	       : !strcmp(value, has_words[IMAGE_HAS_PACKAGES]) ? IMAGE_HAS_PACKAGES
							       : IMAGE_HAS_NOTHING;
}

int image_build(const struct engine_setup *setup, const struct engine_provider *provider,
		const struct job_needs *needs, enum image_has has,
		void (*said)(void *ctx, const char *lines), void *ctx, char id[IMAGE_MAX],
		struct err *err)
{
	CLEANUP(image_steps_free) struct image_steps steps = {0};
	struct op_want want = {0};
	struct op_result result = {0};
	const char *account = provider->ops->account(provider->handle);
	char key[SHA256_HEX], known[IMAGE_MAX] = "";

	if (!image_has_parts(needs))
		has = IMAGE_HAS_ALL;
	image_steps_make(&steps, needs, has);
	image_recipe(&want.rent, setup, needs, &steps);
	image_known_key(&want.rent, key);
	if (fact_get(setup->store, FACT_IMAGE, account, key, known, sizeof(known)) && known[0])
		want.rent.known_image = known;
	if (caller_perform_shown(provider, OP_IMAGE, &want, BUILD_MOST_MS, said, ctx, &result,
				 err) < 0)
		return -1;
	if (result.text.len)
		said(ctx, str_text(&result.text));
	snprintf(id, IMAGE_MAX, "%.*s", (int)strcspn(result.image, " "), result.image);
	int status = fact_put(setup->store, FACT_IMAGE, account, key, result.image, err);
	op_result_free(&result);
	if (!needs->setup)
		return status;
	chosen_key(setup, needs, key);
	return status < 0
		       ? -1
		       : fact_put(setup->store, FACT_IMAGE_WITH, account, key, has_words[has], err);
}

/* ---- known ----
 * Reads in the ledger what volumes and images hold: the trees they got, the environments and
 * packages that pods of this job left there. */

/* ---- what setup and install left on a volume ----
 * Other pods may write to a volume, so that nothing on it is used but what this ledger knows by its
 * hash. The hash came from a pod, and a pod answers for its own job alone: another job makes its
 * own, as does another machine. */

/* Hashes what a script's result depends on: the job, the image, and for compiled code the
 * architecture of the pod's card ("": none). The Python of an image is not known before a pod runs
 * it: the agent compares that. */
static void made_hash(const struct engine_setup *setup, enum fact kind, const char *script,
		      const char *card, char hex[SHA256_HEX])
{
	const struct run_row *job = setup->run;
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s\n%s\n%s%s%s", fact_word(kind), job->config, job->job,
			       setup->image ? setup->image : "", script, *card ? "\n" : "", card);

	sha256_hex(text, strlen(text), hex);
}

static void made_key(const struct engine_setup *setup, const char *provider, const char *volume_id,
		     enum fact kind, const char *script, const char *card, char hex[SHA256_HEX])
{
	made_hash(setup, kind, script, card, hex);
	CLEANUP(free_text) char *text = xasprintf("%s\n%s\n%s", hex, provider, volume_id);
	sha256_hex(text, strlen(text), hex);
}

/* As made_key(), for the volume of a pod. Returns false if the pod has none. */
static bool made_key_of_pod(const struct engine *e, int pod, enum fact kind, const char *script,
			    const char *card, char key[SHA256_HEX])
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (p->rental.volume.id[0])
		made_key(e->setup, e->setup->providers[p->rental.provider].ops->name,
			 p->rental.volume.id, kind, script, card, key);
	return p->rental.volume.id[0] != '\0';
}

/* The architecture for which a set-up compiles; "": none, so all pods can use the result. */
static const char *architecture_for(const struct job_needs *needs, const char *gpu)
{
	return needs->setup_by_card && !gpu_is_none(gpu) ? gpu_architecture(gpu) : "";
}

bool engine_env_there(const struct engine_setup *setup, const struct job_needs *needs,
		      const char *gpu, const char *provider, const char *volume_id)
{
	const char *const cards[] = {architecture_for(needs, gpu), ""};
	char key[SHA256_HEX], value[200];

	for (size_t i = 0; i < (cards[0][0] ? 2 : 1); i++) {
		made_key(setup, provider, volume_id, FACT_MADE_ENV, needs->setup, cards[i], key);
		if (fact_get(setup->store, FACT_MADE_ENV, key, NULL, value, sizeof(value)) &&
		    value[0])
			return true;
	}
	return false;
}

/* Records what the script has left on the pod's volume; "": nothing. */
static void put_made(struct engine *e, int pod, enum fact kind, const char *script,
		     const char *card, const char *value)
{
	char key[SHA256_HEX];

	if (made_key_of_pod(e, pod, kind, script, card, key))
		fact_put(e->setup->store, kind, key, NULL, value, NULL);
}

static bool get_made(const struct engine *e, int pod, enum fact kind, const char *script,
		     const char *card, char *value, size_t room)
{
	char key[SHA256_HEX];

	return made_key_of_pod(e, pod, kind, script, card, key) &&
	       fact_get(e->setup->store, kind, key, NULL, value, room);
}

static const char *architecture_of_pod(const struct engine *e, int pod)
{
	return architecture_for(e->work.needs, core_pod_at(e->core, pod)->rental.offer.gpu);
}

/* Reads an environment from a fact's text, which it cuts: its name, its hash, and the Python that
 * made it. Returns false if the text is none. */
static bool parse_env(struct pod_env *env, char *value)
{
	char *tree = strchr(value, ' '), *python = tree ? strchr(tree + 1, ' ') : NULL;

	if (python)
		*python++ = '\0';
	if (!tree || !sha256_is_hex(tree + 1))
		return false;
	*tree = '\0';
	COPY_TEXT(env->name, value);
	COPY_TEXT(env->tree, tree + 1);
	COPY_TEXT(env->python, python ? python : "");
	return true;
}

void known_env_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	char value[sizeof(row->env)];

	COPY_TEXT(value, row->env);
	parse_env(&e->pods[pod].env, value);
}

/* Prefers an environment made with a card like the pod's own to one made without. */
bool known_env_find(struct engine *e, int pod)
{
	struct pod_env *env = &e->pods[pod].env;
	const char *const cards[] = {architecture_of_pod(e, pod), ""};
	char value[200];

	if (env->in_image || env->tree[0])
		return true;
	for (size_t i = 0; i < (cards[0][0] ? 2 : 1); i++)
		if (get_made(e, pod, FACT_MADE_ENV, e->work.needs->setup, cards[i], value,
			     sizeof(value)) &&
		    parse_env(env, value))
			return true;
	return false;
}

void known_env_made(struct engine *e, int pod, const json_t *event)
{
	struct pod_env *env = &e->pods[pod].env;
	const char *tree = jsonx_text(event, "tree", ""), *python = jsonx_text(event, "python", "");

	COPY_TEXT(env->tree, tree);
	COPY_TEXT(env->python, strpbrk(python, " \n") ? "" : python);
	CLEANUP(free_text)
	char *value =
		xasprintf("%s %s%s%s", env->name, tree, env->python[0] ? " " : "", env->python);
	put_made(e, pod, FACT_MADE_ENV, e->work.needs->setup, architecture_of_pod(e, pod), value);
}

void known_env_missing(struct engine *e, int pod)
{
	struct pod_env *env = &e->pods[pod].env;

	env->name[0] = env->tree[0] = env->python[0] = '\0';
	put_made(e, pod, FACT_MADE_ENV, e->work.needs->setup, architecture_of_pod(e, pod), "");
	put_made(e, pod, FACT_MADE_ENV, e->work.needs->setup, "", "");
}

/* Each build has its own name, so that it never uses or replaces another build. */
void known_env_name(struct engine *e, int pod)
{
	char hex[SHA256_HEX];

	made_hash(e->setup, FACT_MADE_ENV, e->work.needs->setup, architecture_of_pod(e, pod), hex);
	struct pod_env *env = &e->pods[pod].env;
	snprintf(env->name, sizeof(env->name), "%.24s-%.32s", hex,
		 core_pod_at(e->core, pod)->rental.attempt);
}

void engine_setup_key(const struct job_needs *needs, char key[20])
{
	char hex[SHA256_HEX];

	key[0] = '\0';
	if (!needs || !needs->setup)
		return;
	sha256_hex(needs->setup, strlen(needs->setup), hex);
	snprintf(key, 20, "%.*s%s", SETUP_KEY_HEX, hex, needs->setup_is_ours ? "+" : "");
}

bool engine_setup_fits(const char *pods, const struct job_needs *needs)
{
	char key[20];

	engine_setup_key(needs, key);
	return !ends_with(pods, "+") || !strcmp(pods, key);
}

bool known_debs_find(const struct engine *e, int pod, char sha256[SHA256_HEX])
{
	return get_made(e, pod, FACT_MADE_DEBS, e->work.needs->install, "", sha256, SHA256_HEX) &&
	       sha256_is_hex(sha256);
}

void known_debs_put(struct engine *e, int pod, const char *sha256)
{
	put_made(e, pod, FACT_MADE_DEBS, e->work.needs->install, "", sha256);
}

/* ---- what an image has ----
 * Only the agents of its pods know what an image has, and an image of the same name may be another
 * one tomorrow. So burst tries what was seen the last time, and the agent's answer to the start
 * says what is missing. */

/* Names the fact about the environment of this script in the present image at this provider. */
static void image_env_key(const struct engine_setup *setup, const char *provider,
			  const char *script, char hex[SHA256_HEX])
{
	char key[SHA256_HEX];

	sha256_hex(script, strlen(script), key);
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s", provider, setup->image ? setup->image : "", key);
	sha256_hex(text, strlen(text), hex);
}

bool engine_env_in_image(const struct engine_setup *setup, const struct job_needs *needs,
			 const char *provider)
{
	char key[SHA256_HEX], value[4];

	image_env_key(setup, provider, needs->setup, key);
	return fact_get(setup->store, FACT_IMAGE_ENV, key, NULL, value, sizeof(value)) && value[0];
}

static void put_image_env(struct engine *e, int pod, bool there)
{
	const char *provider =
		e->setup->providers[core_pod_at(e->core, pod)->rental.provider].ops->name;
	char key[SHA256_HEX];

	if (there == engine_env_in_image(e->setup, e->work.needs, provider))
		return;
	image_env_key(e->setup, provider, e->work.needs->setup, key);
	fact_put(e->setup->store, FACT_IMAGE_ENV, key, NULL, there ? "yes" : "", NULL);
}

/* Whether these keys, as an agent reports them, have that of the script's environment. */
static bool lists_env(const json_t *envs, const char *script)
{
	char key[SHA256_HEX];

	sha256_hex(script, strlen(script), key);
	for (size_t i = 0; i < json_array_size(envs); i++) {
		const char *has = json_string_value(json_array_get(envs, i));
		if (has && !strcmp(has, key))
			return true;
	}
	return false;
}

static void log_image_envs(struct engine *e, int pod, const json_t *envs)
{
	const char *packages = e->work.needs->setup_packages;

	if (e->pods[pod].env.in_image)
		engine_log(e, LOG_NOTE, "pod %s: its image has the job's environment: no set-up",
			   pod_called(e, pod));
	else if (packages && lists_env(envs, packages))
		engine_log(e, LOG_INFO,
			   "pod %s: its image has the job's packages, without its weights",
			   pod_called(e, pod));
	else if (json_array_size(envs))
		engine_log(e, LOG_NOTE,
			   "pod %s: its image has an environment, but for another job or "
			   "version of burst: see `burst image`",
			   pod_called(e, pod));
}

void known_image_seen(struct engine *e, int pod, const json_t *hello)
{
	const json_t *envs = json_object_get(hello, "image_envs");
	struct pod_env *env = &e->pods[pod].env;

	if (!e->work.needs || !e->work.needs->setup)
		return;
	env->in_image = lists_env(envs, e->work.needs->setup);
	put_image_env(e, pod, env->in_image);
	if (!env->image_logged)
		log_image_envs(e, pod, envs);
	env->image_logged = true;
}

void known_image_expect(struct engine *e, int pod)
{
	const struct engine_provider *provider =
		&e->setup->providers[core_pod_at(e->core, pod)->rental.provider];

	e->pods[pod].env.in_image =
		e->work.needs->setup &&
		(engine_env_in_image(e->setup, e->work.needs, provider->ops->name) ||
		 image_wanted(e->setup, provider, e->work.needs) == IMAGE_HAS_ALL);
}

void known_image_missing(struct engine *e, int pod)
{
	e->pods[pod].env.in_image = false;
	put_image_env(e, pod, false);
}

/* ---- which trees a volume was given ---- */

void known_tree_put(struct engine *e, int pod, enum fact kind, const char *id)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (p->rental.volume.id[0])
		fact_put(e->setup->store, kind, e->setup->providers[p->rental.provider].ops->name,
			 p->rental.volume.id, id, NULL);
}

/* Whether the volume last got this tree. kind: FACT_KIT or FACT_TREE (code). */
static bool volume_last_got(const struct engine *e, int provider, const struct volume *v,
			    enum fact kind, const char *id)
{
	char known[SHA256_HEX];

	return v->id[0] &&
	       fact_get(e->setup->store, kind, e->setup->providers[provider].ops->name, v->id,
			known, sizeof(known)) &&
	       !strcmp(known, id);
}

bool known_tree_is(const struct engine *e, int pod, enum fact kind, const char *id)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return volume_last_got(e, p->rental.provider, &p->rental.volume, kind, id);
}

/* Names the fact about the code that pods of this job last had on a volume. Another job may have
 * put its own tree there. */
static void code_key(const struct run_row *job, const char *provider, const char *volume_id,
		     char hex[SHA256_HEX])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s\n%s", job->config, job->job, provider, volume_id);

	sha256_hex(text, strlen(text), hex);
}

void known_code_put(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	char key[SHA256_HEX];

	if (!p->rental.volume.id[0])
		return;
	code_key(e->setup->run, e->setup->providers[p->rental.provider].ops->name,
		 p->rental.volume.id, key);
	fact_put(e->setup->store, FACT_CODE, key, NULL, e->trees.code->id, NULL);
}

bool engine_code_there(struct store *store, const struct run_row *job, const char *provider,
		       const char *volume_id, char tree[SHA256_HEX])
{
	char key[SHA256_HEX];

	code_key(job, provider, volume_id, key);
	return fact_get(store, FACT_CODE, key, NULL, tree, SHA256_HEX) && sha256_is_hex(tree);
}

/* A delivery, or another project, may have put its own tree there as the last one. */
bool known_code(const struct engine *e, int provider, const struct volume *v,
		const struct tree *tree)
{
	const char *name = e->setup->providers[provider].ops->name;
	char known[SHA256_HEX];

	return volume_last_got(e, provider, v, FACT_TREE, tree->id) ||
	       (v->id[0] && engine_code_there(e->setup->store, e->setup->run, name, v->id, known) &&
		!strcmp(known, tree->id));
}

const struct tree *known_base(const struct engine *e, int provider, const struct volume *volume)
{
	const struct tree *base = e->trees.code_before;

	return base && known_code(e, provider, volume, base) ? base : NULL;
}

/* ---- pod image ---- */

struct pod_images {
	char doing[200]; /* for the display: the progress of a build */
	struct {
		struct image_steps steps; /* what is put into it, after the first request */
		char known[IMAGE_MAX];    /* as rent_request.known_image; empty: none */
	} of[CORE_PROVIDERS_MAX];
};

struct pod_images *pod_images_new(void)
{
	return xcalloc(1, sizeof(struct pod_images));
}

void pod_images_free(struct pod_images *p)
{
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++)
		image_steps_free(&p->of[i].steps);
	free(p);
}

const char *engine_doing(const struct engine *e)
{
	return e->pod_images->doing;
}

void pod_image_fill_recipe(struct engine *e, int provider, struct rent_request *r)
{
	struct image_steps *steps = &e->pod_images->of[provider].steps;

	if (!steps->count && e->work.needs)
		image_steps_make(
			steps, e->work.needs,
			image_wanted(e->setup, &e->setup->providers[provider], e->work.needs));
	image_recipe(r, e->setup, e->work.needs, steps);
}

static void known_key_of(struct engine *e, int provider, char hex[SHA256_HEX])
{
	struct rent_request r = {0};

	pod_image_fill_recipe(e, provider, &r);
	image_known_key(&r, hex);
}

static const char *account_of(const struct engine *e, int provider)
{
	const struct engine_provider *p = &e->setup->providers[provider];

	return p->ops->account(p->handle);
}

void pod_image_record(struct engine *e, int provider, const char *image)
{
	char key[SHA256_HEX];

	if (!image[0] || !strcmp(image, e->pod_images->of[provider].known))
		return;
	COPY_TEXT(e->pod_images->of[provider].known, image);
	known_key_of(e, provider, key);
	fact_put(e->setup->store, FACT_IMAGE, account_of(e, provider), key, image, NULL);
}

void pod_image_fill_known(struct request *a)
{
	COPY_TEXT(a->image, a->e->pod_images->of[a->provider].known);
	a->want.rent.known_image = a->image[0] ? a->image : NULL;
}

/* Logs the lines of a build, and shows the last one on the display. */
static void show_build_lines(void *ctx, const char *lines)
{
	struct request *a = ctx;
	struct engine *e = a->e;
	const char *name = e->setup->providers[a->provider].ops->name, *line;
	size_t len;

	if (!a->told)
		engine_log(e, LOG_NOTE,
			   "%s: building the pods' image; it is kept there for later runs", name);
	a->told = true;
	while ((line = str_next_line(&lines, &len))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len) {
			engine_log(e, LOG_INFO, "%s: image: %s", name, str_text(&shown));
			format_text(e->pod_images->doing, sizeof(e->pod_images->doing),
				    "%s: image: %s", name, str_text(&shown));
		}
	}
}

static void on_image_built(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct engine *e = a->e;
	struct event ev = {.type = EV_IMAGE, .provider = a->provider};
	char took[24];

	if (result) {
		if (a->told || result->text.len) {
			show_build_lines(a, str_text(&result->text));
			engine_log(e, LOG_NOTE, "%s: the image was built in %s",
				   e->setup->providers[a->provider].ops->name,
				   duration_show(took, sizeof(took),
						 clock_boot_ms() - a->requested_at));
		}
		pod_image_record(e, a->provider, result->image);
	}
	e->pod_images->doing[0] = '\0';
	post(e, &ev, err);
	request_free(a);
}

void pod_image_get(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);
	char key[SHA256_HEX];

	known_key_of(e, provider, key);
	if (!fact_get(e->setup->store, FACT_IMAGE, account_of(e, provider), key,
		      e->pod_images->of[provider].known, sizeof(e->pod_images->of[provider].known)))
		e->pod_images->of[provider].known[0] = '\0';
	pod_image_fill_recipe(e, provider, &a->want.rent);
	pod_image_fill_known(a);
	caller_listen(request_begin(a, OP_IMAGE, on_image_built), show_build_lines);
}
