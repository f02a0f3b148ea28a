#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox serve --memory-file: a server that is stopped or killed and started again has its named
# volumes with all contents; a file that is not fit is refused with cause and fix, and left alone.

. "$(dirname "$0")/rdmabox.sh"

memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
file=$memory/file
cd "$scratch" || exit 1

# start ADDRESS - a server with the file
start()
{
	start_server --listen "$1" --memory 32M --slab 4M --memory-file "$file"
}

# The same server.
again()
{
	start "$address"
}

# end SIGNAL STATUS - of the server
end()
{
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
	[ $? = "$2" ] || fault "the server ended with another exit code than $2 after $1"
}

# there - the volume is as it was
there()
{
	expect_success volume export db copy --pool "$address"
	cmp data copy || fault "other contents $1"
}

# refuse PATTERN OPTION... - the server does not start, and the file stays as it is
refuse()
{
	local pattern=$1 before

	shift
	before=$(stat -c '%s %Y' "$file")
	expect_refusal "$pattern" serve --listen 127.0.0.1:0 --memory 32M --slab 4M \
		--memory-file "$file" "$@"
	[ "$before" = "$(stat -c '%s %Y' "$file")" ] || fault "the file was changed"
}

# ---- killed and stopped -------------------------------------------------------------------------

start $host:0
[ "$(stat -c %a "$file")" = 600 ] || fault "others may read the file"
expect_success volume create db --size 16M --pool "$address"
head -c 16M /dev/urandom >data
expect_success volume import db data --pool "$address"
refuse "memory file $file is another server's that runs"
end KILL 137
again
there "after a kill"
end TERM 0
grep -q 'still lent' "$scratch"/server.*.err && fault "it waits for slabs that stay"
again
there "after a stop"

# ---- a program that writes ------------------------------------------------------------------------

"$rdmabox" bench --pool "$address" --volume-name db --op write --runtime 60 >bench.out 2>&1 &
writer=$!
until expect_success volume show db --json --pool "$address" && [ "$(key is_open)" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
end KILL 137
kill -KILL $writer
wait $writer 2>/dev/null
again
expect_success volume export db copy --pool "$address"
cp copy data
there "that are read twice"

# ---- files that are not fit -----------------------------------------------------------------------

end KILL 137
refuse 'give --slab 4096K' --slab 2M
refuse 'give --memory [0-9]+K or more' --memory 8M
chmod 640 "$file"
refuse 'is open to others .mode 640.; close it with: chmod 600'
chmod 600 "$file"
cp "$file" "$file.old"
mv "$file" "$file.real"
cp "$file.old" "$file"
refuse 'is a copy, and may be older .*; it is left as it is: name another file, or remove it'
mv "$file.real" "$file"
printf 'something else' | dd of="$file" conv=notrunc bs=1 seek=512 count=14 status=none
printf 'something else' | dd of="$file" conv=notrunc bs=1 seek=768 count=14 status=none
refuse 'is none of rdmabox serve, or is damaged; it is left as it is'
echo 'my only copy of a letter' >"$file"
refuse 'is none of rdmabox serve; it is left as it is'
rm "$file"
mkdir "$file"
refuse 'cannot open memory file .*: Is a directory'
rmdir "$file"
mkfifo "$file"
refuse 'is not a file'
rm "$file"
expect_refusal 'cannot make memory file /nowhere/file: No such file' serve --listen 127.0.0.1:0 \
	--memory 32M --slab 4M --memory-file /nowhere/file
expect_refusal 'memory-file' serve --listen 127.0.0.1:0 --memory 32M \
	--memory-file "/dev/shm/$(printf '%0300d' 7)"
expect_refusal 'memory-file' serve --listen 127.0.0.1:0 --memory 32M --memory-file

# ---- a configuration file; a new server ------------------------------------------------------------

printf '%s\n' 'memory = 32M' 'slab = 4M' "memory-file = $file" >conf
start_server --config conf
expect_success volume list --json --pool "$address"
[ "$(key volumes)" = '[]' ] || { show; fault "a new server has volumes"; }
expect_success volume create db --size 8M --pool "$address"
sed -i '/memory-file/d' conf
kill -HUP "$pid"
until grep -q 'memory_file (--memory-file) cannot change while the server runs' \
	"$scratch/server.$((${#server_pids[@]} - 1)).err"; do
	kill -0 "$pid" || fault "the server ended at a reload"
done
[ -z "$(find "$memory" -name '*.rdmabox-new')" ] || fault "a file is left that was not finished"
