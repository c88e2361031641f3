/* fuzz_agent.c - foreign bytes into the agent: JSON, environments, patterns, WAV headers, tar streams, and lines of a worker
 * that holds a batch. The first byte chooses. */
#define main agent_main
int agent_main(int argc, char **argv);
#include "jobs/agent/agent.c"
#undef main

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char root_path[] = "/tmp/burst-fuzz.XXXXXX";

static void remove_root(void)
{
	remove_at(AT_FDCWD, root_path);
}

static int open_root(void)
{
	static bool made;
	if (!made && (!mkdtemp(root_path) || atexit(remove_root) != 0))
		abort();
	made = true;
	return open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

static void fuzz_json(const char *text, size_t len)
{
	struct json_doc doc;
	struct buf b = { 0 };
	const struct json *value = json_read(&doc, text, len);
	json_int(value, "a", 0);
	json_text(value, "a", "");
	js_quote(&b, text, len);
	json_free(&doc);
	/* what we write, we can read, and it says the same when it was UTF-8 */
	value = json_read(&doc, b.p, b.len);
	if (memchr(text, 0, len) == NULL && (!value || value->type != J_TEXT))
		abort();
	json_free(&doc);
	buf_free(&b);
}

static void fuzz_texts(const char *bytes, size_t len)
{
	char *text = xcopy(bytes, len), *name = strchr(text, '\n');
	struct env env = { 0 };
	env_parse(&env, text);
	env_free(&env);
	if (name) {
		*name++ = 0;
		pattern_match(text, name);
		link_inside(text, name);
		path_safe(name);
	}
	free(text);
}

static void fuzz_wav(const void *bytes, size_t len)
{
	double seconds = 0;
	int rate = 0, fd = memory_file(bytes, len);
	wav_look(fd, (int64_t)len, &seconds, &rate);
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
	char *copy = xcopy(bytes, len);
	right_sums((unsigned char *)copy, len);
	int fd = memory_file(copy, len), dir = open_root();
	struct tar t;
	if (mkdirat(dir, "t", 0755) < 0 && errno != EEXIST)
		abort();
	int root = openat(dir, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree_fill(&t, fd, root) < 0 && !t.error[0])
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

static void fuzz_worker(const char *bytes, size_t len)
{
	static const char batch[] = "{\"id\":\"b\",\"segments\":[{\"id\":\"q1\"},{\"id\":\"q2\"},{\"id\":\"q3\"}]}";
	struct worker *w = xalloc(sizeof(*w));
	struct agent a = { .run = "r", .attempt = "a", .events = -1, .dir_fd = open_root(), .listener = -1, .signals = -1,
			   .workers = w, .worker_count = 1, .fatal = true };
	for (int i = 0; i < CLIENTS_MAX; i++)
		a.clients[i].fd = -1;
	*w = (struct worker){ .state = WORKER_LOADING, .in = -1, .out = -1, .err = -1, .max_batch = 8 };
	struct json_doc doc;
	events_index(&a, 0);
	a.fatal = false;
	op_batch(&a, json_read(&doc, batch, strlen(batch)));
	json_free(&doc);
	for (const char *p = bytes, *end = bytes + len; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		worker_line(&a, w, p, n);
		w->killed_for = NULL;
		dispatch(&a);
		w->to.len = 0;
		jobs_step(&a);
		p += n + 1;
	}
	a.stop_due = false;
	stop_workers_only(&a);
	while (a.queue) {
		struct batch *next = a.queue->next;
		batch_free(a.queue);
		a.queue = next;
	}
	while (a.jobs)
		job_done(&a);
	agent_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *rest = (const char *)data + 1;
	if (!len)
		return 0;
	switch (data[0] % 5) {
	case 0:
		fuzz_json(rest, len - 1);
		break;
	case 1:
		fuzz_texts(rest, len - 1);
		break;
	case 2:
		fuzz_wav(rest, len - 1);
		break;
	case 3:
		fuzz_tar(rest, len - 1);
		break;
	default:
		fuzz_worker(rest, len - 1);
	}
	return 0;
}
