/* rent.c - rents a machine. The start script and its environment travel in the instance's
 * environment, in pieces: Vast takes 4096 characters of arguments, 256 in a variable and 32768 in
 * all variables (OpenAPI file, x-input-validation of create_instance). */
#include <stdlib.h>
#include <zlib.h>

#include "base/crypto.h"
#include "base/jsonx.h"
#include "impl.h"

enum {
	PIECE_LEN = 240,
	ENV_MOST = 32768,
	GZIP = 15 + 16, /* zlib's windowBits: the largest window, in gzip's format */
	END_MARGIN_S = 60
};

/* ---- what the container runs ---- */

/* Joins the pieces, takes them out of the environment and becomes the start script. gzip belongs to
 * every base system; base64 is missing in some that have openssl. */
static const char unpack[] =
	"umask 077; n=0; a=; while eval \"v=\\${BURST_P$n-}\"; [ -n \"$v\" ]; do a=$a$v; "
	"unset BURST_P$n; n=$((n+1)); done; printf %s \"$a\" >/tmp/burst-start.b64; unset a v n; "
	"{ base64 -d /tmp/burst-start.b64 2>/dev/null || "
	"openssl base64 -d -A -in /tmp/burst-start.b64; } | gzip -dc >/tmp/burst-start; "
	"rm -f /tmp/burst-start.b64; exec sh /tmp/burst-start";

static void add_export(struct str *to, const char *name, const char *value)
{
	str_addf(to, "export %s=", name);
	str_add_shell(to, value);
	str_addc(to, '\n');
}

/* The start script below the exports of its environment. The caller wipes it. */
static struct str boot_text(const struct op *op)
{
	const struct rent_request *rent = &op->want->rent;
	struct str text = STR_INIT;
	char hard_end[24];

	/* it holds the pod's private key; sh has it open */
	str_add(&text, "rm -f /tmp/burst-start\n");
	for (size_t i = 0; i < rent->env_count; i++)
		add_export(&text, rent->env[i].name, rent->env[i].value);
	/* the marker's, whatever else the caller sends */
	snprintf(hard_end, sizeof(hard_end), "%lld", (long long)rent->marker.hard_end_s);
	add_export(&text, "BURST_MACHINE", rent->marker.machine);
	add_export(&text, "BURST_RUN", rent->marker.run);
	add_export(&text, "BURST_ATTEMPT", rent->marker.attempt);
	add_export(&text, "BURST_HARD_END", hard_end);
	add_export(&text, "BURST_API_URL", op->provider->root);
	add_export(&text, "BURST_HIDE", "CONTAINER_API_KEY");
	str_add(&text, rent->start_script);
	return text;
}

/* The text compressed by gzip, in base64. The caller wipes it. */
static struct str pack(const struct str *text)
{
	z_stream z = {0};
	struct str packed = STR_INIT;

	if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		abort(); /* out of memory */
	size_t room = deflateBound(&z, text->len);
	CLEANUP(free_text) char *bytes = xmalloc(room);
	z.next_in = (Bytef *)str_text(text);
	z.avail_in = (uInt)text->len;
	z.next_out = (Bytef *)bytes;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort(); /* deflateBound() is always enough */
	base64_add(&packed, bytes, z.total_out);
	explicit_bzero(bytes, room);
	deflateEnd(&z);
	return packed;
}

/* The label of the instance. A new string. */
static char *write_marker(const struct rent_request *rent)
{
	return xasprintf("%s/%s/%s/%lld", rent->name, rent->marker.machine, rent->marker.run,
			 (long long)rent->marker.hard_end_s);
}

/* Adds a variable, or a port with the value "1". Returns its length as an option of Docker's. */
static size_t add_variable(json_t *env, const char *name, const char *value, size_t len)
{
	json_object_set_new(env, name, json_stringn(value, len));
	return strlen(" -e =") + strlen(name) + len;
}

/* Ports and variables. The OpenAPI file has them as one text of Docker's options; Vast's own client
 * and the examples of its pages send this object. *len: of that text. */
static json_t *ports_and_variables(const struct op *op, size_t *len)
{
	CLEANUP(str_wipe) struct str text = boot_text(op);
	CLEANUP(str_wipe) struct str packed = pack(&text);
	CLEANUP(free_text) char *marker = write_marker(&op->want->rent);
	json_t *env = json_object();

	*len = add_variable(env, "-p 22:22", "1", 1) +
	       add_variable(env, VAST_MARKER_VAR, marker, strlen(marker));
	for (size_t at = 0, n = 0; at < packed.len; at += PIECE_LEN, n++) {
		char name[24];
		snprintf(name, sizeof(name), "BURST_P%zu", n);
		*len += add_variable(env, name, str_text(&packed) + at,
				     MIN(packed.len - at, (size_t)PIECE_LEN));
	}
	return env;
}

/* ---- the request ---- */

/* Reads and checks the offer's id. A machine that its owner takes back before the pod's hard end
 * would end the pod earlier than planned. */
static int read_ask(const struct op *op, struct ask *ask, struct err *err)
{
	const struct rent_request *rent = &op->want->rent;

	if (vast_ask_read(rent->offer.id, ask) < 0)
		return err_set(err, ERR_BUG, "\"%s\" is not an offer of burst's", rent->offer.id);
	if (rent->offer.spot != (ask->bid_microusd_h > 0))
		return err_set(err, ERR_BUG, "\"%s\": a spot offer has a bid", rent->offer.id);
	if (ask->end_s && ask->end_s < rent->marker.hard_end_s + END_MARGIN_S) {
		int64_t short_s = rent->marker.hard_end_s + END_MARGIN_S - ask->end_s;
		return err_set(err, ERR_NO_CAPACITY,
			       "offer %lld is skipped: its owner takes the machine back %lld min "
			       "before this pod's hard end (a shorter caps.max_duration may fit)",
			       ask->id, (long long)((short_s + 59) / 60));
	}
	return 0;
}

static enum op_next request_rent(struct turn *t, const struct ask *ask)
{
	const struct rent_request *rent = &t->op->want->rent;
	const struct section *conf = t->op->provider->conf;
	const char *image = vast_image(conf, rent->image);
	CLEANUP(free_text) char *label = write_marker(rent);
	CLEANUP(str_wipe) struct str login = STR_INIT;
	size_t len;
	CLEANUP(json_decref) json_t *env = ports_and_variables(t->op, &len);

	if (vast_add_login(&login, conf, image, t->err) < 0)
		return OP_FAILED;
	if (len > ENV_MOST)
		return turn_fail(t, ERR_CONFIG,
				 "the start script has %zu characters more than Vast.ai takes",
				 len - ENV_MOST);
	json_t *body = json_object();
	json_object_set_new(body, "image", json_string(image));
	json_object_set_new(body, "label", json_string(label));
	json_object_set_new(body, "disk", json_integer(vast_disk_gb(rent->disk_gb)));
	json_object_set_new(body, "runtype", json_string("args"));
	/* With "args", `onstart` replaces the image's entrypoint (Vast's CLI sends --entrypoint
	 * so). env runs its arguments, and a server that ignores this runs them as the command. */
	json_object_set_new(body, "onstart", json_string("/usr/bin/env"));
	json_object_set_new(body, "args", json_pack("[s,s,s]", "sh", "-c", unpack));
	json_object_set(body, "env", env);
	json_object_set_new(body, "target_state", json_string("running"));
	json_object_set_new(body, "cancel_unavail", json_true());
	if (login.len)
		json_object_set_new(body, "image_login", json_string(str_text(&login)));
	if (ask->bid_microusd_h)
		json_object_set_new(body, "price", json_real((double)ask->bid_microusd_h / 1e6));
	return vast_request(t, CALL_CREATE, "PUT", body, "/v0/asks/%lld/", ask->id);
}

/* ---- the reply ---- */

/* The id of the instance that the reply names, whatever its status; 0: none. */
static int64_t contract_of(const struct reply *reply)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&reply->body), reply->body.len, NULL);

	return MAX(jsonx_int(body, "new_contract", 0), (int64_t)0);
}

static void add_instance(struct op *op, int64_t contract)
{
	const struct rent_request *rent = &op->want->rent;
	struct pod_view *view = op_result_add_pod(&op->got);

	snprintf(view->id, sizeof(view->id), "%lld", (long long)contract);
	COPY_TEXT(view->name, rent->name);
	COPY_TEXT(view->gpu, rent->offer.gpu);
	COPY_TEXT(view->region, rent->offer.region);
	view->marker = rent->marker;
	view->state = POD_STATE_CREATING;
	view->spot = rent->offer.spot;
	view->price_microusd_h = rent->offer.price_microusd_h;
}

/* A failed create may leave an instance: too low a bid makes a stopped one, whose disk bills. */
static enum op_next read_create_reply(struct turn *t)
{
	struct op *op = t->op;
	int64_t contract = t->reply->failed ? 0 : contract_of(t->reply);
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "create");

	if (answer && contract) {
		add_instance(op, contract);
		return vast_done(t);
	}
	if (answer)
		return turn_fail(t, ERR_AMBIGUOUS, "create: the answer names no instance");
	if (!contract)
		return OP_FAILED;
	op->first = *t->err;
	err_clear(t->err);
	op->step = 2;
	return vast_request(t, CALL_RELEASE, "DELETE", NULL, "/v0/instances/%lld/",
			    (long long)contract);
}

/* The create's own reason counts if what it left is gone; if not, lists must find it. */
static enum op_next read_release_reply(struct turn *t)
{
	CLEANUP(json_decref)
	json_t *answer = vast_read_object(t, "ending what a failed create left");

	if (answer || t->err->kind == ERR_NOT_FOUND) {
		*t->err = t->op->first;
		return OP_FAILED;
	}
	t->err->kind = ERR_AMBIGUOUS;
	err_wrap(t->err, "%s", t->op->first.msg);
	return OP_FAILED;
}

enum op_next vast_rent_next(struct turn *t)
{
	struct ask ask;

	switch (t->op->step) {
	case 0:
		if (read_ask(t->op, &ask, t->err) < 0)
			return OP_FAILED;
		t->op->step = 1;
		return request_rent(t, &ask);
	case 1: return read_create_reply(t);
	default: return read_release_reply(t);
	}
}
