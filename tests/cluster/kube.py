"""A simulated Kubernetes: an API server in this process, processes as pods, the real operator."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import yaml
from aiohttp import web

from tests.cluster.kube_api import ADMIN, BUILT_IN, Api, Objects, custom_kinds, merged
from tests.cluster.kube_names import environment
from tests.cluster.kube_node import Node

NAMESPACE = "bigkd"


class Kubernetes:
    """What a test does with it; `node` and `api` are used in the thread of their loop only."""

    def __init__(self, folder, images, memory):
        self.folder = folder
        self.api = Api(Objects([*BUILT_IN, *custom_kinds()]))
        self.node = Node(self.api, folder, images, memory)
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def running(self):
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        runner = web.AppRunner(self.api.app(), access_log=None, shutdown_timeout=0.1)
        try:
            self.port = self._wait(self._serve(runner))
            node = asyncio.run_coroutine_threadsafe(self.node.run(), self._loop)
            self.account(ADMIN)
            body = {"metadata": {"name": NAMESPACE}}
            self.do(self.api.objects.create, "namespaces", None, body)
            try:
                yield self
            finally:
                self.do(self.node.end)
                node.result(30)
                self._wait(runner.cleanup())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def do(self, function, *arguments):
        """Call a function in the thread of the API server."""

        async def done():
            return function(*arguments)

        return self._wait(done())

    def account(self, name):
        """A kubeconfig for a service account."""
        self.do(self.api.accounts.__setitem__, name, name)
        path = self.folder / name
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{"name": "test", "context": {
                "cluster": "test", "user": name, "namespace": NAMESPACE,
            }}],
            "clusters": [
                {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
            ],
            "users": [{"name": name, "user": {"token": name}}],
        }))  # fmt: skip
        return path

    def apply(self, *documents):
        for document in documents:
            plural = next(
                each.plural
                for each in self.api.objects.kinds.values()
                if (each.version, each.name) == (document["apiVersion"], document["kind"])
            )
            self.do(self.api.objects.create, plural, NAMESPACE, document)

    def all(self, plural):
        return self.do(self.api.objects.all, plural, NAMESPACE)

    def everywhere(self, plural):
        return self.do(self.api.objects.all, plural)

    def get(self, plural, name):
        return self.do(self.api.objects.get, plural, NAMESPACE, name)

    def patch(self, plural, name, changes):
        old = self.get(plural, name)
        self.do(self.api.objects.change, plural, old, merged(old, changes))

    def pods(self, component):
        return [
            pod
            for pod in self.all("pods")
            if pod["metadata"]["labels"].get("dask.org/component") == component
        ]

    def log(self, pod):
        return (self.folder / "logs" / pod["metadata"]["name"]).read_text()

    def environment(self, account):
        """What a program outside of the cluster needs."""
        names = environment(self.folder / "site", self.node.names)
        return {**os.environ, **names, "KUBECONFIG": str(self.folder / account)}

    @contextmanager
    def operator(self):
        """The operator of dask-kubernetes, as its image starts it."""
        command = [sys.executable, "-m", "kopf", "run", "--standalone", f"--namespace={NAMESPACE}"]
        with (self.folder / "operator.log").open("w") as log:
            process = subprocess.Popen(
                [*command, "-m", "dask_kubernetes.operator.controller", "--verbose"],
                stdout=log, stderr=log, env=self.environment(ADMIN),
            )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _serve(self, runner):
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1]


def until(ready, seconds=30, told=str):
    """Wait until `ready()` is something, and return it."""
    end = time.monotonic() + seconds
    while not (found := ready()):
        if time.monotonic() > end:
            raise TimeoutError(told())
        time.sleep(0.05)
    return found
