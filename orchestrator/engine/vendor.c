/* vendor.c - requests from providers what the core decides about pods, and reads their logs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "impl.h"
#include "net/http_trace.h"
#include "past.h"

/* ---- pull ----
 * Reads the progress of an image pull from a pod's log, which is foreign text: every number is
 * bounded. */

enum { LAYERS_MOST = 64, LINE_MOST = 512, ID_MAX = 24, DOWNLOAD_SHARE = 70 };

struct layer {
	char id[ID_MAX];
	double bytes, loaded, unpacked; /* bytes 0: unknown */
};

struct pull {
	struct layer layers[LAYERS_MOST];
	int count, said; /* shown: the last percentage, -1: none */
};

/* Reads a size such as "12.5MB" in bytes. *end: what follows. */
static bool read_size(const char *text, double *out, const char **end)
{
	static const char units[] = "kMGT";
	char *after;
	double scale = 1;

	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtod(text, &after);
	while (*after == ' ')
		after++;
	const char *unit = *after == 'K' ? units : strchr(units, *after);
	if (*after && unit) {
		for (const char *u = units; u <= unit; u++)
			scale *= 1000;
		after++;
	}
	after += *after == 'i';
	*out *= scale;
	*end = after + 1;
	return *after == 'B' && *out > 0 && *out < 1e15;
}

static bool read_sizes(const char *line, double *done, double *all)
{
	const char *slash = strrchr(line, '/'), *end;

	if (!slash)
		return false;
	const char *from = slash;
	while (from > line && (isalnum((unsigned char)from[-1]) || from[-1] == '.' ||
			       (from == slash && from[-1] == ' ')))
		from--;
	slash += strspn(slash, "/ ");
	return read_size(from, done, &end) && read_size(slash, all, &end) && *done <= *all;
}

/* The layer that the line is about; NULL: it is about none. */
static struct layer *find_or_add_layer(struct pull *p, const char *line)
{
	size_t len = strcspn(line, ": ");

	if (!len || len >= ID_MAX || line[len] != ':')
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)line[i]))
			return NULL;
	for (int i = 0; i < p->count; i++)
		if (!strncmp(p->layers[i].id, line, len) && !p->layers[i].id[len])
			return &p->layers[i];
	if (p->count == LAYERS_MOST)
		return NULL;
	struct layer *l = &p->layers[p->count++];
	*l = (struct layer){0};
	memcpy(l->id, line, len);
	return l;
}

static void read_layer(struct layer *l, const char *line)
{
	double done, all;

	if (strstr(line, "Download complete"))
		l->loaded = l->bytes;
	else if (strstr(line, "Pull complete"))
		l->loaded = l->unpacked = l->bytes;
	else if (read_sizes(line, &done, &all)) {
		l->bytes = all;
		if (strstr(line, "Extracting"))
			l->loaded = all, l->unpacked = done;
		else
			l->loaded = done;
	}
}

static void read_pull_line(struct pull *p, const char *line)
{
	struct layer *l = find_or_add_layer(p, line);
	const char *sign = strrchr(line, '%');

	if (l)
		read_layer(l, line);
	if (!sign || l)
		return;
	while (sign > line && sign[-1] == ' ')
		sign--;
	const char *from = sign;
	while (from > line && (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
		from--;
	double percent = from < sign ? strtod(from, NULL) : -1;
	if (percent >= 0 && percent <= 100)
		p->said = (int)percent;
}

static bool says_image_is_there(const char *line)
{
	return strcasestr(line, "create container") || strcasestr(line, "start container") ||
	       ends_with(line, " pulled") || starts_with(line, "container: ");
}

int pull_percent(const char *log)
{
	struct pull p = {.said = -1};
	double bytes = 0, done = 0;
	char line[LINE_MOST];
	const char *at;
	size_t len;

	while ((at = str_next_line(&log, &len))) {
		copy_text(line, MIN(sizeof(line), len + 1), at);
		if (says_image_is_there(line))
			p = (struct pull){.said = -1};
		else
			read_pull_line(&p, line);
	}
	for (int i = 0; i < p.count; i++) {
		bytes += p.layers[i].bytes;
		done += (p.layers[i].loaded * DOWNLOAD_SHARE +
			 p.layers[i].unpacked * (100 - DOWNLOAD_SHARE)) /
			100;
	}
	return bytes > 0 ? (int)(100 * done / bytes) : p.said;
}

/* ---- requests about a pod ---- */

static struct request *new_request_about(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	return a;
}

/* ---- pod log ----
 * What a provider's log shows of a pod, and whether it pulls its image. */

enum { WATCH_LOG_MS = 10 * 1000 }; /* for the display: from the create on, and between two looks */

struct pod_log {
	struct str text; /* as last read for the core */
	int64_t read_at; /* when that was; 0: never */
	int image_percent;
	uint32_t *lines; /* the hash of each line that the provider has written */
	size_t line_count, line_cap;
};

/* By provider: the log of a pod that pulls its image, for the display. */
struct pod_logs {
	bool watching[CORE_PROVIDERS_MAX]; /* a request is under way */
	int64_t next_at[CORE_PROVIDERS_MAX];
};

struct pod_logs *pod_logs_new(void)
{
	return xcalloc(1, sizeof(struct pod_logs));
}

void pod_log_free(struct pod_log *l)
{
	if (!l)
		return;
	str_free(&l->text);
	free(l->lines);
	free(l);
}

static struct pod_log *get_log(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	if (!p->log) {
		p->log = xcalloc(1, sizeof(*p->log));
		p->log->image_percent = -1;
	}
	return p->log;
}

/* Posts EV_UNPULLED if the last line of the log says that the image cannot be pulled. */
static void post_unpulled(struct engine *e, int pod, const char *text)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	static const char mark[] = "image: ";
	const char *line = NULL, *next;
	size_t len = 0, next_len;
	struct err err;

	while ((next = str_next_line(&text, &next_len))) {
		line = next;
		len = next_len;
	}
	if (!line || !starts_with(line, mark))
		return;
	line += strlen(mark);
	str_add_printable(&shown, line, len - strlen(mark), 120);
	/* A registry's rate limit passes; a missing image stays missing. */
	err_set(&err, provider_judge_pull(line, true) == PULL_LIMITED ? ERR_TRANSIENT : ERR_CONFIG,
		"%s", str_text(&shown));
	post_pod(e, EV_UNPULLED, pod, &err);
}

static void show_log(struct engine *e, int pod, const char *text)
{
	const char *line;
	size_t len;

	post_unpulled(e, pod, text);
	while ((line = str_next_line(&text, &len))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len && !starts_with(line, "image: "))
			engine_log(e, LOG_INFO, "pod %s: its provider's log: %s",
				   pod_called(e, pod), str_text(&shown));
	}
}

/* True if the provider has not written this line before. A container that ends and starts again
 * forever repeats its lines: that is no progress. */
static bool add_if_new(struct pod_log *l, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < l->line_count; i++)
		if (l->lines[i] == hash)
			return false;
	GROW(l->lines, l->line_count, l->line_cap);
	l->lines[l->line_count++] = hash;
	return true;
}

static int count_new_lines(struct pod_log *l, const char *text)
{
	const char *line;
	size_t len;
	int fresh = 0;

	while ((line = str_next_line(&text, &len)))
		if (len && !starts_with(line, "container: "))
			fresh += add_if_new(l, line, len);
	return fresh;
}

static void on_log(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct pod_log *l = get_log(a->e, a->pod);
	struct event ev = {.type = EV_LOG, .pod = a->pod, .provider = a->provider};

	if (!err) {
		str_reset(&l->text);
		str_addn(&l->text, str_text(&result->text), result->text.len);
		l->read_at = clock_boot_ms();
		ev.number = count_new_lines(l, str_text(&l->text));
		l->image_percent = pull_percent(str_text(&l->text));
		post_unpulled(a->e, a->pod, str_text(&l->text));
	}
	post(a->e, &ev, err);
	request_free(a);
}

static bool show_fresh_log(struct engine *e, int pod, int64_t fresh_ms)
{
	const struct pod_log *l = e->pods[pod].log;

	if (!l || !l->read_at || clock_boot_ms() - l->read_at >= fresh_ms)
		return false;
	show_log(e, pod, str_text(&l->text));
	return true;
}

int engine_image_percent(const struct engine *e, int pod)
{
	const struct pod_log *l = pod < e->pod_count ? e->pods[pod].log : NULL;

	return l ? l->image_percent : -1;
}

void pod_log_read(struct engine *e, int pod)
{
	request_begin(new_request_about(e, pod), OP_LOGS, on_log);
}

/* Does not count new lines, which on_log() counts for the core. */
static void on_watched_log(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;

	if (!err)
		get_log(a->e, a->pod)->image_percent = pull_percent(str_text(&result->text));
	a->e->pod_logs->watching[a->provider] = false;
	a->e->pod_logs->next_at[a->provider] = clock_boot_ms() + WATCH_LOG_MS;
	request_free(a);
}

static bool is_long_pulling(const struct engine *e, int pod, int provider, int64_t now)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return p->rental.provider == provider && p->phase == POD_BOOTING && p->rental.id[0] &&
	       p->rental.place == PLACE_GIVEN && now - pod_boots_from(p, now) > WATCH_LOG_MS;
}

void pod_log_watch(struct engine *e)
{
	int64_t now = clock_boot_ms();

	for (int v = 0; v < e->setup->provider_count; v++) {
		int pod = 0;
		if (e->pod_logs->watching[v] || now < e->pod_logs->next_at[v] ||
		    e->setup->providers[v].ops->makes_image)
			continue;
		while (pod < e->pod_count && !is_long_pulling(e, pod, v, now))
			pod++;
		if (pod == e->pod_count)
			continue;
		e->pod_logs->watching[v] = true;
		request_begin(new_request_about(e, pod), OP_LOGS, on_watched_log);
	}
}

/* ---- release ---- */

enum {
	LOG_FRESH_MS = 5000,
	LAST_LOG_MS = 4000, /* shorter than the proof that the pod is gone */
};

static void on_released(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_RELEASED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .number = err ? RELEASE_TAKEN : (int)result->release};

	if (!err && result->text.len)
		engine_log(a->e, LOG_WARN, "%s", str_text(&result->text));
	post(a->e, &ev, err);
	request_free(a);
}

static void send_release(struct engine *e, int pod)
{
	request_begin(new_request_about(e, pod), OP_RELEASE, on_released);
}

static void on_last_log(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;

	show_log(a->e, a->pod, !err && result ? str_text(&result->text) : "");
	if (!a->released)
		send_release(a->e, a->pod);
	request_free(a);
}

/* Releases without the log, because the pod bills. A log that arrives later is still shown. */
static void on_log_timeout(void *ctx)
{
	struct request *a = ctx;

	a->timer = NULL;
	a->released = true;
	send_release(a->e, a->pod);
}

void release_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a;

	if (!pooled_withdraw(e, pod))
		return;
	if (e->pods[pod].logs_requested || !core_reads_log_first(p, clock_boot_ms())) {
		send_release(e, pod);
		return;
	}
	e->pods[pod].logs_requested = true;
	if (show_fresh_log(e, pod, LOG_FRESH_MS)) {
		send_release(e, pod);
		return;
	}
	bool outlives = e->setup->providers[p->rental.provider].ops->logs_outlive;
	if (outlives)
		send_release(e, pod);
	a = new_request_about(e, pod);
	a->want.log_ms = LAST_LOG_MS;
	a->released = outlives;
	if (!outlives)
		a->timer = loop_timer(e->loop, CORE_LOG_READ_MS, on_log_timeout, a);
	request_begin(a, OP_LOGS, on_last_log);
}

/* ---- vendor ----
 * The core's actions that are operations of a provider: sends them, and turns the answers into
 * events. */

struct vendors {
	int bills_open;
	struct {
		bool list_refused; /* it refuses its list; that is logged */
		bool remarked;     /* its note on the offers is logged */
		/* the list that is under way and not urgent yet; NULL: none */
		struct request *list;
	} of[CORE_PROVIDERS_MAX];
};

struct vendors *vendors_new(void)
{
	return xcalloc(1, sizeof(struct vendors));
}

int vendor_bills_open(const struct engine *e)
{
	return e->vendors->bills_open;
}

/* ---- offers ---- */

/* Logs a provider's note on its offers once: offers are requested again and again. */
static void log_remarks(struct engine *e, int provider, const char *text)
{
	const char *line;
	size_t len;

	if (!*text || e->vendors->of[provider].remarked)
		return;
	e->vendors->of[provider].remarked = true;
	while ((line = str_next_line(&text, &len)))
		engine_log(e, LOG_WARN, "%s: %.*s", e->setup->providers[provider].ops->name,
			   (int)len, line);
}

/* A provider may list spot pods though none were wanted; a run rents them on request only. It knows
 * nothing of what a card must have. */
static void drop_unwanted(const struct request *a, struct op_result *result)
{
	const struct engine_setup *s = a->e->setup;
	size_t kept = 0;
	const char *why;

	for (size_t i = 0; i < result->offer_count; i++)
		if ((!result->offers[i].spot || a->want.offers.spot) &&
		    !card_needs_lack(&s->card, result->offers[i].gpu, s->gpus != NULL, &why))
			result->offers[kept++] = result->offers[i];
	result->offer_count = kept;
}

static void on_offers(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_OFFERS, .provider = a->provider};
	struct offer_past *past = NULL;
	const struct job_needs *needs = a->e->work.needs;
	const struct past_image of = {a->e->setup->image, needs ? needs->setup : NULL,
				      needs && needs->bf16};
	const struct provider_ops *ops = a->e->setup->providers[a->provider].ops;
	struct err off = {0};

	if (result && caller_check_clock(a->e->caller, ops, &off) < 0) {
		err = &off;
	} else if (result) {
		log_remarks(a->e, a->provider, str_text(&result->text));
		drop_unwanted(a, result);
		ev.offers = result->offers;
		ev.count = result->offer_count;
		ev.floor_microusd_h = result->floor_microusd_h;
		ev.past = past = past_of_offers(a->e->setup->store, &of, ev.offers, ev.count,
						clock_wall_ms());
	}
	post(a->e, &ev, err);
	free(past);
	request_free(a);
}

void vendor_offers(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);

	a->want.offers.gpus = e->setup->gpus;
	a->want.offers.spot = e->setup->conf.reap ? false : e->setup->want_spot;
	a->want.offers.vram_gb =
		MAX(e->work.needs ? e->work.needs->vram_gb : 0, e->setup->card.vram_gb);
	a->want.least_cuda = e->setup->card.cuda;
	a->want.offers.cpu = e->setup->cpu;
	a->want.offers.memory_gb = e->setup->memory_gb;
	a->want.offers.disk_gb = e->setup->disk_gb;
	a->want.offers.image = e->setup->image;
	a->secrets = http_trace_secrets(e->work.needs ? e->work.needs->env_names : NULL);
	a->want.secrets = a->secrets;
	a->want.offers.volume = e->volumes[provider]; /* looked for first if the job has one */
	if (e->setup->volume_name && e->setup->volume_create && !e->volumes[provider].id[0])
		COPY_TEXT(a->want.offers.volume.name, e->setup->volume_name);
	request_begin(a, OP_OFFERS, on_offers);
}

/* ---- looking ---- */

static void on_list(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {
		.type = EV_LISTED, .provider = a->provider, .requested_at = a->requested_at};

	a->e->vendors->of[a->provider].list = NULL;
	ev.ahead_ms = clock_wall_ms() -
		      caller_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	ev.clock_known =
		caller_knows_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	if (result) {
		ev.views = result->pods;
		ev.count = pooled_drop_taken(a->e, result->pods, result->pod_count);
		ev.partial = result->partial;
		if (result->partial && !a->e->vendors->of[a->provider].list_refused)
			engine_log(a->e, LOG_WARN, "%s", str_text(&result->text));
		a->e->vendors->of[a->provider].list_refused = result->partial;
	}
	post(a->e, &ev, err);
	request_free(a);
}

/* Whether a list's answer will find a pod or prove one gone. Before a release is answered there is
 * nothing to prove. */
static bool does_list_end_pods(const struct engine *e, int provider)
{
	bool ends = e->setup->conf.reap;

	for (int i = 0; i < e->pod_count && !ends; i++) {
		const struct core_pod *p = core_pod_at(e->core, i);
		ends = p->rental.provider == provider &&
		       (p->phase == POD_AMBIGUOUS || p->phase == POD_CONFIRMING);
	}
	return ends;
}

void vendor_list(struct engine *e, int provider)
{
	struct request *a = request_new(e, provider, -1);

	a->want.ids = a->ids = core_pod_ids(e->core, provider);
	a->op = request_begin(a, OP_LIST, on_list);
	e->vendors->of[provider].list = a;
	vendor_prioritize(e);
}

void vendor_prioritize(struct engine *e)
{
	for (int i = 0; i < e->setup->provider_count; i++) {
		struct request *a = e->vendors->of[i].list;
		if (!a || !does_list_end_pods(e, i))
			continue;
		e->vendors->of[i].list = NULL;
		if (caller_prioritize(a->op))
			a->requested_at = clock_boot_ms(); /* none of it is older */
	}
}

static void on_inspected(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {.type = EV_INSPECTED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .requested_at = a->requested_at};
	struct err none;

	if (result && result->pod_count) {
		ev.views = result->pods;
		ev.count = 1;
	} else if (!err) {
		err_set(&none, ERR_TRANSIENT, "it reports nothing about the pod");
		err = &none;
	}
	post(a->e, &ev, err);
	request_free(a);
}

void vendor_inspect(struct engine *e, int pod)
{
	request_begin(new_request_about(e, pod), OP_INSPECT, on_inspected);
}

/* ---- renting ---- */

#define MOUNT "/workspace" /* of the volume, in the pod */

/* Takes over value. */
static void add_env(struct request *a, const char *name, char *value, bool secret)
{
	if (a->env_count < ARRAY_LEN(a->env))
		a->env[a->env_count++] = (struct env_pair){xstrdup(name), value, secret};
	else
		free(value);
}

/* The start script's contract: jobs/agent/CONTROL.md, part 1. */
static void add_start_env(struct request *a, const struct core_pod *p, int64_t ahead_s)
{
	struct engine *e = a->e;
	CLEANUP(str_free) struct str host_key = STR_INIT;

	const struct ssh_keys *keys = &e->pods[a->pod].keys;
	const char *host_private = keys->host.private_pem;
	base64_add(&host_key, host_private, strlen(host_private));
	log_secret(str_text(&host_key));
	if (!e->setup->providers[a->provider].ops->shares_machine)
		add_env(a, "BURST_CONTAINER", xstrdup("1"), false);
	add_env(a, "BURST_RUN", xstrdup(e->setup->run->id), false);
	add_env(a, "BURST_ATTEMPT", xstrdup(p->rental.attempt), false);
	add_env(a, "BURST_MACHINE", xstrdup(e->setup->conf.machine), false);
	add_env(a, "BURST_HARD_END", xasprintf("%lld", (long long)(p->rental.hard_end_s - ahead_s)),
		false);
	add_env(a, "BURST_FIRST_LEASE_END",
		xasprintf("%lld", (long long)(p->rental.first_lease_end_s - ahead_s)), false);
	if (p->rental.run_ms) {
		add_env(a, "BURST_RUN_S", xasprintf("%lld", (long long)(p->rental.run_ms / 1000)),
			false);
		add_env(a, "BURST_FIRST_LEASE_S",
			xasprintf("%lld", (long long)(core_first_lease_ms(&e->setup->conf) / 1000)),
			false);
	}
	add_env(a, "BURST_LATE_START_S",
		xasprintf("%lld", (long long)(core_late_start_ms(&e->setup->conf) / 1000)), false);
	add_env(a, "BURST_LEASE_S", xasprintf("%lld", (long long)(e->setup->conf.lease_ms / 1000)),
		false);
	add_env(a, "BURST_HOST_KEY_B64", str_detach(&host_key), true);
	add_env(a, "BURST_AUTHORIZED_KEY", xstrdup(keys->client.public_line), false);
	add_env(a, "BURST_VOLUME", xstrdup(MOUNT), false);
}

static void on_rented(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct event ev = {
		.type = err ? EV_RENT_FAILED : EV_RENTED, .pod = a->pod, .provider = a->provider};

	if (result) {
		ev.views = result->pods;
		ev.count = 1;
		pod_image_record(a->e, a->provider, result->image);
	}
	/* the host's private key is needed for the create alone, which may be sent again */
	if (!err || !a->e->setup->providers[a->provider].ops->create_once)
		keys_forget_host(a->e, a->pod);
	post(a->e, &ev, err);
	request_free(a);
}

static void fill_rent_request(struct request *a, const struct core_pod *p)
{
	struct engine *e = a->e;
	struct rent_request *r = &a->want.rent;
	const struct provider_ops *ops = e->setup->providers[a->provider].ops;
	/* The pod ends itself by a clock that goes with its vendor's: its hard end must not be
	 * later than by ours. */
	int64_t ahead_s = (caller_clock_ahead_ms(e->caller, ops) + 999) / 1000;

	r->offer = p->rental.offer;
	snprintf(r->name, sizeof(r->name), "burst-%s", p->rental.attempt);
	COPY_TEXT(r->marker.machine, e->setup->conf.machine);
	COPY_TEXT(r->marker.run, e->setup->run->id);
	COPY_TEXT(r->marker.attempt, p->rental.attempt);
	r->marker.hard_end_s = p->rental.hard_end_s - ahead_s;
	r->wait_s = p->rental.wait_ms / 1000;
	r->run_s = p->rental.run_ms ? p->rental.run_ms / 1000
				    : p->rental.hard_end_s - clock_wall_ms() / 1000;
	r->volume = p->rental.volume;
	r->mount = MOUNT;
	r->disk_gb = e->setup->disk_gb;
	r->cpu = e->setup->cpu;
	r->memory_gb = e->setup->memory_gb;
	a->want.least_cuda = e->setup->card.cuda;
	pod_image_fill_recipe(e, a->provider, r);
	pod_image_fill_known(a);
	r->start_script = a->start_script = provider_start_script(ops, e->setup->kit->start_script);
	add_start_env(a, p, ahead_s);
	r->env = a->env;
	r->env_count = a->env_count;
	r->fetches_packages =
		e->work.needs && e->work.needs->setup_is_ours && !known_env_find(e, a->pod);
}

void vendor_rent(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct err err = {0};

	if (e->pods[pod].saving.failed)
		err_set(&err, ERR_LOCAL, "cannot write the ledger: nothing is rented without it");
	/* the clock is checked again for providers whose offers need no call */
	else if (caller_check_clock(e->caller, e->setup->providers[p->rental.provider].ops, &err) ==
			 0 &&
		 keys_make(e, pod, &err) < 0)
		err.kind = ERR_LOCAL;
	if (err.kind) {
		post_pod(e, EV_RENT_FAILED, pod, &err);
		return;
	}
	struct request *a = request_new(e, p->rental.provider, pod);
	fill_rent_request(a, p);
	request_begin(a, OP_RENT, on_rented);
}

/* ---- what it billed ---- */

static void on_bill(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct billing *b = &a->e->pods[a->pod].billing;

	if (!err) {
		b->bill = result->billing;
		b->bill.hours = NULL;
		b->bill.hour_count = 0;
	}
	if (!err || err->kind == ERR_NOT_FOUND)
		b->answered_ms = clock_wall_ms();
	a->e->vendors->bills_open--;
	request_free(a);
}

void vendor_billing(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = new_request_about(e, pod);

	a->want.since_s = (clock_wall_ms() - (clock_boot_ms() - p->rental.create_at)) / 1000;
	a->want.bill.price_microusd_h = p->rental.price_microusd_h;
	a->want.bill.list_microusd_h = p->rental.offer.price_microusd_h;
	COPY_TEXT(a->want.bill.gpu, p->rental.offer.gpu);
	e->vendors->bills_open++;
	request_begin(a, OP_BILLING, on_bill);
}
