# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts of this folder share: they look at the tree from its top,
# name each fault in a line, and fail at the end if there was one.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
faults=0

# fault TEXT... - one line, "file:line: what is wrong"
fault()
{
	printf '%s\n' "$*"
	faults=$((faults + 1))
}

verdict()
{
	[ "$faults" = 0 ] || { echo "$faults faults"; exit 1; }
}

# tree_files FIND-EXPRESSION... - the files of the project, without what is built
tree_files()
{
	find . \( -name .git -o -path ./build -o -name __pycache__ \) -prune -o \
		-type f "$@" -print | sed 's|^\./||' | sort
}

# code_of FILE - a C file without its comments and texts, line for line
code_of()
{
	awk '{
		line = $0; out = ""
		while (line != "") {
			if (in_comment) {
				at = index(line, "*/")
				if (!at) break
				line = substr(line, at + 2); in_comment = 0
				continue
			}
			at = match(line, /\/\*|\/\//)
			if (!at) { out = out line; break }
			out = out substr(line, 1, at - 1)
			if (substr(line, at, 2) == "//") break
			line = substr(line, at + 2); in_comment = 1
		}
		gsub(/"([^"\\]|\\.)*"/, "\"\"", out)
		print out
	}' "$1"
}
