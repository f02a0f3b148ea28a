/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes JSON of the tables of all commands, with the defaults that the fields hold. If an
 * option lacks something, the key is left out.
 */
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/help/help.h"

static void set_text(json_t *json, const char *key, const char *text)
{
	if (text && *text)
		json_object_set_new(json, key, json_string(text));
}

static void set_true(json_t *json, const char *key, bool is_so)
{
	if (is_so)
		json_object_set_new(json, key, json_true());
}

/* "a|b|c" as a list. */
static json_t *choices_json(const char *words)
{
	json_t *choices = json_array();

	while (*words) {
		size_t len = strcspn(words, "|");

		json_array_append_new(choices, json_stringn(words, len));
		words += len + (words[len] == '|');
	}
	return choices;
}

static json_t *option_json(const struct cli_option *option)
{
	json_t *json = json_object();
	char text[128];

	set_text(json, "name", option->name);
	set_text(json, "value", option->value);
	set_text(json, "kind", cli_option_kind(option));
	set_text(json, "help", option->help);
	set_text(json, "details", option->details);
	set_text(json, "group", option->group);
	cli_option_default(option, text, sizeof(text));
	set_text(json, "default", text);
	set_text(json, "unit", option->unit);
	cli_option_range(option, text, sizeof(text));
	set_text(json, "range", text);
	if (option->words)
		json_object_set_new(json, "choices", choices_json(option->words));
	set_true(json, "required", option->is_required);
	set_true(json, "repeatable", option->is_repeatable);
	set_true(json, "or_next", option->or_next);
	set_true(json, "word", option->place != CLI_OPTION);
	set_true(json, "only_word", option->place == CLI_WORD);
	return json;
}

static json_t *commands_json(const struct cli_command *const *commands);

static json_t *command_json(const struct cli_command *command)
{
	json_t *json = json_object(), *options = json_array();

	if (command->prepare)
		command->prepare();
	set_text(json, "name", command->name);
	set_text(json, "purpose", command->purpose);
	for (size_t i = 0; i < command->options_count; i++)
		json_array_append_new(options, option_json(&command->options[i]));
	json_object_set_new(json, "options", options);
	if (command->commands)
		json_object_set_new(json, "commands", commands_json(command->commands));
	return json;
}

static json_t *commands_json(const struct cli_command *const *commands)
{
	json_t *json = json_array();

	for (; *commands; commands++)
		json_array_append_new(json, command_json(*commands));
	return json;
}

json_t *help_tables_json(void)
{
	return json_pack("{ss so}", "version", RBX_VERSION, "commands",
			 commands_json(cli_commands));
}
