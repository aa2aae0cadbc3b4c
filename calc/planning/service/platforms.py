"""A plan's servers for platforms that start and route them on Kubernetes by fields of their own.

KServe has an LLMInferenceService, Dynamo a graph of services, and llm-d the values of a chart. Each
is given the command of a server where it leaves a place for one, and makes its own router.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from calc.core.errors import InputError

Table = dict[str, object]
PORT, BEHIND_PROXY = 8000, {"kserve": 8001, "llm-d": 8200}
"""Ports on which a server listens, and on which one that writes does behind the proxy of its pod.
"""
VERSIONS = {  # whose sources were read for the fields
    "kserve": "KServe v0.20.0, serving.kserve.io/v1alpha2",
    "dynamo": "Dynamo 1.3.1, nvidia.com/v1alpha1",
    "llm-d": "values of llm-d-modelservice v0.4.12",
}
SOURCES = {
    "kserve": "kserve-llminferenceservice",
    "dynamo": "dynamo-graph-deployment",
    "llm-d": "llm-d-modelservice",
}
RUNTIMES = {
    "vLLM": ("vllm", "vllm serve "),
    "SGLang": ("sglang", "python -m sglang.launch_server "),
}
ACCELERATORS = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd", "habana.ai/gaudi": "intel-gaudi"}


class Server(NamedTuple):
    """One server of a pool, which has several that are alike."""

    does: str
    """"prefill", "decode" or "both"."""
    replicas: int
    hosts: int
    devices: int
    """Devices of a host."""
    resource: str
    engine: str
    image: str
    command: str
    """How one is started, without an address and without the hosts that it joins."""
    joined: str
    """What it is told beside that where it has several hosts."""
    follower: str
    """What those that follow its first host are told beside that."""
    model: str
    checkpoint: int
    """GiB of its weights."""
    env: Sequence[Table]
    probe: Table
    mounts: Table
    """The shared memory of its pod: `volumes` of the pod, and `volumeMounts` of a container."""


def documents(platform: str, name: str, servers: Sequence[Server]) -> list[Table]:
    """Return what a platform reads: one document, by the names of its version in `VERSIONS`."""
    engine = servers[0].engine
    if platform == "dynamo":
        if engine not in RUNTIMES:
            raise InputError(f"Dynamo's graph is written for vllm and sglang here; got {engine}")
        return [_dynamo(name, servers)]
    if engine != "vLLM":
        raise InputError(f"{VERSIONS[platform].split(',')[0]} starts vllm here; got {engine}")
    return [_kserve(name, servers) if platform == "kserve" else _llm_d(servers)]


def _written(servers: Sequence[Server]) -> Server:
    """The servers that write answers, which a request meets last."""
    return next(server for server in servers if server.does != "prefill")


def _read(servers: Sequence[Server]) -> Server | None:
    """The servers of prompts alone, where there are two pools."""
    return next((server for server in servers if server.does == "prefill"), None)


def _started(server: Server, port: int, follows: bool = False) -> list[str]:
    words = [server.command, f"--host 0.0.0.0 --port {port}"]
    if server.hosts > 1:
        words += [server.joined, server.follower if follows else ""]
    return ["sh", "-c", f"exec {' '.join(filter(None, words))}"]


# --- KServe ---


def _kserve(name: str, servers: Sequence[Server]) -> Table:
    written, read = _written(servers), _read(servers)
    spec: Table = {
        "model": {"uri": f"hf://{written.model}", "name": written.model},
        "storageInitializer": {"enabled": False},  # the engine reads the hub itself
        **_workload(written, PORT if read is None else BEHIND_PROXY["kserve"]),
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
    }
    if read is not None:
        spec["prefill"] = _workload(read, PORT)
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": name},
        "spec": spec,
    }


def _workload(server: Server, port: int) -> Table:
    parallelism: Table = {"tensor": server.devices * server.hosts}
    if server.hosts > 1:  # by which KServe counts the hosts of a group
        parallelism["pipeline"] = server.hosts
    workload: Table = {
        "replicas": server.replicas,
        "parallelism": parallelism,
        "template": _pod(server, port),
    }
    return workload | ({"worker": _pod(server, port, True)} if server.hosts > 1 else {})


def _pod(server: Server, port: int, follows: bool = False) -> Table:
    container: Table = {
        "name": "main",
        "image": server.image,
        "command": _started(server, port, follows),
        "env": list(server.env),
        "resources": {"limits": {server.resource: str(server.devices)}},
        "volumeMounts": server.mounts["volumeMounts"],
    }
    if not follows:
        asked = {"httpGet": {"path": "/health", "port": port, "scheme": "HTTP"}}
        probe = {**server.probe, **asked}
        container |= {"ports": [{"containerPort": port}], "readinessProbe": probe}
        container["livenessProbe"] = probe
    return {"containers": [container], "volumes": server.mounts["volumes"]}


# --- Dynamo ---


def _dynamo(name: str, servers: Sequence[Server]) -> Table:
    runtime, _ = RUNTIMES[servers[0].engine]
    image = f"nvcr.io/nvidia/ai-dynamo/{runtime}-runtime:1.3.1"
    services: Table = {
        "Frontend": {
            "componentType": "frontend",
            "replicas": 1,
            "extraPodSpec": {"mainContainer": {"image": image}},
        }
    }
    for server in servers:
        does = server.does if server.does != "both" else "worker"
        service: Table = {"componentType": "worker"}
        service |= {"subComponentType": does} if does != "worker" else {}
        service |= {"envFromSecret": "hf-token-secret", "replicas": server.replicas}
        service |= {"multinode": {"nodeCount": server.hosts}} if server.hosts > 1 else {}
        service["sharedMemory"] = {"size": "64Gi"}
        service["resources"] = {"limits": {"gpu": str(server.devices)}}
        command = {"command": ["python3", "-m", f"dynamo.{runtime}"], "args": _arguments(server)}
        service["extraPodSpec"] = {"mainContainer": {"image": image, **command}}
        services[does] = service
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name},
        "spec": {"backendFramework": runtime, "services": services},
    }


def _arguments(server: Server) -> list[str]:
    """The options of an engine's command as a worker of Dynamo takes them."""
    _, start = RUNTIMES[server.engine]
    words = shlex.split(server.command.removeprefix(start))
    if server.engine == "SGLang":
        transfer = ["--disaggregation-transfer-backend", "nixl"] if server.does != "both" else []
        return [*words, *transfer]
    model, *options = words
    if "--kv-transfer-config" in options:  # which Dynamo's worker makes by its role
        position = options.index("--kv-transfer-config")
        options[position : position + 2] = [f"--is-{server.does}-worker"]
    return ["--model", model, *options]


# --- llm-d ---


def _llm_d(servers: Sequence[Server]) -> Table:
    written, read = _written(servers), _read(servers)
    hosts = {server.hosts > 1 for server in servers}
    if len(hosts) > 1:
        raise InputError(
            "llm-d's chart has one multinode for both pools, and one pool here has servers of"
            " several hosts where the other has not: take pools=mixed, or --kubernetes manifests"
        )
    values: Table = {
        "multinode": hosts.pop(),
        "modelArtifacts": {
            "name": written.model,
            "uri": f"hf://{written.model}",
            "size": f"{written.checkpoint}Gi",
            "authSecretName": "hf-token",
        },
        "accelerator": {"type": ACCELERATORS[written.resource]},
        "routing": {
            "servicePort": PORT,
            "proxy": {"enabled": read is not None, "targetPort": BEHIND_PROXY["llm-d"]},
        },
        "decode": _values(written, PORT if read is None else BEHIND_PROXY["llm-d"]),
        "prefill": {"create": False} if read is None else _values(read, PORT),
    }
    return values


def _values(server: Server, port: int) -> Table:
    container: Table = {
        "name": "vllm",
        "image": server.image,
        "modelCommand": "custom",
        "command": _started(server, port),
        "env": list(server.env),
        "ports": [{"containerPort": port}],
        "mountModelVolume": True,
        "volumeMounts": server.mounts["volumeMounts"],
    }
    if server.hosts > 1:  # the chart gives all hosts of a group one command
        leads, follows = (_started(server, port, each)[2] for each in (False, True))
        which = f'if [ "$LWS_WORKER_INDEX" = 0 ]; then {leads}; else {follows}; fi'
        container["command"] = ["sh", "-c", which]
    return {
        "create": True,
        "replicas": server.replicas,
        "parallelism": {
            "tensor": server.devices,  # of a host, by which the chart counts its devices
            "data": 1,
            "dataLocal": 1,
            "workers": server.hosts,
        },
        "containers": [container],
        "volumes": server.mounts["volumes"],
    }
