"""Kubernetes: a manifest of an indexed Job, whose pods each run a launcher, with a headless Service and a Secret for the token.

It is JSON, which ``kubectl apply -f -`` takes as well as YAML. Nothing here talks to a cluster.
"""

import json
import re
from typing import Any, NoReturn

from ..nodes.options import DEFAULT_PORT
from ..nodes.token import TOKEN_VARIABLE
from .job import Cluster, ClusterJob

LONGEST_NAME = 52  # of a Job: its pods' names are longer
SHARED_MEMORY = "2Gi"


class KubernetesCluster(Cluster):
    """Pods of a Kubernetes cluster, one for each machine of the job."""

    def describe(self, job: ClusterJob) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests(job)}, indent=2)

    def run(self, job: ClusterJob) -> NoReturn:
        raise ValueError(
            "--engine kubernetes writes a manifest and starts nothing: add --dry-run, and pass its output on with "
            "`| kubectl apply -f -`"
        )


def manifests(job: ClusterJob) -> list[dict[str, Any]]:
    """Return the objects of a job: Secret, Service, Job.

    Args:
        job: the job.

    Raises:
        ValueError: there is no image, or an option is not for Kubernetes.
    """
    if job.image is None:
        raise ValueError(
            "--engine kubernetes needs --image IMAGE, a container image with telegrad and the script in it"
        )
    if job.hosts or job.endpoint:
        raise ValueError("--hosts and --rdzv-endpoint are not for --engine kubernetes, which chooses the machines")
    name = re.sub(r"[^a-z0-9]+", "-", job.title.lower()).strip("-")[:LONGEST_NAME].strip("-") or "telegrad"
    labels = {"app.kubernetes.io/name": name}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": _named(name, labels), "type": "Opaque"}
    return [
        {**secret, "stringData": {"token": job.token()}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _named(name, labels),
            # Pod names get addresses from it, before they are ready: launchers wait for one another.
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": _named(name, labels),
            "spec": _job(job, name, labels),
        },
    ]


def _job(job: ClusterJob, name: str, labels: dict[str, str]) -> dict[str, Any]:
    nodes = job.nodes(otherwise=1)
    return {
        "completionMode": "Indexed",
        "completions": nodes,
        "parallelism": nodes,
        "backoffLimit": 0,  # a job fails as a whole
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "subdomain": name,
                "restartPolicy": "Never",
                "containers": [_container(job, name, nodes)],
                "volumes": [
                    {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
                ],
            },
        },
    }


def _container(job: ClusterJob, name: str, nodes: int) -> dict[str, Any]:
    # Kubernetes puts variables in the place of $(NAME). JOB_COMPLETION_INDEX is an indexed Job's own.
    place = {
        "--nnodes": str(nodes),
        "--node-rank": "$(JOB_COMPLETION_INDEX)",
        "--rdzv-endpoint": f"{name}-0.{name}:{DEFAULT_PORT}",
        "--host": "$(POD_IP)",
        "--listen-host": "$(POD_IP)",
    }
    options = [word for option in place.items() for word in option]
    return {
        "name": "launcher",
        "image": job.image,
        "command": [*_literal(job.launcher([], "python3")), *options, *_literal(job.command)],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": name, "key": "token"}}},
        ],
        "resources": {"requests": {"cpu": str(job.workers_of_a_node(nodes))}},
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],
    }


def _literal(words: list[str]) -> list[str]:
    """Return words in which Kubernetes finds no variables."""
    return [word.replace("$(", "$$(") for word in words]


def _named(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "labels": labels}
