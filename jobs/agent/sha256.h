/* sha256.h - SHA-256 (FIPS 180-4), by the processor's own instructions if it has them. */
#ifndef BURST_JOBS_AGENT_SHA256_H
#define BURST_JOBS_AGENT_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

void sha256_block(struct sha256 *s, const unsigned char *p);
void sha256_blocks(struct sha256 *s, const unsigned char *p, size_t count);
void sha_start(struct sha256 *s);
void sha_add(struct sha256 *s, const void *bytes, size_t len);
void sha_hex(struct sha256 *s, char hex[65]);

#endif
