/* SPDX-License-Identifier: MIT */
/*
 * Hand-written code of common libraries, which keeps its frames in unusual ways: the CFA
 * in rax, r11 or in memory, and whatever CFI its authors wrote. The library is selected
 * by -DOPENSSL, -DGCRYPT, -DGMP or -DZSTD, and loaded at run time, so that no headers are
 * needed. Exit status 77: there is no such library.
 */
#include "unwind-burn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
	BYTES = 4096,
	STATUS_SKIP = 77,
};

static uint8_t input[BYTES], output[2 * BYTES], key[64];
static void *library;

/* NULL if this version does not have it. */
static void *find(const char *name)
{
	void *ret;

	burn_skip();
	ret = dlsym(library, name);
	burn_skip();
	return ret;
}

#if defined(OPENSSL)
#define LIBRARY "libcrypto.so.3"

static NOINLINE void digest(const char *name, size_t len)
{
	const void *(*by_name)(const char *) = find("EVP_get_digestbyname");
	void *(*new)(void) = find("EVP_MD_CTX_new");
	int (*init)(void *, const void *, void *) = find("EVP_DigestInit_ex");
	int (*update)(void *, const void *, size_t) = find("EVP_DigestUpdate");
	int (*final)(void *, uint8_t *, unsigned int *) = find("EVP_DigestFinal_ex");
	unsigned int size;
	void *context;

	burn_skip();
	context = new ();
	init(context, by_name(name), NULL);
	burn_skip();
	update(context, input, len);
	final(context, output, &size);
}

static NOINLINE void cipher(const char *name, int len)
{
	const void *(*by_name)(const char *) = find("EVP_get_cipherbyname");
	void *(*new)(void) = find("EVP_CIPHER_CTX_new");
	int (*init)(void *, const void *, void *, const uint8_t *, const uint8_t *, int) =
		find("EVP_CipherInit_ex");
	int (*update)(void *, uint8_t *, int *, const uint8_t *, int) =
		find("EVP_CipherUpdate");
	int (*final)(void *, uint8_t *, int *) = find("EVP_CipherFinal_ex");
	void (*release)(void *) = find("EVP_CIPHER_CTX_free");
	int size;

	for (int encrypt = 0; encrypt < 2; encrypt++) {
		void *context;

		burn_skip();
		context = new ();
		init(context, by_name(name), NULL, key, key + 32, encrypt);
		burn_skip();
		/* All at once, and in pieces. */
		update(context, output, &size, input, len);
		update(context, output, &size, input, 17);
		final(context, output, &size);
		burn_skip();
		release(context);
		burn_skip();
	}
}

static NOINLINE void numbers(int bits)
{
	void *(*new)(void) = find("BN_new");
	void *(*context_new)(void) = find("BN_CTX_new");
	void *(*from)(const uint8_t *, int, void *) = find("BN_bin2bn");
	int (*set_bit)(void *, int) = find("BN_set_bit");
	int (*power)(void *, const void *, const void *, const void *, void *) =
		find("BN_mod_exp");
	int (*power_ct)(void *, const void *, const void *, const void *, void *,
			void *) = find("BN_mod_exp_mont_consttime");
	int (*multiply)(void *, const void *, const void *, void *) = find("BN_mul");
	void *modulus, *base, *exponent, *result, *context;

	burn_skip();
	context = context_new();
	result = new ();
	modulus = from(input, bits / 8, NULL);
	set_bit(modulus, 0);
	set_bit(modulus, bits - 1);
	base = from(input + 100, bits / 8, NULL);
	exponent = from(input + 7, 2, NULL);
	burn_skip();
	multiply(result, modulus, base, context);
	multiply(result, base, base, context);
	power(result, base, exponent, modulus, context);
	power_ct(result, base, exponent, modulus, context, NULL);
}

static NOINLINE void curve(int nid)
{
	void *(*group_of)(int) = find("EC_GROUP_new_by_curve_name");
	void *(*point_new)(const void *) = find("EC_POINT_new");
	void *(*from)(const uint8_t *, int, void *) = find("BN_bin2bn");
	int (*multiply)(const void *, void *, const void *, const void *, const void *,
			void *) = find("EC_POINT_mul");
	void *group, *point, *number;

	burn_skip();
	group = group_of(nid);
	point = point_new(group);
	number = from(input, 32, NULL);
	multiply(group, point, number, NULL, NULL, NULL);
	burn_skip();
	multiply(group, point, NULL, point, number, NULL);
}

static NOINLINE void use(void)
{
	static const char *const digests[] = { "md5",    "sha1",      "sha256",
					       "sha512", "sha3-256",  "blake2b512",
					       "sm3",    "ripemd160", "sha3-512" };
	static const char *const ciphers[] = {
		"aes-128-cbc",  "aes-256-ctr",       "aes-128-gcm",
		"aes-256-xts",  "aes-128-ccm",       "aes-128-ocb",
		"chacha20",     "chacha20-poly1305", "camellia-128-cbc",
		"des-ede3-cbc", "aes-128-ecb",       "aes-128-cbc-hmac-sha1",
	};

	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
		digest(digests[i], 300);
	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		cipher(ciphers[i], 560);
	numbers(256);
	numbers(512);
	numbers(1024);
	numbers(2048);
	curve(415); /* P-256 */
}

#elif defined(GCRYPT)
#define LIBRARY "libgcrypt.so.20"

static NOINLINE void digest(int algorithm)
{
	void (*hash)(int, void *, const void *, size_t) = find("gcry_md_hash_buffer");

	burn_skip();
	hash(algorithm, output, input, 300);
	burn_skip();
	hash(algorithm, output, input, 300);
}

static NOINLINE void cipher(int algorithm, int mode, size_t key_len)
{
	unsigned int (*open)(void **, int, int, unsigned int) = find("gcry_cipher_open");
	unsigned int (*set_key)(void *, const void *, size_t) =
		find("gcry_cipher_setkey");
	unsigned int (*set_iv)(void *, const void *, size_t) = find("gcry_cipher_setiv");
	unsigned int (*encrypt)(void *, void *, size_t, const void *, size_t) =
		find("gcry_cipher_encrypt");
	unsigned int (*decrypt)(void *, void *, size_t, const void *, size_t) =
		find("gcry_cipher_decrypt");
	void (*close)(void *) = find("gcry_cipher_close");
	void *context;

	burn_skip();
	if (open(&context, algorithm, mode, 0) != 0) {
		burn_skip();
		return;
	}
	set_key(context, key, key_len);
	set_iv(context, key, 16);
	burn_skip();
	encrypt(context, output, 560, input, 560);
	decrypt(context, output, 560, input, 560);
	close(context);
}

static NOINLINE void use(void)
{
	const char *(*check)(const char *) = find("gcry_check_version");
	/* GCRY_MD_…: MD5, SHA1, RMD160, SHA256, SHA512, CRC32, SHA3-256, BLAKE2b, SM3 */
	static const int digests[] = { 1, 2, 3, 8, 10, 302, 313, 318, 326 };
	/* GCRY_CIPHER_…: 3DES, Blowfish, CAST5, AES, AES256, Twofish, Serpent, Camellia,
	 * Salsa20, ChaCha20, SM4; with a mode: ECB, CBC, CTR, GCM, OCB, stream */
	static const int ciphers[][3] = {
		{ 2, 3, 24 },   { 4, 6, 16 },   { 3, 6, 16 },   { 7, 1, 16 },
		{ 7, 3, 16 },   { 7, 6, 16 },   { 7, 9, 16 },   { 7, 11, 16 },
		{ 9, 13, 32 },  { 10, 6, 32 },  { 10, 3, 32 },  { 305, 6, 32 },
		{ 310, 6, 16 }, { 310, 3, 16 }, { 313, 4, 32 }, { 316, 4, 32 },
		{ 318, 6, 16 }, { 318, 3, 16 },
	};

	burn_skip();
	check(NULL);
	burn_skip();
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
		digest(digests[i]);
	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		cipher(ciphers[i][0], ciphers[i][1], (size_t)ciphers[i][2]);
}

#elif defined(GMP)
#define LIBRARY "libgmp.so.10"

typedef struct {
	int room, len;
	void *limbs;
} number[1];

static NOINLINE void use(void)
{
	void (*init)(number) = find("__gmpz_init");
	void (*import)(number, size_t, int, size_t, int, size_t, const void *) =
		find("__gmpz_import");
	static const char *const binary[] = { "__gmpz_mul",    "__gmpz_add",
					      "__gmpz_sub",    "__gmpz_gcd",
					      "__gmpz_tdiv_q", "__gmpz_and",
					      "__gmpz_tdiv_r", "__gmpz_invert" };
	void (*power)(number, number, number, number) = find("__gmpz_powm");
	void (*root)(number, number) = find("__gmpz_sqrt");
	void (*shift)(number, number, unsigned long) = find("__gmpz_mul_2exp");
	static const size_t lens[] = { 1, 3, 20, 60 };
	number a, b, c;

	init(a);
	init(b);
	init(c);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		import(a, lens[i], 1, 8, 0, 0, input);
		import(b, (lens[i] + 1) / 2, 1, 8, 0, 0, input + 5);
		for (size_t j = 0; j < sizeof(binary) / sizeof(binary[0]); j++) {
			void (*operate)(number, number, number) = find(binary[j]);

			operate(c, a, b);
			operate(c, a, a);
		}
		root(c, a);
		shift(c, a, 67);
		import(c, 1, 1, 1, 0, 0, input + 9);
		if (lens[i] <= 20)
			power(c, b, c, a);
	}
}

#elif defined(ZSTD)
#define LIBRARY "libzstd.so.1"

static NOINLINE void use(void)
{
	size_t (*compress)(void *, size_t, const void *, size_t, int) =
		find("ZSTD_compress");
	size_t (*decompress)(void *, size_t, const void *, size_t) =
		find("ZSTD_decompress");
	static uint8_t back[BYTES];
	size_t len;

	/* Few different bytes, for Huffman coding. */
	for (size_t i = 0; i < BYTES; i++)
		input[i] = (uint8_t)('a' + (input[i] & input[(i * 7) % BYTES] & 15));
	burn_skip();
	len = compress(output, sizeof(output), input, BYTES, 3);
	burn_skip();
	decompress(back, sizeof(back), output, len);
}
#endif

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	uint64_t x = 88172645463325252;

	burn_skip();
	for (size_t i = 0; i < BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		input[i] = (uint8_t)(x >> 32);
	}
	memcpy(key, input + 1000, sizeof(key));
	library = dlopen(LIBRARY, RTLD_NOW);
	burn_skip();
	if (!library)
		return STATUS_SKIP;
	do
		use();
	while (argc <= 2 && clock() < end);
	return 0;
}
