"""`cluster` of a job file: what it may say, what is started for it, and what is refused."""

import inspect
import subprocess
import sys
from pathlib import Path

import dask
import dask_kubernetes
import jsonschema
import pytest
import yaml
from dask_jobqueue import SLURMCluster
from dask_kubernetes.operator import KubeCluster
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from bigkd.errors import ClusterError, InputError, JobFileError, MissingDependencyError
from bigkd.jobs import load_job
from bigkd.jobs.clusters import ClusterPart, check_cluster, memory_per_thread, opened_cluster
from bigkd.jobs.clusters import kubernetes as kubernetes_part
from bigkd.jobs.clusters.cuda import CudaPart
from tests.cluster.processes import certificates

SLURM = {"kind": "slurm", "cores": 4, "memory": "8 GiB"}
KUBERNETES = {"kind": "kubernetes", "image": "bigkd:1", "memory": "4 GiB"}

# Of dask-cuda 26.10.0, which is not installed where there is no GPU.
CUDA_KEYWORDS = {
    "CUDA_VISIBLE_DEVICES", "n_workers", "threads_per_worker", "memory_limit",
    "device_memory_limit", "local_directory",
}  # fmt: skip
LOCAL_KEYWORDS = {"dashboard_address", "scheduler_kwargs"}

PARTS = TypeAdapter(ClusterPart)


def part(**given):
    return PARTS.validate_python(given)


@pytest.fixture
def refused(tmp_path):
    """What `load_job` says about a cluster."""

    def refused(**cluster):
        path = tmp_path / "job.yaml"
        distance = {"x": "x.npy", "y": "y.npy", "kernel": "median"}
        path.write_text(yaml.safe_dump({"distance": distance, "cluster": cluster}))
        with pytest.raises(JobFileError) as error:
            load_job(path)
        return str(error.value)

    return refused


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"kind": "slrum"}, "has the kind 'slrum', which must be one of 'local'"),
        ({"kind": "slrum"}, "Did you mean slurm?"),
        ({"n_workers": 2}, "must have a kind: local, address, slurm, kubernetes, cuda"),
        ({"kind": "local", "workers": 2}, "cluster.workers is not a key here. Did you mean n_work"),
        ({"kind": "local", "n_workers": 0}, "cluster.n_workers must be greater than or equal to 1"),
        ({"kind": "slurm", "cores": 1}, "cluster.memory is missing: memory of each job"),
        ({**SLURM, "n_jobs": 2, "adaptive": {"maximum": 3}}, "has n_jobs beside adaptive"),
        ({**SLURM, "adaptive": {"minimum": 4, "maximum": 3}}, "has a minimum of 4 above"),
        ({**SLURM, "processes": 3}, "shares 4 cores among 3 processes"),
        ({**SLURM, "job_script_prologue": ["true"]}, "is not a key here"),
        ({**SLURM, "worker_extra_args": ["--preload=x"]}, "is not a key here"),
        ({"kind": "address", "address": "tcp://me:secret@host:1"}, "cluster.address is a tcp:// U"),
        ({"kind": "address", "address": "ucx://host:1"}, "must be tcp://host:port or tls://host"),
        (
            {
                "kind": "address",
                "address": "tcp://host:1",
                "tls": {"ca_file": "a", "cert": "b", "key": "c"},
            },
            "has certificates and an address with tcp://",
        ),
        ({**KUBERNETES, "secrets": {"LD_PRELOAD": {"secret": "a", "key": "b"}}}, "LD_PRELOAD"),
        ({**KUBERNETES, "secrets": {"AWS_KEY": "AKIA"}}, "must be a mapping of keys to values"),
        ({**KUBERNETES, "name": "{user}"}, "cluster.name"),
        ({**KUBERNETES, "volumes": {"/data/../etc": "claim"}}, "/data/../etc"),
    ],
)
def test_cluster__says_what_is_wrong(cluster, told, refused):
    message = refused(**cluster)
    assert "line " in message
    assert told in message
    assert "secret@" not in message


DANGEROUS = [
    "a\nrm -rf /", "a;b", "$(id)", "`id`", "a b", "a'b", 'a"b', "a|b", "a&b", "a>b", "a\\b",
    "$HOME", "a\rb", "a#b", "{user}", "a\n",
]  # fmt: skip
FIELDS = ["partition", "account", "walltime", "interface", "local_directory", "log_directory"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", DANGEROUS)
def test_slurm__holds_nothing_that_a_shell_would_act_on(field, text):
    with pytest.raises(ValidationError):
        part(**SLURM, **{field: text})
    with pytest.raises(ValidationError):
        part(**SLURM, tls={"ca_file": text, "cert": "b", "key": "c"})


@pytest.mark.parametrize(
    "directive",
    [
        "--wrap=id", "--export=ALL,LD_PRELOAD=x.so", "--output=/etc/passwd", "--chdir=/", "-p x",
        "--qos=a b", "--qos=a;b", "--qos=$(id)", "--qos=a\n#SBATCH --wrap=id", "--qos=a\nid", "id",
        "--container=x", "--get-user-env", "--bb=x", "--uid=0", "--prolog=x", "--qos='a'", "--qos=",
    ],
)  # fmt: skip
def test_directives__are_chosen_from_a_list(directive):
    with pytest.raises(ValidationError, match="must be --NAME or --NAME=VALUE"):
        part(**SLURM, directives=[directive])


def script_of(found):
    """The batch script that would be submitted, after bash found that it is one."""
    with SLURMCluster(job_name="bigkd-test", **found.options()) as cluster:
        script = cluster.job_script()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=10)
    return script.splitlines()


def test_slurm__submits_what_the_job_file_says(tmp_path):
    tls = certificates(tmp_path / "tls")
    found = part(
        **SLURM, processes=2, partition="long,short", account="team-1", walltime="1-02:00:00",
        interface="lo", local_directory="/scratch/me", log_directory=str(tmp_path / "logs"),
        directives=["--constraint=a100|v100", "--exclusive", "--mail-user=me@example.org"],
        tls=tls,
    )  # fmt: skip
    with dask.config.set({"jobqueue.slurm.job-script-prologue": ["module load python"]}):
        lines = script_of(found)
    header = [line for line in lines if line.startswith("#SBATCH")]
    assert {
        "#SBATCH -p long,short", "#SBATCH -A team-1", "#SBATCH -t 1-02:00:00",
        "#SBATCH --cpus-per-task=4", "#SBATCH --mem=8G", "#SBATCH --constraint=a100|v100",
        "#SBATCH --exclusive", "#SBATCH --mail-user=me@example.org", "#SBATCH -J bigkd-test",
    } <= set(header)  # fmt: skip
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands[0] == "module load python"
    assert set(commands[1:-1]) == {
        f"export {name}_NUM_THREADS=1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")
    }
    assert commands[-1].startswith(f"{sys.executable} -m distributed.cli.dask_worker tls://")
    for option in (
        "--nthreads 2", "--nworkers 2", "--memory-limit 4.00GiB", "--death-timeout 60",
        "--interface lo", "--local-directory /scratch/me", "--protocol tls://",
        f"--tls-ca-file {tls['ca_file']}", f"--tls-cert {tls['cert']}", f"--tls-key {tls['key']}",
    ):  # fmt: skip
        assert option in commands[-1]
    assert memory_per_thread(found) == int(0.8 * 2 * 1024**3)


@given(field=st.sampled_from([*FIELDS, "directives"]), text=st.text(min_size=1, max_size=12))
def test_slurm__fuzzed__keeps_its_script_to_the_lines_it_has(field, text):
    value = [f"--qos={text}"] if field == "directives" else text
    try:
        found = part(**SLURM, **{field: value})
    except ValidationError:
        return
    kept = str(getattr(found, field))
    assert not set(text) & set("\n\r;`$<>\\\"' \0#~?!(){}"), kept
    if field != "directives":
        assert not set(text) & set("&|*[]%"), kept


def test_tls_of_slurm__is_given_to_both_sides():
    files = {"ca_file": "/tls/ca.pem", "cert": "/tls/cert.pem", "key": "/tls/key.pem"}
    security = part(**SLURM, tls=files).options()["security"]
    assert security.require_encryption
    for role in ("client", "scheduler", "worker"):
        found = security.get_tls_config_for_role(role)
        assert {name: found[name] for name in files} == files


def test_importing_dask_jobqueue__leaves_ctrl_c_as_it_is():
    code = (
        "import signal\n"
        "from bigkd.jobs.clusters import check_cluster\n"
        "from bigkd.jobs.clusters.slurm import SlurmPart\n"
        "try:\n"
        "    check_cluster(SlurmPart(kind='slurm', cores=1, memory='1 GiB'))\n"
        "except RuntimeError:\n"
        "    pass\n"
        "import dask_jobqueue\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def schema_of(kind):
    (path,) = Path(dask_kubernetes.__file__).parent.rglob(f"crds/{kind.lower()}.yaml")
    definition = yaml.safe_load(path.read_text())
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_kubernetes__asks_for_what_the_job_file_says():
    found = part(
        **KUBERNETES, name="nightly", namespace="team", n_workers=3, cores=2,
        secrets={"AWS_ACCESS_KEY_ID": {"secret": "s3", "key": "id"}},
        volumes={"/data": "rows", "/data/more": "rows"},
    )  # fmt: skip
    options = found.options("nightly-1")
    assert set(options) <= set(inspect.signature(KubeCluster).parameters)
    assert options["shutdown_on_close"]
    manifest = options["custom_cluster_spec"]
    jsonschema.validate(manifest, schema_of("DaskCluster"))
    assert manifest["metadata"]["name"] == "nightly-1"
    worker = manifest["spec"]["worker"]
    assert worker["replicas"] == 3
    for role in ("worker", "scheduler"):
        pod = manifest["spec"][role]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == "bigkd:1"
        assert container["resources"]["limits"] == {"cpu": "2", "memory": str(4 * 1024**3)}
        assert {"name": "NUMBA_NUM_THREADS", "value": "1"} in container["env"]
        where = {"secretKeyRef": {"name": "s3", "key": "id"}}
        assert {"name": "AWS_ACCESS_KEY_ID", "valueFrom": where} in container["env"]
        assert pod["volumes"] == [{"name": "rows", "persistentVolumeClaim": {"claimName": "rows"}}]
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
            "/data",
            "/data/more",
        }
    assert worker["spec"]["containers"][0]["args"][:4] == ["dask", "worker", "--nthreads", "2"]
    assert memory_per_thread(found) == int(0.8 * 2 * 1024**3)


def test_kubernetes__is_started_adapted_and_closed(monkeypatch):
    calls = []

    class Stand:
        def __init__(self, **options):
            inspect.signature(KubeCluster).bind(**options)
            self.local = dask.distributed.LocalCluster(
                n_workers=1, processes=False, dashboard_address="127.0.0.1:0"
            )
            self.scheduler_address = self.local.scheduler_address

        def adapt(self, **options):
            inspect.signature(KubeCluster.adapt).bind(self, **options)
            calls.append(options)

        def close(self, **options):
            inspect.signature(KubeCluster.close).bind(self, **options)
            self.local.close()
            calls.append("closed")

    monkeypatch.setattr("dask_kubernetes.operator.KubeCluster", Stand)
    monkeypatch.setattr(
        kubernetes_part, "Client", lambda cluster, **options: Client(cluster.local, **options)
    )
    monkeypatch.setattr("kr8s.get", lambda *arguments, **options: [])
    found = part(**KUBERNETES, adaptive={"minimum": 2, "maximum": 5})
    with pytest.raises(ZeroDivisionError), opened_cluster(found) as client:
        client.submit(divmod, 1, 0).result()
    assert calls == [{"minimum": 2, "maximum": 5}, "closed"]


@pytest.mark.parametrize("error", [RuntimeError("no CRDs"), KeyboardInterrupt()])
def test_kubernetes__that_does_not_start_is_deleted(error, monkeypatch):
    deleted = []

    class Begun:
        def delete(self):
            deleted.append(self)

    def get(kind, *names, namespace=None, **selectors):
        assert kind in {"daskclusters.kubernetes.dask.org", "pods"}
        assert all(name.startswith("nightly-") for name in names)
        assert namespace == "team"
        return [Begun() for _ in names]

    class Fails:
        def __init__(self, **options):
            raise error

    monkeypatch.setattr("dask_kubernetes.operator.KubeCluster", Fails)
    monkeypatch.setattr("kr8s.get", get)
    expected = ClusterError if isinstance(error, Exception) else KeyboardInterrupt
    found = part(**KUBERNETES, name="nightly", namespace="team")
    with pytest.raises(expected), opened_cluster(found):
        pass
    assert len(deleted) == 1


def test_cuda__passes_keywords_that_dask_cuda_has():
    found = part(
        kind="cuda", n_workers=2, devices=[0, 2], memory_limit="8 GiB",
        device_memory_limit="20 GiB", local_directory="/scratch", threads_per_worker=2,
    )  # fmt: skip
    assert isinstance(found, CudaPart)
    options = found.options()
    assert set(options) == CUDA_KEYWORDS | LOCAL_KEYWORDS
    assert options["device_memory_limit"] == 20 * 1024**3
    assert memory_per_thread(found) == int(0.8 * 4 * 1024**3)
    assert set(part(kind="cuda").options()) == {"threads_per_worker", *LOCAL_KEYWORDS}
    assert memory_per_thread(part(kind="cuda")) is None


@pytest.mark.parametrize(
    ("cluster", "module", "extra"),
    [
        (SLURM, "dask_jobqueue", "slurm"),
        (KUBERNETES, "dask_kubernetes.operator", "kubernetes"),
        ({"kind": "cuda"}, "dask_cuda", "cuda"),
    ],
)
def test_missing_extra__is_named(cluster, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'bigkd\[{extra}\]'"):
        check_cluster(part(**cluster))


def test_address__that_nobody_gives_is_told():
    with (
        dask.config.set({"scheduler-address": None}),
        pytest.raises(InputError, match="DASK_SCHEDULER_ADDRESS is not set"),
        opened_cluster(part(kind="address")),
    ):
        pass


def test_no_cluster__is_none():
    with opened_cluster(None) as found:
        assert found is None
    assert memory_per_thread(None) is None
    check_cluster(None)
