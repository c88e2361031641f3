/* zip_make.h - makes zip files in memory, without compression (APPNOTE.TXT 6.3), for tests and
 * fuzzers. */
#ifndef BURST_TESTS_ZIP_MAKE_H
#define BURST_TESTS_ZIP_MAKE_H

#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct zip_part {
	const char *name;
	const void *bytes;
	size_t len;
};

static inline uint32_t zip_crc(const unsigned char *bytes, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static inline void zip_add_number(struct str *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		str_addc(to, (char)(value >> (8 * i)));
}

/* What a local header and an entry of the directory have in common. flags 1: encrypted. */
static inline void zip_add_header(struct str *to, const struct zip_part *p, uint32_t flags)
{
	zip_add_number(to, 20, 2);
	zip_add_number(to, 0x800 | flags, 2); /* names are UTF-8 */
	zip_add_number(to, 0, 2);
	zip_add_number(to, 0x00210000, 4); /* 1 January 1980 */
	zip_add_number(to, zip_crc(p->bytes, p->len), 4);
	zip_add_number(to, (uint32_t)p->len, 4);
	zip_add_number(to, (uint32_t)p->len, 4);
	zip_add_number(to, (uint32_t)strlen(p->name), 2);
	zip_add_number(to, 0, 2);
}

static inline void zip_make(struct str *to, const struct zip_part *parts, size_t count,
			    uint32_t flags)
{
	CLEANUP(str_free) struct str directory = STR_INIT;
	size_t begin = to->len;

	for (size_t i = 0; i < count; i++) {
		uint32_t at = (uint32_t)(to->len - begin);
		str_addn(to, "PK\3\4", 4);
		zip_add_header(to, &parts[i], flags);
		str_add(to, parts[i].name);
		str_addn(to, parts[i].bytes, parts[i].len);
		str_addn(&directory, "PK\1\2", 4);
		zip_add_number(&directory, 0x031e, 2);
		zip_add_header(&directory, &parts[i], flags);
		zip_add_number(&directory, 0, 6); /* comment, disk, attributes */
		zip_add_number(&directory, 0100644u << 16, 4);
		zip_add_number(&directory, at, 4);
		str_add(&directory, parts[i].name);
	}
	uint32_t at = (uint32_t)(to->len - begin);
	str_addn(to, str_text(&directory), directory.len);
	str_addn(to, "PK\5\6", 4);
	zip_add_number(to, 0, 4);
	zip_add_number(to, (uint32_t)count, 2);
	zip_add_number(to, (uint32_t)count, 2);
	zip_add_number(to, (uint32_t)directory.len, 4);
	zip_add_number(to, at, 4);
	zip_add_number(to, 0, 2);
}

#endif
