/* pod_image.c - has a provider that builds images build the one for this run's pods. */
#include "pod_image.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "image.h"
#include "impl.h"
#include "post.h"
#include "request.h"
#include "store/facts.h"

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

const char *pod_image_doing(const struct engine *e)
{
	return e->pod_images->doing;
}

/* What the pod's image is made of, if the vendor builds one. */
void pod_image_recipe(struct engine *e, int provider, struct rent_request *r)
{
	struct image_steps *steps = &e->pod_images->of[provider].steps;

	if (!steps->count && e->work.needs)
		image_steps_make(
			steps, e->work.needs,
			image_wanted(e->setup, &e->setup->providers[provider], e->work.needs));
	image_recipe(r, e->setup, e->work.needs, steps);
}

/* The ledger keeps the last answer about this image, by account and by everything that goes into
 * it. */
static void image_key(struct engine *e, int provider, char hex[SHA256_HEX])
{
	struct rent_request r = {0};

	pod_image_recipe(e, provider, &r);
	image_known_key(&r, hex);
}

static const char *account_of(const struct engine *e, int provider)
{
	const struct engine_provider *p = &e->setup->providers[provider];

	return p->ops->account(p->handle);
}

void pod_image_keep(struct engine *e, int provider, const char *image)
{
	char key[SHA256_HEX];

	if (!image[0] || !strcmp(image, e->pod_images->of[provider].known))
		return;
	COPY_TEXT(e->pod_images->of[provider].known, image);
	image_key(e, provider, key);
	fact_put(e->setup->store, FACT_IMAGE, account_of(e, provider), key, image, NULL);
}

void pod_image_hand(struct request *a)
{
	COPY_TEXT(a->image, a->e->pod_images->of[a->provider].known);
	a->want.rent.known_image = a->image[0] ? a->image : NULL;
}

static void on_image_lines(void *ctx, const char *lines)
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

static void image_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct engine *e = a->e;
	struct event ev = {.type = EV_IMAGE, .provider = a->provider};
	char took[24];

	if (result) {
		if (a->told || result->text.len) {
			on_image_lines(a, str_text(&result->text));
			engine_log(e, LOG_NOTE, "%s: the image was built in %s",
				   e->setup->providers[a->provider].ops->name,
				   duration_show(took, sizeof(took),
						 clock_boot_ms() - a->requested_at));
		}
		pod_image_keep(e, a->provider, result->image);
	}
	e->pod_images->doing[0] = '\0';
	post(e, &ev, err);
	request_free(a);
}

void pod_image_get(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);
	char key[SHA256_HEX];

	image_key(e, provider, key);
	if (!fact_get(e->setup->store, FACT_IMAGE, account_of(e, provider), key,
		      e->pod_images->of[provider].known, sizeof(e->pod_images->of[provider].known)))
		e->pod_images->of[provider].known[0] = '\0';
	pod_image_recipe(e, provider, &a->want.rent);
	pod_image_hand(a);
	caller_listen(request_begin(a, OP_IMAGE, image_done), on_image_lines);
}
