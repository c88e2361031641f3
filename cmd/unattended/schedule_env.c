/* schedule_env.c - chooses which variables of `burst schedule add` its runs get. */
#include "schedule.h"

#include <stdlib.h>

#include "base/log.h"
#include "config/secrets.h"

static const char *const names[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"TZ",
	"TMPDIR",
	"XDG_CONFIG_HOME",
	"XDG_CACHE_HOME",
	"XDG_DATA_HOME",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"CURL_CA_BUNDLE",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"ALL_PROXY",
	"NO_PROXY",
	"http_proxy",
	"https_proxy",
	"all_proxy",
	"no_proxy",
	"BURST_CACHE_DIR",
	"BURST_PROVIDER_PATH",
};

/* "http://name:password@host": the ledger must not hold a password. */
static bool holds_password(const char *name, const char *value)
{
	return strcasestr(name, "proxy") && strchr(value, '@');
}

static void capture(struct str *to, const char *name)
{
	const char *value = getenv(name);

	if (!value || strchr(value, '\n'))
		return;
	if (holds_password(name, value))
		log_line(LOG_WARN,
			 "%s contains a password and is not stored: scheduled runs will not use "
			 "this proxy",
			 name);
	else
		str_addf(to, "%s=%s\n", name, value);
}

/* Settings of providers other than keys (LOCAL_ROOT, RUNPOD_API_URL). */
static void capture_settings(struct str *to, const struct provider_ops *ops)
{
	for (const struct option_spec *spec = ops->options; spec->key; spec++) {
		if (!(spec->flags & OPTION_USER_ONLY) || (spec->flags & OPTION_SECRET) ||
		    spec->type == OPTION_GROUP)
			continue;
		CLEANUP(free_text) char *name = secret_env_name(ops->name, spec->key);
		capture(to, name);
	}
}

int schedule_environment(const struct cmd_context *ctx, char *out, size_t room, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		capture(&text, names[i]);
	for (const struct provider_ops *const *ops = provider_registry; *ops; ops++)
		capture_settings(&text, *ops);
	str_addf(&text, "BURST_STATE_DIR=%s\n", ctx->state_dir);
	if (text.len >= room)
		return err_set(err, ERR_LOCAL,
			       "the environment (PATH and the like) has %zu bytes, more than the "
			       "%zu that a schedule keeps",
			       text.len, room - 1);
	copy_text(out, room, str_text(&text));
	return 0;
}

/* ---- keys ---- */

/* Takes this provider's set key variables out of the environment; the caller gets their values. */
static size_t hide_keys(const struct provider_ops *ops, char *hidden[], char *values[], size_t most)
{
	size_t count = 0;

	for (const struct option_spec *spec = ops->options; spec->key && count < most; spec++) {
		CLEANUP(free_text) char *name = secret_env_name(ops->name, spec->key);
		const char *value = spec->flags & OPTION_SECRET ? getenv(name) : NULL;
		if (!value)
			continue;
		values[count] = xstrdup(value);
		hidden[count++] = TAKE(name);
		unsetenv(hidden[count - 1]);
	}
	return count;
}

/* Whether its keys can be found without the environment. */
static int find_account(const struct cmd_context *ctx, const char *provider, struct err *err)
{
	struct config_source ask = {.file = config_path(ctx->config),
				    .user_only = !config_path(ctx->config),
				    .providers = provider_registry,
				    .jobs = job_registry};
	CLEANUP(config_free) struct config *config = NULL;

	if (config_open(&config, &ask, err) < 0)
		return -1;
	return config_account(config, provider, err) ? 0 : -1;
}

static int check_provider(const struct cmd_context *ctx, const struct provider_ops *ops,
			  struct err *err)
{
	char *hidden[8], *values[8];
	struct err why = {0};
	size_t count = hide_keys(ops, hidden, values, ARRAY_LEN(hidden));
	int result = count ? find_account(ctx, ops->name, &why) : 0;

	if (result < 0)
		err_set(err, ERR_CREDENTIALS,
			"%s is set only in this shell, where scheduled runs cannot see it: put "
			"the key, or a command that prints it, into ~/.config/burst/burst.cfg, "
			"then add the schedule again",
			hidden[0]);
	for (size_t i = 0; i < count; i++) {
		setenv(hidden[i], values[i], 1);
		text_wipe(values[i]);
		free(hidden[i]);
	}
	return result;
}

int schedule_check_keys(const struct cmd_context *ctx, struct err *err)
{
	const struct section *top = config_top(ctx->config);

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		if (ops && check_provider(ctx, ops, err) < 0)
			return -1;
	}
	return 0;
}
