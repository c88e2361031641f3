/* track.c - a track while it is joined: the sound that is written to it, and its finished files */
#include "track.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

int track_write(struct track *t, const void *bytes, size_t len, struct err *err)
{
	if (fwrite(bytes, 1, len, t->f) != len)
		return err_set(err, ERR_LOCAL, "%s.wav: %s", t->name, strerror(errno));
	return 0;
}

int track_copy_samples(struct track *t, FILE *from, const struct wav_info *info, struct err *err)
{
	char block[65536];

	if (fseeko(from, info->data_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	for (int64_t left = info->frames * wav_frame_bytes(&info->format); left > 0;) {
		size_t n = fread(block, 1, (size_t)MIN(left, (int64_t)sizeof(block)), from);
		if (!n)
			return err_set(err, ERR_LOCAL, "%s",
				       ferror(from) ? strerror(errno) : "the file shrank");
		if (track_write(t, block, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	t->frames += info->frames;
	return 0;
}

int track_open_wav(int dir, const char *name, FILE **out, struct wav_info *info, struct err *err)
{
	int fd = path_open_below(dir, name, O_RDONLY);
	CLEANUP(file_close) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	if (wav_read_header(f, info, err) < 0)
		return -1;
	*out = TAKE(f);
	return 0;
}

int track_write_header(struct track *t, struct err *err)
{
	unsigned char header[WAV_RF64_HEADER_BYTES];
	size_t len = wav_make_header(header, &t->format, t->frames * wav_frame_bytes(&t->format),
				     t->long_header);

	return track_write(t, header, len, err);
}

char *track_file_name(const struct track *t, const char *stem, const char *ending)
{
	return xasprintf("%s.%s%s", stem, t->part_of_name, ending);
}

int track_put(const struct track *t, const char *from, const char *to, struct err *err)
{
	if (renameat(t->work, from, t->work, to) < 0)
		return err_set(err, ERR_LOCAL, "%s/%s: %s", t->dir, to, strerror(errno));
	return made_add(t->made, t->job, t->work, to, err);
}

int track_put_text(const struct track *t, const char *stem, const char *ending,
		   const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *name = track_file_name(t, stem, ending);

	return path_write_at(t->work, name, name, str_text(text), text->len, 0666, err) < 0
		       ? -1
		       : made_add(t->made, t->job, t->work, name, err);
}
