/* fuzz_pod.c - a whole run, its engine and its core, against a pod that says anything: its agent's
 * lines, its files, its ends. Whatever it says, the run ends, every pod is given back, nothing is
 * written outside the output folder, what lies there under its final name is what was announced,
 * and no word of it can drive a terminal.
 *
 * Input: a byte for the flavour of the run (enum flavour), one for how long a worker thread takes,
 * then lines; the first letter of a line says what happens:
 *   {...   the agent says this line; \1 stands for the hash of a good file, \2 for 64 KiB of
 * letters c, e   bytes of the agent's stdout, of its stderr        B, b   the bootstrap has the
 * agent, needs it g      the oldest file asked for comes as it should      F, f   this line, these
 * bytes in the channel of files K, k   the agent's channel, that of files ends           X that of
 * a tree ends, with this exit code W      that of a tree takes more                         w bytes
 * of its stderr E      a line of the event log on the volume             V      the vendor takes
 * the pod away P{...  the vendor lists one more pod, S{... says this of the last one (keys:
 * view_add(); numbers within what translators let pass) R, r   what create, list say next: this
 * kind of error T      time passes: 10^n ms                              L, U   the connection is
 * lost, is not to be trusted 1..9   from now on it is that connection that speaks */
#include "still.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "jobs/agent/kit.h"
#include "base/err.h"
#include "engine/impl.h"
#include "tests/unit/sha256_file.h"

#define MACHINE "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum flavour {
	COMMAND = 1,
	STREAM = 2,
	VOLUME = 4,
	TWO_PODS = 8,
	DETACHED = 16,
	SETUP = 32,
	GPU = 64,
	CANARY = 128
};
enum { SEGMENTS = 4, PODS_MAX = 64, RENTED_MAX = 64, KEPT_MAX = 4096, FILES_BYTES = 16 };

static const char good_bytes[FILES_BYTES + 1] = "sixteen of these";
static char good_hash[SHA256_HEX], root[64];
static bool says; /* with FUZZ_SAYS in the environment: what passes is shown */

static struct {
	uint8_t flavour;
	const char *at, *end; /* what is left of the input */
	int speaker, checked;
	struct pod_view pods[PODS_MAX + RENTED_MAX];
	int pod_count;
	enum err_kind create_fails, list_fails; /* once */
	struct str events;
	struct { /* what was recorded of an output */
		char *name, sha256[SHA256_HEX];
	} kept[KEPT_MAX];
	size_t kept_count;
} world;

/* ---- nothing of it drives a terminal ---- */

static void check_shown(const char *text)
{
	for (const char *p = text; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 127);
	assert(utf8_valid(text, strlen(text)));
}

static void on_log(void *ctx, enum log_level level, const char *line)
{
	(void)ctx;
	if (says)
		fprintf(stderr, "%7lld %s\n", (long long)still.now_ms, line);
	if (level <= LOG_INFO)
		check_shown(line);
}

static void on_output(void *ctx, const char *pod, const char *line)
{
	(void)ctx;
	check_shown(pod);
	check_shown(line);
}

/* ---- a job ---- */

static struct segment segments[SEGMENTS];
static struct job_needs needs;

static int job_load(struct job **out, const struct job_setup *setup, struct err *err)
{
	(void)setup, (void)err;
	*out = NULL;
	return 0;
}

static struct segment *job_segments(struct job *job, size_t *count)
{
	(void)job;
	*count = SEGMENTS;
	return segments;
}

static const struct job_needs *job_needs_of(struct job *job)
{
	(void)job;
	return &needs;
}

static json_t *job_task(struct job *job, size_t index, int attempt)
{
	(void)job;
	return json_pack("{s:s, s:s, s:i}", "id", segments[index].id, "file",
			 segments[index].file ? segments[index].file : "", "attempt", attempt);
}

static int job_check(const struct job *job, size_t index, const char *file, struct check *out,
		     struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	(void)job, (void)index;
	if (path_read(file, 1 << 20, &text, err) < 0)
		return -1;
	*out = (struct check){.ok = !(world.flavour & CANARY) || world.checked++,
			      .seconds = 1,
			      .sample_rate = 8000};
	snprintf(out->reason, sizeof(out->reason), "the first one is always bad");
	return 0;
}

static void one_record(size_t index, const struct segment_result *result)
{
	const char *name = result->file ? result->file : segments[index].file;

	assert(path_is_safe(name) && result->bytes >= 0 && result->seconds >= 0 &&
	       result->sample_rate >= 0);
	assert(world.kept_count < KEPT_MAX);
	world.kept[world.kept_count].name = xstrdup(name);
	COPY_TEXT(world.kept[world.kept_count++].sha256, result->sha256);
}

static int job_record(struct job *job, size_t index, const struct segment_result *results,
		      size_t count, struct err *err)
{
	(void)job, (void)err;
	for (size_t i = 0; i < count; i++)
		one_record(index, &results[i]);
	return 0;
}

static int job_finish(struct job *job, const struct segment_result *results, struct str *notes,
		      struct err *err)
{
	(void)job, (void)notes, (void)err;
	for (int i = 0; i < SEGMENTS; i++)
		check_shown(results[i].state == SEGMENT_FAILED ? results[i].reason : "");
	return 0;
}

static const struct job_ops job = {.abi = JOB_ABI,
				   .type = "fuzz",
				   .load = job_load,
				   .segments = job_segments,
				   .needs = job_needs_of,
				   .task = job_task,
				   .check = job_check,
				   .record = job_record,
				   .finish = job_finish};

static void make_job(void)
{
	static char *const ids[SEGMENTS] = {(char *)"q1", (char *)"q2", (char *)"q3", (char *)"q4"};
	static char *const files[SEGMENTS] = {(char *)"q1.wav", (char *)"q2.wav",
					      (char *)"d/q3.wav", (char *)"q4.wav"};
	static const char *const outputs[] = {"out/**", NULL};
	static const struct job_file kit[] = {{"worker", "w", 1, 0755}};
	bool command = world.flavour & COMMAND;

	for (int i = 0; i < SEGMENTS; i++) {
		segments[i] = (struct segment){.id = ids[i],
					       .weight = i + 1,
					       .est_seconds = 1,
					       .group = (char *)"",
					       .file = command ? NULL : files[i]};
		memset(segments[i].key, 'a', sizeof(segments[i].key) - 1);
	}
	needs = (struct job_needs){.engine = "fuzz",
				   .workers = 2,
				   .max_batch = command ? 1 : 2,
				   .command = command,
				   .stream = world.flavour & STREAM,
				   .tries = 2,
				   .gpu = world.flavour & GPU};
	if (command)
		needs.outputs = outputs;
	else
		needs.worker = "worker";
	if (!(world.flavour & SETUP))
		return;
	needs.setup = needs.install = "true";
	needs.files = kit;
	needs.file_count = 1;
}

/* ---- a vendor, who tells the truth at once ---- */

struct op {
	enum op_kind kind;
	const struct op_want *want;
};

static const char *vendor_account(const struct provider *p)
{
	(void)p;
	return "fuzz";
}

static struct op *vendor_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	(void)p;
	*op = (struct op){kind, want};
	return op;
}

static void vendor_op_free(struct op *op)
{
	free(op);
}

static void add_view(struct op_result *r, const struct pod_view *v)
{
	r->pods = xrealloc(r->pods, (r->pod_count + 1) * sizeof(*r->pods));
	r->pods[r->pod_count++] = *v;
}

static void vendor_make(const struct rent_request *want, struct op_result *r)
{
	assert(world.pod_count < PODS_MAX + RENTED_MAX);
	struct pod_view *v = &world.pods[world.pod_count];
	*v = (struct pod_view){.marker = want->marker,
			       .state = POD_STATE_RUNNING,
			       .port = 22,
			       .price_microusd_h = want->offer.price_microusd_h};
	snprintf(v->id, sizeof(v->id), "pod%d", ++world.pod_count);
	COPY_TEXT(v->name, want->name);
	COPY_TEXT(v->host, "192.0.2.1");
	add_view(r, v);
}

static void vendor_end(const char *id)
{
	for (int i = 0; i < world.pod_count; i++)
		if (!strcmp(world.pods[i].id, id))
			world.pods[i].state = POD_STATE_GONE;
}

/* What a translator may make of anything that a vendor says of a pod. */
static void view_change(struct pod_view *v, const json_t *from)
{
	v->state = (enum pod_state)jsonx_bounded(from, "state", 0, POD_STATE_GONE);
	v->end = (enum pod_end)jsonx_bounded(from, "end", 0, POD_END_VENDOR);
	v->preempted = jsonx_bool(from, "preempted", false);
	v->price_microusd_h = jsonx_bounded(from, "price", 0, MONEY_MOST);
	v->created_at_s = jsonx_bounded(from, "created", 0, EPOCH_MOST_S);
	v->started_at_s = jsonx_bounded(from, "started", 0, EPOCH_MOST_S);
	v->ended_at_s = jsonx_bounded(from, "ended", 0, EPOCH_MOST_S);
	v->port = (int)jsonx_bounded(from, "port", 0, 65535);
	COPY_TEXT(v->host, v->port ? "192.0.2.2" : "");
	COPY_TEXT(v->gpu, jsonx_text(from, "gpu", ""));
	COPY_TEXT(v->region, jsonx_text(from, "region", ""));
	COPY_TEXT(v->detail, jsonx_text(from, "detail", ""));
}

/* Another pod is listed: of another run, of this one and nobody asked for it, or a twin ("of": the
 * number of a pod). */
static void view_add(const json_t *from)
{
	int64_t of = jsonx_int(from, "of", -1);

	if (world.pod_count == PODS_MAX)
		return;
	struct pod_view *v = &world.pods[world.pod_count];
	*v = (struct pod_view){0};
	snprintf(v->id, sizeof(v->id), "pod%d", ++world.pod_count);
	if (of >= 0 && of < world.pod_count - 1)
		v->marker = world.pods[of].marker;
	else
		(void)marker_read(&v->marker, jsonx_text(from, "machine", ""),
				  jsonx_text(from, "run", "r1"), jsonx_text(from, "attempt", ""),
				  jsonx_text(from, "hard_end", ""));
	view_change(v, from);
}

static enum err_kind chosen(const enum err_kind *kinds, size_t count, char letter)
{
	return kinds[(unsigned char)(letter - '0') % count];
}

static void vendor_says(const char *line, size_t len)
{
	static const enum err_kind create[] = {
		ERR_AMBIGUOUS, ERR_NO_CAPACITY, ERR_TRANSIENT,   ERR_RATE_LIMITED, ERR_REFUSED,
		ERR_NETWORK,   ERR_BALANCE,     ERR_CREDENTIALS, ERR_CONFIG,       ERR_LOCAL};
	static const enum err_kind list[] = {ERR_TRANSIENT, ERR_NETWORK, ERR_RATE_LIMITED};
	CLEANUP(json_decref) json_t *said = jsonx_parse(line + 1, len - 1, NULL);

	if (line[0] == 'P')
		view_add(said);
	else if (line[0] == 'S' && world.pod_count &&
		 world.pods[world.pod_count - 1].state != POD_STATE_GONE)
		view_change(&world.pods[world.pod_count - 1], said);
	else if (line[0] == 'V' && world.pod_count)
		world.pods[world.pod_count - 1].state = POD_STATE_GONE;
	else if (line[0] == 'R' && len > 1)
		world.create_fails = chosen(create, ARRAY_LEN(create), line[1]);
	else if (line[0] == 'r' && len > 1)
		world.list_fails = chosen(list, ARRAY_LEN(list), line[1]);
}

/* What is still there is of no concern to this run. */
static bool is_anothers(const struct pod_view *v)
{
	const struct marker *m = &v->marker;

	return !m->attempt[0] || strcmp(m->run, "r1") != 0 ||
	       (m->machine[0] && strcmp(m->machine, MACHINE) != 0);
}

/* True: it fails, as was said it would, this once. */
static bool fails(enum err_kind *kind, struct err *err)
{
	if (*kind == ERR_NONE)
		return false;
	err_set(err, *kind, "the vendor fails");
	*kind = ERR_NONE;
	return true;
}

static enum op_next rent_out(const struct rent_request *want, struct op_result *r, struct err *err)
{
	bool lost = world.create_fails == ERR_AMBIGUOUS, failed = fails(&world.create_fails, err);
	struct op_result unseen = {0};

	if (!failed || lost)
		vendor_make(want, failed ? &unseen : r);
	op_result_free(&unseen);
	return failed ? OP_FAILED : OP_DONE;
}

static int vendor_fetch_file(const struct op_want *want, struct op_result *r, struct err *err)
{
	bool log = ends_with(want->file.path, "/events.jsonl");
	const char *bytes = log ? str_text(&world.events) : good_bytes;

	assert(path_is_safe(want->file.path));
	r->bytes = (int64_t)(log ? world.events.len : FILES_BYTES);
	return path_write(want->file.local, bytes, (size_t)r->bytes, 0600, err);
}

static enum op_next vendor_next(struct op *op, const struct reply *reply, struct call *call,
				int64_t *wait_ms, struct op_result *r, struct err *err)
{
	const struct op_want *want = op->want;

	(void)reply, (void)call, (void)wait_ms;
	switch (op->kind) {
	case OP_OFFERS:
		r->offers = xcalloc(1, sizeof(*r->offers));
		*r->offers = (struct offer){.provider = "fuzz",
					    .id = "o",
					    .gpu = "L4",
					    .gpus = 1,
					    .price_microusd_h = 690000};
		r->offer_count = 1;
		return OP_DONE;
	case OP_VOLUME:
		r->volumes = xcalloc(1, sizeof(*r->volumes));
		*r->volumes = (struct volume){
			.provider = "fuzz", .id = "v1", .name = "cache", .used_bytes = -1};
		r->volume_count = 1;
		return OP_DONE;
	case OP_RENT: return rent_out(&want->rent, r, err);
	case OP_LIST:
		if (fails(&world.list_fails, err))
			return OP_FAILED;
		for (int i = 0; i < world.pod_count; i++)
			if (world.pods[i].state != POD_STATE_GONE)
				add_view(r, &world.pods[i]);
		return OP_DONE;
	case OP_RELEASE: vendor_end(want->id); return OP_DONE;
	case OP_LOGS: return OP_DONE;
	case OP_FETCH: return vendor_fetch_file(want, r, err) < 0 ? OP_FAILED : OP_DONE;
	default: err_set(err, ERR_NOT_FOUND, "nothing is known"); return OP_FAILED;
	}
}

/* ---- its pods' keys: constants, which cost no time and no disk ---- */

int keys_load(struct engine *e, int pod, struct err *err)
{
	static char private_pem[] = "private", public_line[] = "public", host[] = "host";

	(void)err;
	e->pods[pod].keys =
		(struct ssh_keys){{.private_pem = private_pem, .public_line = public_line},
				  {.private_pem = private_pem},
				  host,
				  true};
	return 0;
}

int keys_make(struct engine *e, int pod, struct err *err)
{
	return keys_load(e, pod, err);
}

void keys_drop(struct engine *e, int pod)
{
	(void)e, (void)pod;
}

void keys_forget_host(struct engine *e, int pod)
{
	(void)e, (void)pod;
}

void keys_free(struct ssh_keys *k)
{
	(void)k;
}

/* ---- what the pod says ---- */

static void add_line(struct str *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == 1)
			str_add(to, good_hash);
		else if (text[i] == 2)
			for (int k = 0; k < 65536; k++)
				str_addc(to, 'a');
		else
			str_addc(to, text[i]);
}

static void say(struct ssh *ssh, const char *channel, int stream, const char *text, size_t len,
		const char *end)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	add_line(&line, text, len);
	str_add(&line, end);
	still_data(ssh, channel, stream, line.s, line.len);
}

/* The oldest request of the channel of files is answered. */
static void answer(struct ssh *ssh)
{
	struct ssh_channel *c = still_channel(ssh, " send");
	CLEANUP(str_free) struct str reply = STR_INIT;
	const char *end = c && c->written.len ? memchr(c->written.s, '\n', c->written.len) : NULL;

	if (says)
		fprintf(stderr, "%7lld send: %s", (long long)still.now_ms,
			c ? str_text(&c->written) : "no channel\n");
	if (!end)
		return;
	CLEANUP(json_decref)
	json_t *ask = jsonx_parse(c->written.s, (size_t)(end - c->written.s), NULL);
	assert(ask && path_is_safe(jsonx_text(ask, "path", "..")));
	int64_t offset = MIN(jsonx_int(ask, "offset", 0), (int64_t)FILES_BYTES);
	str_drop(&c->written, (size_t)(end + 1 - c->written.s));
	str_addf(&reply, "{\"path\":\"x\",\"offset\":%lld,\"bytes\":%lld}\n%s", (long long)offset,
		 (long long)(FILES_BYTES - offset), good_bytes + offset);
	still_data(ssh, " send", 0, reply.s, reply.len);
}

static void end_channel(struct ssh *ssh, const char *name, const char *code, size_t len)
{
	struct ssh_channel *c = still_channel(ssh, name);
	CLEANUP(free_text) char *text = xstrndup(code, len);
	long number = strtol(text, NULL, 10);

	if (c)
		still_close(c, number & 255, number & 256 ? "KILL" : NULL, NULL);
}

static void take_more(struct ssh *ssh)
{
	struct ssh_channel *c = still_channel(ssh, " tree ");

	if (c)
		c->ops->writable(c->ctx);
}

static void obey_request(struct ssh *ssh, const char *line, size_t len)
{
	const char *rest = line + 1, *attach = "$agent\" attach";

	switch (line[0]) {
	case '{': say(ssh, attach, 0, line, len, "\n"); break;
	case 'c': say(ssh, attach, 0, rest, len - 1, ""); break;
	case 'e': say(ssh, attach, 1, rest, len - 1, ""); break;
	case 'B': say(ssh, attach, 0, "BURST have\n", 11, ""); break;
	case 'b': say(ssh, attach, 0, "BURST need\n", 11, ""); break;
	case 'g': answer(ssh); break;
	case 'F': say(ssh, " send", 0, rest, len - 1, "\n"); break;
	case 'f': say(ssh, " send", 0, rest, len - 1, ""); break;
	case 'K': end_channel(ssh, attach, rest, len - 1); break;
	case 'k': end_channel(ssh, " send", rest, len - 1); break;
	case 'W': take_more(ssh); break;
	case 'w': say(ssh, " tree ", 1, rest, len - 1, ""); break;
	case 'X': end_channel(ssh, " tree ", rest, len - 1); break;
	case 'L': still_lose(ssh, ERR_NETWORK); break;
	case 'U': still_lose(ssh, ERR_UNTRUSTED); break;
	}
}

static void pass_time(const char *line, size_t len)
{
	int64_t ms = 1;

	for (int n = len > 1 && line[1] >= '0' && line[1] <= '6' ? line[1] - '0' : 0; n; n--)
		ms *= 10;
	still.quiet_until = still.now_ms + ms;
}

static struct ssh *speaker(void)
{
	int n = 0;

	for (int i = 0; i < STILL_LINKS; i++)
		if (still_links[i] && still_links[i]->is_up && n++ == world.speaker)
			return still_links[i];
	for (int i = 0; i < STILL_LINKS; i++)
		if (still_links[i] && still_links[i]->is_up)
			return still_links[i];
	return NULL;
}

/* When all is said, every connection breaks, and no other is to be had. */
static bool fall_silent(void)
{
	struct ssh *ssh = speaker();

	still.refuses = true;
	if (!ssh || ssh->is_lost)
		return false;
	still_lose(ssh, ERR_NETWORK);
	return true;
}

static bool still_step(void)
{
	struct ssh *ssh = speaker();

	if (world.at >= world.end)
		return fall_silent();
	if (!ssh)
		return false;
	const char *line = world.at, *end = memchr(line, '\n', (size_t)(world.end - line));
	size_t len = (size_t)((end ? end : world.end) - line);
	world.at += len + 1;
	if (!len)
		return true;
	if (line[0] == 'T')
		pass_time(line, len);
	else if (line[0] == 'E')
		add_line(&world.events, line + 1, len - 1), str_addc(&world.events, '\n');
	else if (strchr("PSVRr", line[0]))
		vendor_says(line, len);
	else if (line[0] >= '1' && line[0] <= '9')
		world.speaker = line[0] - '1';
	else
		obey_request(ssh, line, len);
	return true;
}

/* ---- what is left behind ---- */

static bool was_announced(const char *name, const char *sha256)
{
	for (size_t i = 0; i < world.kept_count; i++)
		if (!strcmp(world.kept[i].name, name) && !strcmp(world.kept[i].sha256, sha256))
			return true;
	return false;
}

/* Plain files alone, and each that has its final name is one that was recorded, with the hash that
 * was announced. */
static void check_folder(const char *dir, const char *below)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		CLEANUP(free_text) char *path = path_join(dir, entry->d_name);
		CLEANUP(free_text)
		char *name = *below ? path_join(below, entry->d_name) : xstrdup(entry->d_name);
		struct stat st;
		char hex[SHA256_HEX];
		assert(lstat(path, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)));
		assert(path_is_safe(name));
		if (S_ISDIR(st.st_mode))
			check_folder(path, name);
		else if (!ends_with(name, ".part"))
			assert(sha256_file(path, hex, NULL, NULL) == 0 && was_announced(name, hex));
	}
	if (d)
		closedir(d);
}

/* Nothing but "out" and "run" came into being beside them. */
static void check_root(void)
{
	DIR *d = opendir(root);
	struct dirent *entry;

	while ((entry = readdir(d)))
		assert(entry->d_name[0] == '.' || !strcmp(entry->d_name, "out") ||
		       !strcmp(entry->d_name, "run"));
	closedir(d);
}

static void check_end(const struct engine_setup *setup, int status, const struct err *err)
{
	size_t safe = 0;

	for (int i = 0; i < world.pod_count; i++)
		assert(world.pods[i].state == POD_STATE_GONE || is_anothers(&world.pods[i]));
	assert(status >= 0 && status <= 6);
	assert(!status == (err->kind == ERR_NONE));
	check_shown(err->msg);
	for (int i = 0; i < SEGMENTS; i++)
		safe += setup->results[i].state == SEGMENT_SAFE;
	assert(status || safe == SEGMENTS);
	check_folder(setup->output_dir, "");
	check_root();
}

/* ---- one run ---- */

static void remove_root(void)
{
	path_remove_tree(root, NULL);
}

static void make_root(void)
{
	struct err err;

	if (!root[0]) {
		snprintf(root, sizeof(root), "%s/burst-fuzz.XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		if (!mkdtemp(root) || atexit(remove_root) != 0)
			abort();
		sha256_hex(good_bytes, FILES_BYTES, good_hash);
		says = getenv("FUZZ_SAYS") != NULL;
		log_setup(says ? LOG_TRACE : LOG_INFO, on_log, NULL);
	}
	CLEANUP(free_text) char *out = path_join(root, "out");
	CLEANUP(free_text) char *run = path_join(root, "run");
	if (path_remove_tree(out, &err) < 0 || path_remove_tree(run, &err) < 0 ||
	    mkdir(out, 0700) < 0 || mkdir(run, 0700) < 0)
		abort();
}

static void fill_setup(struct engine_setup *setup, struct provider_ops *vendor)
{
	*vendor = (struct provider_ops){.abi = PROVIDER_ABI,
					.name = "fuzz",
					.can_fetch = world.flavour & VOLUME,
					.poll_ms = 1000,
					.account = vendor_account,
					.begin = vendor_begin,
					.next = vendor_next,
					.op_free = vendor_op_free};
	setup->providers[0] = (struct engine_provider){.ops = vendor};
	setup->provider_count = 1;
	setup->conf = (struct core_conf){.pods = world.flavour & TWO_PODS ? 2 : 1,
					 .canary = world.flavour & CANARY,
					 .detached = world.flavour & DETACHED,
					 .wait_ms = 60000,
					 .lease_ms = 600000,
					 .boot_limit_ms = 120000,
					 .check_tries = 2,
					 .max_duration_ms = 1200000,
					 .max_cost_microusd = 5000000};
	COPY_TEXT(setup->conf.run, setup->run->id);
	COPY_TEXT(setup->conf.machine, MACHINE);
	setup->job_ops = &job;
	setup->output = on_output;
	setup->volume_name = world.flavour & VOLUME ? "cache" : NULL;
}

static void one_run(void)
{
	CLEANUP(free_text) char *out = path_join(root, "out");
	CLEANUP(free_text) char *run_dir = path_join(root, "run");
	struct segment_result results[SEGMENTS] = {0};
	struct run_row row = {.id = "r1", .status = RUN_RUNNING};
	struct provider_ops vendor;
	struct store *store = store_memory();
	struct engine_setup setup = {.kit = pod_kit(),
				     .results = results,
				     .store = store,
				     .run = &row,
				     .run_dir = run_dir,
				     .output_dir = out};
	struct err err = {0};

	fill_setup(&setup, &vendor);
	struct engine *e = engine_new(&setup);
	COPY_TEXT(e->client.life, "f");
	int status = engine_run(e, &err);
	if (says)
		fprintf(stderr, "%7lld exit status %d: %s\n", (long long)still.now_ms, status,
			err.msg);
	if (status > 128)
		_exit(status); /* somebody ends the fuzzer, and the run took the signal for its own
				*/
	check_end(&setup, status, &err);
	engine_free(e);
	store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	memset(&still, 0, sizeof(still));
	memset(&world, 0, sizeof(world));
	still.dice = 1;
	still.work_ms = data[1] % 8;
	world.flavour = data[0];
	world.at = (const char *)data + 2;
	world.end = (const char *)data + len;
	make_root();
	make_job();
	one_run();
	for (size_t i = 0; i < world.kept_count; i++)
		free(world.kept[i].name);
	str_free(&world.events);
	return 0;
}
