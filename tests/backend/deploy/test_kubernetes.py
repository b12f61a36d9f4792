"""The manifests for Kubernetes are valid, and say what the service needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml

from backend.serve import ROLES
from tests.other_process import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
VERSION = "1.33"


def documents() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.yaml")):
        if file.name != "kustomization.yaml":
            yield from yaml.safe_load_all(file.read_text())


DOCUMENTS = list(documents())
DEPLOYMENTS = [each for each in DOCUMENTS if each["kind"] == "Deployment"]


def containers(deployment: Any) -> list[Any]:
    pod = deployment["spec"]["template"]["spec"]
    return [*pod["initContainers"], *pod["containers"]]


def process_of(container: Any) -> str:
    return next(each["value"] for each in container["env"] if each["name"] == "PROCESS")


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}"
)
def test_a_manifest_is_valid(document: Any) -> None:
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_every_file_is_applied() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    files = {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed["resources"]) == files


def test_every_role_runs_once() -> None:
    ran = [
        process_of(container)
        for deployment in DEPLOYMENTS
        for container in deployment["spec"]["template"]["spec"]["containers"]
    ]
    assert sorted(ran) == sorted(ROLES)


def test_every_pod_migrates_first_and_may_do_nothing_else() -> None:
    for deployment in DEPLOYMENTS:
        pod = deployment["spec"]["template"]["spec"]
        assert [each["command"] for each in pod["initContainers"]] == [["script/manage", "prepare"]]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in containers(deployment):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert {each["mountPath"] for each in container["volumeMounts"]} == {"/data", "/tmp"}
            assert {"requests", "limits"} == set(container["resources"])


def test_pods_run_as_the_account_of_the_image() -> None:
    user = re.findall(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for deployment in DEPLOYMENTS:
        rights = deployment["spec"]["template"]["spec"]["securityContext"]
        assert [str(rights["runAsUser"])] == user


def test_a_stopping_pod_has_time_for_what_it_is_doing() -> None:
    from backend.operations.processes.supervisor import STOP_TIME

    for deployment in DEPLOYMENTS:
        pod = deployment["spec"]["template"]["spec"]
        for container in pod["containers"]:
            pause = container.get("lifecycle", {}).get("preStop", {}).get("exec")
            seconds = int(pause["command"][1]) if pause else 0
            assert pod["terminationGracePeriodSeconds"] > STOP_TIME + seconds


def test_the_settings_are_known() -> None:
    data = next(each for each in DOCUMENTS if each["kind"] == "ConfigMap")["data"]
    documented = (ROOT / "docs" / "configuration.md").read_text()
    documented += (ROOT / "docs" / "files.md").read_text()
    assert [name for name in data if f"`{name}`" not in documented] == []
