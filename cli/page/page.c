/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page: other machines' memory as a block device of this machine, for swap or a
 * file system. rdmabox_block.ko has the device; this command makes and shows it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/page/page.h"

static char name[PAGE_NAME_MAX] = "page";
static uint32_t as_json;

static const struct cli_option status_options[] = {
	{ "name", "NAME", "name of the volume", cli_set_text, name,
	  .max = sizeof(name) },
	{ "json", NULL, "print JSON", cli_set_flag, .field = &as_json,
	  .details = "An object with the same names. Numbers of a volume that is not attached "
		     "are null." },
};

static int page_status(int argc, char **argv);

static const struct cli_command status_command = {
	.name = "page status",
	.purpose = "show a volume: its options, its health, its numbers",
	CLI_OPTIONS(status_options),
	.run = page_status,
};

static const struct cli_option list_options[] = {
	{ "json", NULL, "print JSON: what status prints, of each", cli_set_flag,
	  .field = &as_json,
	  .details = "An object of such objects, by the names of the volumes." },
};

static int page_list(int argc, char **argv);

static const struct cli_command list_command = {
	.name = "page list",
	.purpose = "list the volumes",
	.notes = "A line for each: name, device, size, servers up, slabs with all copies, "
		 "slabs that\nhave no memory yet, slabs.",
	CLI_OPTIONS(list_options),
	.run = page_list,
};

/* The files of a volume that are shown, in this order. */
static const struct {
	const char *file;
	bool is_text;
} shown[] = {
	{ "device", true }, { "servers", true },
	{ "volume", true },
	{ "mode", true }, { "size", false },
	{ "replicas", false }, { "queue_pairs", false },
	{ "queue_depth", false }, { "peer_timeout_ms", false },
	{ "copy_rate", false }, { "crash_copy", false },
	{ "insecure", false },
	{ "on_demand", false }, { "checksums", false },
	{ "backup", true }, { "backup_buffer", false },
	{ "servers_up", false }, { "slabs", false },
	{ "slabs_whole", false }, { "slabs_blank", false },
	{ "slabs_rebuilding", false }, { "slabs_last", false },
	{ "slabs_lost", false }, { "slabs_holed", false },
	{ "slabs_together", false },
	{ "rebuilt_bytes", false }, { "replicas_moved", false },
	{ "work_requests", false }, { "doorbells", false },
	{ "merged_requests", false }, { "window_waits", false },
	{ "retries", false }, { "failovers", false },
	{ "checksum_errors", false }, { "checksum_repairs", false },
	{ "window_bytes", false }, { "inflight_bytes", false },
	{ "inflight_bytes_max", false }, { "completions", false },
	{ "polls", false }, { "empty_polls", false },
	{ "arms", false }, { "wakeups", false },
	{ "backup_writes", false }, { "backup_reads", false },
	{ "backup_waits", false }, { "backup_errors", false },
	{ "backup_lag_bytes", false },
};

#define SHOWN_COUNT (sizeof(shown) / sizeof(shown[0]))

/* Those of its device; only the first one is a text. */
static const char *const shown_of_device[] = {
	"state",
	"read_requests", "read_bytes", "read_errors",
	"read_latency_p50_ns", "read_latency_p99_ns",
	"read_latency_p999_ns", "read_latency_max_ns",
	"write_requests", "write_bytes", "write_errors",
	"write_latency_p50_ns", "write_latency_p99_ns",
	"write_latency_p999_ns", "write_latency_max_ns",
};

#define SHOWN_OF_DEVICE_COUNT \
	(sizeof(shown_of_device) / sizeof(shown_of_device[0]))

/* Reads a value; "" if it cannot be read, such as the numbers of a volume that is not
 * attached. */
static void value_of(const char *volume, const char *file,
		     char value[PAGE_VALUE_MAX])
{
	if (page_read(volume, file, value, PAGE_VALUE_MAX))
		*value = '\0';
}

/* Calls back for each shown value of a volume, in order. */
static void each_value(const char *volume,
		       void (*call)(const char *file, bool is_text,
				    const char *value, void *user),
		       void *user)
{
	char device[PAGE_VALUE_MAX], value[PAGE_VALUE_MAX];

	for (size_t i = 0; i < SHOWN_COUNT; i++) {
		value_of(volume, shown[i].file, value);
		call(shown[i].file, shown[i].is_text, value, user);
	}
	value_of(volume, "device", device);
	for (size_t i = 0; i < SHOWN_OF_DEVICE_COUNT; i++) {
		if (!*device || page_read_device(device, shown_of_device[i],
						 value, sizeof(value)))
			*value = '\0';
		call(shown_of_device[i], !i, value, user);
	}
}

static void add_value(const char *file, bool is_text, const char *value,
		      void *json)
{
	json_object_set_new(json, file,
			    is_text ? json_string(value) :
			    *value  ? json_integer(atoll(value)) :
				      json_null());
}

static void print_value(const char *file, bool is_text, const char *value,
			void *user)
{
	(void)is_text;
	(void)user;
	printf("%-21s %s\n", file, value);
}

static json_t *json_of(const char *volume)
{
	json_t *json = json_object();

	each_value(volume, add_value, json);
	return json;
}

static int print_json(const struct cli_command *command, json_t *json)
{
	return cli_json_write(command, json, "-") ? CLI_EXIT_FAILED :
						    CLI_EXIT_OK;
}

static int print_status(void)
{
	each_value(name, print_value, NULL);
	return CLI_EXIT_OK;
}

static int page_status(int argc, char **argv)
{
	int rc = cli_parse(&status_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = page_find(&status_command, name);
	if (rc)
		return rc;
	return as_json ? print_json(&status_command, json_of(name)) :
			 print_status();
}

static int print_line(const char *volume, void *user)
{
	static const char *const columns[] = { "device", "size", "servers_up",
					       "slabs_whole", "slabs_blank",
					       "slabs" };
	char value[PAGE_VALUE_MAX];

	(void)user;
	printf("%s", volume);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		value_of(volume, columns[i], value);
		printf(" %s", *value ? value : "-");
	}
	puts("");
	return 0;
}

static int add_json(const char *volume, void *user)
{
	json_object_set_new(user, volume, json_of(volume));
	return 0;
}

static int page_list(int argc, char **argv)
{
	int rc = cli_parse(&list_command, argc, argv);
	json_t *all;

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (page_prepare(&list_command))
		return CLI_EXIT_USAGE;
	if (as_json) {
		all = json_object();
		(void)page_each(add_json, all);
		return print_json(&list_command, all);
	}
	(void)page_each(print_line, NULL);
	return CLI_EXIT_OK;
}

static const struct cli_command *const commands[] = {
	&page_attach_command,
	&page_detach_command,
	&page_add_server_command,
	&page_set_command,
	&list_command,
	&status_command,
	NULL,
};

static int cli_page(int argc, char **argv);

const struct cli_command page_command = {
	.name = "page",
	.purpose = "use other machines' memory as a block device, for swap",
	.notes = "`rdmabox page COMMAND --help` lists the options of a command.",
	.run = cli_page,
	.commands = commands,
};

static int cli_page(int argc, char **argv)
{
	return cli_group_run(&page_command, argc, argv);
}
