"""What Kubernetes' API server does, as far as the Dask operator and its clients ask for it.

Objects are kept in memory; what is written is checked against published schemas, and who asks
against the roles that were applied.
"""

import asyncio
import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import dask_kubernetes
import jsonpatch
import jsonschema
import kubernetes_validate
import yaml
from aiohttp import web

VERSION = "1.34"
ADMIN = "admin"  # who may do everything: the operator, the node, and the test

CLUSTER_WIDE = {"Namespace", "CustomResourceDefinition"}

_READ = ["get", "list", "watch"]
_WRITE = ["create", "patch", "delete"]


class Kind(NamedTuple):
    version: str  # with its group
    name: str
    plural: str
    subresources: tuple = ()
    schema: dict | None = None
    validator: jsonschema.Draft202012Validator | None = None


BUILT_IN = [
    Kind("v1", "Namespace", "namespaces"),
    Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    Kind("v1", "Pod", "pods", ("status", "log")),
    Kind("v1", "Service", "services", ("status",)),
    Kind("v1", "Secret", "secrets"),
    Kind("v1", "ConfigMap", "configmaps"),
    Kind("v1", "Event", "events"),
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind("apps/v1", "Deployment", "deployments", ("status",)),
    Kind("batch/v1", "CronJob", "cronjobs"),
    Kind("batch/v1", "Job", "jobs", ("status",)),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
]


class Refused(Exception):
    """An answer that is not what was asked for."""

    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status, self.reason = status, reason


def custom_kinds():
    """What the operator defines, as its wheel holds it."""
    for path in sorted(Path(dask_kubernetes.__file__).parent.rglob("crds/*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        (version,) = spec["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        yield Kind(
            f"{spec['group']}/{version['name']}", spec["names"]["kind"], spec["names"]["plural"],
            tuple(version.get("subresources", {})), schema, jsonschema.Draft202012Validator(schema),
        )  # fmt: skip


class Objects:
    """Every object, and every change of one since the beginning."""

    def __init__(self, kinds):
        self.kinds = {kind.plural: kind for kind in kinds}
        self.changes = []  # type of the event, plural, object
        self.changed = asyncio.Event()
        self.pruned = []  # what was written and no schema knows
        self._objects = {}

    def all(self, plural, namespace=None):
        return [
            found
            for (of, where, _), found in self._objects.items()
            if of == plural and namespace in {None, where}
        ]

    def get(self, plural, namespace, name):
        try:
            return self._objects[plural, namespace, name]
        except KeyError:
            raise Refused(404, "NotFound", f'{plural} "{name}" not found') from None

    def create(self, plural, namespace, body):
        """Keep a new object, which is returned as it is kept."""
        meta = body["metadata"]
        if plural == "services":
            body = {**body, "status": {"loadBalancer": {}}}
        if (plural, namespace, meta["name"]) in self._objects:
            raise Refused(409, "AlreadyExists", f'{plural} "{meta["name"]}" already exists')
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known = ("name", "labels", "annotations", "ownerReferences", "finalizers")
        meta = {key: value for key, value in meta.items() if key in known}
        meta |= {} if namespace is None else {"namespace": namespace}
        meta |= {"uid": str(uuid4()), "creationTimestamp": now}
        found = self._keep("ADDED", plural, {**self._checked(plural, body), "metadata": meta})
        owners = {owner["uid"] for owner in meta.get("ownerReferences", [])}
        if owners and not owners & {each["metadata"]["uid"] for each in self._objects.values()}:
            self.delete(plural, found)  # they went while this came
        return found

    def change(self, plural, old, new):
        """Keep `new` in place of `old`; it is gone if that was all that kept it."""
        if new == old:
            return old
        found = self._keep("MODIFIED", plural, self._checked(plural, new))
        if "deletionTimestamp" in found["metadata"] and not found["metadata"].get("finalizers"):
            self._remove(plural, found)
        return found

    def delete(self, plural, old):
        """Delete an object, or mark it to be deleted when its finalizers are gone."""
        if not old["metadata"].get("finalizers"):
            self._remove(plural, old)
        elif "deletionTimestamp" not in old["metadata"]:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.change(plural, old, merged(old, {"metadata": {"deletionTimestamp": now}}))

    def _keep(self, event, plural, new):
        version = str(len(self.changes) + 1)
        new = {**copy.deepcopy(new), "metadata": {**new["metadata"], "resourceVersion": version}}
        self._objects[plural, new["metadata"].get("namespace"), new["metadata"]["name"]] = new
        self._tell(event, plural, new)
        return new

    def _remove(self, plural, old):
        meta = old["metadata"]
        del self._objects[plural, meta.get("namespace"), meta["name"]]
        version = str(len(self.changes) + 1)
        gone = {**old, "metadata": {**meta, "resourceVersion": version}}
        self._tell("DELETED", plural, gone)
        for (of, _, _), other in list(self._objects.items()):
            owners = {owner["uid"] for owner in other["metadata"].get("ownerReferences", [])}
            if meta["uid"] in owners:
                self.delete(of, other)

    def _tell(self, event, plural, found):
        self.changes.append((event, plural, found))
        self.changed.set()
        self.changed = asyncio.Event()

    def _checked(self, plural, body):
        kind = self.kinds[plural]
        body = {"apiVersion": kind.version, "kind": kind.name, **body}
        try:
            if kind.schema is None:
                kubernetes_validate.validate(body, VERSION, strict=True)
            else:
                body = self._without_unknown(body, kind.schema, kind.name)
                kind.validator.validate(body)
        except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
            raise Refused(422, "Invalid", f"{kind.name} is invalid: {error.message}") from error
        return body

    def _without_unknown(self, value, schema, where):
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self._without_unknown(item, items, f"{where}[]") for item in value]
        known = schema.get("properties")
        if not isinstance(value, dict) or known is None:
            return value
        known = known if "." in where else {"apiVersion": {}, "kind": {}, "metadata": {}, **known}
        self.pruned += [f"{where}.{key}" for key in value if key not in known]
        return {
            key: self._without_unknown(item, known[key], f"{where}.{key}")
            for key, item in value.items()
            if key in known
        }


def merged(old, patch):
    """`old` after a merge patch, RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    old = old if isinstance(old, dict) else {}
    kept = {key: value for key, value in old.items() if key not in patch}
    return kept | {key: merged(old.get(key), v) for key, v in patch.items() if v is not None}


def selected(found, query):
    """Whether an object is what the selectors of a request ask for."""
    labels = found["metadata"].get("labels", {})
    pairs = [part.split("=") for part in query.get("labelSelector", "").split(",") if part]
    fields = [part.split("=") for part in query.get("fieldSelector", "").split(",") if part]
    return all(labels.get(key) == value for key, value in pairs) and all(
        field(found, path) == value for path, value in fields
    )


def field(found, path):
    for key in path.split("."):
        found = found.get(key, {})
    return found


class Api:
    """The HTTP side of `objects`; `asked` is what each account asked for, and was allowed."""

    def __init__(self, objects):
        self.objects = objects
        self.accounts = {ADMIN: ADMIN}  # by token
        self.asked = {}
        self.logs = {}  # by name of the pod: a file

    def app(self):
        app = web.Application(middlewares=[_told_as_status])
        app.router.add_get("/version{slash:/?}", self._version)
        app.router.add_get("/api{slash:/?}", self._versions)
        app.router.add_get("/apis{slash:/?}", self._groups)
        for base in ("/api/{version}", "/apis/{group}/{version}"):
            app.router.add_get(base + "{slash:/?}", self._kinds)
            for place in ("/namespaces/{namespace}/{plural}", "/{plural}"):
                for rest in ("", "/{name}", "/{name}/{sub}"):
                    app.router.add_route("*", base + place + rest, self._objects)
        return app

    async def _version(self, request):
        return web.json_response({"gitVersion": f"v{VERSION}.0"})

    async def _versions(self, request):
        return web.json_response({"versions": ["v1"]})

    async def _groups(self, request):
        versions = {kind.version for kind in self.objects.kinds.values() if "/" in kind.version}
        groups = []
        for group, version in (each.split("/") for each in sorted(versions)):
            told = {"groupVersion": f"{group}/{version}", "version": version}
            groups.append({"name": group, "versions": [told], "preferredVersion": told})
        return web.json_response({"groups": groups})

    async def _kinds(self, request):
        names = (request.match_info.get("group"), request.match_info["version"])
        version = "/".join(name for name in names if name)
        found = [
            {"name": name, "kind": kind.name, "singularName": kind.name.lower(),
             "namespaced": kind.name not in CLUSTER_WIDE, "verbs": [*_READ, *_WRITE]}
            for kind in self.objects.kinds.values()
            if kind.version == version
            for name in (kind.plural, *(f"{kind.plural}/{sub}" for sub in kind.subresources))
        ]  # fmt: skip
        if not found:
            raise web.HTTPNotFound
        return web.json_response({"groupVersion": version, "resources": found})

    async def _objects(self, request):
        at = request.match_info
        namespace, name, sub = at.get("namespace"), at.get("name"), at.get("sub")
        kind = self.objects.kinds.get(at["plural"])
        if kind is None or (sub is not None and sub not in kind.subresources):
            raise web.HTTPNotFound
        verb = _verb(request, name)
        self._authorize(request, kind, verb, namespace, sub)
        if verb == "watch":
            return await self._watch(request, kind.plural, namespace)
        if verb == "list":
            return self._list(request, kind, namespace)
        if verb == "create":
            body = json.loads(await request.text())
            return web.json_response(self.objects.create(kind.plural, namespace, body), status=201)
        found = self.objects.get(kind.plural, namespace, name)
        if sub == "log":
            return web.Response(text=self.logs[name].read_text())
        if verb == "patch":
            found = self._patched(kind.plural, found, request, await request.text(), sub)
        elif verb == "delete":
            self.objects.delete(kind.plural, found)
        return web.json_response(found)

    def _patched(self, plural, old, request, text, sub):
        patch = json.loads(text)
        if request.content_type == "application/json-patch+json":
            try:
                new = jsonpatch.apply_patch(old, patch)
            except jsonpatch.JsonPatchException as error:
                raise Refused(422, "Invalid", str(error)) from error
        else:
            new = merged(old, patch)
        if "status" in self.objects.kinds[plural].subresources:  # each side changes its own
            kept = [key for key in old if (key == "status") != (sub == "status")]
            new = {**new, **{key: old[key] for key in kept}}
        return self.objects.change(plural, old, new)

    def _list(self, request, kind, namespace):
        found = self.objects.all(kind.plural, namespace)
        return web.json_response({
            "apiVersion": kind.version, "kind": f"{kind.name}List",
            "metadata": {"resourceVersion": str(len(self.objects.changes))},
            "items": [each for each in found if selected(each, request.query)],
        })  # fmt: skip

    async def _watch(self, request, plural, namespace):
        response = web.StreamResponse()
        await response.prepare(request)
        since = int(request.query.get("resourceVersion", 0))
        while True:
            changed = self.objects.changed
            for event, of, found in self.objects.changes[since:]:
                here = of == plural and namespace in {None, found["metadata"].get("namespace")}
                if here and selected(found, request.query):
                    line = json.dumps({"type": event, "object": found}) + "\n"
                    await response.write(line.encode())
            since = len(self.objects.changes)
            await changed.wait()

    def _authorize(self, request, kind, verb, namespace, sub):
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        account = self.accounts.get(token)
        if account is None:
            raise Refused(401, "Unauthorized", "Unauthorized")
        group = kind.version.rpartition("/")[0]
        resource = kind.plural if sub is None else f"{kind.plural}/{sub}"
        if account != ADMIN and (group, resource, verb) not in self._allowed(account, namespace):
            raise Refused(
                403, "Forbidden", f'{kind.plural}.{group} is forbidden: User '
                f'"system:serviceaccount:{namespace}:{account}" cannot {verb} resource '
                f'"{resource}" in API group "{group}" in the namespace "{namespace}"',
            )  # fmt: skip
        self.asked.setdefault(account, set()).add((group, resource, verb))

    def _allowed(self, account, namespace):
        for binding in self.objects.all("rolebindings", namespace):
            if any(subject["name"] == account for subject in binding["subjects"]):
                yield from permissions(
                    self.objects.get("roles", namespace, binding["roleRef"]["name"])
                )


def permissions(role):
    """Group, resource and verb of all that a Role allows."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from ((group, resource, verb) for verb in rule["verbs"])


def _verb(request, name):
    if request.method == "GET" and name is None:
        return "watch" if request.query.get("watch") == "true" else "list"
    return {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[request.method]


@web.middleware
async def _told_as_status(request, handler):
    try:
        return await handler(request)
    except ConnectionResetError:  # whoever watched is gone
        return web.Response()
    except Refused as error:
        told = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
            "message": str(error), "reason": error.reason, "code": error.status,
        }  # fmt: skip
        return web.json_response(told, status=error.status)
