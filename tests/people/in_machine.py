# SPDX-License-Identifier: GPL-2.0
"""The tests of the installed packages on a whole Debian machine, with systemd and udev.

    in_machine.py FOLDER [TEST...]

FOLDER/this and FOLDER/next have packages, FOLDER/before.json the files of the machine before it got
those of FOLDER/this. Without a TEST, all run.

The tests run in the order of this file, because each builds on the state that the ones before it
left: a machine with the packages, then one with newer ones, then one without any. Each test
writes one line of JSON to standard output.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

# A weight arrives by an event within this time, on a busy emulated machine too. Without events
# the service looks every 10 s (SCAN_EVERY_S of mqfair/follow/follow.py).
WEIGHT_S = 5.0
PATIENCE_S = 60.0
# systemctl gives up after 25 s, and `list-unit-files` may take longer on an emulated machine.
SYSTEMCTL_S = 300
DISK = "nvme0n1"
SLICE = Path("/sys/fs/cgroup/system.slice")
SETTINGS = Path("/etc/dkms/mqfair.conf")
UNIT = "[Service]\nExecStart=/usr/bin/sleep infinity\nIOWeight={weight}\n"
# Their contents change without a package, or record that there was one.
VOLATILE = (
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "var/cache",
    "var/lib/dpkg",
    "var/lib/systemd",
    "var/log",
    "var/tmp",
)


def call(*argv: str, expected: int | None = 0, text: str = "") -> str:
    """The output of a command, which is part of the output of the test."""
    done = subprocess.run(
        argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print("$", *argv, f"-> {done.returncode}\n{done.stdout}")
    assert expected is None or done.returncode == expected, f"{argv}: status {done.returncode}"
    return done.stdout


def read(path: str | Path) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def becomes(condition: Callable[[], bool], name: str, limit_s: float = PATIENCE_S) -> float:
    """Waits for @condition, and returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit_s, f"{name}: not within {limit_s} s"
        time.sleep(0.01)
    return time.monotonic() - began


def weight(unit: str) -> str:
    return read(SLICE / unit / "io.mqfair.weight").partition("\n")[0].removeprefix("default ")


def scheduler(disk: str = DISK) -> str:
    found = re.search(r"\[(.*)\]", read(f"/sys/block/{disk}/queue/scheduler"))
    return found[1] if found else ""


def unload() -> None:
    call("mqfair", "disable", DISK)
    call("modprobe", "-r", "mqfair")


def reads_done() -> int:
    return int(read(f"/sys/block/{DISK}/stat").split()[0])


def remove_null_blk() -> None:
    """udev may have the disk open for a moment."""
    argv = ["modprobe", "-r", "null_blk"]
    becomes(lambda: subprocess.run(argv, check=False).returncode == 0, "modprobe -r null_blk")


def packages(which: str, folder: Path | None = None) -> dict[str, str]:
    """The package files by package name."""
    found = ((folder or FOLDER) / which).glob("*.deb")
    return {file.name.partition("_")[0]: str(file) for file in found}


def version(which: str, folder: Path | None = None) -> str:
    return Path(packages(which, folder)["mqfair"]).name.split("_")[1]


def listing(root: Path = Path("/")) -> set[str]:
    """All files of a machine but those of volatile folders, and compiled Python."""
    found = set()
    for folder, inner, files in os.walk(root):
        where = Path(folder).relative_to(root)
        inner[:] = [
            name
            for name in inner
            if str(where / name) not in VOLATILE
            and name != "__pycache__"
            and not os.path.ismount(Path(folder) / name)
        ]
        found |= {str(where / name) for name in [*inner, *files]}
    return found


# --- a machine with the packages -------------------------------------------------------------


def test_the_command_and_its_pages_are_there() -> None:
    assert call("mqfair", "--version").startswith(f"mqfair {version('this')}\n")
    assert Path("/usr/share/man/man8/mqfair-top.8.gz").exists()
    program = (
        "source /usr/share/bash-completion/bash_completion; COMP_WORDS=(mqfair en); COMP_CWORD=1;"
        " COMP_LINE='mqfair en'; COMP_POINT=9; _completion_loader mqfair; _mqfair;"
        ' echo "${COMPREPLY[@]}"'
    )
    assert call("bash", "-c", program).split() == ["enable"]


def test_nothing_is_switched_on_by_the_installation() -> None:
    assert call("systemctl", "is-enabled", "mqfair", expected=None).strip() == "disabled"
    assert not Path("/sys/module/mqfair").exists()


def test_enable_loads_the_module() -> None:
    call("mqfair", "enable", DISK)
    assert scheduler() == "mqfq"
    assert read("/sys/module/mqfair/version") == version("this")
    assert call("modinfo", "-F", "version", "mqfair-ssd").strip() == version("this")


# --- weights by systemd ----------------------------------------------------------------------


def test_weights_of_two_services_arrive_by_an_event() -> None:
    call("systemctl", "enable", "--now", "mqfair")
    assert call("systemctl", "is-active", "mqfair").strip() == "active"
    for name, value in (("nginx", 900), ("batch", 50)):
        Path(f"/run/systemd/system/{name}.service").write_text(UNIT.format(weight=value))
    call("systemctl", "daemon-reload")
    call("systemctl", "start", "nginx.service", "batch.service")
    took = becomes(lambda: (weight("nginx.service"), weight("batch.service")) == ("900", "50"),
                   "weights of two services", WEIGHT_S)  # fmt: skip
    print(f"FIGURE two services: {took:.3f} s after systemctl start")


def test_a_changed_weight_arrives_by_an_event() -> None:
    call("systemctl", "set-property", "--runtime", "nginx.service", "IOWeight=700")
    took = becomes(lambda: weight("nginx.service") == "700", "set-property", WEIGHT_S)
    print(f"FIGURE set-property: {took:.3f} s after systemctl set-property")


def test_a_restarted_service_gets_its_weight_again() -> None:
    call("systemctl", "restart", "batch.service")
    becomes(lambda: weight("batch.service") == "50", "restart", WEIGHT_S)


def test_a_restart_of_mqfair_keeps_the_weights() -> None:
    call("mqfair", "weight", "batch.service", "333")
    assert weight("batch.service") == "333"
    call("systemctl", "restart", "mqfair")
    assert (weight("nginx.service"), weight("batch.service")) == ("700", "333")
    # A weight by hand is handed back.
    call("mqfair", "weight", "batch.service", "default")
    becomes(lambda: weight("batch.service") == "50", "default")


def test_status_and_top_show_the_services() -> None:
    join = f"echo $$ > {SLICE}/nginx.service/cgroup.procs"
    call("sh", "-c", f"{join}; exec dd if=/dev/{DISK} of=/dev/null bs=64k count=64 iflag=direct")
    assert "nginx.service" in call("mqfair", "status")
    assert "nginx.service" in call("mqfair", "top", "--once")


# --- disks by udev ---------------------------------------------------------------------------


def test_a_new_disk_gets_its_scheduler_from_the_service() -> None:
    Path("/etc/mqfair.conf").write_text('[[device]]\nmatch = "nullb*"\nscheduler = "ifq"\n')
    call("systemctl", "reload", "mqfair")
    call("modprobe", "null_blk", "nr_devices=1", "queue_mode=2")
    took = becomes(lambda: scheduler("nullb0") == "ifq", "a new disk")
    print(f"FIGURE new disk: {took:.3f} s after modprobe null_blk")
    remove_null_blk()


def test_a_new_disk_gets_its_scheduler_from_udev_alone() -> None:
    call("systemctl", "stop", "mqfair")
    call("modprobe", "null_blk", "nr_devices=1", "queue_mode=2")
    becomes(lambda: scheduler("nullb0") == "ifq", "a new disk by udev")
    Path("/sys/block/nullb0/queue/scheduler").write_text("none")
    call("udevadm", "trigger", "--action=change", "/sys/block/nullb0")
    becomes(lambda: scheduler("nullb0") == "ifq", "a change event")
    call("systemctl", "start", "mqfair")
    remove_null_blk()
    Path("/etc/mqfair.conf").write_text("# no rule\n")


# --- containers ------------------------------------------------------------------------------

# podman keeps images in an overlay, which cannot lie on the overlay of a guest's root.
PODMAN = (
    "podman", "--root=/run/pods", "--runroot=/run/pods-run", "--storage-driver=vfs",
    "--cgroup-manager=systemd",
)  # fmt: skip
# The runtime stretches --blkio-weight=10..1000 to 1..10000.
CONTAINERS = {"one": "--blkio-weight=300", "two": "--cgroup-conf=io.weight=700"}


def start_containers(runtime: str) -> dict[str, Path]:
    """The scopes of two containers by name, after their weights have arrived."""
    return {name: start_container(runtime, name, option) for name, option in CONTAINERS.items()}


def start_container(runtime: str, name: str, option: str) -> Path:
    said = call(*PODMAN, f"--runtime={runtime}", "run", "-d", "--network=none", f"--name={name}",
                option, "tiny", "/bin/busybox", "sleep", "infinity")  # fmt: skip
    scope = SLICE.parent / f"machine.slice/libpod-{said.split()[-1]}.scope"
    print(f"{scope.name}: {asked(scope)}")
    took = becomes(lambda: arrived(scope), f"{runtime} {option}", WEIGHT_S)
    print(f"FIGURE {runtime} {option}: {took:.3f} s after podman run")
    return scope


def asked(scope: Path) -> dict[str, str]:
    """The weights that a container has in io.weight. crun sets that of the scope and that of a
    cgroup in the scope, runc that of the scope alone."""
    folders = [scope, *scope.glob("*/")]
    weights = {one.name: read(one / "io.weight") for one in folders}
    return {name: text for name, text in weights.items() if text not in ("", "default 100")}


def arrived(scope: Path) -> bool:
    wanted = asked(scope)
    return bool(wanted) and all(
        read((scope if name == scope.name else scope / name) / "io.mqfair.weight") == text
        for name, text in wanted.items()
    )


def scopes() -> dict[str, Path]:
    said = call(*PODMAN, "ps", "--no-trunc", "--format={{.Names}} {{.ID}}")
    rows = [line.split() for line in said.splitlines()]
    return {name: SLICE.parent / f"machine.slice/libpod-{one}.scope" for name, one in rows}


def test_weights_of_containers_of_crun_arrive_by_an_event() -> None:
    tiny = Path("/run/tiny/bin")
    tiny.mkdir(parents=True)
    call("cp", "/run/lab/busybox", str(tiny))
    # The image has busybox alone, and no registry is asked.
    call("sh", "-c", f"tar -C {tiny.parent} -c . | {' '.join(PODMAN)} import - tiny")
    found = start_containers("crun")
    assert "default 700" in asked(found["two"]).values()


def test_a_changed_weight_of_a_container_arrives_by_an_event() -> None:
    one = scopes()["one"]
    before = asked(one)
    call(*PODMAN, "update", "--blkio-weight=500", "one")
    took = becomes(lambda: arrived(one), "podman update", WEIGHT_S)
    print(f"FIGURE crun --blkio-weight=500: {took:.3f} s after podman update")
    assert asked(one) != before


def test_the_id_of_a_container_names_its_cgroup() -> None:
    two = scopes()["two"]
    identity = two.name.removeprefix("libpod-").removesuffix(".scope")
    said = call("mqfair", "weight", identity[:12]).split()
    assert said == [f"machine.slice/{two.name}", *read(two / "io.mqfair.weight").split()]


def test_check_agrees_about_containers_while_the_service_runs() -> None:
    found = scopes()
    names = [scope.name for scope in found.values()]
    assert len(names) == len(CONTAINERS)
    assert "io.weight says" not in call("mqfair", "check", DISK, expected=None)
    call("systemctl", "stop", "mqfair")
    call(*PODMAN, "update", "--blkio-weight=200", "one")
    said = call("mqfair", "check", DISK, expected=None)
    assert f"machine.slice/{found['one'].name}" in said and "io.weight says" in said
    assert found["two"].name not in said
    call("systemctl", "start", "mqfair")
    assert "io.weight says" not in call("mqfair", "check", DISK, expected=None)


def test_the_weight_of_a_container_ends_with_it() -> None:
    found = scopes()
    weights = Path("/run/mqfair/follow.json")
    becomes(lambda: all(one.name in read(weights) for one in found.values()), "a saved weight")
    call(*PODMAN, "rm", "-f", "-t", "0", *found)
    becomes(lambda: not any(scope.exists() for scope in found.values()), "the end of the scopes")
    # The service saves the weights that it knows when it ends.
    call("systemctl", "stop", "mqfair")
    assert not [scope for scope in found.values() if scope.name in read(weights)]
    call("systemctl", "start", "mqfair")


def test_weights_of_containers_of_runc_arrive_by_an_event() -> None:
    found = start_containers("runc")
    assert "default 700" in asked(found["two"]).values()
    call(*PODMAN, "rm", "-f", "-t", "0", *found)


# --- upgrade and removal ---------------------------------------------------------------------


def test_an_upgrade_of_the_command_restarts_the_service_alone() -> None:
    before = call("systemctl", "show", "-P", "MainPID", "mqfair")
    call("dpkg", "-i", packages("next")["mqfair"])
    assert call("mqfair", "--version") == (
        f"mqfair {version('next')}\nmodule mqfair {version('this')} (loaded)\n"
    )
    assert call("systemctl", "is-active", "mqfair").strip() == "active"
    assert call("systemctl", "show", "-P", "MainPID", "mqfair") != before
    assert (scheduler(), weight("nginx.service")) == ("mqfq", "700")
    assert read("/etc/mqfair.conf") == "# no rule"


def test_an_upgrade_of_the_module_leaves_the_one_that_runs() -> None:
    """A task reads while DKMS builds the new one. The old one serves it until it is unloaded."""
    reads = f"while dd if=/dev/{DISK} of=/dev/null bs=64k iflag=direct status=none; do :; done"
    with subprocess.Popen(["sh", "-c", reads], start_new_session=True) as reader:
        try:
            later = packages("next")
            call("dpkg", "-i", later["mqfair-dkms"])
            assert reader.poll() is None, "a read failed"
            before = reads_done()
            becomes(lambda: reads_done() > before + 100, "100 more reads")
        finally:
            os.killpg(reader.pid, signal.SIGTERM)
    assert (scheduler(), weight("nginx.service")) == ("mqfq", "700")
    assert read("/sys/module/mqfair/version") == version("this")
    assert call("modinfo", "-F", "version", "mqfair").strip() == version("next")


def test_the_module_comes_back_with_its_weights() -> None:
    unload()
    assert weight("nginx.service") == ""
    call("mqfair", "enable", DISK)
    assert read("/sys/module/mqfair/version") == version("next")
    becomes(lambda: weight("nginx.service") == "700", "the weights of the new module")


def test_a_kernel_beyond_the_range_of_the_module_is_named() -> None:
    """The administrator's settings leave out the running kernel, as an upgrade of the kernel may.
    DKMS skips it then, and the command tells a way out that works."""
    release = os.uname().release
    package = f"mqfair/{version('next')}"
    SETTINGS.write_text('BUILD_EXCLUSIVE_KERNEL="^9[.]"\n')
    unload()
    call("dkms", "remove", package, "-k", release)
    call("dkms", "autoinstall", "-k", release, expected=None)
    for verb in ("enable", "check"):
        said = " ".join(call("mqfair", verb, DISK, expected=None).split())
        assert f"DKMS skipped Linux {release}" in said, verb
        assert f"`dkms install {package} -k {release}`" in said, verb
    assert scheduler() == "none"
    SETTINGS.write_text('BUILD_EXCLUSIVE_KERNEL=""\n')
    call("dkms", "install", package, "-k", release)
    call("mqfair", "enable", DISK)
    becomes(lambda: weight("nginx.service") == "700", "the weights of the new module")
    SETTINGS.unlink()


def test_removal_leaves_a_module_in_use_and_says_so() -> None:
    said = call("dpkg", "-r", "mqfair-ssd-dkms", "mqfair-dkms")
    assert f"mqfair-dkms: mqfair disable {DISK}\n" in said
    assert "rmmod mqfair" in said
    assert scheduler() == "mqfq"
    assert call("modinfo", "mqfair", expected=None).count("filename") == 0


def test_removal_of_the_command_ends_the_service() -> None:
    call("mqfair", "disable", DISK)
    call("rmmod", "mqfair")
    call("dpkg", "-r", "mqfair")
    assert not Path("/usr/bin/mqfair").exists()
    assert read("/etc/mqfair.conf") == "# no rule"
    assert call("systemctl", "is-active", "mqfair", expected=None).strip() != "active"


def test_purge_leaves_nothing() -> None:
    call("dpkg", "-P", "mqfair", "mqfair-dkms", "mqfair-ssd-dkms")
    call("systemctl", "stop", "nginx.service", "batch.service")
    call("systemctl", "daemon-reload")
    left = sorted(listing() - set(json.loads(read(FOLDER / "before.json"))))
    assert [one for one in left if "mqfair" in one] == []
    print("other new files:", *left[:20], sep="\n")
    assert "mqfair" not in call("systemctl", "list-unit-files")
    assert call("dkms", "status").strip() == ""
    assert not Path("/run/mqfair").exists()
    assert not Path("/sys/module/mqfair").exists()


TESTS = {name: one for name, one in list(globals().items()) if name.startswith("test_")}
FOLDER = Path(sys.argv[1]) if __name__ == "__main__" else Path()


def run_tests(tests: dict[str, Callable[[], None]], chosen: list[str]) -> int:
    """Runs the @chosen of @tests, or all; returns the exit status."""
    os.environ["SYSTEMD_BUS_TIMEOUT"] = str(SYSTEMCTL_S)
    bad = 0
    for name, test in [(name, tests[name]) for name in chosen or tests]:
        output = io.StringIO()
        began = time.monotonic()
        reason = ""
        with contextlib.redirect_stdout(output):
            try:
                test()
            except Exception as error:
                reason = str(error) or repr(error)
                traceback.print_exc(file=output)
        bad += bool(reason)
        line = {
            "name": name, "reason": reason, "output": output.getvalue(),
            "seconds": round(time.monotonic() - began, 1),
        }  # fmt: skip
        print(json.dumps(line), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, sys.argv[2:]))
