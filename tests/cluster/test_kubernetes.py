"""Jobs on a simulated Kubernetes with the real operator: the same bits; nothing stays in it."""

import json
import os
import re
import signal
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from bigkd.io import load_dataset
from tests.cluster.harm import send
from tests.cluster.kube import Kubernetes, until
from tests.cluster.kube_api import ADMIN, permissions
from tests.deploy.pages import DEPLOY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

FOLDER = DEPLOY / "kubernetes"
SECRET = "a-secret-that-nobody-tells"
DISTANCE = {
    "x": {"path": "x.npy", "block_rows": 500},
    "y": {"path": "y.npy", "block_rows": 500},
    "kernel": {"name": "gaussian", "sigma": 8.0},
    "method": "rff",
    "n_frequencies": 2000,
}
CLUSTER = {"kind": "kubernetes", "image": "bigkd:1", "memory": "1 GiB", "wait_seconds": 60.0}
MADE = ("daskclusters", "daskworkergroups", "daskautoscalers", "deployments", "services")

# The command line with tasks so small that many are done before and after any moment.
_SMALL_TASKS = """
import sys
from bigkd.cli import main
from bigkd.engine import stripes
stripes.STRIPE_WORK = 1
if __name__ == "__main__":
    main(sys.argv[1:])
"""

# Opens the clusters that its argument describes, all at once, each until it has two workers.
_OPEN = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
from pydantic import TypeAdapter
from bigkd.errors import ClusterError
from bigkd.jobs.clusters import ClusterPart, opened_cluster

def opened(part):
    try:
        with opened_cluster(TypeAdapter(ClusterPart).validate_python(part)) as client:
            futures = client.map(time.sleep, [0.2] * 200, pure=False)
            client.wait_for_workers(2, timeout=60)
            client.cancel(futures)
            return ["two workers"]
    except ClusterError as error:
        return [str(error), *getattr(error, "__notes__", [])]

if __name__ == "__main__":
    parts = json.loads(sys.argv[1])
    with ThreadPoolExecutor(len(parts)) as pool:
        sys.stdout.write(json.dumps(list(pool.map(opened, parts))))
"""

_NO_WORKER = """
import sys
if sys.argv[1] != "scheduler":
    sys.exit("no worker here")
from dask.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two collections, and the distance between them found in one thread."""
    folder = tmp_path_factory.mktemp("jobs")
    generator = np.random.default_rng(0)
    for name in ("x", "y"):
        np.save(folder / f"{name}.npy", generator.normal(size=(40_000, 64)).astype("f4"))
    (folder / "small.py").write_text(_SMALL_TASKS)
    (folder / "no_worker.py").write_text(_NO_WORKER)
    (folder / "open.py").write_text(_OPEN)
    job_file(folder, "truth")
    done = start(folder, "truth", dict(os.environ), "--scheduler", "sync")
    assert done.wait(100) == 0, errors(folder, "truth")
    return folder


@pytest.fixture(scope="module")
def kubernetes(folder, tmp_path_factory):
    """What deploy/kubernetes needs, and an operator."""
    dask = [sys.executable, "-m", "dask"]
    images = {
        "bigkd:1": {"dask": dask, "bigkd": [sys.executable, str(folder / "small.py")]},
        "no-worker:1": {"dask": [sys.executable, str(folder / "no_worker.py")]},
    }
    running = Kubernetes(tmp_path_factory.mktemp("kubernetes"), images, memory=4 * 1024**3)
    with running.running():
        running.account("bigkd")
        running.account("nobody")
        for name in ("rbac", "storage"):
            running.apply(*yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text("utf-8")))
        keys = ("access-key-id", "secret-access-key")
        data = {key: b64encode(SECRET.encode()).decode() for key in keys}
        running.apply(made("v1", "Secret", "bigkd-s3", data=data))
        with running.operator():
            yield running


def job_file(folder, name, /, **changes):
    job = {
        "distance": {
            **DISTANCE,
            **{side: {**DISTANCE[side], "path": str(folder / f"{side}.npy")} for side in "xy"},
        },
        "output": {"store": str(folder / f"{name}.zarr")},
        "run": {"progress_log": str(folder / f"{name}.progress")},
        "cluster": {**CLUSTER, **changes},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job))
    return path


def start(folder, name, environment, *options):
    """`bigkd run` of a job called `name`, as a process."""
    with (folder / f"{name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, str(folder / "small.py"), "run", f"{name}.yaml", *options],
            cwd=folder, stdout=log, stderr=log, env={**environment, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip


def errors(folder, name):
    return (folder / f"{name}.log").read_text()


def progress(folder, name, share):
    """Whether `share` of a pass of the job `name` is done."""
    path = folder / f"{name}.progress"
    lines = path.read_text().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return any(event["done"] >= share * event["total"] for event in events)


def assert_same_bits(folder, name):
    found, truth = (
        load_dataset(folder / f"{each}.zarr", kind="distance").load() for each in (name, "truth")
    )
    xr.testing.assert_identical(found, truth)


def names(kubernetes, plural):
    return [found["metadata"]["name"] for found in kubernetes.all(plural)]


def assert_empty(kubernetes):
    """Nothing is left of clusters, also of their pods."""

    def left():
        pods = [pod for role in ("scheduler", "worker") for pod in kubernetes.pods(role)]
        return [name for plural in MADE for name in names(kubernetes, plural)] + pods

    until(lambda: not left(), 90, lambda: f"left: {left()}")


def test_cronjob__has_the_same_bits_though_a_worker_is_killed(kubernetes, folder):
    """As in deploy/kubernetes/README.md, with the rights and the secrets of it and no others."""
    nightly = yaml.safe_load((FOLDER / "nightly.yaml").read_text("utf-8"))
    cluster = {**nightly["cluster"], "cores": 1, "memory": "1 GiB"}
    del cluster["n_workers"]
    job = job_file(folder, "nightly", **cluster, adaptive={"minimum": 2, "maximum": 2})
    cronjob = yaml.safe_load((FOLDER / "cronjob.yaml").read_text("utf-8"))
    template = cronjob["spec"]["jobTemplate"]["spec"]
    kubernetes.apply(
        cronjob,
        made("v1", "ConfigMap", "bigkd-nightly", data={"nightly.yaml": job.read_text()}),
        made("batch/v1", "Job", "bigkd-now", spec=template),
    )

    def run():
        pods = kubernetes.all("pods")
        return next(pod for pod in pods if pod["metadata"]["name"].startswith("bigkd-now"))

    until(lambda: progress(folder, "nightly", 0.1), 90, lambda: kubernetes.log(run()))
    victim = kubernetes.pods("worker")[0]
    (pid,) = kubernetes.do(kubernetes.node.pids, victim)
    assert f"AWS_ACCESS_KEY_ID={SECRET}" in Path(f"/proc/{pid}/environ").read_text()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: run()["status"]["phase"] in {"Succeeded", "Failed"}, 120)
    assert run()["status"]["phase"] == "Succeeded", kubernetes.log(run())
    assert_same_bits(folder, "nightly")
    assert_empty(kubernetes)
    assert (victim["metadata"]["name"], 1) in kubernetes.do(restarted, kubernetes.api.objects)
    assert kubernetes.api.objects.pruned == []  # every word of the manifests is understood
    (role,) = kubernetes.all("roles")
    assert kubernetes.do(kubernetes.api.asked.get, "bigkd") == set(permissions(role))
    texts = [json.dumps(change) for _, plural, change in kubernetes.api.objects.changes
             if plural != "secrets"]  # fmt: skip
    kept = [*kubernetes.folder.glob("*.log"), *kubernetes.folder.glob("logs/*"),
            *folder.rglob("nightly*")]  # fmt: skip
    texts += [path.read_bytes().decode("latin-1") for path in kept if path.is_file()]
    assert not [text for text in texts if SECRET in text]


def restarted(objects):
    """Names of pods that were ready after a container of theirs had ended, and how many had."""
    return {
        (pod["metadata"]["name"], each["restartCount"])
        for _, plural, pod in objects.changes
        if plural == "pods"
        for each in pod.get("status", {}).get("containerStatuses", [])
        if each["ready"]
    }


def test_cluster__grows_with_the_work_and_goes_when_its_client_is_killed(kubernetes, folder):
    job_file(folder, "killed", name="killed")
    adaptive = {**CLUSTER, "adaptive": {"minimum": 1, "maximum": 2}}
    with ThreadPoolExecutor(1) as pool:
        client = start(folder, "killed", kubernetes.environment("bigkd"))
        grown = pool.submit(opened, kubernetes, folder, adaptive)
        try:
            until(lambda: progress(folder, "killed", 0.1), 90, lambda: errors(folder, "killed"))
        finally:
            send([client.pid], signal.SIGKILL)
            client.wait(10)
        (left,) = [name for name in names(kubernetes, "daskclusters") if name.startswith("killed")]
        cluster = kubernetes.get("daskclusters", left)
        assert cluster["spec"]["idleTimeout"] == 600 + CLUSTER["wait_seconds"]
        kubernetes.patch("daskclusters", left, {"spec": {"idleTimeout": 2}})  # 11 minutes later
        assert grown.result() == [["two workers"]]
    assert_empty(kubernetes)
    assert any(name.startswith("killed") and "worker" in name for name in kubernetes.api.logs)


LATE = "it has no scheduler after 12 s"
FAULTS = [
    ({"image": "absent:1"}, LATE, "Pending, ErrImagePull, failed to pull image absent:1"),
    ({"memory": "64 GiB"}, LATE, "Pending, Unschedulable, 0/1 nodes: 1 Insufficient memory"),
    (
        {"secrets": {"AWS_REGION": {"secret": "bigkd-s3", "key": "region"}}},
        LATE, 'CreateContainerConfigError, secret "bigkd-s3" or its key region not found',
    ),
    ({"image": "no-worker:1"}, "no worker came to the kubernetes cluster", "CrashLoopBackOff"),
]  # fmt: skip


def test_pods_that_do_not_start__are_told_with_their_reasons(kubernetes, folder):
    parts = [{**CLUSTER, "wait_seconds": 12.0, **changes} for changes, *_ in FAULTS]
    found = opened(kubernetes, folder, *parts)
    for (_, *expected), told in zip(FAULTS, found, strict=True):
        for words, text in zip(expected, told, strict=True):
            assert words in text
    assert_empty(kubernetes)


@pytest.mark.parametrize(
    ("account", "namespace", "told"),
    [
        ("nobody", None, 'daskclusters.*is forbidden: User ".*:nobody" cannot list.* rbac.yaml'),
        (ADMIN, "elsewhere", "Is the Dask operator installed.*the Dask operator did not make them"),
    ],
)
def test_kubernetes__that_starts_nothing_is_told(account, namespace, told, kubernetes, folder):
    job_file(folder, account, namespace=namespace, wait_seconds=2.0)
    done = start(folder, account, kubernetes.environment(account))
    assert done.wait(60) == 5, errors(folder, account)
    assert re.search(told, " ".join(errors(folder, account).split()))
    assert "Traceback" not in errors(folder, account)
    assert kubernetes.everywhere("daskclusters") == []


def opened(kubernetes, folder, *parts):
    """What became of clusters that were opened at once."""
    done = subprocess.run(
        [sys.executable, str(folder / "open.py"), json.dumps(parts)], cwd=folder,
        env=kubernetes.environment("bigkd"), capture_output=True, text=True, timeout=150,
        check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout)


def made(version, kind, name, **rest):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}
