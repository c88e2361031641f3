/* provider.c - checks what providers return, and the markers of pods. */
#include "provider.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

enum { OVERDUE_S = 300 };

static bool take_whole(char *to, size_t room, const char *text)
{
	if (!*text || strlen(text) >= room)
		return false;
	copy_text(to, room, text);
	return true;
}

bool marker_read(struct marker *out, const char *machine, const char *run, const char *attempt,
		 const char *hard_end_s)
{
	struct marker m = {0};
	char *end;
	long long at_s = strtoll(hard_end_s, &end, 10);

	if (!isdigit((unsigned char)hard_end_s[0]) || *end || at_s <= 0 ||
	    !take_whole(m.machine, sizeof(m.machine), machine) ||
	    !take_whole(m.run, sizeof(m.run), run) ||
	    !take_whole(m.attempt, sizeof(m.attempt), attempt))
		return false;
	m.hard_end_s = MIN(at_s, EPOCH_MOST_S);
	*out = m;
	return true;
}

/* ---- what is believed of an answer ---- */

#define SIZE_MOST_GB (INT64_C(1) << 30)

enum { LISTED_MOST = 5000, OFFERS_MOST = 50000 };

static bool made_of(const char *text, const char *also)
{
	for (; *text; text++)
		if (!isascii((unsigned char)*text) ||
		    (!isalnum((unsigned char)*text) && !strchr(also, *text)))
			return false;
	return true;
}

static bool is_host(const char *host)
{
	return isalnum((unsigned char)host[0]) ? made_of(host, ".-_:")
					       : host[0] == ':' && made_of(host, ":.");
}

static bool is_user(const char *user)
{
	return (isalnum((unsigned char)user[0]) || user[0] == '_') && made_of(user, "._-");
}

const char *provider_bad_address(const char *host, int port, const char *user)
{
	if (!is_host(host))
		return "its host";
	if (port < 1 || port > 65535)
		return "its port";
	return !user[0] || is_user(user) ? NULL : "its user"; /* none: root */
}

/* It becomes a part of addresses, of arguments and of what people type. */
static bool is_id(const char *id)
{
	return id[0] != '-' && made_of(id, "._:@+=~/-") && !strstr(id, "..");
}

/* Where a volume is a folder, its name. */
static bool is_volume_id(const char *id)
{
	const unsigned char *p = (const unsigned char *)id;

	if (!utf8_valid(id, strlen(id)) || strchr("-./", id[0]) || strpbrk(id, "/\\"))
		return false;
	for (size_t step; *p; p += step) {
		step = utf8_sequence(p, strlen((const char *)p));
		if (utf8_hostile(p, step))
			return false;
	}
	return true;
}

#define ENDS(field) (memchr((field), '\0', sizeof(field)) != NULL)

static bool is_price(int64_t microusd)
{
	return microusd >= 0 && microusd <= VENDOR_MOST_MICROUSD;
}

static bool is_time(int64_t epoch_s)
{
	return epoch_s >= 0 && epoch_s <= EPOCH_MOST_S;
}

static void check_address(struct pod_view *v)
{
	const char *host = v->host, *user = v->user, *wrong;
	CLEANUP(str_free) struct str shown = STR_INIT;
	char port[16];

	if (v->reach == REACH_DIAL) {
		wrong = provider_bad_address(host[0] ? host : "none", v->port ? v->port : 22, user);
	} else {
		v->reach = v->port ? REACH_SSH : REACH_NONE;
		wrong = v->port ? provider_bad_address(host, v->port, user) : NULL;
	}
	if (v->reach == REACH_NONE) /* no address yet, so no connection */
		v->host[0] = v->user[0] = '\0';
	if (!wrong)
		return;
	snprintf(port, sizeof(port), "%d", v->port);
	const char *what = !strcmp(wrong, "its host")   ? host
			   : !strcmp(wrong, "its user") ? user
							: port;
	str_add_printable(&shown, what, strlen(what), 60);
	format_text(v->detail, sizeof(v->detail),
		    "the provider's answer cannot be trusted: it names \"%s\" as %s for ssh",
		    str_text(&shown), wrong);
	v->host[0] = v->user[0] = '\0';
	v->port = 0;
	v->reach = REACH_NONE;
	if (v->state == POD_STATE_UNKNOWN || v->state == POD_STATE_CREATING ||
	    v->state == POD_STATE_RUNNING)
		v->state = POD_STATE_FAILED;
}

static const char *check_pod(struct pod_view *v)
{
	if (!ENDS(v->id) || !ENDS(v->name) || !ENDS(v->marker.machine) || !ENDS(v->marker.run) ||
	    !ENDS(v->marker.attempt) || !ENDS(v->host) || !ENDS(v->user) || !ENDS(v->gpu) ||
	    !ENDS(v->region) || !ENDS(v->detail))
		return "a pod with a text that does not end";
	if (!v->id[0] || !is_id(v->id))
		return "a pod with an id that cannot be one";
	if (!is_time(v->marker.hard_end_s))
		return "a pod with a time that cannot be right";
	if (!is_price(v->price_microusd_h))
		return "a pod with a price that cannot be right";
	if (!is_time(v->created_at_s) || !is_time(v->started_at_s) || !is_time(v->ended_at_s))
		return "a pod with a time that cannot be right";
	check_address(v);
	return NULL;
}

static const char *check_offer(struct offer *o)
{
	if (!ENDS(o->provider) || !ENDS(o->id) || !ENDS(o->gpu) || !ENDS(o->region) ||
	    !ENDS(o->with) || !ENDS(o->stock))
		return "an offer with a text that does not end";
	if (!is_price(o->price_microusd_h))
		return "an offer with a price that cannot be right";
	return NULL;
}

static const char *check_volume(struct volume *v)
{
	if (!ENDS(v->provider) || !ENDS(v->id) || !ENDS(v->name) || !ENDS(v->region))
		return "a volume with a text that does not end";
	if (!v->id[0] || !is_volume_id(v->id))
		return "a volume with an id that cannot be one";
	if (v->size_gb < 0 || v->size_gb > SIZE_MOST_GB || !is_price(v->price_microusd_month))
		return "a volume with a size or a price that cannot be right";
	return NULL;
}

static int distrust(struct err *err, const char *names)
{
	return err_set(err, ERR_UNTRUSTED, "its answer cannot be trusted: it names %s", names);
}

int op_result_check_counts(const struct op_result *r, struct err *err)
{
	if (r->pod_count > LISTED_MOST)
		return distrust(err, "too many pods");
	if (r->volume_count > LISTED_MOST)
		return distrust(err, "too many volumes");
	return r->offer_count > OFFERS_MOST ? distrust(err, "too many offers") : 0;
}

int provider_check_answer(struct op_result *r, struct err *err)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < r->pod_count && !wrong; i++)
		wrong = check_pod(&r->pods[i]);
	for (size_t i = 0; i < r->offer_count && !wrong; i++)
		wrong = check_offer(&r->offers[i]);
	for (size_t i = 0; i < r->volume_count && !wrong; i++)
		wrong = check_volume(&r->volumes[i]);
	return wrong ? distrust(err, wrong) : op_result_check_counts(r, err);
}

bool pod_is_overdue(int64_t hard_end_s, int64_t wall_ms)
{
	return hard_end_s + OVERDUE_S < wall_ms / 1000;
}

const char *pod_state_name(enum pod_state state)
{
	switch (state) {
	case POD_STATE_UNKNOWN: return "unknown";
	case POD_STATE_CREATING: return "creating";
	case POD_STATE_RUNNING: return "running";
	case POD_STATE_STOPPED: return "stopped";
	case POD_STATE_FAILED: return "failed";
	case POD_STATE_GONE: return "gone";
	case POD_STATE_QUEUED: return "queued";
	}
	return "unknown";
}

const char *provider_registry_name(const struct section *conf, const char *key, const char *image)
{
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i);
		size_t len = strcspn(item, "=");
		if (!strncmp(image, item, len) &&
		    (!image[len] || strchr("/:@", image[len]) || item[len - 1] == '/'))
			return item + len + 1;
	}
	return NULL;
}

/* Parts of letters and digits, with single signs (or "--", "__") between them. */
bool provider_is_image(const char *image)
{
	char before = '/';

	if (!made_of(image, "._-/:@+") || strlen(image) > 255)
		return false;
	for (const char *p = image; *p; p++) {
		bool sign = !isalnum((unsigned char)*p),
		     after_sign = !isalnum((unsigned char)before);
		if (sign && after_sign && !(*p == before && strchr("_-", *p)))
			return false;
		before = *p;
	}
	return isalnum((unsigned char)before);
}

int provider_check_image(const struct section *conf, const char *group, const char *key,
			 struct err *err)
{
	const char *image = section_text(conf, key);

	if (!image || !*image || provider_is_image(image))
		return 0;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, image, strlen(image), 80);
	return err_set(
		err, ERR_CONFIG,
		"%s: %s.%s: \"%s\" is not the name of an image, like \"ghcr.io/me/voices:1\"",
		section_where(conf, key), group, key, str_text(&shown));
}

int provider_check_registries(const struct section *conf, const char *group, const char *key,
			      struct err *err)
{
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i), *equals = strchr(item, '=');
		if (!equals || equals == item || !equals[1] || item[strcspn(item, " \t")])
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not like \"ghcr.io/me=NAME\": the "
				       "images it is for, and what reads them",
				       section_where(conf, key), group, key, item);
	}
	return 0;
}

enum pull_verdict provider_judge_pull(const char *text, bool of_a_pull)
{
	static const struct {
		const char *words;
		enum pull_verdict means;
		bool vague; /* says something only where the text is known to be of a pull */
	} table[] = {
		{"toomanyrequests", PULL_LIMITED, false},
		{"manifest unknown", PULL_HOPELESS, false},
		{"manifest for ", PULL_HOPELESS, false},
		{"no matching manifest", PULL_HOPELESS, false},
		{"pull access denied", PULL_HOPELESS, false},
		{"access to the resource is denied", PULL_HOPELESS, false},
		{"repository does not exist", PULL_HOPELESS, false},
		{"unauthorized", PULL_HOPELESS, false},
		{"authentication required", PULL_HOPELESS, false},
		{"invalid reference format", PULL_HOPELESS, false},
		{"not found", PULL_HOPELESS, true},
		{"not exist", PULL_HOPELESS, true},
		{"denied", PULL_HOPELESS, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if ((of_a_pull || !table[i].vague) && strcasestr(text, table[i].words))
			return table[i].means;
	return PULL_MAY_WORK;
}

/* One item of a list of cards. False: it is none. *price: 0 without one. */
static bool read_card(const char *item, char *name, size_t room, int64_t *price)
{
	const char *equals = strchr(item, '=');
	size_t len = equals ? (size_t)(equals - item) : strlen(item);

	*price = 0;
	if (!len || len >= room)
		return false;
	memcpy(name, item, len);
	name[len] = '\0';
	return !equals || (money_parse(equals + 1, price, NULL) == 0 && *price > 0);
}

static int check_cards(const struct section *conf, const char *group, const char *key,
		       bool may_lack_price, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i);
		char name[GPU_MAX];
		int64_t price;
		if (!read_card(item, name, sizeof(name), &price) || (!price && !may_lack_price))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not like \"L40S=1.95\" (dollars an "
				       "hour)",
				       section_where(conf, key), group, key, item);
	}
	return 0;
}

int provider_check_prices(const struct section *conf, const char *group, const char *key,
			  struct err *err)
{
	return check_cards(conf, group, key, false, err);
}

int provider_check_cards(const struct section *conf, const char *group, const char *key,
			 struct err *err)
{
	return check_cards(conf, group, key, true, err);
}

int64_t provider_price_of(const struct section *conf, const char *key, const char *gpu)
{
	int64_t of_other_name = 0;

	for (size_t i = 0; i < section_count(conf, key); i++) {
		char name[GPU_MAX];
		int64_t price;
		if (!read_card(section_item(conf, key, i), name, sizeof(name), &price))
			continue;
		if (!strcasecmp(name, gpu))
			return price;
		if (gpu_is_same(name, gpu))
			of_other_name = price;
	}
	return of_other_name;
}

int provider_bad_value(const struct section *conf, const char *group, const char *key,
		       const char *must, struct err *err)
{
	return err_set(err, ERR_CONFIG, "%s: %s.%s = \"%s\": must be %s", section_where(conf, key),
		       group, key, section_text(conf, key), must);
}

static bool is_loopback(const char *host)
{
	size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");

	return (len == 9 && !strncmp(host, "localhost", len)) ||
	       (len == 5 && !strncmp(host, "[::1]", len)) ||
	       (!strncmp(host, "127.", 4) && strspn(host, "0123456789.") == len);
}

int provider_check_url(const struct section *conf, const char *group, const char *key,
		       struct err *err)
{
	const char *url = section_text(conf, key);
	const char *host = url && starts_with(url, "https://")  ? url + 8
			   : url && starts_with(url, "http://") ? url + 7
								: NULL;

	if (!url)
		return 0;
	if (!host || !*host || strchr(":/", *host) || strpbrk(url, " ?#@,"))
		return provider_bad_value(conf, group, key, "a URL like https://host", err);
	if (starts_with(url, "http://") && !is_loopback(host))
		return provider_bad_value(conf, group, key,
					  "https: what authorizes burst must not travel in the "
					  "clear",
					  err);
	return 0;
}

char *provider_url_root(const char *url)
{
	size_t len = strlen(url);

	while (len && url[len - 1] == '/')
		len--;
	return xstrndup(url, len);
}

int provider_check_keys(const struct key_check *checks, const struct section *conf,
			const char *group, struct mistakes *m, struct err *err)
{
	for (; checks->key; checks++)
		if (checks->check(conf, group, checks->key, err) < 0 &&
		    mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

int provider_judge_wishes(want_check *const *checks, const struct section *conf,
			  const struct op_want *want, struct mistakes *m, struct err *err)
{
	for (; *checks; checks++)
		if ((*checks)(conf, want, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

char *provider_account_name(const char *vendor, const char *secret)
{
	CLEANUP(free_text) char *text = xasprintf("burst %s account\n%s", vendor, secret);
	char hex[SHA256_HEX];

	sha256_hex(text, strlen(text), hex);
	return xasprintf("%s:%.12s", vendor, hex);
}

char *provider_start_script(const struct provider_ops *ops, const char *script)
{
	return xasprintf("%s%s", ops->end_script ? ops->end_script : "", script);
}

bool provider_can_fetch(const struct provider_ops *ops, const struct provider *p,
			const struct volume *v)
{
	return ops->can_fetch && (!ops->files_ready || ops->files_ready(p, v));
}

bool provider_can_stage(const struct provider_ops *ops, const struct provider *p,
			const struct volume *v)
{
	return ops->can_stage && (!ops->files_ready || ops->files_ready(p, v));
}

int provider_dial(const struct provider_ops *ops, const struct provider *p,
		  const struct pod_view *pod, struct call *call, struct err *err)
{
	if (!ops->dial)
		return err_set(err, ERR_REFUSED, "%s has no way to reach this pod", ops->name);
	return ops->dial(p, pod, call, err);
}

bool provider_pods_are_free(const struct provider_ops *ops, const struct provider *p)
{
	return ops->pods_are_free && ops->pods_are_free(p);
}

/* Adds the regions of the offers without a price, each once: " for box1, box2". */
static void add_unpriced_regions(const struct op_result *offers, struct str *to)
{
	const char *before = " for ";

	for (size_t i = 0; i < offers->offer_count; i++) {
		const struct offer *o = &offers->offers[i];
		size_t j = 0;
		while (j < i && (offers->offers[j].price_microusd_h > 0 ||
				 strcmp(offers->offers[j].region, o->region)))
			j++;
		if (j < i || o->price_microusd_h > 0)
			continue;
		str_addf(to, "%s%s", before, o->region);
		before = ", ";
	}
}

void provider_remark_unpriced(const struct provider_ops *ops, const struct provider *p,
			      struct op_result *offers)
{
	size_t priced = 0;

	for (size_t i = 0; i < offers->offer_count; i++)
		priced += offers->offers[i].price_microusd_h > 0;
	if (priced == offers->offer_count || provider_pods_are_free(ops, p))
		return;
	str_add(&offers->text, "no price given");
	if (priced)
		add_unpriced_regions(offers, &offers->text);
	str_addf(&offers->text,
		 ", so caps on cost do not count these pods: set it in providers.%s\n", ops->name);
}

bool provider_can_tidy(const struct provider_ops *ops, const struct provider *p,
		       const struct volume *v)
{
	return ops->can_tidy && (!ops->files_ready || ops->files_ready(p, v));
}

void op_result_free(struct op_result *r)
{
	free(r->offers);
	free(r->pods);
	free(r->volumes);
	free(r->entries);
	free(r->billing.hours);
	str_free(&r->text);
	memset(r, 0, sizeof(*r));
}

struct pod_view *op_result_add_pod(struct op_result *r)
{
	r->pods = xrealloc(r->pods, (r->pod_count + 1) * sizeof(*r->pods));
	struct pod_view *pod = &r->pods[r->pod_count++];

	*pod = (struct pod_view){0};
	return pod;
}

struct offer *op_result_add_offer(struct op_result *r)
{
	r->offers = xrealloc(r->offers, (r->offer_count + 1) * sizeof(*r->offers));
	struct offer *offer = &r->offers[r->offer_count++];

	*offer = (struct offer){0};
	return offer;
}

struct volume *op_result_add_volume(struct op_result *r)
{
	r->volumes = xrealloc(r->volumes, (r->volume_count + 1) * sizeof(*r->volumes));
	struct volume *volume = &r->volumes[r->volume_count++];

	*volume = (struct volume){0};
	return volume;
}

bool op_result_has_volume(const struct op_result *r, const char *id)
{
	for (size_t i = 0; i < r->volume_count; i++)
		if (!strcmp(r->volumes[i].id, id))
			return true;
	return false;
}

bool op_result_has_pod(const struct op_result *r, const char *id)
{
	for (size_t i = 0; i < r->pod_count; i++)
		if (!strcmp(r->pods[i].id, id))
			return true;
	return false;
}

void call_free(struct call *c)
{
	str_wipe(&c->body); /* a new pod's keys are in it, and tokens in the headers */
	free(c->url);
	for (size_t i = 0; i < c->header_count; i++)
		text_wipe(c->headers[i]);
	free(c->headers);
	free(c->sigv4);
	free(c->user);
	text_wipe(c->password);
	for (size_t i = 0; i < c->argc; i++)
		free(c->argv[i]);
	free(c->argv);
	free(c->body_to);
	free(c->body_from);
	memset(c, 0, sizeof(*c));
}

void call_header(struct call *c, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		abort();
	va_end(ap);
	GROW(c->headers, c->header_count, c->header_cap);
	c->headers[c->header_count++] = line;
}

void call_arg(struct call *c, const char *word)
{
	GROW(c->argv, c->argc + 1, c->argv_cap);
	c->argv[c->argc++] = xstrdup(word);
	c->argv[c->argc] = NULL;
}

enum op_next turn_wait(struct turn *t, int64_t ms)
{
	*t->wait_ms = ms;
	return OP_WAIT;
}

enum op_next turn_fail(struct turn *t, enum err_kind kind, const char *fmt, ...)
{
	char words[sizeof(t->err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(words, sizeof(words), fmt, ap);
	va_end(ap);
	err_set(t->err, kind, "%s", words);
	return OP_FAILED;
}

void reply_free(struct reply *r)
{
	str_free(&r->body);
	str_free(&r->head);
	str_free(&r->details);
	memset(r, 0, sizeof(*r));
}

bool reply_header(const struct reply *r, const char *name, char *out, size_t room)
{
	const char *line = str_text(&r->head);
	size_t len = strlen(name);
	bool found = false;

	while (*line) {
		size_t end = strcspn(line, "\r\n");
		if (end > len && line[len] == ':' && !strncasecmp(line, name, len)) {
			const char *value = line + len + 1;
			size_t left = end - len - 1;
			while (left && (*value == ' ' || *value == '\t')) {
				value++;
				left--;
			}
			size_t n = MIN(left, room - 1);
			memcpy(out, value, n);
			out[n] = '\0';
			found = true;
		}
		line += end;
		line += strspn(line, "\r\n");
	}
	return found;
}

bool reply_clock_off(const struct reply *r, int64_t sent_wall_ms, int64_t now_wall_ms,
		     int64_t *off_ms)
{
	char text[64];
	int64_t dated_s;

	if (!reply_header(r, "Date", text, sizeof(text)) || !clock_http_date(text, &dated_s))
		return false;
	if (reply_header(r, "Age", text, sizeof(text))) /* how long a cache has had it */
		dated_s += MIN(MAX(strtoll(text, NULL, 10), 0), INT32_MAX);
	int64_t from_ms = dated_s * 1000, to_ms = from_ms + 999;
	*off_ms = now_wall_ms < from_ms  ? now_wall_ms - from_ms
		  : sent_wall_ms > to_ms ? sent_wall_ms - to_ms
					 : 0;
	return true;
}
