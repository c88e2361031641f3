/* fuzz_agent.c - foreign bytes into the agent: JSON and hashes (as jansson and libcrypto have
 * them), environments, patterns, WAV headers, tar streams, lines of a worker that holds batches and
 * of its client, what nvidia-smi prints, streams in several lanes, requests for files. The first
 * byte chooses. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/path.h"
#include "jobs/agent/agent.h"
#include "jobs/agent/files.h"
#include "jobs/agent/json.h"
#include "jobs/agent/sha256.h"
#include "jobs/agent/trees.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char root_path[64];

static void remove_root(void)
{
	remove_at(AT_FDCWD, root_path);
}

/* A second of silence, what is no sound, a folder, a link. */
static void fill_root(int dir)
{
	static const char wav[44 + 64] =
		"RIFF\x64\0\0\0WAVEfmt "
		"\x10\0\0\0\x01\0\x01\0\x20\0\0\0\x40\0\0\0\x02\0\x10\0data\x40\0\0\0";
	static const char *const names[] = {"q1.wav", "d/q2.wav", "q3.txt"};
	if (mkdirat(dir, "d", 0755) < 0 || symlinkat("q1.wav", dir, "link.wav") < 0)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int fd = openat(dir, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 ||
		    fd_write_all(fd, wav, strstr(names[i], ".wav") ? sizeof(wav) : 20) < 0)
			abort();
		close(fd);
	}
}

static int open_root(void)
{
	bool made = root_path[0];
	if (!made) {
		snprintf(root_path, sizeof(root_path), "%s/burst-fuzz.XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		if (!mkdtemp(root_path) || atexit(remove_root) != 0)
			abort();
	}
	int dir = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!made)
		fill_root(dir);
	return dir;
}

/* Any bytes, with a NUL behind them. */
static char *copy_of(const void *bytes, size_t len)
{
	char *copy = xcalloc(1, len + 1);

	if (len)
		memcpy(copy, bytes, len);
	return copy;
}

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

static void must(bool well)
{
	if (!well)
		abort();
}

static void same_json(const struct json *ours, json_t *theirs)
{
	static const enum json_type types[] = {
		[JSON_OBJECT] = J_OBJECT, [JSON_ARRAY] = J_LIST, [JSON_STRING] = J_TEXT,
		[JSON_INTEGER] = J_INT,   [JSON_REAL] = J_REAL,  [JSON_TRUE] = J_TRUE,
		[JSON_FALSE] = J_FALSE,   [JSON_NULL] = J_NULL};
	const char *key;
	json_t *value;
	size_t i;
	must(ours && ours->type == types[json_typeof(theirs)]);
	if (json_is_object(theirs)) {
		json_object_foreach (theirs, key, value)
			same_json(json_get(ours, key), value);
	} else if (json_is_array(theirs)) {
		const struct json *m = ours->first;
		json_array_foreach (theirs, i, value) {
			same_json(m, value);
			m = m->next;
		}
		must(!m);
	} else if (json_is_string(theirs)) {
		must(ours->len == json_string_length(theirs) &&
		     !memcmp(ours->text, json_string_value(theirs), ours->len));
	} else if (json_is_integer(theirs)) {
		must(ours->integer == json_integer_value(theirs));
	} else if (json_is_real(theirs)) {
		must(ours->number == json_real_value(theirs));
	}
}

/* What we take jansson takes, and it means the same; what we refuse it refuses, unless it is deeper
 * than we go, or has a NUL: behind a number jansson (2.14) loses that. */
static void as_jansson_does(const char *text, size_t len)
{
	struct json_doc doc;
	json_error_t error;
	size_t deep = 0;
	const struct json *ours = json_read(&doc, text, len);
	json_t *theirs = json_loadb(text, len, JSON_DECODE_ANY, &error);
	json_t *once = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	for (size_t i = 0; i < len; i++)
		deep += text[i] == '[' || text[i] == '{';
	must(!ours == !theirs || (!ours && (deep >= J_DEPTH || memchr(text, 0, len))));
	if (ours && once)
		same_json(ours, once);
	json_decref(theirs);
	json_decref(once);
	json_free(&doc);
}

/* In pieces as long as the bytes say. */
static void as_libcrypto_does(const char *bytes, size_t len)
{
	struct sha256 s;
	unsigned char want[32];
	char hex[65], want_hex[65];
	sha_start(&s);
	for (size_t at = 0, n; at < len; at += n) {
		n = MIN(len - at, (size_t)(unsigned char)bytes[at] + 1);
		sha_add(&s, bytes + at, n);
	}
	sha_hex(&s, hex);
	must(EVP_Digest(bytes, len, want, NULL, EVP_sha256(), NULL) == 1);
	for (int i = 0; i < 32; i++)
		sprintf(want_hex + 2 * i, "%02x", want[i]);
	must(!strcmp(hex, want_hex));
}

/* A hello: what is passed on of it is one object with numbers that can be seconds. */
static void fuzz_phases(const struct json *hello)
{
	struct str b = {0};
	const char *key;
	json_t *value;
	str_addc(&b, '{');
	int64_t unpacked = hello ? (int64_t)hello->type : 0;
	add_phases(&b, hello, unpacked * 1000, unpacked);
	str_addc(&b, '}');
	json_t *said = json_loadb(b.s, b.len, JSON_REJECT_DUPLICATES, NULL),
	       *phases = json_object_get(said, "phases");
	must(json_is_object(said) && json_object_size(said) == (phases ? 1 : 0) &&
	     json_object_size(phases) <= (unpacked ? 7 : 5));
	json_object_foreach (phases, key, value)
		must(json_is_number(value) && json_number_value(value) >= 0 &&
		     json_number_value(value) <= PHASE_MOST_S);
	json_decref(said);
	str_free(&b);
}

static void fuzz_json(const char *text, size_t len)
{
	struct json_doc doc;
	struct str b = {0};
	const struct json *value = json_read(&doc, text, len);
	json_int(value, "a", 0);
	fuzz_phases(value);
	json_text(value, "a", "");
	js_quote(&b, text, len);
	json_free(&doc);
	/* what we write, we can read, and it says the same when it was UTF-8 */
	value = json_read(&doc, b.s, b.len);
	if (memchr(text, 0, len) == NULL && (!value || value->type != J_TEXT))
		abort();
	json_free(&doc);
	str_free(&b);
	as_jansson_does(text, len);
	as_libcrypto_does(text, len);
}

/* What is taken for a listing is written as it was read. */
static void fuzz_listing(const char *bytes, size_t len)
{
	struct listing l;
	struct str text = {0}, again = {0};
	str_add(&text, LISTING_TITLE);
	str_addn(&text, bytes, len);
	char *copy = copy_of(text.s, text.len);
	if (listing_parse(&l, copy, text.len) == 0) {
		listing_text(&l, &again);
		must(again.len == text.len && !memcmp(again.s, text.s, text.len));
		listing_free(&l);
	}
	free(copy);
	str_free(&text);
	str_free(&again);
}

static void fuzz_texts(const char *bytes, size_t len)
{
	fuzz_listing(bytes, len);
	char *text = copy_of(bytes, len), *name = strchr(text, '\n');
	struct env env = {0};
	env_parse(&env, text);
	env_free(&env);
	if (name) {
		*name++ = 0;
		link_inside(text, name);
	}
	free(text);
}

static void fuzz_wav(const void *bytes, size_t len)
{
	double seconds = 0;
	int rate = 0, fd = memory_file(bytes, len);
	wav_measure(fd, (int64_t)len, &seconds, &rate);
	close(fd);
}

/* Sums are put right, or no input would get further than its first header. */
static void right_sums(unsigned char *p, size_t len)
{
	for (size_t at = 0; at + 512 <= len;) {
		int64_t sum = 0, size = tar_number(p + at + 124, 12);
		memset(p + at + 148, ' ', 8);
		for (int i = 0; i < 512; i++)
			sum += p[at + (size_t)i];
		char text[8];
		snprintf(text, sizeof(text), "%06o", (unsigned)sum & 0777777);
		memcpy(p + at + 148, text, 7);
		at += 512;
		if (size > 0 && (size_t)size < len - at)
			at += ((size_t)size + 511) / 512 * 512;
	}
}

static void fuzz_tar(const void *bytes, size_t len)
{
	char *copy = copy_of(bytes, len);
	right_sums((unsigned char *)copy, len);
	int fd = memory_file(copy, len), dir = open_root();
	struct tar t;
	if (mkdirat(dir, "t", 0755) < 0 && errno != EEXIST)
		abort();
	int root = openat(dir, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree_fill(&t, fd, NULL, root, NULL) < 0 && !t.error[0])
		abort();
	close(root);
	remove_at(dir, "t");
	struct stat st;
	if (fstatat(dir, "../burst-fuzz-escaped", &st, AT_SYMLINK_NOFOLLOW) == 0)
		abort();
	close(dir);
	close(fd);
	free(copy);
}

/* What a client may ask for without a process being started or ended. */
static void client_line(struct agent *a, const char *line, size_t len)
{
	static const char *const harmless[] = {"batch", "revoke", "handover", "takeover", "renew"};
	struct json_doc doc;
	const char *op = json_text(json_read(&doc, line, len), "op", "");
	bool fine = false;
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		fine = fine || !strcmp(op, harmless[i]);
	json_free(&doc);
	if (fine)
		obey_request(a, line, len);
}

/* Whatever a worker said: each event is a line of JSON, and they are numbered without a gap. */
static void check_events(const struct agent *a)
{
	char *text = xcalloc(1, (size_t)a->events_size + 1);
	json_int_t n = 0;
	must(pread(a->events, text, (size_t)a->events_size, 0) == a->events_size);
	for (char *line = text, *nl;
	     (nl = memchr(line, '\n', (size_t)(text + a->events_size - line))); line = nl + 1) {
		json_t *event = json_loadb(line, (size_t)(nl - line), JSON_REJECT_DUPLICATES, NULL);
		must(json_is_object(event) &&
		     json_integer_value(json_object_get(event, "n")) == ++n);
		must(json_is_string(json_object_get(event, "ev")));
		json_decref(event);
	}
	free(text);
}

/* Lines of a worker; behind a '!' those of a client. */
static void fuzz_worker(const char *bytes, size_t len)
{
	static const char batch[] = "{\"op\":\"batch\",\"id\":\"b\",\"segments\":[{\"id\":\"q1\"},{"
				    "\"id\":\"q2\"},{\"id\":\"q3\"}]}";
	struct worker *w = xcalloc(1, sizeof(*w));
	struct agent a = {.run = xstrdup("r"),
			  .attempt = "a",
			  .events = memory_file("", 0),
			  .dir_fd = open_root(),
			  .listener = -1,
			  .volume_fd = -1,
			  .disk_fd = -1,
			  .out_fd = open_root(),
			  .task.out = -1,
			  .sync_next_turn = -1,
			  .signals = -1,
			  .client.fd = -1,
			  .workers = w,
			  .worker_count = 1,
			  .place = {.home = root_path, .volume = root_path}};
	*w = (struct worker){
		.state = WORKER_LOADING, .in = -1, .out = -1, .err = -1, .max_batch = 8};
	events_index(&a, 0);
	client_line(&a, batch, strlen(batch));
	for (const char *p = bytes, *end = bytes + len; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		if (n && *p == '!')
			client_line(&a, p + 1, n - 1);
		else
			worker_line(&a, w, p, n);
		w->killed_for = NULL;
		dispatch(&a);
		must(count_held_segments(w) <= (size_t)w->max_batch && w->room <= w->max_batch);
		must(!w->continuous || (w->state == WORKER_BUSY) == (w->parts != NULL));
		w->to.len = 0;
		jobs_step(&a);
		p += n + 1;
	}
	for (int i = 0; a.jobs && i < 10000; i++)
		jobs_step(&a);
	must(!a.jobs);
	check_events(&a);
	a.stop_due = false;
	stop_workers_only(&a);
	while (a.queue) {
		struct batch *next = a.queue->next;
		batch_free(a.queue);
		a.queue = next;
	}
	while (a.jobs)
		job_done(&a);
	a.place.home = a.place.volume = NULL;
	agent_free(&a);
}

static void fuzz_gpus(const char *bytes, size_t len)
{
	struct agent a = {.events = -1,
			  .listener = -1,
			  .signals = -1,
			  .dir_fd = -1,
			  .volume_fd = -1,
			  .disk_fd = -1,
			  .out_fd = -1,
			  .client.fd = -1,
			  .task.out = -1};
	struct str hello = {0};
	char *text = copy_of(bytes, len), *line = text;
	for (char *nl; (nl = strchr(line, '\n')); line = nl + 1) {
		*nl = 0;
		gpu_line(&a, line);
		usage_line(&a, line);
		must(a.usage_percent >= 0 && a.usage_mb >= 0);
	}
	str_addc(&hello, '{');
	add_gpus(&a, &hello);
	str_addc(&hello, '}');
	json_t *value = json_loadb(hello.s, hello.len, 0, NULL);
	must(value != NULL);
	json_decref(value);
	str_free(&hello);
	str_free(&a.text);
	free(text);
}

/* The frames of this number, in whichever lane it comes first; 0: it does not come. */
static size_t frame_of(uint64_t number, const unsigned char *p, size_t len,
		       const unsigned char **bytes)
{
	while (len >= FRAME_HEAD) {
		uint64_t turn = 0;
		size_t size = (size_t)(p[8] & 0x7f) << 24 | (size_t)p[9] << 16 |
			      (size_t)p[10] << 8 | p[11];
		for (int i = 0; i < 8; i++)
			turn = turn << 8 | p[i];
		if (turn == number && size <= len - FRAME_HEAD) {
			*bytes = p + FRAME_HEAD;
			return size;
		}
		if (size > len - FRAME_HEAD)
			break;
		p += FRAME_HEAD + size;
		len -= FRAME_HEAD + size;
	}
	*bytes = NULL;
	return 0;
}

/* Two lanes, split where the first two bytes say. A stream that ends well is its frames in the
 * order of their numbers. */
static void fuzz_lanes(const char *bytes, size_t len)
{
	if (len < 2)
		return;
	size_t first = MIN((size_t)(unsigned char)bytes[0] << 8 | (unsigned char)bytes[1], len - 2);
	const char *parts[] = {bytes + 2, bytes + 2 + first};
	size_t sizes[] = {first, len - 2 - first}, at = 0;
	struct lanes l = {.count = 2, .listener = -1, .out = memory_file("", 0)};
	for (int i = 0; i < 2; i++)
		l.list[i].fd = memory_file(parts[i], sizes[i]);
	char *piece = NULL;
	ssize_t n;
	while ((n = lanes_next(&l, &piece)) > 0) /* packed or not: zstd is not what is tried here */
		must(fd_write_all(l.out, piece, (size_t)n) == 0);
	int failed = n < 0;
	off_t end = lseek(l.out, 0, SEEK_END);
	char *got = xcalloc(1, (size_t)end + 1);
	must(pread(l.out, got, (size_t)end, 0) == end);
	for (uint64_t turn = 0; !failed && turn < l.turn; turn++) {
		const unsigned char *frame[2];
		size_t size[2];
		bool fits = false;
		for (int i = 0; i < 2; i++) {
			size[i] = frame_of(turn, (const unsigned char *)parts[i], sizes[i],
					   &frame[i]);
			if (!fits && frame[i] && size[i] && size[i] <= (size_t)end - at &&
			    !memcmp(got + at, frame[i], size[i])) {
				at += size[i];
				fits = true;
			}
		}
		must(fits);
	}
	must(failed || at == (size_t)end);
	free(got);
	close(l.out);
	lanes_close(&l);
}

/* Requests for files; only those of the volume, which is empty here. */
static void fuzz_send(const char *bytes, size_t len)
{
	static int quiet;
	struct place place = {.volume = root_path};
	struct str in = {0};
	if (!quiet)
		must(freopen("/dev/null", "w", stdout) != NULL);
	quiet = 1;
	close(open_root());
	str_addn(&in, bytes, len);
	if (!strstr(str_text(&in), "\"/") && !strchr(str_text(&in), '\\') &&
	    !strstr(str_text(&in), ".."))
		send_lines(&place, &in);
	str_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *rest = (const char *)data + 1;
	if (!len)
		return 0;
	switch (data[0] % 8) {
	case 0: fuzz_json(rest, len - 1); break;
	case 1: fuzz_texts(rest, len - 1); break;
	case 2: fuzz_wav(rest, len - 1); break;
	case 3: fuzz_tar(rest, len - 1); break;
	case 4: fuzz_worker(rest, len - 1); break;
	case 5: fuzz_gpus(rest, len - 1); break;
	case 6: fuzz_lanes(rest, len - 1); break;
	default: fuzz_send(rest, len - 1);
	}
	return 0;
}
