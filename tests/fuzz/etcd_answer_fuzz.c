/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * etcd_answer_fuzz.c - what an endpoint of etcd answers, and what a server wrote there: what
 * is accepted has keys with the prefix, values with their end, and addresses that print.
 */
#include <stdlib.h>
#include <string.h>

#include "pool/entry.h"
#include "pool/etcd/answer.h"

#define PREFIX "/rdmabox/p/servers/"

static int visit(void *user, const struct rbx_store_entry *entry)
{
	struct rbx_pool_member member;
	char error[RBX_ENTRY_ERROR_BYTES];

	(void)user;
	if (strncmp(entry->key, PREFIX, strlen(PREFIX)) != 0 || !entry->revision)
		abort();
	if (!entry->value)
		return 0;
	if (entry->value_bytes > RBX_STORE_VALUE_BYTES_MAX || entry->value[entry->value_bytes])
		abort();
	(void)rbx_entry_incarnation(PREFIX, entry->key);
	(void)rbx_entry_read(entry->value, entry->value_bytes, &member, error);
	return 0;
}

/* An entry is accepted or refused as a whole. */
static void entry_try(const char *bytes, size_t length_bytes)
{
	struct rbx_pool_member member, again;
	char error[RBX_ENTRY_ERROR_BYTES], json[RBX_ENTRY_BYTES_MAX];
	size_t json_bytes;

	if (rbx_entry_read(bytes, length_bytes, &member, error))
		return;
	json_bytes = rbx_entry_write(&member, json, sizeof(json));
	if (json_bytes > sizeof(json) || rbx_entry_read(json, json_bytes, &again, error) ||
	    memcmp(&member, &again, sizeof(member)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	struct etcd_bytes json = { (const char *)bytes, length_bytes };
	char error[RBX_STORE_ERROR_BYTES], token[ETCD_TOKEN_BYTES];
	uint64_t number;
	bool succeeded;

	(void)etcd_answer_range(json, PREFIX, 4, visit, NULL, &number, error);
	(void)etcd_answer_watch(json, PREFIX, visit, NULL, error);
	(void)etcd_answer_txn(json, &succeeded, &number, error);
	(void)etcd_answer_removed(json);
	(void)etcd_answer_lease(json, &number, error);
	(void)etcd_answer_kept(json, error);
	(void)etcd_answer_token(json, token, error);
	(void)etcd_answer_failure(json, error);
	entry_try(json.bytes, json.length);
	return 0;
}
