#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The completions for bash, zsh and fish load without a word, and complete commands,
# commands of a command, options, choices, choices that go on, and files. A shell that
# is not installed is skipped, by name; all three missing is a skipped test.

. "$(dirname "$0")/rdmabox.sh"

made=$build/cli/help
checked=0
mkdir "$scratch/folder"
: >"$scratch/folder/secret.key"
cd "$scratch/folder" || exit 1

# expect_completion SHELL WANTED LINE - the shell's function complete_SHELL prints what
# the line, which ends where the cursor is, can become: words, or for zsh the line.
expect_completion()
{
	local shell=$1 wanted=$2 line=$3 got

	got=$("complete_$shell" "$line" 2>"$scratch/err")
	[ ! -s "$scratch/err" ] || { cat "$scratch/err" >&2; fault "$shell: '$line' says something"; }
	[ "$got" = "$wanted" ] || fault "$shell: '$line' becomes '$got', not '$wanted'"
	checked=$((checked + 1))
}

# expect_offers SHELL LINE WORD... - what is offered has all the words
expect_offers()
{
	local shell=$1 line=$2 got word

	shift 2
	got=$("complete_$shell" "$line")
	for word in "$@"; do
		grep -qxF -- "$word" <<<"$got" || fault "$shell: '$line' does not offer $word: $got"
		checked=$((checked + 1))
	done
}

complete_bash()
{
	bash --norc --noprofile -c '
		. /usr/share/bash-completion/bash_completion && . "$1" || exit
		compopt() { :; } # there is no line to be edited here
		COMP_LINE=$2 COMP_POINT=${#2}
		# Words are split at what is in COMP_WORDBREAKS, as readline does.
		mapfile -t COMP_WORDS < <(printf "%s" "$2" | grep -oE "[^ :=]+|[:=]+")
		[[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_rdmabox rdmabox "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
		printf "%s\n" "${COMPREPLY[@]}"' bash "$made/rdmabox" "$1"
}

complete_fish()
{
	HOME=$scratch XDG_CONFIG_HOME=$scratch fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
		"$made/rdmabox.fish" "$1" | cut -f 1
}

# A shell at a terminal of its own, in which TAB and then ^X are typed: ^X tells the line.
complete_zsh()
{
	TERM=dumb zsh -f "$here/complete_in_zsh" "$made" "$1" "$scratch/line"
}

if [ -r /usr/share/bash-completion/bash_completion ]; then
	expect_completion bash bench 'rdmabox be'
	expect_completion bash attach 'rdmabox page att'
	expect_completion bash --block 'rdmabox bench --blo'
	expect_completion bash export 'rdmabox volume exp'
	expect_completion bash zipf 'rdmabox bench --pattern z'
	expect_completion bash hybrid 'rdmabox page attach --mode h'
	expect_completion bash tcp 'rdmabox serve --fabric soft:t' # what goes behind the colon
	expect_completion bash mix: 'rdmabox bench --op m'
	expect_completion bash secret.key 'rdmabox stat --secret-file se'
	expect_completion bash none 'rdmabox tune --out n'
	expect_completion bash serve 'rdmabox help se'
	expect_offers bash 'rdmabox ' serve bench doctor page pool registration sim stat tune volume help
	expect_offers bash 'rdmabox serve --' --listen --memory --slab --help
	expect_offers bash 'rdmabox sim --scenario ' volume partition fig9
else
	echo "skipped: bash (no bash-completion; scripts/bootstrap check installs it)"
fi

if command -v fish >/dev/null; then
	expect_completion fish bench 'rdmabox be'
	expect_completion fish attach 'rdmabox page att'
	expect_completion fish --block 'rdmabox bench --blo'
	expect_completion fish zipf 'rdmabox bench --pattern z'
	expect_completion fish soft:tcp 'rdmabox serve --fabric soft:t'
	expect_completion fish mix: 'rdmabox bench --op m'
	expect_completion fish secret.key 'rdmabox stat --secret-file se'
	expect_offers fish 'rdmabox ' serve bench doctor page pool registration sim stat tune volume help
	expect_offers fish 'rdmabox page detach --' --name --swap
	expect_offers fish 'rdmabox sim --scenario ' volume partition fig9
else
	echo "skipped: fish (not installed; scripts/bootstrap check installs it)"
fi

if command -v zsh >/dev/null; then
	expect_completion zsh 'rdmabox bench ' 'rdmabox be'
	expect_completion zsh 'rdmabox page attach ' 'rdmabox page att'
	expect_completion zsh 'rdmabox bench --block=' 'rdmabox bench --blo'
	expect_completion zsh 'rdmabox bench --pattern zipf ' 'rdmabox bench --pattern z'
	expect_completion zsh 'rdmabox serve --fabric soft:tcp ' 'rdmabox serve --fabric soft:t'
	expect_completion zsh 'rdmabox stat --secret-file secret.key ' \
		'rdmabox stat --secret-file se'
	expect_completion zsh 'rdmabox sim --scenario partition ' 'rdmabox sim --scenario part'
	expect_completion zsh 'rdmabox sim --nic connectx5 ' 'rdmabox sim --nic connectx5'
else
	echo "skipped: zsh (not installed; scripts/bootstrap check installs it)"
fi

echo "$checked completions checked"
[ "$checked" -gt 0 ] || exit 77
