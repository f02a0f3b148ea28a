#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A pool of a real etcd that speaks TLS (etcds://), wants a certificate of each client, and a password:
# with all of these servers announce themselves and are found; without one of them nothing is.

. "$(dirname "$0")/rdmabox.sh"
. "$(dirname "$0")/etcd.sh"

command -v openssl >/dev/null || { echo "openssl is not installed: skipped"; exit 77; }
pool=etcds://$endpoint/test
cd "$scratch" || exit 1

# certificate NAME USAGE [SUBJECT] - NAME.pem and NAME.key, of ca.pem
certificate()
{
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" \
		-out "$1.csr" -subj "${3:-/CN=$1}" 2>/dev/null &&
		openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$1.pem" \
			-extfile <(printf '%s\n' "subjectAltName=IP:$host" "extendedKeyUsage=$2" \
				authorityKeyIdentifier=keyid) 2>/dev/null ||
		fault "no certificate of $1"
	chmod 0600 "$1.key"
}

# authority NAME - NAME.pem and NAME.key, which sign for themselves
authority()
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.pem" \
		-days 2 -subj "/CN=$1" -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null || fault "no authority $1"
}

authority ca
authority other
certificate etcd serverAuth,clientAuth # its JSON gateway is a client of its own
certificate client clientAuth
start_etcd https --cert-file etcd.pem --key-file etcd.key --client-cert-auth --trusted-ca-file ca.pem

# auth WHAT [JSON] - a call of etcd about its users
auth()
{
	python3 - "https://$endpoint/v3/auth/$1" "${2:-{\}}" <<-'END' || fault "etcd: auth $1"
		import ssl, sys, urllib.request
		context = ssl.create_default_context(cafile="ca.pem")
		context.load_cert_chain("client.pem", "client.key")
		urllib.request.urlopen(sys.argv[1], sys.argv[2].encode(), timeout=10, context=context).read()
	END
}

# unfound PATTERN - pool status finds no pool, and says why
unfound()
{
	run pool status "$pool"
	[ "$status" = 2 ] && grep -qE -- "$1" err || { show; fault "does not say $1"; }
}

export RDMABOX_ETCD_CA_FILE=ca.pem RDMABOX_ETCD_CERT_FILE=client.pem RDMABOX_ETCD_KEY_FILE=client.key
until_true answers
RDMABOX_ETCD_CA_FILE=other.pem unfound 'etcd at .*certificate'
RDMABOX_ETCD_CA_FILE='' unfound 'etcd at .*certificate'
RDMABOX_ETCD_CERT_FILE='' RDMABOX_ETCD_KEY_FILE='' unfound 'etcd at ' # it ends the connection, and tells nothing
chmod 0644 client.key
unfound 'client.key'
chmod 0600 client.key
pool=etcd://$endpoint/test unfound 'etcd at'

# ---- A certificate is not enough ------------------------------------------------------------------

auth user/add '{"name": "root", "password": "first"}'
auth role/add '{"name": "root"}'
auth user/grant '{"user": "root", "role": "root"}'
auth enable
unfound 'etcd at .*no certificate of a client with a CommonName'
certificate nameless clientAuth /O=nameless
export RDMABOX_ETCD_CERT_FILE=nameless.pem RDMABOX_ETCD_KEY_FILE=nameless.key
unfound 'etcd at .*RDMABOX_ETCD_USER_FILE'
(umask 077 && echo root:wrong >user)
RDMABOX_ETCD_USER_FILE=user unfound 'etcd at .*password'
echo root:first >user
export RDMABOX_ETCD_USER_FILE=user
answers || { show; fault "a user of etcd does not reach it"; }

start_server --memory 64M --slab 4M --announce "$pool"
up()
{
	answers && grep -qE "^$address +up " out
}
until_true up
expect_success volume create db --size 8M --pool "$pool"
head -c 8M /dev/urandom >data
expect_success volume import db data --pool "$pool"
expect_success volume export db copy --pool "$pool"
cmp data copy || fault "other contents"
