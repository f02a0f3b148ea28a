/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* encode.c - keys and values in base64, by libcrypto. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "pool/etcd/answer.h"

char *etcd_base64(const char *bytes, size_t length)
{
	char *text = malloc((length + 2) / 3 * 4 + 1);

	if (text)
		EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes, (int)length);
	return text;
}

char *etcd_base64_end(const char *prefix)
{
	char end[RBX_STORE_KEY_BYTES];
	size_t length = strlen(prefix);

	memcpy(end, prefix, length + 1);
	end[length - 1]++; /* keys are texts, so it is no 0xff */
	return etcd_base64(end, length);
}

int etcd_base64_read(const char *text, char *bytes, size_t *length)
{
	size_t text_bytes = strlen(text), padding = 0;
	int got;

	/* libcrypto would pass over spaces at both ends. */
	if (text_bytes % 4 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789+/=") != text_bytes)
		return -1;
	while (padding < 3 && padding < text_bytes && text[text_bytes - 1 - padding] == '=')
		padding++;
	if (padding > 2 || text_bytes / 4 * 3 >= *length)
		return -1;
	got = EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text,
			      (int)text_bytes);
	if (got < 0 || (size_t)got < padding)
		return -1;
	*length = (size_t)got - padding;
	bytes[*length] = '\0';
	return 0;
}
