/* token.c - the token of each call: fetched with the account's two secrets, and again after half of
 * its life. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/log.h"

enum {
	LIFE_ASSUMED_S = 20 * 60,
	LIFE_MOST_S = 7 * 86400,
	BACKOFF_FIRST_MS = 500,
	BACKOFF_MOST_MS = 60000,
	JWT_MOST = 16384
};

/* base64url without padding, as padded base64 */
static void add_plain_base64(struct str *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		str_addc(to, text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
	while (to->len % 4)
		str_addc(to, '=');
}

int64_t modal_token_expires_s(const char *jwt)
{
	CLEANUP(str_free) struct str base64 = STR_INIT;
	CLEANUP(str_free) struct str claims = STR_INIT;
	const char *from = strchr(jwt, '.'), *to = from ? strchr(from + 1, '.') : NULL;

	if (!to || strlen(jwt) > JWT_MOST)
		return 0;
	add_plain_base64(&base64, from + 1, (size_t)(to - from - 1));
	if (base64_decode(&claims, str_text(&base64), base64.len, NULL) < 0)
		return 0;
	CLEANUP(json_decref) json_t *object = jsonx_parse(str_text(&claims), claims.len, NULL);
	int64_t expires = object ? jsonx_int(object, "exp", 0) : 0;
	return MAX(expires, 0);
}

static int64_t life_ms(const char *jwt)
{
	int64_t expires_s = modal_token_expires_s(jwt);

	if (!expires_s || expires_s > INT32_MAX * INT64_C(4))
		return LIFE_ASSUMED_S * 1000;
	return MIN(MAX(expires_s * 1000 - clock_wall_ms(), 0), LIFE_MOST_S * INT64_C(1000));
}

bool modal_token_is_usable(const struct auth_token *token)
{
	return token->text && clock_boot_ms() < token->dead_at_ms;
}

bool modal_token_is_due(const struct auth_token *token)
{
	return !modal_token_is_usable(token) || clock_boot_ms() >= token->refresh_at_ms;
}

void modal_token_take(struct auth_token *token, const char *text)
{
	int64_t now = clock_boot_ms(), life = life_ms(text);

	log_secret(text);
	text_wipe(token->text);
	token->text = xstrdup(text);
	token->dead_at_ms = now + life;
	/* spread refreshes of an account's processes */
	token->refresh_at_ms = now + life / 2 + (int64_t)(random_u64() % (uint64_t)(life / 10 + 1));
	token->backoff_ms = 0;
	token->number++;
}

void modal_token_drop(struct auth_token *token)
{
	token->dead_at_ms = INT64_MIN;
}

void modal_token_failed(struct auth_token *token)
{
	token->backoff_ms = token->backoff_ms ? MIN(token->backoff_ms * 2, (int64_t)BACKOFF_MOST_MS)
					      : BACKOFF_FIRST_MS;
	token->refresh_at_ms = clock_boot_ms() + token->backoff_ms;
}

void modal_token_free(struct auth_token *token)
{
	text_wipe(token->text);
	*token = (struct auth_token){0};
}
