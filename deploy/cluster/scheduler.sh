#!/usr/bin/env bash
# The scheduler: scheduler.sh [PORT [TLS_FOLDER]]
set -euo pipefail
port=${1:-8786}
tls=${2:-tls}
exec dask scheduler --protocol tls --port "$port" --no-dashboard \
    --tls-ca-file "$tls/ca.pem" --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem"
