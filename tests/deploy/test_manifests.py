"""Manifests against the schemas of Kubernetes, and of the Dask operator as its wheel holds them."""

import copy
from pathlib import Path

import dask_kubernetes
import jsonschema
import kubernetes_validate
import pytest
import yaml

from bigkd.jobs import load_job
from tests.deploy.pages import DEPLOY, MANIFESTS

FOLDER = DEPLOY / "kubernetes"
DASK = "kubernetes.dask.org/v1"
OLDEST = "1.30"  # before it, schemas want both kinds of condition in each rule of a CronJob


def documents():
    for path in MANIFESTS:
        for document in yaml.safe_load_all(path.read_text("utf-8")):
            yield pytest.param(document, id=f"{path.name}-{document['kind']}")


def named(name, kind):
    found = yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return next(document for document in found if document["kind"] == kind)


def schema_of(kind):
    (path,) = Path(dask_kubernetes.__file__).parent.rglob(f"crds/{kind.lower()}.yaml")
    version = yaml.safe_load(path.read_text())["spec"]["versions"][0]
    return closed(version["schema"]["openAPIV3Schema"])


def closed(schema):
    """The schema, with keys that it does not list refused, as the API server prunes them."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def validate(document):
    if document["apiVersion"] != DASK:
        for version in (OLDEST, kubernetes_validate.latest_version()):
            kubernetes_validate.validate(document, version, strict=True)
        return
    bare = {key: value for key, value in document.items() if key == "spec"}
    schema = schema_of(document["kind"])
    jsonschema.validate(bare, {**schema, "additionalProperties": True})


@pytest.mark.parametrize("document", list(documents()))
def test_manifest__fits_its_schema(document):
    validate(document)


def pods(document):
    """Every pod in a manifest."""
    if isinstance(document, list):
        for item in document:
            yield from pods(item)
    elif isinstance(document, dict):
        if "containers" in document:
            yield document
        for value in document.values():
            yield from pods(value)


@pytest.mark.parametrize("document", list(documents()))
def test_pods__run_as_nobody_in_particular(document):
    for pod in pods(document):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == 1000
        assert "serviceAccountName" in pod or not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            for variable in container.get("env", []):
                assert "AWS" not in variable["name"] or "secretKeyRef" in variable["valueFrom"]


@pytest.mark.parametrize(
    ("name", "kind", "wrong"),
    [
        ("cronjob", "CronJob", lambda m: m["spec"].update(suspend="no")),
        ("cronjob", "CronJob", lambda m: m["spec"].update(concurrency="Forbid")),
        ("daskjob", "DaskJob", lambda m: m["spec"]["job"]["spec"].update(container=[])),
        ("daskcluster", "DaskCluster", lambda m: m["spec"]["worker"].update(replicas="four")),
        ("rbac", "Role", lambda m: m["rules"][0].update(verb="get")),
    ],
)
def test_validation__notices_mistakes(name, kind, wrong):
    document = copy.deepcopy(named(name, kind))
    wrong(document)
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        validate(document)


def test_cronjob__tries_again_what_is_worth_it():
    spec = named("cronjob", "CronJob")["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    job = spec["jobTemplate"]["spec"]
    (fails,) = [
        rule for rule in job["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"
    ]  # fmt: skip
    assert fails["onExitCodes"]["operator"] == "In"
    assert not {5, 130} & set(fails["onExitCodes"]["values"])
    assert {1, 2, 3, 4, 75} == set(fails["onExitCodes"]["values"])
    (container,) = job["template"]["spec"]["containers"]
    assert fails["onExitCodes"]["containerName"] == container["name"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_cronjob__names_what_the_others_make():
    job = load_job(FOLDER / "nightly.yaml")
    pod = named("cronjob", "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["serviceAccountName"] == named("rbac", "ServiceAccount")["metadata"]["name"]
    claim = named("storage", "PersistentVolumeClaim")["metadata"]["name"]
    assert claim in str(pod["volumes"])
    assert list(job.cluster.volumes.values()) == [claim]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(job.cluster.volumes) <= mounts
    assert job.cluster.image == container["image"]
    references = {
        variable["name"]: variable["valueFrom"]["secretKeyRef"] for variable in container["env"]
    }
    assert references == {
        name: {"name": where.secret, "key": where.key}
        for name, where in job.cluster.secrets.items()
    }


def test_role__allows_what_the_client_does():
    """Clusters are its own; of pods and services it only sees how they are.

    That it allows all that a run asks for, and no more, is in tests/cluster/test_kubernetes.py.
    """
    rules = named("rbac", "Role")["rules"]
    allowed = {
        (resource, verb)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    for verb in ("create", "get", "delete"):
        assert ("daskclusters", verb) in allowed
    for resource in ("pods", "services"):
        assert (resource, "get") in allowed
        assert (resource, "create") not in allowed
    assert not any("secrets" in resource or resource == "*" for resource, _ in allowed)
