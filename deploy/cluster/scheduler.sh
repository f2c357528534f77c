#!/usr/bin/env bash
# The scheduler: scheduler.sh [PORT [TLS_FOLDER]]
set -euo pipefail
# Without TLS its pages, which name tasks and machines, are for this machine alone.
port=${1:-8786}
tls=${2:-tls}
exec dask scheduler --protocol tls --port "$port" --no-dashboard --dashboard-address 127.0.0.1:0 \
    --tls-ca-file "$tls/ca.pem" --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem"
