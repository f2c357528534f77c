"""Workers in pods of Kubernetes, which the Dask operator starts."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import uuid4

from dask import config
from distributed import Client
from distributed.deploy.cluster import Cluster
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

logger = logging.getLogger(__name__)

IDLE_SECONDS = 600
"""How long a cluster may idle before the operator deletes it, as its client was killed; besides
the time that its first worker may take to come."""

CLOSE_SECONDS = 20
"""How long to watch a cluster being deleted; the operator takes a minute over some."""

CLUSTERS = "daskclusters.kubernetes.dask.org"

ROUTES = "distributed.scheduler.http.routes"
OPERATOR_ROUTE = "distributed.http.scheduler.api"
"""What the operator asks whether a scheduler idles; else it sends it Python code to find out."""

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
        default=600.0, description="how long the scheduler may take, and then the first worker"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.adaptive is not None and self.n_workers is not None:
            raise ValueError("has n_workers beside adaptive; leave one out")
        return self

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of new pods, which are deleted afterwards."""
        _rehearse(self.namespace)
        name = f"{self.name}-{uuid4().hex[:8]}"
        options = self.options(name)
        try:
            cluster = _limited(self.wait_seconds)(**options)
        except Exception as error:  # of three HTTP libraries, each with errors of its own
            found = self._not_started(name, error)
            _delete(name, self.namespace)
            raise found from error
        except BaseException:
            _delete(name, self.namespace)
            raise
        try:
            with Client(cluster, set_as_default=False) as client:
                self._adapt(cluster, name)
                try:
                    yield client
                except ClusterError as error:
                    error.add_note(_said(name, self.namespace))
                    raise
        finally:
            _close(cluster, self.namespace)

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
            idle_timeout=IDLE_SECONDS + int(self.wait_seconds),  # it idles until workers come
        )
        for role in ("scheduler", "worker"):
            self._secure(spec["spec"][role]["spec"])
        scheduler = spec["spec"]["scheduler"]["spec"]["containers"][0]
        scheduler["args"] = ["dask", "scheduler", "--host", "0.0.0.0"]  # within its own pod
        routes = str([*config.get(ROUTES), OPERATOR_ROUTE])
        routes_name = f"DASK_{ROUTES.replace('.', '__').upper()}"
        scheduler["env"] = [*scheduler["env"], {"name": routes_name, "value": routes}]
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

    def _adapt(self, cluster: Any, name: str) -> None:
        if self.adaptive is None:
            return
        try:
            cluster.adapt(minimum=self.adaptive.minimum, maximum=self.adaptive.maximum)
        except Exception as error:
            raise self._not_started(name, error) from error

    def _not_started(self, name: str, error: Exception) -> ClusterError:
        late = f"it has no scheduler after {self.wait_seconds:g} s"
        what = late if isinstance(error, TimeoutError) else _words(error)
        found = ClusterError(
            f"the kubernetes cluster {name} could not be started: {what}. Is the Dask operator "
            f"installed, can the image {self.image} be pulled, and may this account use them (see "
            f"rbac.yaml in deploy/kubernetes)?"
        )
        found.add_note(_said(name, self.namespace))
        return found

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


def _limited(seconds: float) -> Any:
    """`KubeCluster` that gives up after `seconds`; of itself it waits for a scheduler forever.

    It does not wait for the phase Running first: the operator writes Running and Pending at once,
    so that a cluster may be called Pending for good.
    """
    base = _operator().KubeCluster

    async def no_phase(cluster: Any) -> None:
        return

    async def start(cluster: Any) -> None:
        try:
            await asyncio.wait_for(base._start(cluster), seconds)
        except BaseException:
            await Cluster._close(cluster)  # that of Dask: what is in Kubernetes is deleted by name
            raise

    changed = {"_start": start, "_wait_for_controller": no_phase}
    return type("LimitedKubeCluster", (base,), changed)


def _rehearse(namespace: str | None) -> None:
    """Ask Kubernetes for clusters: one question is answered more clearly than many at once."""
    kr8s = require("kr8s", extra="kubernetes")
    try:
        list(kr8s.get(CLUSTERS, namespace=namespace))
    except Exception as error:  # of three HTTP libraries, each with errors of its own
        raise ClusterError(
            f"Kubernetes does not answer about Dask clusters: {_words(error)}. Install the Dask "
            f"operator, and give this account the role of rbac.yaml in deploy/kubernetes."
        ) from error


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")


def _close(cluster: Any, namespace: str | None) -> None:
    """Delete a cluster; the work is done, so that only an interruption is an error."""
    try:
        cluster.close(timeout=CLOSE_SECONDS)
    except TimeoutError:  # Kubernetes was told; it goes on with it
        return
    except BaseException as error:
        _delete(cluster.name, namespace)
        if not isinstance(error, Exception):
            raise
        logger.warning(
            "the kubernetes cluster %s could not be closed (%s: %s); if it is still there, the "
            "Dask operator deletes it once it has idled long enough, or kubectl delete "
            "daskcluster %s does",
            cluster.name, type(error).__name__, error, cluster.name,
        )  # fmt: skip


def _delete(name: str, namespace: str | None) -> None:
    """Delete what there may be of a cluster, as far as Kubernetes answers."""
    kr8s = require("kr8s", extra="kubernetes")
    with suppress(Exception):  # what kept it from starting may keep this from working
        for found in kr8s.get(CLUSTERS, name, namespace=namespace):
            found.delete()


def _said(name: str, namespace: str | None) -> str:
    """What Kubernetes says about the pods of a cluster."""
    kr8s = require("kr8s", extra="kubernetes")
    try:
        labels = {"dask.org/cluster-name": name}
        pods = list(kr8s.get("pods", namespace=namespace, label_selector=labels))
    except Exception as error:
        return f"Kubernetes does not tell about the pods of {name}: {_words(error)}."
    if not pods:
        return f"There are no pods of {name}: the Dask operator did not make them."
    told = "; ".join(f"{pod.name} is {_state(pod.raw.get('status', {}))}" for pod in pods)
    return f"Kubernetes says about the pods of {name}: {told}."


def _state(status: Mapping[str, Any]) -> str:
    """The phase of a pod, and what there is to say of its conditions and containers."""
    said = [str(status.get("phase", "new"))]
    containers = [container["state"] for container in status.get("containerStatuses", [])]
    for about in (*status.get("conditions", []), *(each.get("waiting", {}) for each in containers)):
        said += [str(about[key]) for key in ("reason", "message") if about.get(key)]
    return ", ".join(dict.fromkeys(said))
