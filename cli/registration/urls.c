/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A web server's memory: each URL has one buffer, as long as its longest response, in whole pages.
 *
 * A hash table with open addressing, doubled when it is half full.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/registration/registration.h"

#define ROOM_FIRST 1024u

struct url {
	char *name;
	uint64_t bytes;
	uint64_t addr;
};

struct registration_urls {
	struct url *urls;
	uint32_t *places; /* by hash: a URL and 1, or 0 */
	uint32_t count;
	uint32_t room; /* of places; half of that of URLs */
};

struct registration_urls *registration_urls_new(void)
{
	return calloc(1, sizeof(struct registration_urls));
}

void registration_urls_free(struct registration_urls *urls)
{
	for (uint32_t i = 0; urls && i < urls->count; i++)
		free(urls->urls[i].name);
	if (urls) {
		free(urls->urls);
		free(urls->places);
	}
	free(urls);
}

static uint32_t hash_of(const char *name, size_t bytes)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	return hash;
}

static uint32_t *place_of(const struct registration_urls *urls, const char *name, size_t bytes)
{
	uint32_t at = hash_of(name, bytes) & (urls->room - 1);

	for (;; at = (at + 1) & (urls->room - 1)) {
		const char *there;

		if (!urls->places[at])
			return &urls->places[at];
		there = urls->urls[urls->places[at] - 1].name;
		if (!strncmp(there, name, bytes) && !there[bytes])
			return &urls->places[at];
	}
}

static bool grow(struct registration_urls *urls)
{
	uint32_t room = urls->room ? urls->room * 2 : ROOM_FIRST;
	struct url *larger = realloc(urls->urls, room / 2 * sizeof(*larger));
	uint32_t *places = calloc(room, sizeof(*places));

	if (larger)
		urls->urls = larger;
	if (!larger || !places) {
		free(places);
		return false;
	}
	free(urls->places);
	urls->places = places;
	urls->room = room;
	for (uint32_t i = 0; i < urls->count; i++)
		*place_of(urls, urls->urls[i].name, strlen(urls->urls[i].name)) = i + 1;
	return true;
}

uint32_t registration_urls_note(struct registration_urls *urls, const char *url, size_t url_bytes,
				uint64_t response_bytes)
{
	uint32_t *place;
	char *name;

	if (urls->count == urls->room / 2 && !grow(urls))
		return UINT32_MAX;
	place = place_of(urls, url, url_bytes);
	if (!*place) {
		name = strndup(url, url_bytes);
		if (!name)
			return UINT32_MAX;
		urls->urls[urls->count] = (struct url){ .name = name };
		*place = ++urls->count;
	}
	if (urls->urls[*place - 1].bytes < response_bytes)
		urls->urls[*place - 1].bytes = response_bytes;
	return *place - 1;
}

uint64_t registration_urls_place(struct registration_urls *urls)
{
	uint64_t addr = 0;

	/* A buffer is 2^40 bytes at most, so nothing wraps before it is seen. */
	for (uint32_t i = 0; i < urls->count && addr <= UINT64_MAX / 2; i++) {
		urls->urls[i].addr = addr;
		addr += (urls->urls[i].bytes + REGISTRATION_PAGE_BYTES - 1) /
			REGISTRATION_PAGE_BYTES * REGISTRATION_PAGE_BYTES;
	}
	return addr;
}

uint64_t registration_urls_addr(const struct registration_urls *urls, uint32_t url)
{
	return urls->urls[url].addr;
}
