/* replay.c - runs a fuzzer's reader once on each file that is named, or that lies in a folder that
 * is named. Linked with the fuzzer's own source in place of libFuzzer, it needs neither clang nor
 * instrumentation: `make check` replays what earlier searches found, `make fuzz` searches. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static const char *current = "";

/* A sanitizer ends the program without a word about the input; this names it. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	fprintf(stderr, "replay: failed on %s\n", current);
}

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "re");
	struct stat st;

	if (!f || fstat(fileno(f), &st) < 0) {
		perror(path);
		return -1;
	}
	/* exactly as large as the input, so that a read past its end is caught */
	size_t len = (size_t)st.st_size;
	uint8_t *data = malloc(len ? len : 1);
	size_t got = data ? fread(data, 1, len, f) : 0;

	fclose(f);
	if (got != len) {
		fprintf(stderr, "replay: %s: cannot read it whole\n", path);
		free(data);
		return -1;
	}
	current = path;
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	return 1;
}

static int replay(const char *path);

static int replay_folder(const char *path, DIR *dir)
{
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		char inside[4096];
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(inside))
			return -1;
		int n = replay(inside);
		if (n < 0)
			return -1;
		count += n;
	}
	return count;
}

/* Returns how many inputs ran, or -1. */
static int replay(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		return replay_file(path);
	int count = replay_folder(path, dir);
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);
		if (n < 0)
			return 1;
		count += n;
	}
	if (!count) {
		fprintf(stderr, "replay: no inputs\n");
		return 1;
	}
	fprintf(stderr, "replay: %d inputs\n", count); /* some readers close stdout */
	return 0;
}
