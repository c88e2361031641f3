/* image.c - describes the image of a job's pods: its base, Debian packages, the agent, and, if the
 * user wants it, what the job's set-up leaves. */
#include "image.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/str.h"
#include "caller.h"
#include "store/facts.h"

#define IMAGE_ENV     IMAGE_DIR "/env"
#define BUILD_MOST_MS (INT64_C(3600) * 1000)

/* ---- steps ---- */

bool image_has_parts(const struct job_needs *needs)
{
	return needs->setup && needs->setup_packages;
}

/* Runs a set-up script as a pod would, with the image in place of a volume. It writes the
 * completion file last. */
static char *run_line(const struct job_needs *needs, const char *path, const char *key)
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
	step->run = run_line(needs, step->path, to->key[at]);
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

void image_recipe(struct rent_request *to, const struct engine_setup *setup,
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

void image_known_key(const struct rent_request *recipe, char hex[SHA256_HEX])
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

static void wanted_key(const struct engine_setup *setup, const struct job_needs *needs,
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
	wanted_key(setup, needs, key);
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
	wanted_key(setup, needs, key);
	return status < 0
		       ? -1
		       : fact_put(setup->store, FACT_IMAGE_WITH, account, key, has_words[has], err);
}
