"""Hosts that are network namespaces of this machine, each with a cable (a veth pair) to one switch (a bridge)."""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from telegrad.launcher.nodes.token import new_token

from .launched import LAUNCHER, LIMIT
from .programs import ending_within

NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="only root can make network namespaces, with ip"
)


CLONE_NEWNET = 0x40000000  # sched.h


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def enter(name):
    """Put this thread into a network namespace: sockets that it makes from now on, and all that these accept, are there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{name}") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Hosts:
    """Hosts a, b, ...: 10.77.0.1 and fd77::1, 10.77.0.2 and fd77::2, ..."""

    def __init__(self, folder, count):
        self.folder = folder
        self.count = count
        self.names = [f"telegrad-{os.getpid()}-{letter}" for letter in "abcdef"[:count]]
        self.switch = f"telegrad-{os.getpid()}-switch"
        self.token = new_token()
        self.started = []

    def connect(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, name in enumerate(self.names, 1):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            port = f"port{number}"
            ip("link", "add", "wire", "netns", name, "type", "veth", "peer", "name", port, "netns", self.switch)
            ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "wire")
            ip("-n", name, "addr", "add", f"fd77::{number}/64", "dev", "wire", "nodad")
            self.cable(number - 1, "up")

    def cable(self, host, state):
        ip("-n", self.names[host], "link", "set", "wire", state)

    def slow_down(self, host, rate):
        """Let a host send only so much, "20mbit"."""
        limit = ["tbf", "rate", rate, "burst", "32kbit", "latency", "200ms"]
        command = ["tc", "-n", self.names[host], "qdisc", "add", "dev", "wire", "root", *limit]
        subprocess.run(command, check=True, capture_output=True, timeout=30)

    def on(self, host):
        """Return what begins a command that runs on a host. (``ip netns exec`` would hide the file system of cgroups.)"""
        return ["nsenter", f"--net=/run/netns/{self.names[host]}"]

    def inside(self, host, function, *args):
        """Return what a function returns in a thread of this process that is on a host: sockets made there stay there."""

        def call():
            enter(self.names[host])
            return function(*args)

        with ThreadPoolExecutor(1) as threads:
            return threads.submit(call).result()

    def run(self, host, command, **environment):
        """Start a command on a host, in a folder of that host."""
        folder = self.folder / str(host)
        folder.mkdir(exist_ok=True)
        self.started.append(
            subprocess.Popen(
                [*self.on(host), *map(str, command)],
                cwd=folder,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "TELEGRAD_TOKEN": self.token, **environment},
            )
        )
        return self.started[-1]

    def launch(
        self, host, source, *options, endpoint="10.77.0.1:29400", name="script.py", args=(), nodes=None, **environment
    ):
        """Start the launcher of a host, with its part of a job on all hosts, or on the first ``nodes``."""
        folder = self.folder / str(host)
        folder.mkdir(exist_ok=True)
        if source is not None:
            (folder / name).write_text(source)
        nodes = ["--nnodes", str(nodes or self.count), "--node-rank", str(host), "--rdzv-endpoint", endpoint]
        return self.run(host, [*LAUNCHER, "run", *nodes, *options, name, *args], **environment)

    def ssh(self):
        """Return a program that starts commands on a host by its address, as ssh does: OPTIONS ADDRESS COMMAND..."""
        program = self.folder / "ssh"
        names = "".join(f"10.77.0.{number}) name={name};;\n" for number, name in enumerate(self.names, 1))
        program.write_text(
            f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\ncase "$1" in\n{names}esac\nshift\n'
            'exec nsenter "--net=/run/netns/$name" sh -c "$*"\n'
        )
        program.chmod(0o755)
        return program

    def kill(self, host):
        """End everything that runs on a host, as a power cut does."""
        found = subprocess.run(["ip", "netns", "pids", self.names[host]], capture_output=True, text=True, timeout=30)
        for pid in map(int, found.stdout.split()):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)

    def close(self):
        for host, name in enumerate(self.names):
            if Path(f"/run/netns/{name}").exists():
                self.kill(host)
                ip("netns", "del", name)
        if Path(f"/run/netns/{self.switch}").exists():
            ip("netns", "del", self.switch)
        for process in self.started:
            with process:
                process.kill()


@contextmanager
def made_hosts(folder, count, limit=LIMIT):
    """Hosts as long as the block lasts, which must end in ``limit`` seconds."""
    made = Hosts(folder, count)
    timer = threading.Timer(limit, lambda: [made.kill(host) for host in range(count)])
    try:
        with ending_within(limit + 60):
            made.connect()
            timer.start()
            yield made
    finally:
        timer.cancel()
        made.close()
