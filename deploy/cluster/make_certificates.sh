#!/usr/bin/env bash
# Makes tls/: an authority for this cluster alone, and one certificate that every process shows.
# ca.key signs further ones; keep it off the machines.
set -euo pipefail
folder=${1:-tls}
umask 077
mkdir -p "$folder"
cd "$folder"
if [[ -e ca.key ]]; then
    echo "$PWD/ca.key exists already; remove it, or name another folder" >&2
    exit 1
fi
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${curve[@]}" -days 730 -subj "/CN=bigkd authority" -keyout ca.key -out ca.pem
openssl req "${curve[@]}" -subj "/CN=bigkd" -keyout key.pem -out cert.csr
openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -out cert.pem
rm cert.csr
openssl verify -CAfile ca.pem cert.pem
