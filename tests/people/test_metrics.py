# SPDX-License-Identifier: GPL-2.0
"""mqfair metrics before a real Prometheus: the text, the endpoint, the dashboard and the rules."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT, Cluster

from lab.cache import cache_dir

CONTRIB = ROOT / "contrib"
PATIENCE_S = 60
# The usual scrape_timeout of Prometheus.
SCRAPE_S = 10
DRAWN_S = 12


def tool(name):
    place = cache_dir() / "prometheus" / name
    assert place.exists(), f"{place} is missing: run lab/bootstrap people"
    return str(place)


def promtool(*argv, **options):
    return subprocess.run(
        [tool("promtool"), *argv], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        **options,
    )  # fmt: skip


def test_the_alert_rules():
    for verb, file in (("check", "mqfair.rules.yml"), ("test", "mqfair.test.yml")):
        done = promtool(verb, "rules", str(CONTRIB / "prometheus" / file))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SUCCESS" in done.stdout


def test_the_text_is_openmetrics(cluster):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    done = cluster.command("metrics")
    assert (done.returncode, done.stderr) == (0, "")
    families = {one.name: one for one in text_string_to_metric_families(done.stdout)}
    assert families["mqfair_cgroup_bytes"].type == "counter"
    own = {"disk": "nvme0n1", "cgroup": "pods.slice/pod000/container-03"}
    (sample,) = [one for one in families["mqfair_cgroup_bytes"].samples if one.labels == own]
    assert sample.value == 4096 * 4
    latency = families["mqfair_cgroup_latency_seconds"].samples
    assert {one.labels["quantile"]: one.value for one in latency} == {
        "0.5": 0.00064,
        "0.99": 0.0025,
    }
    listed = json.loads(cluster.command("metrics", "nvme0n1", "--json").stdout)["metrics"]
    assert {one["labels"].get("disk") for one in listed} == {None, "nvme0n1"}


def test_a_goal_and_a_drive_that_lost_its_scheduler(cluster):
    name = cluster.names[0]
    stat = cluster.root / "sys/fs/cgroup" / name / "io.stat"
    stat.write_text(stat.read_text().replace("goal_us=0", "goal_us=500"))
    goal = "259:0 target=500us pct=99 achieved=700us met=0 loss=4.2%"
    cluster.machine.put(f"/sys/fs/cgroup/{name}/io.mqfair.latency", goal)
    cluster.machine.put("/sys/block/nvme1n1/queue/scheduler", "mqfq [none]")
    text = cluster.command("metrics").stdout
    labels = f'{{cgroup="{name}",disk="nvme0n1"}}'
    assert f"mqfair_cgroup_goal_met{labels} 0.0" in text
    assert f"mqfair_cgroup_goal_seconds{labels} 0.0005" in text
    assert 'mqfair_disk_ours{disk="nvme1n1"} 0.0' in text
    assert 'mqfair_disk_scheduler{disk="nvme1n1",scheduler="none"} 1.0' in text
    assert 'mqfair_cgroup_weight{cgroup="pods.slice/pod000/container-00",disk="nvme1n1"' not in text


def test_a_machine_without_the_module(tmp_path):
    built = Cluster(tmp_path, 1, 1)
    for file in built.root.glob("sys/module/mqfair/*"):
        file.unlink()
    (built.root / "sys/module/mqfair").rmdir()
    assert "mqfair_module_loaded 0.0" in built.command("metrics").stdout


def test_the_textfile(cluster, tmp_path):
    """promtool parses it, it is replaced, and no other file stays beside it."""
    file = tmp_path / "mqfair.prom"
    for _ in range(2):
        done = cluster.command("metrics", "--textfile", str(file))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with file.open() as text:
        done = promtool("check", "metrics", stdin=text)
    assert done.returncode in (0, 3), done.stderr  # 3: remarks on names, listed below
    assert "error" not in done.stderr
    assert list(tmp_path.glob("*.prom*")) == [file]


@contextlib.contextmanager
def endpoint(cluster, *options):
    """The endpoint on a socket that is passed as systemd passes it; yields program and port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        script = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{listening.fileno()}'
        argv = [sys.executable, "-m", "mqfair", "metrics", "--listen", "systemd", *options]
        program = subprocess.Popen(
            ["/bin/bash", "-c", script, "sh", *argv], env=cluster.env(), cwd=ROOT,
            pass_fds=[listening.fileno()], stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield program, listening.getsockname()[1]
        finally:
            program.send_signal(signal.SIGKILL)
            program.wait()


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as found:
        return found.headers["Content-Type"], found.read().decode()


def test_the_endpoint_takes_the_socket_of_systemd_and_ends_when_idle(cluster):
    with endpoint(cluster, "--idle-exit", "2") as (program, port):
        url = f"http://127.0.0.1:{port}/metrics"
        kind, text = fetch(url)
        assert kind.startswith("text/plain")
        assert 'mqfair_disk_ours{disk="nvme0n1"} 1.0' in text
        kind, text = fetch(url, Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
        # A client that says nothing does not keep Prometheus waiting until it gives up.
        with socket.create_connection(("127.0.0.1", port)):
            began = time.monotonic()
            assert "mqfair_disk_ours" in fetch(url)[1]
            assert time.monotonic() - began < SCRAPE_S
        # A client that hangs up is no error.
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n")
        assert "mqfair_disk_ours" in fetch(url)[1]
        assert program.wait(timeout=PATIENCE_S) == 0
        assert program.stderr.read() == ""


def test_without_a_socket_of_systemd_the_message_helps(cluster):
    done = cluster.command("metrics", "--listen", "systemd")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "systemctl start mqfair-metrics.socket, or use --listen 127.0.0.1:9917" in done.stderr


# --- Prometheus ------------------------------------------------------------------------------

CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: mqfair
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def prometheus(cluster, tmp_path):
    """A server that scrapes the endpoint each second, while the machine moves; yields its URL."""
    with endpoint(cluster) as (_, port):
        config = tmp_path / "prometheus.yml"
        rules = CONTRIB / "prometheus" / "mqfair.rules.yml"
        config.write_text(CONFIG.format(rules=rules, port=port))
        own = f"127.0.0.1:{free_port()}"
        argv = [
            tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb",
            f"--web.listen-address={own}",
        ]  # fmt: skip
        with Path(os.devnull).open("w") as null:
            server = subprocess.Popen(argv, stdout=null, stderr=null)
        try:
            deadline = time.monotonic() + DRAWN_S
            while time.monotonic() < deadline:
                cluster.step()
                time.sleep(0.5)
            yield f"http://{own}"
        finally:
            server.terminate()
            server.wait()


def query(url, expression):
    words = urllib.parse.urlencode({"query": expression})
    try:
        found = json.loads(fetch(f"{url}/api/v1/query?{words}")[1])
    except urllib.error.HTTPError as error:
        pytest.fail(f"{expression}: {error.read().decode()}")
    return found["data"]["result"]


def test_prometheus_scrapes_it_and_draws_the_dashboard(prometheus):
    (up,) = query(prometheus, 'up{job="mqfair"}')
    assert up["value"][1] == "1"
    dashboard = json.loads((CONTRIB / "grafana/mqfair.json").read_text())
    for panel in dashboard["panels"]:
        (target,) = panel["targets"]
        expression = target["expr"].replace("$__rate_interval", "10s")
        for name in ("instance", "disk", "cgroup"):
            expression = expression.replace(f"${name}", ".*")
        assert query(prometheus, expression), f"{panel['title']}: {expression} is empty"
    shares = query(prometheus, dashboard["panels"][1]["targets"][0]["expr"]
                   .replace("$__rate_interval", "10s").replace("$instance", ".*")
                   .replace("$disk", "nvme0n1").replace("$cgroup", ".*"))  # fmt: skip
    assert sum(float(one["value"][1]) for one in shares) == pytest.approx(1, abs=0.001)
    rules = json.loads(fetch(f"{prometheus}/api/v1/rules")[1])["data"]["groups"][0]["rules"]
    assert {rule["health"] for rule in rules} == {"ok"}
