// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The plugin's parameters.
 *
 * A parameter has the name that its option has in rdmabox-bench(1), or that of the
 * library's text option; `-` and `_` are the same. The text is passed to the library
 * unchanged, so the library reports errors in it.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "settings.h"

/* Longer than any name that the library takes. */
#define NAME_BYTES 32

#define PAGE_BYTES 4096

struct settings settings;

const char settings_help[] =
	"servers=<HOST:PORT,HOST:PORT>  (required) Memory servers, or a pool:\n"
	"                               file:PATH, etcd://HOST:PORT/NAME.\n"
	"size=<SIZE>                    (required without name=) Bytes of the volume.\n"
	"name=<NAME>                    A named volume that there is, in place of a new one.\n"
	"take-over=true                 Take it from the program that has it open.\n"
	"read-only=true                 Leave it to that program, and only read.\n"
	"replicas=<N>                   Copies of the data, 1 to 3.\n"
	"secret-file=<FILE>             The secret shared with the servers.\n"
	"credential=<NAME>              The name of the secret, if each client has its own.\n"
	"insecure=true                  No secret, even beyond loopback.\n"
	"on-demand=true                 Borrow at the first write; trim gives back.\n"
	"checksums=true                 Keep and check a CRC32C of each 4 KiB.\n"
	"scrub-rate=<SIZE>              Look for damage at all servers, so much in a second:\n"
	"                               1M or more, of a volume with checksums.\n"
	"fabric, device, mode, window, fragment, buffers, polling, pollers, poll-cpu,\n"
	"qps, peer-timeout              As options of rdmabox-bench(1).\n";

/* Names of rdmabox-bench(1), with the library's name if that is another. */
static const struct {
	const char *name;
	const char *library;
} texts[] = {
	{ "credential", "credential" },
	{ "fabric", "fabric" },
	{ "device", "device" },
	{ "mode", "mode" },
	{ "window", "window" },
	{ "fragment", "fragment_bytes" },
	{ "fragment_bytes", "fragment_bytes" },
	{ "buffers", "buffers" },
	{ "polling", "polling" },
	{ "poll_cpu", "poll_cpu_percent" },
	{ "poll_cpu_percent", "poll_cpu_percent" },
	{ "qps", "queue_pairs" },
	{ "queue_pairs", "queue_pairs" },
	{ "peer_timeout", "peer_timeout_ms" },
	{ "peer_timeout_ms", "peer_timeout_ms" },
};

void settings_init(void)
{
	rbx_options_defaults(&settings.options);
	rbx_volume_options_defaults(&settings.volume);
}

static int set_text(const char *name, const char *value)
{
	char *text;
	int err;

	if (asprintf(&text, "%s=%s", name, value) < 0) {
		nbdkit_error("asprintf: %m");
		return -1;
	}
	err = rbx_options_set(&settings.options, text);
	free(text);
	if (!err)
		return 0;
	nbdkit_error("%s", rbx_last_error());
	return -1;
}

static int set_copy(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
	if (*field)
		return 0;
	nbdkit_error("strdup: %m");
	return -1;
}

static int set_size(const char *value)
{
	int64_t size = nbdkit_parse_size(value);

	if (size == -1)
		return -1;
	if (!size || size % PAGE_BYTES) {
		nbdkit_error("size=%s: must be a multiple of %d bytes", value, PAGE_BYTES);
		return -1;
	}
	settings.size_bytes = (uint64_t)size;
	return 0;
}

/* The library says what it may be. */
static int set_scrub_rate(const char *value)
{
	int64_t rate = nbdkit_parse_size(value);

	if (rate == -1)
		return -1;
	settings.volume.scrub_rate = (uint64_t)rate;
	return 0;
}

/* A path is relative to the folder where nbdkit was started; nbdkit may leave that
 * folder. */
static int set_secret_file(const char *value)
{
	char *path = nbdkit_absolute_path(value);
	int err = path ? set_text("secret_file", path) : -1;

	free(path);
	return err;
}

/* Refuses 0, as nobody would poll. */
static int set_pollers(const char *value)
{
	if (strcmp(value, "0"))
		return set_text("pollers", value);
	nbdkit_error("pollers=0: must be 1 to 16, peer or queue_pair");
	return -1;
}

static int set_bool(const char *value, uint32_t *field)
{
	int yes = nbdkit_parse_bool(value);

	if (yes == -1)
		return -1;
	*field = (uint32_t)yes;
	return 0;
}

static int set_replicas(const char *value)
{
	if (nbdkit_parse_uint32_t("replicas", value, &settings.volume.replicas) == -1)
		return -1;
	if (settings.volume.replicas >= 1 && settings.volume.replicas <= 3)
		return 0;
	nbdkit_error("replicas=%s: must be 1 to 3", value);
	return -1;
}

/* "poll-cpu" is "poll_cpu". */
static void take_name(char *name, const char *key)
{
	size_t at;

	for (at = 0; key[at] && at < NAME_BYTES - 1; at++)
		name[at] = key[at] == '-' ? '_' : key[at];
	name[at] = '\0';
}

int settings_set(const char *key, const char *value)
{
	char name[NAME_BYTES];
	size_t at;

	take_name(name, key);
	if (!strcmp(name, "servers"))
		return set_copy(&settings.servers, value);
	if (!strcmp(name, "name"))
		return set_copy(&settings.name, value);
	if (!strcmp(name, "size"))
		return set_size(value);
	if (!strcmp(name, "replicas"))
		return set_replicas(value);
	if (!strcmp(name, "secret_file"))
		return set_secret_file(value);
	if (!strcmp(name, "pollers"))
		return set_pollers(value);
	if (!strcmp(name, "insecure"))
		return set_bool(value, &settings.options.insecure);
	if (!strcmp(name, "take_over"))
		return set_bool(value, &settings.volume.take_over);
	if (!strcmp(name, "read_only"))
		return set_bool(value, &settings.volume.read_only);
	if (!strcmp(name, "on_demand"))
		return set_bool(value, &settings.volume.on_demand);
	if (!strcmp(name, "scrub_rate"))
		return set_scrub_rate(value);
	if (!strcmp(name, "checksums"))
		return set_bool(value, &settings.volume.checksums);
	for (at = 0; at < sizeof(texts) / sizeof(texts[0]); at++)
		if (!strcmp(name, texts[at].name))
			return set_text(texts[at].library, value);
	nbdkit_error("unknown parameter '%s'; nbdkit rdmabox --help lists them", key);
	return -1;
}

/* A named volume is opened as it was made. */
static int check_name(void)
{
	const struct rbx_volume_options *volume = &settings.volume;

	if (!settings.name) {
		if (volume->take_over)
			nbdkit_error("take-over=true needs name=");
		else if (volume->read_only)
			nbdkit_error("read-only=true needs name=");
		else if (!settings.size_bytes)
			nbdkit_error("how much to borrow? Give size=, or name= of a volume that there is");
		return volume->take_over || volume->read_only || !settings.size_bytes ? -1 : 0;
	}
	settings.volume.name = settings.name;
	if (settings.size_bytes)
		nbdkit_error("name and size exclude each other: a named volume is as long as it was made; leave out size=");
	else if (volume->replicas != 1 || volume->checksums || volume->on_demand)
		nbdkit_error("name goes with neither replicas nor checksums nor on-demand: a named volume has what it was made with");
	else
		return 0;
	return -1;
}

int settings_check(void)
{
	if (!settings.servers || !*settings.servers) {
		nbdkit_error("no memory servers; give servers=HOST:PORT,HOST:PORT");
		return -1;
	}
	if (check_name())
		return -1;
	if (settings.options.insecure && *settings.options.secret_file) {
		nbdkit_error("secret-file and insecure exclude each other; give one of them");
		return -1;
	}
	return 0;
}

void settings_free(void)
{
	free(settings.servers);
	free(settings.name);
	settings.servers = NULL;
	settings.name = NULL;
}
