# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # some variables are for the tools that source this
#
# One virtual machine, seen from the host: options, start, result, end.
# Sourced by lab/vm, lab/vm2 and lab/vmd.
#
# A machine is a QEMU process and a control directory. The guest mounts the directory as
# /lab; commands, output and exit codes are files in it (see lab/guest/init). QEMU writes
# the console there too, which has the kernel log down to warnings. QEMU ends when the
# guest switches itself off, when it panics, or when its time is over. Then the files tell
# what happened, in this order:
#
#	a splat in the kernel log	machine_splat_status	123
#	NAME.exit			the exit code of the command
#	time over			machine_timeout_status	124
#	anything else			machine_lost_status	125
#
# The caller owns the control directory and removes it.

machine_splat_status=123
machine_timeout_status=124
machine_lost_status=125

lab=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
checkout=$(dirname "$lab")
lab_dir=${RDMABOX_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmabox-lab}

# Set by the options; machine_start reads them.
kernel=6.1
net=one
build=
cpus=2
memory_mib=2048
timeout_s=300
append_words=
measure=
verbose=

# "clear" lets a machine outlive the process that started it (lab/vmd).
machine_keep=
machine_pid=

machine_options_help()
{
	cat <<-EOF
	  --kernel NAME        6.1 or 6.12, of Debian, or debug (default: $kernel)
	  --build DIR          directory of the host to mount read-write as /build
	  --cpus N             virtual CPUs (default: $cpus)
	  --memory MIB         memory of the machine (default: $memory_mib)
	  --timeout SECONDS    limit for boot and command together (default: $timeout_s)
	  --append WORDS       for the command line of the kernel
	  --measure            virtual clock that counts instructions, one CPU: ratios
	                       repeat to 1 %, absolute numbers mean nothing
	  --verbose            say how long boot and command took
	  --help               this text
	EOF
}

lab_say()
{
	printf '%s: %s\n' "lab/${0##*/}" "$*" >&2
}

lab_usage_error()
{
	lab_say "$*; see --help"
	exit 2
}

lab_number_option()
{
	[[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || lab_usage_error "$1 wants a number, not \"$2\""
}

# Takes the options above off the front of the arguments and leaves the rest
# in the array "rest". Other options are refused.
machine_parse_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--help) usage; exit 0 ;;
		--measure) measure=1; shift; continue ;;
		--verbose) verbose=1; shift; continue ;;
		--) break ;;
		--kernel | --build | --cpus | --memory | --timeout | --net | --append) ;;
		-*) lab_usage_error "no such option: $1" ;;
		*) break ;;
		esac
		[ $# -ge 2 ] || lab_usage_error "$1 wants a value"
		case $1 in
		--kernel) kernel=$2 ;;
		--build) build=$2 ;;
		--net) net=$2 ;;
		--append) append_words=$2 ;;
		--cpus) lab_number_option "$1" "$2"; cpus=$2 ;;
		--memory) lab_number_option "$1" "$2"; memory_mib=$2 ;;
		--timeout) lab_number_option "$1" "$2"; timeout_s=$2 ;;
		esac
		shift 2
	done
	rest=("$@")

	[[ $kernel =~ ^(6\.1|6\.12|debug)$ ]] ||
		lab_usage_error "the kernel is 6.1, 6.12 or debug, not \"$kernel\""
	[ -r "$lab/guest/net-$net" ] || [ "$net" = none ] ||
		lab_usage_error "no such network: \"$net\""
	[ -z "$build" ] || [ -d "$build" ] || lab_usage_error "no build directory \"$build\""
	[ -z "$build" ] || build=$(readlink -f "$build")
}

# machine_prepare: makes what the machine boots from
machine_prepare()
{
	local options=()

	[ "$kernel" != debug ] || options=(--debug)
	"$lab/prepare" "${options[@]}"
}

# machine_write_command DIR NAME COMMAND...: one argument is a line of shell,
# several are a program and its arguments.
machine_write_command()
{
	local file=$1/$2.command

	shift 2
	if [ $# -eq 1 ]; then
		printf '%s\n' "$1" > "$file"
	else
		printf '%q ' "$@" > "$file"
	fi
}

# qemu_share TAG PATH [,readonly=on]: a directory of the host, over 9p
qemu_share()
{
	qemu+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap${3:-}"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}

# machine_qemu DIR KERNEL_ARGUMENTS: puts the command line of QEMU into "qemu"
machine_qemu()
{
	local dir=$1 append cpu=max hung_s=30

	[ "$kernel" != debug ] || hung_s=120 # what is checked at each access takes time
	if [ -n "$measure" ]; then
		# The emulator counts a copy of 4 KiB by "rep movsb" as 4096 instructions,
		# and by "rep movsq" as 512. Without these flags the kernel uses the latter,
		# which is nearer to a real CPU.
		cpu+=,-erms,-fsrm
	else
		# What only slows the emulation: a fifth level of page tables, which it walks
		# anew after each switch of processes, and instructions for checksums, which
		# it computes bit by bit.
		cpu+=,-la57,-pclmulqdq,-sse4.2
	fi
	append="console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off nokaslr"
	# On a busy host an emulated timer may be late while the kernel tests it.
	append+=" no_timer_check"
	append+=" cryptomgr.notests LAB_NET=$net LAB_BUILD=${build:+1} $append_words $2"

	qemu=(qemu-system-x86_64 -machine q35 -cpu "$cpu" -m "$memory_mib"
		-nodefaults -no-user-config -display none -no-reboot -nic none
		-kernel "$lab_dir/kernel-$kernel/vmlinux"
		-initrd "$lab_dir/kernel-$kernel/initramfs"
		-serial "file:$dir/console")
	if [ -n "$measure" ]; then
		# Every instruction takes 2^3 ns, and idle time is skipped. Waiting for
		# the host counts as idle, so the clock jumps during file I/O, and
		# watchdogs would see tasks that hang for minutes. With a tick that never
		# stops the clock only jumps from tick to tick.
		qemu+=(-accel "tcg,thread=single" -icount "shift=3,sleep=off" -smp 1)
		append+=" nohz=off nowatchdog sysctl.kernel.hung_task_timeout_secs=0"
		append+=" rcupdate.rcu_cpu_stall_suppress=1"
	else
		qemu+=(-accel "tcg,thread=multi" -smp "$cpus")
		# It translates a program once more for each address that it is loaded at.
		append+=" norandmaps"
		# Otherwise 6.1 reads the time from a device, which leaves the emulated CPU.
		# The emulated counters of all CPUs are one.
		append+=" tsc=reliable"
		# Kernels with KFENCE look for wrong accesses by sampling.
		append+=" kfence.sample_interval=100"
		# Otherwise KASAN stops after its first report.
		[ "$kernel" != debug ] || append+=" kasan_multi_shot"
		# Less than the default of two minutes, which is longer than any test.
		append+=" sysctl.kernel.hung_task_timeout_secs=$hung_s"
		# The first memory group would patch the allocator's code while
		# other CPUs run it, which multi-threaded emulation may get wrong
		# ("Oops: int3" in kmem_cache_alloc).
		append+=" cgroup.memory=nokmem"
	fi
	qemu+=(-append "$append")
	qemu_share root "$lab_dir/root" ,readonly=on
	qemu_share modules "$lab_dir/kernel-$kernel/lib/modules" ,readonly=on
	qemu_share host "$checkout" ,readonly=on
	qemu_share lab "$dir"
	[ -z "$build" ] || qemu_share build "$build"
}

# machine_start DIR KERNEL_ARGUMENTS [QEMU_ARGUMENT...]: leaves the process id in
# machine_pid. timeout(1) keeps the time limit. It also dies with this process and ends
# QEMU, whatever kills this process, unless machine_keep is set.
machine_start()
{
	local dir=$1 qemu

	machine_qemu "$dir" "$2"
	shift 2
	setpriv --pdeathsig "${machine_keep:-TERM}" \
		timeout --kill-after 5 "$timeout_s" \
		"${qemu[@]}" "$@" </dev/null >"$dir/qemu.log" 2>&1 &
	machine_pid=$!
}

machine_stop()
{
	kill "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# machine_stream DIR NAME PID: copies the output of a command as it comes, until
# the process PID is gone. Leaves the process ids to wait for in stream_pids.
machine_stream()
{
	: > "$1/$2.stdout"
	: > "$1/$2.stderr"
	tail -c +1 -s 0.1 --pid="$3" -f "$1/$2.stdout" &
	stream_pids=($!)
	tail -c +1 -s 0.1 --pid="$3" -f "$1/$2.stderr" >&2 &
	stream_pids+=($!)
}

machine_console()
{
	tr -d '\r' 2>/dev/null < "$1/console"
}

# machine_last_words DIR: prints why a machine ended that was not told to
machine_last_words()
{
	machine_console "$1" | grep -m 1 -E 'Oops|panic' || echo "its console does not say why"
}

# machine_find_splat DIR [FIRST_LINE]: shows the first splat in the kernel log
# from that line on and what follows it; fails if there is none.
machine_find_splat()
{
	local log line

	log=$(machine_console "$1" | tail -n "+${2:-1}")
	line=$(grep -m 1 -n -E -f <(grep -v -e '^#' -e '^$' "$lab/splats") <<<"$log") || return 1
	lab_say "the kernel log has a splat:"
	tail -n "+${line%%:*}" <<<"$log" | head -n 60 >&2
}

# machine_result DIR NAME STATUS: called after QEMU has ended with STATUS. Returns the
# exit code for the caller, and prints what went wrong.
machine_result()
{
	local dir=$1 code

	code=$(cat "$dir/$2.exit" 2>/dev/null)
	if machine_find_splat "$dir"; then
		lab_say "failed by the splat above; the command: ${code:-no result}"
		return "$machine_splat_status"
	fi
	[ -z "$code" ] || return "$code"

	lab_say "the console ends with:"
	machine_console "$dir" | tail -n 20 >&2
	cat "$dir/qemu.log" >&2
	if [ "$3" = 124 ]; then
		if [ -e "$dir/ready" ]; then
			lab_say "no result: the command did not end within $timeout_s s"
		else
			lab_say "no result: the machine did not boot within $timeout_s s"
		fi
		return "$machine_timeout_status"
	fi
	lab_say "no result: the machine ended before the command did"
	return "$machine_lost_status"
}
