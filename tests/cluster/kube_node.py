"""What controllers and a node of Kubernetes do, with a process in place of each container."""

import asyncio
import json
import os
import signal
import subprocess
import time
from base64 import b64decode
from itertools import count
from pathlib import Path

import aiohttp
from dask.utils import parse_bytes

from tests.cluster.kube_api import Refused, merged
from tests.cluster.kube_names import environment, shifted

LOOK_SECONDS = 0.05
GRACE_SECONDS = 20.0
NODE = "test/node"  # the finalizer of pods that have a process

_SCHEDULED = {"type": "PodScheduled", "status": "True"}


class NotStarted(Exception):
    """Why a container cannot be started, as Kubernetes says it."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class Container:
    """The process of a pod, which has only one container here, and how it is."""

    def __init__(self, ip):
        self.ip = ip
        self.process = None
        self.restarts = 0
        self.since = 0.0  # when it ended
        self.told_to_end = None


class Node:
    """Runs the pods of `api`: programs of `images`, by image and name; `memory` bytes each."""

    def __init__(self, api, folder, images, memory):
        self.api, self.folder, self.images, self.memory = api, folder, images, memory
        self.objects = api.objects
        self.names = folder / "names.json"
        self.containers = {}  # by uid of the pod
        self._numbers = count(1)
        self._told = None
        self._over = False
        for name in ("logs", "site", "volumes"):
            (folder / name).mkdir()
        self._write_names()

    async def run(self):
        """Do what there is to do, until `end`; then no process is left."""
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(1.0)) as session:
                while not self._over:
                    self._make_pods()
                    for pod in self.objects.all("pods"):
                        await self._look_after(pod, session)
                    self._write_names()
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            for container in self.containers.values():
                _send(container, signal.SIGKILL)
                if container.process is not None:
                    container.process.wait()

    def end(self):
        self._over = True

    def pids(self, pod):
        """Numbers of the process of a pod, if it runs."""
        container = self.containers.get(pod["metadata"]["uid"])
        alive = container and container.process and container.process.poll() is None
        return [container.process.pid] if alive else []

    def _make_pods(self):
        pods = self.objects.all("pods")
        owned = {
            owner["uid"]
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            for owner in pod["metadata"].get("ownerReferences", [])
        }
        for plural in ("deployments", "jobs"):
            for maker in self.objects.all(plural):
                if maker["metadata"]["uid"] not in owned:
                    self._make_pod(maker)

    def _make_pod(self, maker):
        meta, template = maker["metadata"], maker["spec"]["template"]
        owner = {key: maker[key] for key in ("apiVersion", "kind")}
        owner |= {key: meta[key] for key in ("name", "uid")}
        labels = template["metadata"]["labels"]
        name = f"{meta['name']}-{next(self._numbers)}"
        made = {"name": name, "labels": labels, "ownerReferences": [owner], "finalizers": [NODE]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]}
        self.objects.create("pods", meta["namespace"], pod)

    async def _look_after(self, pod, session):
        container = self.containers.get(pod["metadata"]["uid"])
        if container is None:
            ip = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}.{next(self._numbers)}"
            container = self.containers[pod["metadata"]["uid"]] = Container(ip)
            self._tell(pod, container, "Pending", {"waiting": {"reason": "ContainerCreating"}})
        elif "deletionTimestamp" in pod["metadata"]:
            self._end(pod, container)
        elif pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            pass
        elif container.process is None:
            self._begin(pod, container)
        elif container.process.poll() is None:
            ready = await _ready(pod, container, session)
            self._tell(pod, container, "Running", {"running": {}}, ready=ready)
        else:
            self._ended(pod, container)

    def _begin(self, pod, container):
        (spec,) = pod["spec"]["containers"]
        needed = parse_bytes(spec["resources"]["requests"]["memory"].replace("Gi", "GiB"))
        if needed > self.memory:
            told = {"reason": "Unschedulable", "message": "0/1 nodes: 1 Insufficient memory."}
            return self._tell(pod, container, "Pending", None, unscheduled=told)
        try:
            command = self._command(pod, spec)
            given = self._environment(pod, spec, container)
        except NotStarted as error:
            told = {"reason": error.reason, "message": str(error)}
            return self._tell(pod, container, "Pending", {"waiting": told})
        log = self.folder / "logs" / pod["metadata"]["name"]
        self.api.logs[log.name] = log
        command = [given.get(part[2:-1], part) if part[:2] == "$(" else part for part in command]
        with log.open("a") as file:
            container.process = subprocess.Popen(
                command, env=given, cwd=self.folder, stdout=file, stderr=file,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return None

    def _command(self, pod, spec):
        programs = self.images.get(spec["image"])
        if programs is None:
            raise NotStarted("ErrImagePull", f"failed to pull image {spec['image']}: not found")
        program, *arguments = spec["args"]
        mounts = {mount["name"]: mount["mountPath"] for mount in spec.get("volumeMounts", [])}
        for volume in pod["spec"].get("volumes", []):
            folder = self._volume(pod["metadata"]["namespace"], volume)
            if folder is not None:
                at = f"{mounts[volume['name']]}/"
                arguments = [part.replace(at, f"{folder}/") for part in arguments]
        return [*programs[program], *arguments]

    def _volume(self, namespace, volume):
        """The folder of a volume, if it is one that is written here."""
        try:
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                self.objects.get("persistentvolumeclaims", namespace, claim)
            if "configMap" not in volume:
                return None
            name = volume["configMap"]["name"]
            folder = self.folder / "volumes" / name
            folder.mkdir(exist_ok=True)
            for key, text in self.objects.get("configmaps", namespace, name)["data"].items():
                (folder / key).write_text(text)
        except Refused as error:
            raise NotStarted("CreateContainerConfigError", str(error)) from error
        return folder

    def _environment(self, pod, spec, container):
        namespace = pod["metadata"]["namespace"]
        given = {**os.environ, **environment(self.folder / "site", self.names, container.ip)}
        given["KUBECONFIG"] = "/nowhere"
        if pod["spec"].get("automountServiceAccountToken", True):
            given["KUBECONFIG"] = str(self.folder / pod["spec"]["serviceAccountName"])
        for variable in spec.get("env", []):
            value = variable.get("value")
            if value is None:
                where = variable["valueFrom"]["secretKeyRef"]
                try:
                    secret = self.objects.get("secrets", namespace, where["name"])
                    value = b64decode(secret["data"][where["key"]]).decode()
                except (Refused, KeyError) as error:
                    told = f'secret "{where["name"]}" or its key {where["key"]} not found'
                    raise NotStarted("CreateContainerConfigError", told) from error
            given[variable["name"]] = value
        return given

    def _ended(self, pod, container):
        code = container.process.returncode
        ended = {"terminated": {"exitCode": code if code >= 0 else 128 - code}}
        if pod["spec"].get("restartPolicy") == "Never":
            self._tell(pod, container, "Failed" if code else "Succeeded", ended)
        elif not container.since:
            container.since = time.monotonic()
            why = {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}
            self._tell(pod, container, "Running", {"waiting": why}, last=ended)
        elif time.monotonic() > container.since + container.restarts:
            container.process, container.since = None, 0.0
            container.restarts += 1

    def _end(self, pod, container):
        if container.process is not None and container.process.poll() is None:
            now = time.monotonic()
            if container.told_to_end is None:
                container.told_to_end = now
                _send(container, signal.SIGTERM)
            elif now > container.told_to_end + GRACE_SECONDS:
                _send(container, signal.SIGKILL)
            return
        _send(container, signal.SIGKILL)  # what the process left behind
        del self.containers[pod["metadata"]["uid"]]
        self.objects.change("pods", pod, merged(pod, {"metadata": {"finalizers": None}}))

    def _tell(self, pod, container, phase, state, *, ready=False, unscheduled=None, last=None):
        """Write the status of a pod."""
        told = str(bool(ready))
        conditions = [{"type": name, "status": told} for name in ("Ready", "ContainersReady")]
        scheduled = {**_SCHEDULED, "status": "False", **unscheduled} if unscheduled else _SCHEDULED
        status = {"phase": phase, "podIP": container.ip, "conditions": [*conditions, scheduled]}
        if state is not None:
            (spec,) = pod["spec"]["containers"]
            status["containerStatuses"] = [{
                "name": spec["name"], "image": spec["image"], "imageID": "", "ready": bool(ready),
                "restartCount": container.restarts, "state": state,
                **({} if last is None else {"lastState": last}),
            }]  # fmt: skip
        try:
            pod = self.objects.get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        except Refused:  # it went meanwhile
            return
        self.objects.change("pods", pod, {**pod, "status": status})

    def _write_names(self):
        found = {}
        for service in self.objects.all("services"):
            name, namespace = (service["metadata"][key] for key in ("name", "namespace"))
            for pod in self.objects.all("pods", namespace):
                labels = pod["metadata"].get("labels", {}).items()
                if service["spec"]["selector"].items() <= labels and "status" in pod:
                    ip = pod["status"]["podIP"]
                    found |= {f"{name}.{namespace}{end}": ip for end in ("", ".svc.cluster.local")}
        if found != self._told:
            beside = self.names.with_suffix(".new")
            beside.write_text(json.dumps(found))
            Path.replace(beside, self.names)
            self._told = found


async def _ready(pod, container, session):
    (spec,) = pod["spec"]["containers"]
    probe = spec.get("readinessProbe")
    if probe is None:
        return True
    ports = {port["name"]: port["containerPort"] for port in spec["ports"]}
    port, path = ports[probe["httpGet"]["port"]], probe["httpGet"]["path"]
    try:
        async with session.get(f"http://{container.ip}:{shifted(port)}{path}") as answer:
            return answer.ok
    except (OSError, aiohttp.ClientError):
        return False


def _send(container, sign):
    if container.process is not None:
        try:
            os.killpg(container.process.pid, sign)
        except ProcessLookupError:
            return
