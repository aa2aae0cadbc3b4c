"""Manifests of Kubernetes for a planned service, against the fields of their kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from calc import plan_service
from calc.core.errors import InputError
from calc.planning import ServicePlan
from calc.planning.service.manifests import Manifests
from tests.calc.command import Command
from tests.calc.flatly import flatly

yaml = pytest.importorskip("yaml")

SERVICE: dict[str, Any] = {
    "rate": 20,
    "prompt": 1200,
    "generated": 300,
    "ttft": "2 s",
    "tpot": "60 ms",
    "software": "vllm",
    "pools": "mixed",
    "requests": 300,
}

# Fields of each kind, with what each must be, as the references of Kubernetes 1.34 and of
# LeaderWorkerSet v1 (leaderworkerset.x-k8s.io) print them; "?" before those that may be left out.
CONTAINER = {
    "name": str,
    "image": str,
    "command": [str],
    "?env": [{"name": str, "valueFrom": dict}],
    "?resources": {"limits": dict},
    "?ports": [{"containerPort": int}],
    "?readinessProbe": {
        "httpGet": {"path": str, "port": int},
        "periodSeconds": int,
        "failureThreshold": int,
    },
    "?volumeMounts": [{"name": str, "mountPath": str}],
}
POD = {
    "containers": [CONTAINER],
    "?volumes": [{"name": str, "emptyDir": {"medium": str, "sizeLimit": str}}],
}
LABELED = {"metadata": {"labels": {"app": str}}, "spec": POD}
PODS = {
    "replicas": int,
    "selector": {"matchLabels": {"app": str}},
    "template": LABELED,
    "?serviceName": str,
}
GROUP = {
    "size": int,
    "restartPolicy": str,
    "leaderTemplate": LABELED,
    "workerTemplate": {"spec": POD},
}
PORTS = {"?clusterIP": str, "selector": {"app": str}, "ports": [{"port": int, "targetPort": int}]}
KINDS = {
    ("apps/v1", "Deployment"): PODS,
    ("apps/v1", "StatefulSet"): PODS,
    ("v1", "Service"): PORTS,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): {
        "replicas": int,
        "leaderWorkerTemplate": GROUP,
    },
}


# Fields that are written, of those that the types of KServe v0.20.0 (v1alpha2, at aaac4e294dae), of
# Dynamo (v1alpha1, at 00686d64463d) and the values of llm-d-modelservice v0.4.12 have.
PROBE = {
    "httpGet": {"path": str, "port": int, "scheme": str},
    "periodSeconds": int,
    "failureThreshold": int,
}
OF_KSERVE = POD | {"containers": [CONTAINER | {"?readinessProbe": PROBE, "?livenessProbe": PROBE}]}
WORKLOAD = {
    "replicas": int,
    "parallelism": {"tensor": int, "?pipeline": int},
    "template": OF_KSERVE,
    "?worker": OF_KSERVE,
}
STARTED = {"image": str, "?command": [str], "?args": [str]}
COMPONENT = {
    "componentType": str,
    "?subComponentType": str,
    "?envFromSecret": str,
    "replicas": int,
    "?multinode": {"nodeCount": int},
    "?sharedMemory": {"size": str},
    "?resources": {"limits": {"gpu": str}},
    "extraPodSpec": {"mainContainer": STARTED},
}
OF_LLM_D = {
    "create": bool,
    "?replicas": int,
    "?parallelism": {"tensor": int, "data": int, "dataLocal": int, "workers": int},
    "?containers": [
        {"name": str, "image": str, "modelCommand": str, "command": [str], "env": [dict]}
        | {"ports": [{"containerPort": int}], "mountModelVolume": bool}
        | {"volumeMounts": [{"name": str, "mountPath": str}]}
    ],
    "?volumes": [{"name": str, "emptyDir": {"medium": str, "sizeLimit": str}}],
}
PLATFORMS: dict[str, Any] = {
    "kserve": {
        "apiVersion": str,
        "kind": str,
        "metadata": {"name": str},
        "spec": WORKLOAD
        | {"model": {"uri": str, "name": str}, "storageInitializer": {"enabled": bool}}
        | {"router": {"route": dict, "gateway": dict, "scheduler": dict}, "?prefill": WORKLOAD},
    },
    "dynamo": {
        "apiVersion": str,
        "kind": str,
        "metadata": {"name": str},
        "spec": {
            "backendFramework": str,
            "services": {"Frontend": COMPONENT}
            | {f"?{name}": COMPONENT for name in ("worker", "prefill", "decode")},
        },
    },
    "llm-d": {
        "multinode": bool,
        "modelArtifacts": {"name": str, "uri": str, "size": str, "authSecretName": str},
        "accelerator": {"type": str},
        "routing": {"servicePort": int, "proxy": {"enabled": bool, "targetPort": int}},
        "decode": OF_LLM_D,
        "prefill": OF_LLM_D,
    },
}


def check(value: Any, schema: Any, path: str) -> None:
    if isinstance(schema, type):
        assert isinstance(value, schema), path
    elif isinstance(schema, list):
        assert isinstance(value, list), path
        assert value, path
        for part in value:
            check(part, schema[0], path)
    else:
        allowed = {name.removeprefix("?") for name in schema}
        assert set(value) <= allowed, f"{path}: {set(value) - allowed}"
        for name, inner in schema.items():
            if name.removeprefix("?") in value:
                check(value[name.removeprefix("?")], inner, f"{path}.{name}")
            else:
                assert name.startswith("?"), f"{path} lacks {name}"


@cache
def planned(model: str = "qwen-3-32b", **more: Any) -> ServicePlan:
    return flatly(plan_service, model, "dgx-h100", **(SERVICE | more))


def documents(made: Manifests) -> list[dict[str, Any]]:
    """The manifests as a program reads them, each held to the fields of its kind."""
    manifests = [each for each in yaml.safe_load_all("\n".join(made.lines)) if each]
    for each in manifests:
        assert set(each) == {"apiVersion", "kind", "metadata", "spec"}
        assert each["metadata"]["name"].replace("-", "").isalnum()
        check(each["spec"], KINDS[each["apiVersion"], each["kind"]], each["kind"])
    return manifests


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_servers_of_one_host_are_a_deployment_of_as_many_replicas(engine: str) -> None:
    plan = planned()
    (pool,) = plan.design.pools
    deployment, service = documents(plan.manifests(engine))
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    assert deployment["spec"]["replicas"] == pool.count
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": str(pool.size)}
    assert plan.deployment(engine).engine.version in container["image"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_what_is_read_is_what_was_made() -> None:
    made = planned().manifests("vllm")
    assert documents(made) == plain(made.documents)
    assert json.loads(json.dumps(plain(made.facts)))["manifests"] == documents(made)


def test_a_server_of_two_hosts_is_a_set_of_a_leader_and_its_workers() -> None:
    plan = planned("llama-3-405b", rate=1, ttft="10 s", tpot="200 ms")
    (pool,) = plan.design.pools
    assert pool.size == 16
    group, service = documents(plan.manifests("vllm"))
    assert group["spec"]["replicas"] == pool.count
    template = group["spec"]["leaderWorkerTemplate"]
    assert template["size"] == 2
    leader, worker = (
        template[name]["spec"]["containers"][0] for name in ("leaderTemplate", "workerTemplate")
    )
    assert leader["resources"]["limits"] == worker["resources"]["limits"]
    assert leader["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "--headless" in worker["command"][-1]
    assert "--headless" not in leader["command"][-1]
    assert "--node-rank $(LWS_WORKER_INDEX)" in worker["command"][-1]
    assert service["metadata"]["name"] != group["metadata"]["name"]  # which the set makes itself
    with pytest.raises(InputError, match="MPI"):
        plan.manifests("trtllm")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_two_pools_have_a_router_that_knows_every_server(engine: str) -> None:
    plan = planned(pools="disaggregated", software=engine)
    manifests = documents(plan.manifests(engine))
    router = next(each for each in manifests if each["metadata"]["name"].endswith("-router"))
    [container] = router["spec"]["template"]["spec"]["containers"]
    for pool in plan.design.pools:
        assert container["command"][-1].count(f"--{pool.does} http://") == pool.count
    sets = [each for each in manifests if each["kind"] == "StatefulSet"]
    assert [each["spec"]["replicas"] for each in sets] == [one.count for one in plan.design.pools]
    for each in sets:
        service = next(
            one
            for one in manifests
            if one["kind"] == "Service" and one["metadata"]["name"] == each["spec"]["serviceName"]
        )
        assert service["spec"]["clusterIP"] == "None"


def test_the_command_prints_yaml_and_needs_an_engine(command: Command) -> None:
    load = "--rate 20 --prompt 1200 --generated 300 --requests 300 --pools mixed"
    asked = f"plan-service qwen-3-32b dgx-h100 {load} --ttft 2s --tpot 60ms"
    printed = command.prints(f"{asked} --write vllm --kubernetes")
    kinds = [each["kind"] for each in yaml.safe_load_all(printed) if each]
    assert kinds == ["Deployment", "Service"]
    assert "needs --write" in command.refuses(f"{asked} --kubernetes")


def written(plan: ServicePlan, platform: str, engine: str = "vllm") -> dict[str, Any]:
    """The one document of a platform as a program reads it, held to the fields of its version."""
    made = plan.manifests(engine, platform)
    [manifest] = yaml.safe_load_all("\n".join(made.lines))
    assert [manifest] == plain(made.documents)
    check(manifest, PLATFORMS[platform], platform)
    return dict(manifest)


@pytest.mark.parametrize("pools", ["mixed", "disaggregated"])
def test_platforms_have_the_replicas_and_devices_of_the_plan(pools: str) -> None:
    plan = planned(pools=pools)
    spec = written(plan, "kserve")["spec"]
    services = written(plan, "dynamo")["spec"]["services"]
    values = written(plan, "llm-d")
    assert (len(plan.design.pools) > 1) == ("prefill" in spec) == values["prefill"]["create"]
    for pool in plan.design.pools:
        workload = spec["prefill"] if pool.does == "prefill" else spec
        service = services["worker" if pool.does == "both" else pool.does]
        chart = values["prefill" if pool.does == "prefill" else "decode"]
        assert workload["replicas"] == service["replicas"] == chart["replicas"] == pool.count
        [container] = workload["template"]["containers"]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": str(pool.size)}
        assert service["resources"]["limits"] == {"gpu": str(pool.size)}
        assert workload["parallelism"] == {"tensor": pool.size}, "of one host, that counts no other"
        assert "worker" not in workload
        assert chart["parallelism"]["tensor"] == pool.size
        listens = f"--port {container['ports'][0]['containerPort']}"
        assert listens in container["command"][-1]
        # Who reads behind no proxy, and who writes behind one where there are two pools.
        behind = pool.does == "decode"
        assert listens == f"--port {8001 if behind else 8000}"
        assert f"--port {8200 if behind else 8000}" in chart["containers"][0]["command"][-1]
        role = f"--is-{pool.does}-worker"
        arguments = service["extraPodSpec"]["mainContainer"]["args"]
        assert (role in arguments) == (pool.does != "both")
        assert "--kv-transfer-config" not in arguments


def test_platforms_are_told_of_several_hosts() -> None:
    plan = planned("llama-3-405b", rate=1, ttft="10 s", tpot="200 ms")
    spec = written(plan, "kserve")["spec"]
    assert spec["parallelism"] == {"tensor": 16, "pipeline": 2}
    assert "--headless" in spec["worker"]["containers"][0]["command"][-1]
    assert "--headless" not in spec["template"]["containers"][0]["command"][-1]
    service = written(plan, "dynamo")["spec"]["services"]["worker"]
    assert service["multinode"] == {"nodeCount": 2}
    assert service["resources"]["limits"] == {"gpu": "8"}
    values = written(plan, "llm-d")
    assert values["multinode"]
    assert values["decode"]["parallelism"] == {"tensor": 8, "data": 1, "dataLocal": 1, "workers": 2}
    [words] = [each["command"][-1] for each in values["decode"]["containers"]]
    assert words.count("--headless") == 1


def test_dynamo_takes_sglang_and_the_others_refuse_what_they_do_not_start() -> None:
    plan = planned(pools="disaggregated", software="sglang")
    services = written(plan, "dynamo", "sglang")["spec"]["services"]
    for role in ("prefill", "decode"):
        arguments = services[role]["extraPodSpec"]["mainContainer"]["args"]
        assert arguments[arguments.index("--disaggregation-mode") + 1] == role
    for platform, engine in (("kserve", "sglang"), ("llm-d", "sglang"), ("dynamo", "trtllm")):
        with pytest.raises(InputError, match="vllm"):
            planned().manifests(engine, platform)
    with pytest.raises(InputError, match="one of manifests, kserve, dynamo, llm-d"):
        planned().manifests("vllm", "helm")


def test_several_machines_have_no_manifests(command: Command) -> None:
    load = "--rate 20 --prompt 1200 --generated 300 --ttft 2s --tpot 60ms"
    asked = f"plan-service qwen-3-32b dgx-h100,dgx-h200 {load} --kubernetes"
    assert "of one machine" in command.refuses(asked)
