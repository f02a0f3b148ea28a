/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page: other machines' memory as a block device of this one, for swap or
 * a file system. The device is rdmabox_block.ko's; here it is made and looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

static char name[PAGE_NAME_MAX] = "page";
static uint32_t as_json;

static const struct cli_option status_options[] = {
	{ "name", "N", "of the volume (default: page)", cli_set_text, name,
	  .max = sizeof(name) },
	{ "json", NULL, "print JSON", cli_set_flag, .field = &as_json },
};

static const struct cli_command status_command = {
	.name = "page status",
	.purpose = "Shows a volume: its options, its health, its numbers.",
	.usage = "[--name N] [--json]",
	.options = status_options,
	.options_count = sizeof(status_options) / sizeof(status_options[0]),
};

static const struct cli_command list_command = {
	.name = "page list",
	.purpose = "Lists the volumes: name, device, size, servers up, slabs with all copies.",
	.usage = "",
};

/* The files of a volume that are shown, in this order. */
static const struct {
	const char *file;
	bool is_text;
} shown[] = {
	{ "device", true }, { "servers", true },
	{ "mode", true }, { "size", false },
	{ "replicas", false }, { "queue_pairs", false },
	{ "peer_timeout_ms", false }, { "insecure", false },
	{ "servers_up", false }, { "slabs", false },
	{ "slabs_whole", false }, { "slabs_rebuilding", false },
	{ "slabs_lost", false }, { "rebuilt_bytes", false },
	{ "work_requests", false }, { "doorbells", false },
	{ "merged_requests", false }, { "window_waits", false },
	{ "completions", false }, { "polls", false },
	{ "empty_polls", false }, { "arms", false },
	{ "wakeups", false }, { "retries", false },
	{ "failovers", false },
};

#define SHOWN_COUNT (sizeof(shown) / sizeof(shown[0]))

/* "" where it cannot be read, such as the numbers of one that is not attached. */
static void value_of(const char *volume, const char *file,
		     char value[PAGE_VALUE_MAX])
{
	if (page_read(volume, file, value, PAGE_VALUE_MAX))
		*value = '\0';
}

static int print_status(void)
{
	char value[PAGE_VALUE_MAX];

	for (size_t i = 0; i < SHOWN_COUNT; i++) {
		value_of(name, shown[i].file, value);
		printf("%-17s %s\n", shown[i].file, value);
	}
	return CLI_EXIT_OK;
}

static int print_json(void)
{
	json_t *json = json_object();
	char value[PAGE_VALUE_MAX];

	for (size_t i = 0; i < SHOWN_COUNT; i++) {
		value_of(name, shown[i].file, value);
		json_object_set_new(json, shown[i].file,
				    shown[i].is_text ?
					    json_string(value) :
				    *value ? json_integer(atoll(value)) :
					     json_null());
	}
	return cli_json_write(&status_command, json, "-") ? CLI_EXIT_FAILED :
							    CLI_EXIT_OK;
}

static int page_status(int argc, char **argv)
{
	int rc = cli_parse(&status_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (page_prepare(&status_command))
		return CLI_EXIT_USAGE;
	if (!page_exists(name))
		return cli_fail(&status_command, "there is no volume %s; see rdmabox page list",
				name);
	return as_json ? print_json() : print_status();
}

static int print_line(const char *volume, void *user)
{
	static const char *const columns[] = { "device", "size", "servers_up",
					       "slabs_whole", "slabs" };
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

static int page_list(int argc, char **argv)
{
	int rc = cli_parse(&list_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (page_prepare(&list_command))
		return CLI_EXIT_USAGE;
	(void)page_each(print_line, NULL);
	return CLI_EXIT_OK;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "attach", page_attach },
	{ "detach", page_detach },
	{ "list", page_list },
	{ "status", page_status },
};

static const struct cli_command page_command = { .name = "page" };

int cli_page(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--help")) {
		puts("usage: rdmabox page attach|detach|list|status [OPTION...]\n\n"
		     "Other machines' memory as a block device, for swap or a file system.\n"
		     "Each of them lists its options with --help.");
		return CLI_EXIT_OK;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]);
	     i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return cli_fail(&page_command, argc > 1 ? "unknown command '%s'; give attach, detach, list or status" :
						  "no command; give attach, detach, list or status",
			argc > 1 ? argv[1] : "");
}
