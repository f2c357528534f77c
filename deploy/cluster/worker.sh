#!/usr/bin/env bash
# Workers of one machine, a process for each core: worker.sh ADDRESS [PROCESSES [TLS_FOLDER]]
set -euo pipefail
address=${1:?address of the scheduler, such as tls://scheduler.example.org:8786}
processes=${2:-$(nproc)}
tls=${3:-tls}
# Parallelism is Dask's, and thread counts change the last bits of sums.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
exec dask worker "$address" --nworkers "$processes" --nthreads 1 --memory-limit auto \
    --death-timeout 60 --no-dashboard --dashboard-address 127.0.0.1:0 \
    --tls-ca-file "$tls/ca.pem" --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem"
