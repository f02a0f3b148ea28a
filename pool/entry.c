/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* entry.c - the entry of a server in a store, see entry.h. */
#include "pool/entry.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"

/* ---- Names -----------------------------------------------------------------------*/

static bool name_is_good(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *name && strlen(name) < RBX_POOL_NAME_BYTES &&
	       strspn(name, letters) == strlen(name);
}

static bool endpoints_are_good(const char *endpoints)
{
	char list[RBX_POOL_ADDRESS_BYTES];
	size_t length;

	for (;; endpoints += length + 1) {
		length = strcspn(endpoints, ",");
		if (length >= sizeof(list))
			return false;
		memcpy(list, endpoints, length);
		list[length] = '\0';
		if (!rbx_member_address_is_good(list))
			return false;
		if (!endpoints[length])
			return true;
	}
}

int rbx_pool_place_parse(const char *place, char *endpoints, char *name)
{
	const char *slash = strchr(place, '/');
	size_t length = slash ? (size_t)(slash - place) : 0;

	memcpy(endpoints, place, length);
	endpoints[length] = '\0';
	if (strchr(endpoints, '@'))
		return rbx_error(-EINVAL, "a pool of etcd takes no user in its text, where others see it: RDMABOX_ETCD_USER_FILE names a file");
	if (!length || !name_is_good(slash + 1) || !endpoints_are_good(endpoints))
		return rbx_error(-EINVAL, "pool \"%.80s\": etcd://HOST:PORT[,HOST:PORT...]/NAME is wanted, NAME of at most %u letters, digits, - _ .",
				 place, RBX_POOL_NAME_BYTES - 1);
	strcpy(name, slash + 1);
	return 0;
}

void rbx_entry_prefix(const char *name, char *key, size_t key_bytes)
{
	snprintf(key, key_bytes, "/rdmabox/%s/servers/", name);
}

void rbx_entry_key(const char *name, uint64_t incarnation, char *key, size_t key_bytes)
{
	snprintf(key, key_bytes, "/rdmabox/%s/servers/%016" PRIx64, name, incarnation);
}

uint64_t rbx_entry_incarnation(const char *prefix, const char *key)
{
	size_t prefix_bytes = strlen(prefix);
	uint64_t incarnation = 0;

	if (strncmp(key, prefix, prefix_bytes) != 0 || strlen(key) != prefix_bytes + 16 ||
	    strspn(key + prefix_bytes, "0123456789abcdef") != 16)
		return 0;
	sscanf(key + prefix_bytes, "%16" SCNx64, &incarnation);
	return incarnation;
}

/* ---- JSON ------------------------------------------------------------------------*/

static void set_bytes(json_t *json, const char *name, uint64_t bytes)
{
	if (bytes <= INT64_MAX)
		json_object_set_new(json, name, json_integer((json_int_t)bytes));
}

size_t rbx_entry_write(const struct rbx_pool_member *member, char *json_text,
		       size_t json_bytes)
{
	json_t *json = json_object();
	size_t length;

	json_object_set_new(json, "address", json_string(member->address));
	json_object_set_new(json, "labels", json_string(member->labels));
	set_bytes(json, "memory_bytes", member->memory_bytes);
	set_bytes(json, "free_bytes", member->free_bytes);
	json_object_set_new(json, "draining", json_boolean(member->draining));
	length = json_dumpb(json, json_text, json_bytes, JSON_COMPACT);
	json_decref(json);
	return length;
}

/* A field that may be missing. False: it is there, and no number of bytes. */
static bool bytes_get(const json_t *json, const char *name, uint64_t *bytes)
{
	const json_t *value = json_object_get(json, name);

	if (!value)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*bytes = (uint64_t)json_integer_value(value);
	return true;
}

/* What is wrong, or NULL. */
static const char *object_read(const json_t *json, struct rbx_pool_member *member)
{
	const char *address = json_string_value(json_object_get(json, "address"));
	const json_t *labels = json_object_get(json, "labels");
	const json_t *draining = json_object_get(json, "draining");

	if (!address)
		return "it has no \"address\"";
	if (!rbx_member_address_is_good(address))
		return "its \"address\" is no host:port";
	rbx_member_init(member, address);
	if (labels && (!json_is_string(labels) ||
		       !rbx_member_labels_are_good(json_string_value(labels))))
		return "its \"labels\" are none";
	if (labels)
		strcpy(member->labels, json_string_value(labels));
	if (!bytes_get(json, "memory_bytes", &member->memory_bytes) ||
	    !bytes_get(json, "free_bytes", &member->free_bytes))
		return "its \"memory_bytes\" or \"free_bytes\" is no number of bytes";
	if (draining && !json_is_boolean(draining))
		return "its \"draining\" is neither true nor false";
	member->draining = json_is_true(draining);
	return NULL;
}

int rbx_entry_read(const char *json_text, size_t json_bytes, struct rbx_pool_member *member,
		   char *error)
{
	const char *wrong;
	json_t *json;

	if (json_bytes > RBX_ENTRY_BYTES_MAX) {
		snprintf(error, RBX_ENTRY_ERROR_BYTES, "it has %zu bytes, at most %u are allowed",
			 json_bytes, RBX_ENTRY_BYTES_MAX);
		return -EINVAL;
	}
	json = json_loadb(json_text, json_bytes, JSON_REJECT_DUPLICATES, NULL);
	wrong = json_is_object(json) ? object_read(json, member) : "it is no JSON object";
	json_decref(json);
	if (!wrong)
		return 0;
	snprintf(error, RBX_ENTRY_ERROR_BYTES, "%s", wrong);
	return -EINVAL;
}
