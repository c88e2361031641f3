/* sha256.c - SHA-256 (FIPS 180-4), by the processor's own instructions if it has them. */
#include "sha256.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/mem.h"

static const uint32_t sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* One round. The working variables keep their places and the names rotate, which saves the moves.
 */
static inline void sha256_round(uint32_t v[8], int at, uint32_t kw)
{
#define V(n) v[((n)-at) & 7]
	uint32_t a = V(7) +
		     (rotate_right(V(4), 6) ^ rotate_right(V(4), 11) ^ rotate_right(V(4), 25)) +
		     (V(6) ^ (V(4) & (V(5) ^ V(6)))) + kw;
	uint32_t b = (rotate_right(V(0), 2) ^ rotate_right(V(0), 13) ^ rotate_right(V(0), 22)) +
		     ((V(0) & V(1)) | (V(2) & (V(0) | V(1))));
	V(3) += a;
	V(7) = a + b;
#undef V
}

void sha256_block(struct sha256 *s, const unsigned char *p)
{
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->h, sizeof(v));
	for (int i = 0; i < 64;
	     i += 8) { /* unrolled with constant indices, so that the words stay in registers */
		sha256_round(v, 0, sha256_k[i] + w[i]);
		sha256_round(v, 1, sha256_k[i + 1] + w[i + 1]);
		sha256_round(v, 2, sha256_k[i + 2] + w[i + 2]);
		sha256_round(v, 3, sha256_k[i + 3] + w[i + 3]);
		sha256_round(v, 4, sha256_k[i + 4] + w[i + 4]);
		sha256_round(v, 5, sha256_k[i + 5] + w[i + 5]);
		sha256_round(v, 6, sha256_k[i + 6] + w[i + 6]);
		sha256_round(v, 7, sha256_k[i + 7] + w[i + 7]);
	}
	for (int i = 0; i < 8; i++)
		s->h[i] += v[i];
}

/* The processor's instructions are four to five times as fast, but some processors lack them. */
#ifdef __x86_64__
static bool sha256_by_processor(void)
{
	static int known = -1;
	unsigned a, b, c, d;
	if (known < 0)
		known = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1) &&
			__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
	return known > 0;
}

__attribute__((target("sha,ssse3,sse4.1"))) static void
sha256_blocks_by_processor(uint32_t h[8], const unsigned char *p, size_t count)
{
	const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
	for (; count; count--, p += 64) {
		__m128i abef_was = abef, cdgh_was = cdgh, w[4];
		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)),
						order);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) { /* four rounds each; w[i & 3] becomes the words that
						  are used four turns later */
			__m128i *now = &w[i & 3], last = w[(i + 3) & 3];
			__m128i kw = _mm_add_epi32(
				*now, _mm_loadu_si128((const __m128i *)(sha256_k + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, kw);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(kw, 0x0e));
			__m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]),
						    _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
			*now = _mm_sha256msg2_epu32(sum, last);
		}
		abef = _mm_add_epi32(abef, abef_was);
		cdgh = _mm_add_epi32(cdgh, cdgh_was);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(high, low, 8));
}
#endif

void sha256_blocks(struct sha256 *s, const unsigned char *p, size_t count)
{
#ifdef __x86_64__
	if (sha256_by_processor()) {
		sha256_blocks_by_processor(s->h, p, count);
		return;
	}
#endif
	for (; count; count--, p += 64)
		sha256_block(s, p);
}

void sha_start(struct sha256 *s)
{
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	memcpy(s->h, first, sizeof(first));
	s->bytes = 0;
}

void sha_add(struct sha256 *s, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t have = s->bytes & 63;
	s->bytes += len;
	if (have) {
		size_t n = MIN(64 - have, len);
		memcpy(s->block + have, p, n);
		p += n;
		len -= n;
		if (have + n < 64)
			return;
		sha256_blocks(s, s->block, 1);
	}
	sha256_blocks(s, p, len / 64);
	memcpy(s->block, p + len / 64 * 64, len % 64);
}

void sha_hex(struct sha256 *s, char hex[65])
{
	unsigned char tail[72] = {0x80};
	uint64_t bits = s->bytes * 8;
	size_t pad = 1 + (119 - s->bytes % 64) % 64;
	for (int i = 0; i < 8; i++)
		tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
	sha_add(s, tail, pad + 8);
	for (int i = 0; i < 8; i++)
		sprintf(hex + 8 * i, "%08x", s->h[i]);
}
