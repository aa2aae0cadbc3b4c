"""From a plan to manifests of Kubernetes: a group of devices of one host, or of several.

A server on one host is a Deployment of `apps/v1`; one over several is a LeaderWorkerSet of
`leaderworkerset.x-k8s.io/v1`, whose workers join their leader. Each pool has a Service, and two
pools a router before them. What a cluster has besides, its queues and volumes, is not in a plan.
KServe, Dynamo and llm-d, which make these themselves, are given their own fields by `platforms`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calc.core.arguments import one_of
from calc.core.citations import citation
from calc.core.errors import InputError
from calc.core.report import Reported
from calc.planning.service import platforms
from calc.planning.service.deployment import ROUTERS, Deployment, hub_name
from calc.planning.service.design import Pool
from calc.planning.service.platforms import Server

PORT = 8000
ADDRESS = f"--host 0.0.0.0 --port {PORT}"
SETS = "leaderworkerset.x-k8s.io/v1"
IMAGES = {
    "vLLM": "vllm/vllm-openai:v{version}",
    "SGLang": "lmsysorg/sglang:v{version}",
    "TensorRT-LLM": "nvcr.io/nvidia/tensorrt-llm/release:{version}",
}
RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Intel": "habana.ai/gaudi"}
JOINED = {  # what a server of several hosts is told besides, and what its workers are
    "vLLM": (
        "--nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX)"
        " --master-addr $(LWS_LEADER_ADDRESS)",
        "--headless",
    ),
    "SGLang": (
        "--nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX)"
        " --dist-init-addr $(LWS_LEADER_ADDRESS):5000",
        "",
    ),
}
PLATFORMS = ("manifests", *platforms.VERSIONS)
"""What can be written for: Kubernetes alone, and what starts and routes servers on it."""


@dataclass(frozen=True, eq=False, repr=False)
class Manifests(Reported):
    """The manifests that start a plan's servers on Kubernetes; `print` gives them as YAML."""

    deployment: Deployment
    platform: str = "manifests"
    """The one of `PLATFORMS` that reads them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("kubernetes", self.platform, PLATFORMS)
        _ = self.documents

    @cached_property
    def documents(self) -> list[dict[str, object]]:
        """Each manifest as a mapping, in the order in which they are applied."""
        pools = self.deployment.design.pools
        if self.platform != "manifests":
            name = self._name(pools[0]).removesuffix(f"-{pools[0].does}")
            return platforms.documents(self.platform, name, [self._server(pool) for pool in pools])
        servers = [each for pool in pools for each in self._of(pool)]
        return [*servers, *self._router()] if len(pools) > 1 else servers

    @cached_property
    def lines(self) -> list[str]:
        comments = [self.deployment.lines[0], *self._to_do]
        versions = f"# apps/v1 and v1 of Kubernetes, {SETS} where a server needs several hosts"
        if self.platform != "manifests":
            source = citation(platforms.SOURCES[self.platform])
            versions = f"# {platforms.VERSIONS[self.platform]}; fields as in {source}"
        texts = ["---\n" + "\n".join(_yaml(document)) for document in self.documents]
        return [*comments, versions, *"\n".join(texts).splitlines()]

    @property
    def _to_do(self) -> Iterator[str]:
        """Yield what is to be put in or had before, as comments."""
        for line in self.deployment.lines[1:]:
            if line.startswith("#") and " times" not in line:
                yield line

    @property
    def title(self) -> list[str]:
        return self.lines

    @cached_property
    def facts(self) -> Mapping[str, object]:
        engine = self.deployment.engine
        return {"engine": engine.name, "version": engine.version, "manifests": self.documents}

    def _of(self, pool: Pool) -> Iterator[dict[str, object]]:
        """Yield what starts the servers of a pool, and the Service by which they are found."""
        engine, setup = self.deployment.engine, self.deployment.service.setup
        name = self._name(pool)
        times, domain = pool.count, setup.machine.hosted.domain
        devices = int(pool.group.devices)
        hosts = math.ceil(devices / domain)
        command = self.deployment.command(pool)
        of_host = min(devices, domain)
        labels = {"app": name}
        if hosts == 1:
            pod = self._pod(f"{command} {ADDRESS}", of_host)
            if pool.does == "both":
                yield _of_pods("Deployment", name, times, pod)
            else:  # which the router calls one by one, by names that stay
                yield _of_pods("StatefulSet", name, times, pod, {"serviceName": name})
            yield _service(name, headless=pool.does != "both")
        else:
            self._joins(hosts)
            joined, workers = JOINED[engine.name]
            leader = f"{command} {ADDRESS} {joined}"
            yield {
                "apiVersion": SETS,
                "kind": "LeaderWorkerSet",
                "metadata": {"name": name},
                "spec": {
                    "replicas": times,
                    "leaderWorkerTemplate": {
                        "size": hosts,
                        "restartPolicy": "RecreateGroupOnPodRestart",
                        "leaderTemplate": {
                            "metadata": {"labels": labels},
                            "spec": self._pod(leader, of_host),
                        },
                        "workerTemplate": {
                            "spec": self._pod(f"{leader} {workers}".rstrip(), of_host, False)
                        },
                    },
                },
            }
            # The set makes a headless Service of its own name, by which its pods find each other.
            yield _service(name, f"{name}-server")

    def _server(self, pool: Pool) -> Server:
        """Return what platforms are told of the servers of a pool."""
        engine, setup = self.deployment.engine, self.deployment.service.setup
        command, devices = self.deployment.command(pool), int(pool.group.devices)
        domain = setup.machine.hosted.domain
        hosts = math.ceil(devices / domain)
        if hosts > 1:
            self._joins(hosts)
        joined, follower = JOINED.get(engine.name, ("", ""))
        pod: Any = self._pod(command, min(devices, domain))
        container = pod["containers"][0]
        [resource] = container["resources"]["limits"]
        return Server(
            does=pool.does,
            replicas=pool.count,
            hosts=hosts,
            devices=min(devices, domain),
            resource=resource,
            engine=engine.name,
            image=self._image,
            command=command,
            joined=joined,
            follower=follower,
            model=hub_name(setup.model.key, self.deployment.given.get("model")),
            checkpoint=math.ceil(setup.kept.memory.m_as("GiB")) + 1,
            env=container["env"],
            probe=container["readinessProbe"],
            mounts={"volumes": pod["volumes"], "volumeMounts": container["volumeMounts"]},
        )

    def _joins(self, hosts: int) -> None:
        """Refuse an engine whose servers of several hosts no manifest starts."""
        if (name := self.deployment.engine.name) not in JOINED:
            raise InputError(
                f"a server of {hosts} hosts is started by MPI with {name}, which no"
                " manifest of this kind does: take vllm or sglang"
            )

    def _name(self, pool: Pool) -> str:
        """Return what the servers of a pool are called: by model, and by what they do."""
        key = self.deployment.service.setup.model.key or "model"
        name = "".join(sign if sign.isalnum() else "-" for sign in key.lower()).strip("-")
        return name if pool.does == "both" else f"{name}-{pool.does}"

    def _pod(self, command: str, devices: int, serves: bool = True) -> dict[str, object]:
        """Return a pod that runs a command on so many devices of a host."""
        setup = self.deployment.service.setup
        vendor = setup.device.vendor
        if vendor not in RESOURCES:
            raise InputError(
                f"what Kubernetes calls {setup.device.name} as a resource is not in the data: those"
                f" of {', '.join(RESOURCES)} are"
            )
        container: dict[str, object] = {
            "name": "server",
            "image": self._image,
            "command": ["sh", "-c", f"exec {command}"],
            "env": [_token(), *([_address()] if "NixlConnector" in command else [])],
            "resources": {"limits": {RESOURCES[vendor]: str(devices)}},
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        }
        if serves:
            container |= {
                "ports": [{"containerPort": PORT}],
                "readinessProbe": {
                    "httpGet": {"path": "/health", "port": PORT},
                    "periodSeconds": 10,
                    "failureThreshold": 360,
                },
            }
        shared = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
        return {"containers": [container], "volumes": [shared]}

    @property
    def _image(self) -> str:
        """The image of the engine's makers, of the version whose options are written."""
        engine = self.deployment.engine
        parts = [*engine.version.split("."), "0"][:3]
        return IMAGES[engine.name].format(version=".".join(parts))

    def _router(self) -> Iterator[dict[str, object]]:
        """Yield the router before two pools, and its Service."""
        engine = self.deployment.engine
        if engine.name not in ROUTERS:
            raise InputError(f"{engine.name} has no router for two pools here: take pools=mixed")
        router = ROUTERS[engine.name]
        servers = (
            (pool, f"{self._name(pool)}-{number}.{self._name(pool)}:{PORT}")
            for pool in self._pools
            for number in range(pool.count)
        )
        name = f"{self._name(self._pools[0]).removesuffix('-' + self._pools[0].does)}-router"
        command = f"pip install {router.package} && exec {router.before(servers)} {ADDRESS}"
        container = {
            "name": "router",
            "image": self._image,
            "command": ["sh", "-c", command],
            "ports": [{"containerPort": PORT}],
        }
        yield _of_pods("Deployment", name, 1, {"containers": [container]})
        yield _service(name)

    @property
    def _pools(self) -> tuple[Pool, ...]:
        return tuple(self.deployment.design.pools)


def _address() -> dict[str, object]:
    """Return the variable by which a server of a pool tells the other where its caches are."""
    field = {"fieldRef": {"fieldPath": "status.podIP"}}
    return {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": field}


def _token() -> dict[str, object]:
    """Return the variable by which gated weights are read, of a secret that may be missing."""
    key = {"name": "hf-token", "key": "token", "optional": True}
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": key}}


def _of_pods(
    kind: str,
    name: str,
    replicas: int,
    pod: Mapping[str, object],
    more: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return a Deployment or a StatefulSet of so many pods alike."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, **(more or {})},
    }


def _service(app: str, name: str = "", headless: bool = False) -> dict[str, object]:
    """Return the Service of pods with that label, of their own addresses where it is headless."""
    spec: dict[str, object] = {"clusterIP": "None"} if headless else {}
    spec |= {"selector": {"app": app}, "ports": [{"port": PORT, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name or app}, "spec": spec}


def _yaml(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a mapping as YAML, its texts as JSON would have them.

    >>> print("\\n".join(_yaml({"a": {"b": [1, {"c": "x: y"}]}})))
    a:
      b:
        - 1
        - c: "x: y"
    """
    indent = "  " * depth
    named = isinstance(value, Mapping)
    items = value.items() if isinstance(value, Mapping) else enumerate(value)  # type: ignore[arg-type]
    for name, part in items:
        head = f"{indent}{name}:" if named else f"{indent}-"
        if not isinstance(part, Mapping | list | tuple):
            yield f"{head} {_scalar(part)}"
        elif not part:
            yield f"{head} {'{}' if isinstance(part, Mapping) else '[]'}"
        elif named:
            yield head
            yield from _yaml(part, depth + 1)
        else:
            first, *rest = _yaml(part, depth + 1)
            yield f"{head} {first.lstrip()}"
            yield from rest


def _scalar(value: object) -> str:
    if isinstance(value, str) and value[:1].isalpha() and value.replace("-", "").isalnum():
        return value
    return json.dumps(value)
