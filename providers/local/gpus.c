/* gpus.c - the GPUs of this machine: what nvidia-smi lists, and which pod has which */
#include "vendor.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/program.h"

enum { SMI_LIMIT_MS = 20000, SMI_MOST_BYTES = 1 << 20, LOCK_WAIT_MS = 1000, LOCK_LOOK_US = 20000 };

/* ---- nvidia-smi: https://docs.nvidia.com/deploy/nvidia-smi/ ---- */

/* Runs nvidia-smi with this query and appends its lines. ERR_NOT_FOUND: this machine has none. */
static int query(const char *what, struct str *out, struct err *err)
{
	const char *const argv[] = {"nvidia-smi", what, "--format=csv,noheader,nounits", NULL};
	struct program p = {.argv = argv, .limit_ms = SMI_LIMIT_MS};

	out->max = SMI_MOST_BYTES;
	return program_must(&p, out, NULL, err);
}

/* Cuts the field at *at off, without the blanks around it. NULL: the line has no more. */
static char *next_field(char **at)
{
	char *field = *at ? *at + strspn(*at, " ") : NULL, *end;

	if (!field)
		return NULL;
	end = strchr(field, ',');
	*at = end ? end + 1 : NULL;
	if (!end)
		end = field + strlen(field);
	while (end > field && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return field;
}

/* The UUID becomes a part of a file's name. */
static bool is_uuid(const char *text)
{
	return text && text[0] && strlen(text) < sizeof(((struct card *)0)->uuid) &&
	       text[strspn(text,
			   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")] ==
		       '\0';
}

/* "GPU-5f2c..., NVIDIA GeForce RTX 4090, 24564". False: no card that can be used. */
static bool read_card(char *line, struct card *card)
{
	char *at = line, *uuid = next_field(&at), *model = next_field(&at),
	     *memory = next_field(&at);

	if (!is_uuid(uuid) || !model || !model[0] || strlen(model) >= sizeof(card->model))
		return false;
	*card = (struct card){.memory_mib = memory ? strtoll(memory, NULL, 10) : 0};
	COPY_TEXT(card->uuid, uuid);
	COPY_TEXT(card->model, model);
	return true;
}

static char *lock_path(const struct card *card)
{
	return xasprintf("/tmp/burst-gpu-%s", card->uuid);
}

/* Opens the card's lock file, which every user of this machine may lock. It is made only if it is
 * missing: the kernel refuses O_CREAT for another user's file in a sticky folder
 * (fs.protected_regular). -1 and errno. */
static int open_lock_file(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		(void)!fchmod(fd, 0666); /* whatever the umask is */
	return fd;
}

/* Whether the path still leads to this very file: its last owner removes it while it is locked. */
static bool is_at(int fd, const char *path)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
	       here.st_dev == there.st_dev;
}

/* Locks the card for as long as the descriptor and its copies are open. Another client that only
 * looks holds the lock for a moment. -1: it is taken, or its file cannot be opened. */
static int lock_card(const struct card *card, int64_t wait_ms)
{
	CLEANUP(free_text) char *path = lock_path(card);
	int64_t until = clock_boot_ms() + wait_ms;

	for (;;) {
		int fd = open_lock_file(path);
		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path))
			return fd;
		bool taken = is_at(fd, path);
		close(fd);
		if (taken && clock_boot_ms() >= until)
			return -1;
		if (taken)
			usleep(LOCK_LOOK_US);
	}
}

/* Removes the lock's file before the lock itself, so that no file is left when no pod has a GPU. */
static void unlock_card(const struct card *card, int fd)
{
	CLEANUP(free_text) char *path = lock_path(card);

	if (fd < 0)
		return;
	(void)unlink(path);
	close(fd);
}

static bool is_locked(const struct card *card)
{
	CLEANUP(free_text) char *path = lock_path(card);

	if (!path_exists(path))
		return false;
	int fd = lock_card(card, 0);
	unlock_card(card, fd);
	return fd < 0;
}

/* Marks the cards that a process computes on: "GPU-5f2c..., 4711". */
static int mark_used(struct card *cards, size_t count, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	char *line, *rest;

	if (query("--query-compute-apps=gpu_uuid,pid", &text, err) < 0)
		return -1;
	rest = text.len ? text.s : NULL;
	while ((line = rest ? strsep(&rest, "\n") : NULL)) {
		char *uuid = next_field(&line);
		for (size_t i = 0; i < count; i++)
			if (!strcmp(cards[i].uuid, uuid) && cards[i].state == CARD_FREE)
				cards[i].state = CARD_USED;
	}
	return 0;
}

int gpus_list(struct card **out, size_t *count, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(gpus_free) struct card *cards = NULL;
	size_t n = 0, cap = 0;
	char *line, *rest;

	*out = NULL;
	*count = 0;
	if (query("--query-gpu=uuid,name,memory.total", &text, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : err_wrap(err, "nvidia-smi");
	rest = text.len ? text.s : NULL;
	while ((line = rest ? strsep(&rest, "\n") : NULL)) {
		GROW(cards, n + 1, cap);
		if (read_card(line, &cards[n]))
			n++;
	}
	for (size_t i = 0; i < n; i++)
		cards[i].state = is_locked(&cards[i]) ? CARD_LOCKED : CARD_FREE;
	if (n && mark_used(cards, n, err) < 0)
		return err_wrap(err, "nvidia-smi");
	*out = TAKE(cards);
	*count = n;
	return 0;
}

void gpus_free(struct card *cards)
{
	free(cards);
}

/* ---- the cards of one pod ---- */

/* A kind of card that is all taken is no capacity, one that was never here is refused. */
static int fail_no_cards(const struct card *cards, size_t count, const char *model, int wanted,
			 struct err *err)
{
	int here = 0;

	for (size_t i = 0; i < count; i++)
		here += !strcmp(cards[i].model, model);
	if (here < wanted)
		return err_set(err, ERR_REFUSED,
			       "%d of \"%.60s\" were requested, this machine has %d", wanted, model,
			       here);
	return err_set(err, ERR_NO_CAPACITY, "all %d of \"%.60s\" are taken", here, model);
}

int gpus_claim(const char *model, int count, struct gpu_claim *claim, struct err *err)
{
	CLEANUP(gpus_free) struct card *cards = NULL;
	size_t n;

	*claim = (struct gpu_claim){0};
	if (count < 1 || count > GPUS_MOST)
		return err_set(err, ERR_REFUSED, "%d GPUs in a pod", count);
	if (gpus_list(&cards, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n && claim->count < count; i++) {
		if (strcmp(cards[i].model, model) || cards[i].state != CARD_FREE)
			continue;
		int fd = lock_card(&cards[i], LOCK_WAIT_MS);
		if (fd < 0)
			continue;
		claim->cards[claim->count] = cards[i];
		claim->locks[claim->count++] = fd;
	}
	if (claim->count == count)
		return 0;
	gpus_unclaim(claim);
	return fail_no_cards(cards, n, model, count, err);
}

void gpus_unclaim(struct gpu_claim *claim)
{
	for (int i = 0; i < claim->count; i++)
		unlock_card(&claim->cards[i], claim->locks[i]);
	claim->count = 0;
}

char *gpus_visible(const struct gpu_claim *claim)
{
	struct str list = STR_INIT;

	for (int i = 0; i < claim->count; i++)
		str_addf(&list, "%s%s", i ? "," : "", claim->cards[i].uuid);
	return str_detach(&list);
}
