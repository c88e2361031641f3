/* image.c - which image an instance has, and the login for a private one */
#include "base/str.h"
#include "impl.h"

/* "image_login" holds options of `docker login`: "-u USER -p TOKEN REGISTRY" (OpenAPI file, and
 * Vast's page on creating instances). How Vast splits them is not said, so none has a letter that
 * needs quotes. */

static bool needs_no_quotes(const char *text)
{
	size_t len = strlen(text);

	return len && text[0] != '-' &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "-._~+/=:@%,!") == len;
}

/* The registry of an image: its first part, if that is the name of a host. The rule is Docker's
 * own. A new string. */
static char *registry_of(const char *image)
{
	size_t len = strcspn(image, "/");
	CLEANUP(free_text) char *host = xstrndup(image, len);

	if (!image[len] || (!strpbrk(host, ".:") && strcmp(host, "localhost") != 0))
		return xstrdup("docker.io");
	return TAKE(host);
}

int vast_check_logins(const struct section *conf, const char *group, const char *key,
		      struct err *err)
{
	if (provider_check_registries(conf, group, key, err) < 0)
		return -1;
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i);
		if (!needs_no_quotes(strchr(item, '=') + 1))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\": a user's name has letters, digits and "
				       "\"-._~+/=:@%%,!\"",
				       section_where(conf, key), group, key, item);
	}
	return 0;
}

int vast_add_login(struct str *to, const struct section *conf, const char *image, struct err *err)
{
	const char *user = provider_registry_name(conf, "registry", image),
		   *token = section_text(conf, "registry_token");

	if (!user)
		return 0;
	if (!section_bool(conf, "allow_secrets"))
		return err_set(err, ERR_CONFIG,
			       "image \"%s\" needs the login of providers.vast.registry, which the "
			       "owner of a machine at Vast.ai can read: set "
			       "providers.vast.allow_secrets = true in your own file, or use a "
			       "public image",
			       image);
	if (!token || !*token)
		return err_set(err, ERR_CONFIG,
			       "image \"%s\" needs the login of providers.vast.registry: set "
			       "providers.vast.registry_token in your own file, or "
			       "VAST_REGISTRY_TOKEN",
			       image);
	if (!needs_no_quotes(token))
		return err_set(err, ERR_CONFIG,
			       "providers.vast.registry_token: a token has letters, digits and "
			       "\"-._~+/=:@%%,!\", and no \"-\" at its start");
	CLEANUP(free_text) char *registry = registry_of(image);
	str_addf(to, "-u %s -p %s %s", user, token, registry);
	return 0;
}

const char *vast_image(const struct section *conf, const char *wanted)
{
	return wanted ? wanted : section_text(conf, "image");
}
