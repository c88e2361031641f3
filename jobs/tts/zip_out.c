/* zip_out.c - writes a zip file whose members are stored as they are, as an EPUB needs them: its
 * first member must have no extra field, and libarchive gives each one two. */
#include "zip_out.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/path.h"

/* https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7 to 4.3.16 */
#define LOCAL_MAGIC     0x04034b50U
#define DIRECTORY_MAGIC 0x02014b50U
#define END_MAGIC       0x06054b50U

enum {
	LOCAL_BYTES = 30,
	VERSION = 10,     /* stored members */
	DATE_1980 = 0x21, /* the same members give the same bytes */
};

static void add16(struct str *to, unsigned value)
{
	str_addc(to, (char)(value & 0xff));
	str_addc(to, (char)(value >> 8 & 0xff));
}

static void add32(struct str *to, uint32_t value)
{
	add16(to, value & 0xffff);
	add16(to, value >> 16);
}

/* The fields that the header of a member and its line in the directory share. */
static void add_fields(struct str *to, const char *name, uint32_t crc, uint32_t bytes)
{
	add16(to, VERSION);
	add16(to, 0); /* flags */
	add16(to, 0); /* stored */
	add16(to, 0); /* time */
	add16(to, DATE_1980);
	add32(to, crc);
	add32(to, bytes);
	add32(to, bytes);
	add16(to, (unsigned)strlen(name));
	add16(to, 0); /* extra field */
}

static int fail(const struct zip_out *z, struct err *err)
{
	return err_set(err, ERR_LOCAL, "%s: %s", z->name, strerror(errno));
}

int zip_out_begin(struct zip_out *z, int dir, const char *name, struct err *err)
{
	*z = (struct zip_out){.name = name};
	z->fd = path_open_new_at(dir, name, O_RDWR, 0666);
	return z->fd < 0 ? fail(z, err) : 0;
}

/* Writes a member's header at its place, and its line of the directory. The bytes are there. */
static int end_member(struct zip_out *z, const char *name, uint32_t crc, int64_t bytes,
		      struct err *err)
{
	CLEANUP(str_free) struct str header = STR_INIT;
	const int64_t begin = z->at;

	z->at += LOCAL_BYTES + (int64_t)strlen(name) + bytes;
	if (z->at > UINT32_MAX || z->count == UINT16_MAX)
		return err_set(err, ERR_JOB, "it would be larger than 4 GiB");
	add32(&header, LOCAL_MAGIC);
	add_fields(&header, name, crc, (uint32_t)bytes);
	str_add(&header, name);
	if (pwrite(z->fd, header.s, header.len, begin) != (ssize_t)header.len)
		return fail(z, err);
	add32(&z->directory, DIRECTORY_MAGIC);
	add16(&z->directory, VERSION);
	add_fields(&z->directory, name, crc, (uint32_t)bytes);
	add16(&z->directory, 0); /* comment */
	add16(&z->directory, 0); /* disk */
	add16(&z->directory, 0); /* attributes */
	add32(&z->directory, 0);
	add32(&z->directory, (uint32_t)begin);
	str_add(&z->directory, name);
	z->count++;
	return 0;
}

static int seek_member(struct zip_out *z, const char *name, struct err *err)
{
	off_t at = z->at + LOCAL_BYTES + (off_t)strlen(name);

	return lseek(z->fd, at, SEEK_SET) < 0 ? fail(z, err) : 0;
}

int zip_out_add(struct zip_out *z, const char *name, const void *bytes, size_t len, struct err *err)
{
	if (seek_member(z, name, err) < 0)
		return -1;
	if (fd_write_all(z->fd, bytes, len) < 0)
		return fail(z, err);
	uint32_t crc = (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, len);
	return end_member(z, name, crc, (int64_t)len, err);
}

int zip_out_add_file(struct zip_out *z, const char *name, int dir, const char *file,
		     struct err *err)
{
	CLEANUP(fd_close) int from = path_open_below(dir, file, O_RDONLY);
	unsigned char block[65536];
	uLong crc = crc32_z(0, NULL, 0);
	int64_t bytes = 0;
	ssize_t n;

	if (from < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", file, strerror(errno));
	if (seek_member(z, name, err) < 0)
		return -1;
	while ((n = read(from, block, sizeof(block))) > 0) {
		if (fd_write_all(z->fd, block, (size_t)n) < 0)
			return fail(z, err);
		crc = crc32_z(crc, block, (size_t)n);
		bytes += n;
	}
	if (n < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", file, strerror(errno));
	return end_member(z, name, (uint32_t)crc, bytes, err);
}

int zip_out_end(struct zip_out *z, struct err *err)
{
	CLEANUP(str_free) struct str end = STR_INIT;

	add32(&end, END_MAGIC);
	add32(&end, 0); /* disks */
	add16(&end, (unsigned)z->count);
	add16(&end, (unsigned)z->count);
	add32(&end, (uint32_t)z->directory.len);
	add32(&end, (uint32_t)z->at);
	add16(&end, 0); /* comment */
	if (lseek(z->fd, (off_t)z->at, SEEK_SET) < 0 ||
	    fd_write_all(z->fd, z->directory.s, z->directory.len) < 0 ||
	    fd_write_all(z->fd, end.s, end.len) < 0 || fsync(z->fd) < 0)
		return fail(z, err);
	return 0;
}

void zip_out_free(struct zip_out *z)
{
	fd_close(z->fd);
	str_free(&z->directory);
}
