/* modal.c - the Modal provider: its keys, its account, the token of its calls, the checks of
 * `burst doctor` */
#include "modal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/section.h"
#include "impl.h"

/* ---- the checks of `burst doctor`: the token, and Modal's messages for clients ---- */

enum { ASKED_TOKEN = 1, ASKED_HELLO, WARNINGS_MOST = 5, OLD_CLIENT = 1, FINDING_MOST = 500 };

/* Appends "LEVEL: WORDS TEXT" to what `burst doctor` shows. text may be Modal's. */
static void add_finding(struct turn *t, const char *level, const char *words, const char *text)
{
	str_addf(&t->op->got.text, "%s: %s", level, words);
	str_add_printable(&t->op->got.text, text, strlen(text), FINDING_MOST);
	str_addc(&t->op->got.text, '\n');
}

/* Ends the check with success: the error becomes a finding. */
static enum op_next finish_check_with_error(struct turn *t)
{
	add_finding(t, "bad", "", t->err->msg);
	err_clear(t->err);
	return modal_done(t);
}

/* Adds a warning of Modal's to the findings. One about an old client also says which keys set the
 * version: an old version works until Modal refuses it. */
static void add_server_warning(struct turn *t, const Modal__Client__Warning *warning)
{
	const struct section *conf = t->op->provider->conf;
	CLEANUP(str_free) struct str words = STR_INIT;

	str_add(&words, modal_text(warning->message));
	if (warning->type == OLD_CLIENT)
		str_addf(&words,
			 " (burst passes for %s of version %s: update burst, or set "
			 "libmodal_version and client_version in providers.modal)",
			 section_text(conf, "libmodal_version"),
			 section_text(conf, "client_version"));
	add_finding(t, "warn", "Modal says: ", str_text(&words));
}

static enum op_next on_hello_reply(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__ClientHelloResponse, hello, t, "greeting Modal",
		      modal__client__client_hello_response__descriptor);

	if (!hello) /* Modal refuses an old client here; its own words help */
		return finish_check_with_error(t);
	if (modal_text(hello->warning)[0])
		add_finding(t, "warn", "Modal says: ", hello->warning);
	for (size_t i = 0; i < hello->n_server_warnings && i < WARNINGS_MOST; i++)
		add_server_warning(t, hello->server_warnings[i]);
	return modal_done(t);
}

static enum op_next request_hello(struct turn *t)
{
	Modal__Client__Empty empty = MODAL__CLIENT__EMPTY__INIT;

	t->op->step = ASKED_HELLO;
	return modal_call(t, CALL_POLL, "ClientHello", &empty.base, 0);
}

static enum op_next modal_check_next(struct turn *t)
{
	Modal__Client__TokenInfoGetRequest info = MODAL__CLIENT__TOKEN_INFO_GET_REQUEST__INIT;

	if (!t->op->step) {
		t->op->step = ASKED_TOKEN;
		return modal_call(t, CALL_POLL, "TokenInfoGet", &info.base, 0);
	}
	if (t->op->step == ASKED_HELLO)
		return on_hello_reply(t);
	MODAL_MESSAGE(Modal__Client__TokenInfoGetResponse, answer, t,
		      "asking Modal whose token this is",
		      modal__client__token_info_get_response__descriptor);
	/* Modal need not name the owner; the token was accepted */
	if (!answer && !t->reply->failed && t->reply->grpc_status == STATUS_UNIMPLEMENTED) {
		err_clear(t->err);
		return request_hello(t);
	}
	if (!answer)
		return finish_check_with_error(t);
	add_finding(t, "ok", "Modal accepts the token, of workspace ",
		    modal_text(answer->workspace_name));
	return request_hello(t);
}

/* ---- the token of each call: fetched with the account's secrets, renewed at half its life ---- */

enum {
	LIFE_ASSUMED_S = 20 * 60,
	LIFE_MOST_S = 7 * 86400,
	BACKOFF_FIRST_MS = 500,
	BACKOFF_MOST_MS = 60000,
	JWT_MOST = 16384
};

/* Converts base64url without padding to padded base64. `to` is empty before. */
static void base64_from_base64url(struct str *to, const char *text, size_t len)
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
	base64_from_base64url(&base64, from + 1, (size_t)(to - from - 1));
	if (base64_decode(&claims, str_text(&base64), base64.len, NULL) < 0)
		return 0;
	CLEANUP(json_decref) json_t *object = jsonx_parse(str_text(&claims), claims.len, NULL);
	int64_t expires = object ? jsonx_int(object, "exp", 0) : 0;
	return MAX(expires, 0);
}

/* How long a token that was just received stays valid; assumed if it does not say. */
static int64_t token_life_ms(const char *jwt)
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
	int64_t now = clock_boot_ms(), life = token_life_ms(text);

	log_secret(text);
	text_wipe(token->text);
	token->text = xstrdup(text);
	token->dead_at_ms = now + life;
	/* spread refreshes of an account's processes */
	token->refresh_at_ms = now + life / 2 + (int64_t)(random_u64() % (uint64_t)(life / 10 + 1));
	token->backoff_ms = 0;
	token->number++;
}

/* Marks the token as unusable: Modal no longer accepts it. */
static void modal_token_expire(struct auth_token *token)
{
	token->dead_at_ms = INT64_MIN;
}

void modal_token_back_off(struct auth_token *token)
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

/* ---- keys ---- */

enum { TOKEN_MS = 5000 };

static const struct option_spec options[] = {
	{"token_id", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "id of the account's token (ak-...)"},
	{"token_id_command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that prints the id"},
	{"token_secret", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "secret of the account's token (as-...)"},
	{"token_secret_command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that prints the secret"},
	{"server_url", OPTION_TEXT, OPTION_USER_ONLY, "https://api.modal.com", "root of the API"},
	{"environment", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "environment at Modal (absent: the workspace's default)"},
	{"image_builder_version", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "version of Modal's image builder (absent: the environment's own)"},
	{"image", OPTION_TEXT, 0, MODAL_IMAGE, "image of sandboxes if pod.image is absent"},
	{"registry_secrets", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "secrets for private images, as in [\"ghcr.io/me=NAME\"]: the secret NAME at Modal reads "
	 "the images below ghcr.io/me"},
	{"app", OPTION_TEXT, 0, "burst", "app of the sandboxes, created if missing"},
	{"gpu_prices", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "dollars an hour that replace Modal's own, as in [\"L40S=1.95\"]"},
	{"core_price", OPTION_MONEY, OPTION_USER_ONLY, "0.15",
	 "dollars an hour of a CPU core, in place of Modal's own"},
	{"memory_price", OPTION_MONEY, OPTION_USER_ONLY, "0.03",
	 "dollars an hour of a GiB of memory, in place of Modal's own"},
	{"volume_price", OPTION_MONEY, OPTION_USER_ONLY, "0.09",
	 "dollars a month of a GiB on a volume"},
	{"max_throttle_wait", OPTION_DURATION, OPTION_USER_ONLY, "60s",
	 "how long in all the server may delay one call; 0: not at all"},
	{"client_type", OPTION_INT, OPTION_USER_ONLY, "8",
	 "client that burst presents itself as: 8 is JavaScript, 9 Go"},
	{"client_version", OPTION_TEXT, OPTION_USER_ONLY, "1.0.0", "version of that client"},
	{"libmodal_version", OPTION_TEXT, OPTION_USER_ONLY, "modal-js/0.11.1",
	 "library of that client"},
	{NULL},
};

/* ---- opening ---- */

/* Modal's rules for the name of an app. */
static int check_app_name(const struct section *s, const char *group, const char *key,
			  struct err *err)
{
	const char *app = section_text(s, key);
	bool like_id = strlen(app) == 25 && starts_with(app, "ap-");

	for (const char *p = app; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return provider_bad_value(s, group, key,
						  "letters, digits, '-', '_' and '.'", err);
	if (!*app || strlen(app) > MODAL_APP_MAX || like_id)
		return provider_bad_value(s, group, key,
					  "a name of at most 64 characters, not an id", err);
	return 0;
}

/* Refuses characters that the value of a header cannot hold. */
static int check_header_value(const struct section *s, const char *group, const char *key,
			      struct err *err)
{
	for (const char *p = section_text(s, key); p && *p; p++)
		if (*p <= ' ' || *p >= 127)
			return provider_bad_value(s, group, key, "plain text without blanks", err);
	return 0;
}

static int modal_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"app", check_app_name},
		{"gpu_prices", provider_check_prices},
		{"registry_secrets", provider_check_registries},
		{"image", provider_check_image},
		{"client_version", check_header_value},
		{"libmodal_version", check_header_value},
		{"server_url", provider_check_url},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.modal", m, err);
}

/* "host" of "https://host:443/path", "[::1]" of "http://[::1]:80". A new string. */
static char *host_of_url(const char *root)
{
	const char *host = strstr(root, "://") + 3;

	return xstrndup(host, *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/"));
}

static void modal_close(struct provider *p)
{
	if (!p)
		return;
	modal_token_free(&p->token);
	free(p->root);
	free(p->host);
	free(p->account);
	free(p);
}

static int modal_open(struct provider **out, const struct section *s, const char *state_dir,
		      struct err *err)
{
	const char *id = section_text(s, "token_id"), *secret = section_text(s, "token_secret"),
		   *environment = section_text(s, "environment");

	(void)state_dir;
	if (!id || !*id || !secret || !*secret)
		return err_set(err, ERR_CREDENTIALS,
			       "modal: no %s: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or log in "
			       "with `modal token new`",
			       !id || !*id ? "token_id" : "token_secret");
	if (modal_check_conf(s, NULL, err) < 0)
		return -1;
	struct provider *p = xcalloc(1, sizeof(*p));
	p->conf = s;
	p->root = provider_url_root(section_text(s, "server_url"));
	p->host = host_of_url(p->root);
	if (section_text(s, "image_builder_version"))
		COPY_TEXT(p->builder_version, section_text(s, "image_builder_version"));
	/* a list covers one environment, so the name includes it */
	CLEANUP(free_text)
	char *where =
		xasprintf("%s%s%s", id, environment ? "\n" : "", environment ? environment : "");
	p->account = provider_account_name("modal", where);
	*out = p;
	return 0;
}

static const char *modal_account(const struct provider *p)
{
	return p->account;
}

/* ---- operations ---- */

static struct op *modal_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.provider = p, .kind = kind, .want = want, .got.balance_microusd = -1};
	return op;
}

/* Reads the reply and makes the next call, without a token, in the file for this operation. */
static enum op_next advance_operation(struct turn *t)
{
	switch (t->op->kind) {
	case OP_CHECK: return modal_check_next(t);
	case OP_IMAGE: return modal_image_next(t);
	case OP_RENT: return modal_rent_next(t);
	case OP_INSPECT: return modal_inspect_next(t);
	case OP_LIST: return modal_list_next(t);
	case OP_RELEASE: return modal_release_next(t);
	case OP_BILLING: return modal_billing_next(t);
	case OP_LOGS: return modal_logs_next(t);
	case OP_OFFERS: return modal_offers_next(t);
	case OP_VOLUME: return modal_volume_next(t);
	case OP_VOLUME_REMOVE: return modal_volume_remove_next(t);
	case OP_FETCH: return modal_fetch_next(t);
	case OP_BALANCE: return modal_done(t); /* Modal bills later: there is no balance */
	case OP_VOLUMES: return modal_volumes_next(t);
	case OP_STAGE: return modal_stage_next(t);
	case OP_VOLUME_LS: return modal_volume_ls_next(t);
	case OP_VOLUME_SIZE: return modal_volume_size_next(t);
	case OP_VOLUME_DELETE: return modal_volume_delete_next(t);
	}
	return turn_fail(t, ERR_BUG, "modal: no such operation");
}

/* Copies a gRPC call of this provider, which has only body, url and headers to own. */
static void copy_call(struct call *to, const struct call *from)
{
	*to = *from;
	to->body = STR_INIT;
	str_addn(&to->body, from->body.s, from->body.len);
	to->url = xstrdup(from->url);
	to->headers = NULL;
	to->header_count = to->header_cap = 0;
	for (size_t i = 0; i < from->header_count; i++)
		call_header(to, "%s", from->headers[i]);
}

/* Adds the current token to the call, which is then sent, and keeps a copy without a token: the
 * call is repeated once if Modal refuses the token. */
static enum op_next add_token_and_send(struct op *op, struct call *call)
{
	call_free(&op->bare);
	if (!op->again)
		copy_call(&op->bare, call);
	op->bears = op->provider->token.number;
	call_header(call, "x-modal-auth-token: %s", op->provider->token.text);
	op->creating = !call->may_repeat;
	return OP_CALL;
}

/* Sends *t->call with a token, after AuthTokenGet if a new one is due (op->waiting is the call). */
static enum op_next send_with_fresh_token(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__AuthTokenGetRequest request = MODAL__CLIENT__AUTH_TOKEN_GET_REQUEST__INIT;

	if (modal_token_is_due(&op->provider->token)) {
		op->creating = false; /* not sent yet, so nothing was made */
		op->waiting = *t->call;
		op->fetching_token = true;
		modal_call(t, op->waiting.class, "AuthTokenGet", &request.base, 0);
		t->call->timeout_ms = TOKEN_MS;
		return OP_CALL;
	}
	return add_token_and_send(op, t->call);
}

/* If Modal refused the call because its token had expired, puts the call without token into
 * *t->call and returns true: it is sent once more, with a new token. A token can expire on the way:
 * a call that is repeated after the machine slept has its old one. */
static bool take_back_call_of_expired_token(struct turn *t)
{
	struct op *op = t->op;

	if (!t->reply || t->reply->failed || t->reply->grpc_status != STATUS_UNAUTHENTICATED ||
	    !op->bare.url)
		return false;
	if (op->bears == op->provider->token.number)
		modal_token_expire(&op->provider->token);
	*t->call = op->bare;
	op->bare = (struct call){0};
	op->again = true;
	return true;
}

/* Reads the reply to AuthTokenGet. Returns 0 if there is a usable token: the new one, or the
 * previous one after a failure that may pass; else -1. */
static int read_token_reply(struct turn *t)
{
	struct auth_token *token = &t->op->provider->token;
	MODAL_MESSAGE(Modal__Client__AuthTokenGetResponse, answer, t,
		      "asking for a token of the session",
		      modal__client__auth_token_get_response__descriptor);

	const char *text = answer ? modal_text(answer->token) : "";
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p >= 127)
			text = "";
	if (*text) {
		modal_token_take(token, text);
		return 0;
	}
	if (answer)
		err_set(t->err, ERR_TRANSIENT,
			"asking for a token of the session: there is none in the answer");
	/* Modal no longer accepts this client version */
	if (!answer && t->reply->grpc_status == STATUS_FAILED_PRECONDITION)
		t->err->kind = ERR_CONFIG;
	if (t->reply->grpc_status == STATUS_UNAUTHENTICATED ||
	    t->reply->grpc_status == STATUS_PERMISSION_DENIED || !modal_token_is_usable(token))
		return -1;
	modal_token_back_off(token);
	return 0;
}

/* Whether want.id is that of a sandbox. */
static bool wants_sandbox_by_id(const struct op *op)
{
	return op->kind == OP_INSPECT || op->kind == OP_RELEASE || op->kind == OP_LOGS ||
	       op->kind == OP_BILLING;
}

static enum op_next modal_next(struct op *op, const struct reply *reply, struct call *call,
			       int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct turn t = {op, reply, call, wait_ms, result, err};

	const char *prefix = wants_sandbox_by_id(op)        ? "sb-"
			     : op->kind == OP_VOLUME_REMOVE ? "vo-"
							    : NULL;
	if (prefix && !modal_id_is_sound(op->want->id, prefix)) {
		err_set(err, ERR_REFUSED, "\"%s\" is not the id of a %s at Modal", op->want->id,
			*prefix == 's' ? "sandbox" : "volume");
		return OP_FAILED;
	}
	if (op->fetching_token) {
		int taken = read_token_reply(&t);
		op->fetching_token = false;
		if (taken < 0)
			return op->kind == OP_CHECK ? finish_check_with_error(&t) : OP_FAILED;
		*call = op->waiting;
		op->waiting = (struct call){0};
		return add_token_and_send(op, call);
	}
	if (take_back_call_of_expired_token(&t))
		return send_with_fresh_token(&t);
	op->again = false;
	enum op_next what = advance_operation(&t);
	if (what == OP_CALL || what == OP_WAIT) {
		result->text = op->said;
		op->said = (struct str){0};
	}
	return what == OP_CALL && call->kind == CALL_GRPC ? send_with_fresh_token(&t) : what;
}

static void modal_op_free(struct op *op)
{
	if (!op)
		return;
	op_result_free(&op->got);
	call_free(&op->waiting);
	call_free(&op->bare);
	str_free(&op->said);
	modal_volumes_op_free(op);
	modal_stage_op_free(op);
	free(op);
}

INCBIN(modal_end_script, "providers/modal/end.sh");

const struct provider_ops provider_modal = {
	.abi = PROVIDER_ABI,
	.name = "modal",
	.summary = "GPU sandboxes at Modal; needs a token",
	.setup = "set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or log in with `modal token new`",
	.end_script = modal_end_script,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.volume_lags = true,
	.can_tidy = true,
	.stage_block_bytes = MODAL_BLOCK_BYTES,
	.makes_image = true,
	.poll_ms = 500, /* as often as Modal's own client asks for a new sandbox's task */
	.list_gap_ms = 5000,
	.logs_outlive = true,
	.check_conf = modal_check_conf,
	.check_wishes = modal_check_wishes,
	.open = modal_open,
	.close = modal_close,
	.account = modal_account,
	.begin = modal_begin,
	.next = modal_next,
	.op_free = modal_op_free,
	.caution = "Modal may reclaim a sandbox with a GPU at any time; its unfinished segments "
		   "are rendered elsewhere",
};
