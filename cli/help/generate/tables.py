# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the generators of this folder share: the tables of all commands, as
`rdmabox help --json` prints them, and how their texts are made up."""

import json
import re


def load(path):
    """The commands that are no command of a command."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["commands"]


def flat(commands):
    """All commands, those of a command in its place."""
    for command in commands:
        if "commands" in command:
            yield from flat(command["commands"])
        else:
            yield command


def options_of(command):
    """The options with a name, and --help, which every command has."""
    for option in command["options"]:
        if "only_word" not in option:
            yield option
    yield {"name": "help", "kind": "flag", "help": "show this text"}


def words_of(command):
    """What a command takes without a name."""
    return [option for option in command["options"] if "word" in option]


def split_help(option):
    """The help without what is said of single choices, and that: {choice: text}."""
    literals = re.split(r"[^a-z_-]+", option.get("value", ""))
    literals += [choice.rstrip(":=") for choice in option.get("choices", [])]
    lines, choices = [], {}
    for line in option["help"].split("\n"):
        word, colon, text = line.partition(": ")
        if colon and word in literals:
            choices[word] = text
        else:
            lines.append(line)
    return " ".join(lines), choices


def summary(option):
    """The help in one line, for a list of completions."""
    return split_help(option)[0] or option["help"].replace("\n", ", ")
