"""Workers in pods of Kubernetes, which the Dask operator starts."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import uuid4

from distributed import Client
from pydantic import Field, model_validator

from bigkd.engine.connections import ONE_THREAD
from bigkd.errors import ClusterError
from bigkd.io.optional import require
from bigkd.jobs.base import Bytes, Part, Positive, Whole
from bigkd.jobs.clusters.base import (
    DEATH_TIMEOUT,
    AdaptivePart,
    StartedPart,
    in_bytes,
    per_thread,
)

IDLE_SECONDS = 600
"""How long a cluster may idle before the operator deletes it: its client was killed."""

CLOSE_SECONDS = 120
"""How long to watch a cluster being deleted."""

USER = 1000
"""Number of the user that pods run as, and of the group that volumes belong to."""

Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
"""A name that Kubernetes takes, with room for what is added to it."""

Image: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$")]
Variable: TypeAlias = Annotated[
    str, Field(pattern=r"^(AWS|AZURE|GOOGLE|GCS|FSSPEC|BIGKD)_[A-Z0-9_]+$")
]
"""An environment variable that holds a credential or says where one is."""

Folder: TypeAlias = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$")]
SecretKey: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]


class SecretPart(Part):
    """Where Kubernetes keeps a secret; the secret itself never stands in a job file."""

    secret: Name = Field(description="name of the Secret")
    key: SecretKey = Field(description="key in it")


class KubernetesPart(StartedPart):
    """Scheduler and workers in pods, through the Dask operator, deleted afterwards."""

    kind: Literal["kubernetes"]
    image: Image = Field(description="container image with bigkd, the same as this process runs")
    name: Name = Field(default="bigkd", description="what the cluster's name begins with")
    namespace: Name | None = Field(default=None, description="namespace; the current one's else")
    n_workers: Whole | None = Field(default=None, description="how many workers; one by default")
    adaptive: AdaptivePart | None = Field(
        default=None, description="in place of n_workers: fewest and most, as there is work"
    )
    cores: Whole = Field(default=1, description="cores of each worker, and its threads")
    memory: Bytes = Field(description="memory of each worker, and of the scheduler")
    secrets: dict[Variable, SecretPart] = Field(
        default={}, description="environment variables of the pods, from Secrets"
    )
    volumes: dict[Folder, Name] = Field(
        default={}, description="folders of the pods, each with its PersistentVolumeClaim"
    )
    wait_seconds: Positive = Field(
        default=600.0, description="how long the first worker may take to come"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.adaptive is not None and self.n_workers is not None:
            raise ValueError("has n_workers beside adaptive; leave one out")
        return self

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of new pods, which are deleted afterwards."""
        name = f"{self.name}-{uuid4().hex[:8]}"
        options = self.options(name)
        try:
            cluster = _operator().KubeCluster(**options)
        except BaseException as error:  # of three HTTP libraries, each with errors of its own
            _delete(name, self.namespace)
            if not isinstance(error, Exception):
                raise
            raise ClusterError(
                f"the kubernetes cluster {name} could not be started: {type(error).__name__}: "
                f"{error}. Is the Dask operator installed, and may this account use it?"
            ) from error
        try:
            with Client(cluster, set_as_default=False) as client:
                if self.adaptive is not None:
                    cluster.adapt(minimum=self.adaptive.minimum, maximum=self.adaptive.maximum)
                yield client
        finally:
            with suppress(TimeoutError):  # Kubernetes was told; it goes on with it
                cluster.close(timeout=CLOSE_SECONDS)

    def options(self, name: str) -> dict[str, Any]:
        """Keywords of `dask_kubernetes.operator.KubeCluster`."""
        return {
            "custom_cluster_spec": self.manifest(name),
            "namespace": self.namespace,
            "shutdown_on_close": True,
            "resource_timeout": int(self.wait_seconds),
            "quiet": True,
        }

    def manifest(self, name: str) -> dict[str, Any]:
        """The DaskCluster called `name`."""
        memory = str(in_bytes(self.memory))
        resources = {"cpu": str(self.cores), "memory": memory}
        threads = ["--nthreads", str(self.cores), "--memory-limit", memory]
        spec: dict[str, Any] = _operator().make_cluster_spec(
            name=name,
            image=self.image,
            n_workers=self._least,
            resources={"requests": resources, "limits": resources},
            env=self._environment(),
            worker_command=["dask", "worker", *threads, "--death-timeout", str(DEATH_TIMEOUT)],
            idle_timeout=IDLE_SECONDS,
        )
        for role in ("scheduler", "worker"):
            self._secure(spec["spec"][role]["spec"])
        scheduler = spec["spec"]["scheduler"]["spec"]["containers"][0]
        scheduler["args"] = ["dask", "scheduler", "--host", "0.0.0.0"]  # within its own pod
        return spec

    def require_usable(self) -> None:
        """Raise MissingDependencyError without dask-kubernetes."""
        _operator()

    def memory_per_thread(self) -> int:
        """Bytes that one task may use."""
        return per_thread(self.memory, threads=self.cores)

    def whereabouts(self) -> str:
        """What to look at when no worker comes."""
        return (
            f"Look at: kubectl describe pods -l dask.org/component=worker; its image: {self.image}."
        )

    def _environment(self) -> list[dict[str, Any]]:
        plain = [{"name": name, "value": value} for name, value in ONE_THREAD.items()]
        secret = [
            {
                "name": name,
                "valueFrom": {"secretKeyRef": {"name": where.secret, "key": where.key}},
            }
            for name, where in self.secrets.items()
        ]
        return [*plain, *secret]

    def _secure(self, pod: dict[str, Any]) -> None:
        """Run `pod` as nobody in particular, with the volumes of the job."""
        pod["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        pod["automountServiceAccountToken"] = False
        (container,) = pod["containers"]
        container["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        claims = list(dict.fromkeys(self.volumes.values()))
        if claims:
            pod["volumes"] = [
                {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims
            ]
            container["volumeMounts"] = [
                {"name": claim, "mountPath": folder} for folder, claim in self.volumes.items()
            ]

    @property
    def _least(self) -> int:
        return (self.n_workers or 1) if self.adaptive is None else self.adaptive.minimum


def _operator() -> Any:
    return require("dask_kubernetes.operator", extra="kubernetes")


def _delete(name: str, namespace: str | None) -> None:
    """Delete what there may be of a cluster that did not start."""
    kr8s = require("kr8s", extra="kubernetes")
    with suppress(Exception):  # what kept it from starting may keep this from working
        for found in kr8s.get("daskclusters.kubernetes.dask.org", name, namespace=namespace):
            found.delete()
