# SPDX-License-Identifier: GPL-2.0
"""The tests of managers of containers, each with `mqfair follow` beside it.

    in_managers.py ROOT FOLDER [TEST...]

ROOT is that of a Debian machine. The managers run in a chroot of it, under an overlay in memory, in
a guest without systemd. So they make their cgroups themselves. FOLDER has the programs mqfair-nri
and pod of contrib/nri. Each test writes one line of JSON, as those of in_machine.py do.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from in_machine import becomes, call, read, run_tests

CGROUPS = Path("/sys/fs/cgroup")
TOP = Path("/run/managers")
# The root of the machine, as the managers see it, and the image of a container in it.
ROOT = TOP / "root"
TINY = "/run/tiny"
SLEEP = ("/bin/busybox", "sleep", "infinity")
# An emulated processor takes long to start a daemon.
DAEMON_S = 300


def inside(*argv: str, expected: int | None = 0) -> str:
    return call("chroot", str(ROOT), *argv, expected=expected)


def end(program: subprocess.Popen[bytes]) -> None:
    """Ends a program by SIGTERM, as systemd does. One that stays is an error, and does not hang the
    tests."""
    program.terminate()
    try:
        program.wait(DAEMON_S)
    except subprocess.TimeoutExpired:
        program.kill()
        raise AssertionError(f"{program.args}: runs {DAEMON_S} s after SIGTERM") from None


@contextlib.contextmanager
def daemon(*argv: str, ready: tuple[str, ...]) -> Iterator[None]:
    """A program in the machine's root, from the first success of the command @ready on."""
    log = TOP / f"{Path(argv[0]).name}.log"
    with log.open("w") as output:
        program = subprocess.Popen(["chroot", str(ROOT), *argv], stdout=output, stderr=output)
        try:
            answers = ["chroot", str(ROOT), *ready]
            becomes(
                lambda: subprocess.run(answers, capture_output=True, check=False).returncode == 0,
                argv[0], DAEMON_S,
            )  # fmt: skip
            yield
        finally:
            end(program)
            print(argv[0], *read(log).splitlines()[-15:], sep="\n")


def mqfair(*argv: str) -> str:
    return call(sys.executable, "-m", "mqfair", *argv)


def default(folder: Path, file: str) -> str:
    return read(folder / file).partition("\n")[0].removeprefix("default ")


def arrives(folder: Path, name: str, expected: str) -> None:
    """A manager has just set io.weight of a cgroup to @expected, and it comes into force."""
    assert default(folder, "io.weight") == expected, f"{folder}: io.weight is not {expected}"
    took = becomes(lambda: default(folder, "io.mqfair.weight") == expected, name)
    print(f"FIGURE {name}: io.weight {expected}, mirrored {took:.3f} s later")


# --- dockerd, with runc ----------------------------------------------------------------------

# The guest has no bridge and no firewall, and one overlay cannot lie on another.
DOCKERD = {
    "data-root": "/run/docker-data", "storage-driver": "vfs", "bridge": "none", "iptables": False,
    "ip6tables": False, "exec-opts": ["native.cgroupdriver=cgroupfs"],
}  # fmt: skip
IMAGE = "/run/tiny.tar"


def test_weights_of_docker() -> None:
    (ROOT / "etc/docker").mkdir(exist_ok=True)
    (ROOT / "etc/docker/daemon.json").write_text(json.dumps(DOCKERD))
    command = f"CMD {json.dumps(SLEEP)}"
    # dockerd gives a containerd that it starts itself 15 s, which an emulated processor may exceed.
    with (
        daemon("containerd", ready=("ctr", "version")),
        daemon("dockerd", ready=("docker", "version")),
    ):
        inside("docker", "version")
        inside("sh", "-c", f"tar -C {TINY} -c . | docker import -c '{command}' - tiny")
        inside("docker", "save", "-o", IMAGE, "tiny")
        said = inside("docker", "run", "-d", "--network=none", "--name=one", "--blkio-weight=300",
                      "tiny")  # fmt: skip
        identity = said.split()[-1]
        group = CGROUPS / "docker" / identity
        arrives(group, "docker run --blkio-weight=300", "2930")
        inside("docker", "update", "--blkio-weight=500", "one")
        arrives(group, "docker update --blkio-weight=500", "4950")
        assert mqfair("weight", identity[:12]).split() == [
            f"docker/{identity}", "default", "4950",
        ]  # fmt: skip
        # A weight by hand stays.
        mqfair("weight", identity[:12], "333")
        inside("docker", "update", "--blkio-weight=400", "one")
        assert default(group, "io.weight") == "3940"
        time.sleep(2)
        assert default(group, "io.mqfair.weight") == "333"
        inside("docker", "rm", "-f", "one")
        assert not group.exists()


# --- containerd with NRI, and the plugin -----------------------------------------------------

NAME = "docker.io/library/tiny:latest"
CONTAINERD = f"""\
version = 2
[plugins."io.containerd.nri.v1.nri"]
disable = false
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{NAME}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""
SOCKET = "/run/containerd/containerd.sock"
NRI = "/run/nri/nri.sock"
PODS = "/kubepods/pod12"


def test_weights_of_a_pod() -> None:
    """containerd and mqfair-nri are those of a node. `pod` stands for kubelet. containerd 1.6 of
    Debian 12 has no NRI, and the annotations have no effect there."""
    has_nri = "io.containerd.nri" in inside("containerd", "config", "default")
    (ROOT / "etc/containerd").mkdir(exist_ok=True)
    (ROOT / "etc/containerd/config.toml").write_text(CONTAINERD)
    with daemon("containerd", ready=("ctr", "version")):
        inside("ctr", "-n", "k8s.io", "images", "import", "--snapshotter=native", IMAGE)
        with plugin(has_nri):
            said = inside("/run/pod", SOCKET, NAME, PODS,
                          "mqfair/pod-weight=500", "weight.mqfair/db=900")  # fmt: skip
        pod = CGROUPS / PODS.lstrip("/")
        container = pod / said.split()[-1]
        if not has_nri:
            print("FIGURE this containerd has no NRI")
            assert default(container, "io.weight") == "100"
            return
        arrives(pod, "annotation mqfair/pod-weight", "500")
        arrives(container, "annotation weight.mqfair/db", "900")


@contextlib.contextmanager
def plugin(has_nri: bool) -> Iterator[None]:
    if not has_nri:
        yield
        return
    becomes((ROOT / NRI.lstrip("/")).exists, NRI)
    # The runtime asks the plugin in the moments after its start, and no command tells when.
    with daemon("/run/mqfair-nri", ready=("sleep", "5")):
        yield


# --- LXC -------------------------------------------------------------------------------------

LXC = """\
lxc.uts.name = {name}
lxc.rootfs.path = dir:{tiny}
lxc.autodev = 0
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.init.cmd = {init}
lxc.cgroup2.{weight}
"""


def lxc(verb: str, name: str, *argv: str) -> str:
    return inside(f"lxc-{verb}", "-P", "/run/lxc", "-n", name, *argv)


def test_weights_of_lxc() -> None:
    weights = {"one": "io.weight = 700", "two": "io.mqfair.weight = 900"}
    for name, line in weights.items():
        folder = ROOT / "run/lxc" / name
        folder.mkdir(parents=True)
        text = LXC.format(name=name, tiny=TINY, init=" ".join(SLEEP), weight=line)
        (folder / "config").write_text(text)
        lxc("start", name, "-d")
    one, two = (CGROUPS / f"lxc.payload.{name}" for name in weights)
    arrives(one, "lxc.cgroup2.io.weight = 700", "700")
    lxc("cgroup", "one", "io.weight", "300")
    arrives(one, "lxc-cgroup io.weight 300", "300")
    assert default(two, "io.mqfair.weight") == "900"
    for name in weights:
        lxc("stop", name, "-k")


# --- libvirt ---------------------------------------------------------------------------------

DOMAIN = """\
<domain type='lxc'>
  <name>one</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
  <os><type>exe</type><init>{0}</init><initarg>{1}</initarg><initarg>{2}</initarg></os>
  <blkiotune><weight>700</weight></blkiotune>
  <devices>
    <filesystem type='mount'><source dir='{tiny}'/><target dir='/'/></filesystem>
    <console type='pty'/>
  </devices>
</domain>
"""
VIRSH = ("virsh", "-c", "lxc:///")


def test_weights_of_libvirt() -> None:
    (ROOT / "run/one.xml").write_text(DOMAIN.format(*SLEEP, tiny=TINY))
    with daemon("libvirtd", ready=(*VIRSH, "list")):
        inside(*VIRSH, "create", "/run/one.xml")
        found = [one.parent for one in CGROUPS.rglob("io.weight")]
        (domain,) = [one for one in found if default(one, "io.weight") == "700"]
        print(domain)
        arrives(domain, "libvirt, blkiotune 700", "700")
        inside(*VIRSH, "blkiotune", "one", "--weight", "300")
        arrives(domain, "virsh blkiotune --weight 300", "300")
        inside(*VIRSH, "destroy", "one")


TESTS = {name: one for name, one in list(globals().items()) if name.startswith("test_")}


def mount(machine: str, folder: Path) -> None:
    """Puts the machine's root under an overlay in memory, with the kernel's file systems."""
    TOP.mkdir()
    call("mount", "-t", "tmpfs", "tmpfs", str(TOP))
    for name in ("upper", "work", "root"):
        (TOP / name).mkdir()
    layers = f"lowerdir={machine},upperdir={TOP}/upper,workdir={TOP}/work"
    call("mount", "-t", "overlay", "overlay", "-o", layers, str(ROOT))
    for name in ("proc", "sys", "dev"):
        call("mount", "--rbind", f"/{name}", str(ROOT / name))
    call("mount", "-t", "tmpfs", "tmpfs", str(ROOT / "run"))
    tiny = ROOT / TINY.lstrip("/")
    for name in ("bin", "dev", "proc", "sys", "etc"):
        (tiny / name).mkdir(parents=True)
    call("cp", "/run/lab/busybox", str(tiny / "bin"))
    # libvirt shows its containers a /proc/meminfo of their own.
    call("modprobe", "fuse")
    call("cp", str(folder / "mqfair-nri"), str(folder / "pod"), str(ROOT / "run"))


def main() -> int:
    machine, folder, *chosen = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        mount(machine, Path(folder))
    argv = [sys.executable, "-m", "mqfair", "follow"]
    with subprocess.Popen(argv, stdout=sys.stderr) as service:
        try:
            return run_tests(TESTS, chosen)
        finally:
            service.terminate()


if __name__ == "__main__":
    sys.exit(main())
