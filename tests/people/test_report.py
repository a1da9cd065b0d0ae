# SPDX-License-Identifier: GPL-2.0
"""The report in a browser: each plot is drawn and has room, without the network, without a script
and without an error on the console."""

import json
import re
import subprocess
import threading

import pytest
from conftest import require

LIMIT_S = 180
WIDTHS = (1200, 600)
# The plots of the page, and the width that the page takes.
PROBE = """
<script>
window.onload = () => {
  const found = [...document.querySelectorAll('svg')].map(plot => {
    const box = plot.getBoundingClientRect();
    return {
      label: plot.getAttribute('aria-label'), width: box.width, height: box.height,
      right: box.right, lines: plot.querySelectorAll('path').length,
      words: [...plot.querySelectorAll('text')].map(one => one.textContent),
      outside: [...plot.querySelectorAll('text')].map(one => one.getBoundingClientRect()).filter(
        one => one.left < box.left - 2 || one.right > box.right + 2
          || one.top < box.top - 2 || one.bottom > box.bottom + 2).length,
    };
  });
  const box = document.createElement('pre');
  box.id = 'probe';
  box.textContent = JSON.stringify({plots: found, page: document.documentElement.scrollWidth});
  document.body.append(box);
};
</script></body>
"""


def browse(page, folder, width):
    """The plots of @page, as the probe in it found them, after a check of the console."""
    text = page.read_text()
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=\"https?:", text)
    probed = folder / "probed.html"
    probed.write_text(text.replace("</body>", PROBE))
    argv = [
        require("chromium-headless-shell"), "--no-sandbox", "--disable-gpu", "--dump-dom",
        "--enable-logging=stderr", "--virtual-time-budget=20000", f"--window-size={width},900",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile",
        probed.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert console == []
    found = json.loads(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)[1])
    check(found["plots"], width)
    return found


def check(plots, width):
    for plot in plots:
        assert plot["lines"] > 3, plot
        assert plot["outside"] == 0, plot
        assert 0.7 * width < plot["right"] <= width, plot
        assert plot["height"] > 50, plot


@pytest.fixture
def recorded(cluster, tmp_path):
    """A recording while the machine moves."""
    end = threading.Event()

    def move():
        while not end.wait(0.1):
            cluster.step()

    mover = threading.Thread(target=move)
    mover.start()
    try:
        path = tmp_path / "minute.jsonl"
        done = cluster.command("record", "--out", str(path), "--seconds", "3", "--interval", "0.3")
    finally:
        end.set()
        mover.join()
    assert (done.returncode, done.stderr) == (0, "")
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_recording_in_a_browser(cluster, recorded, tmp_path, width):
    page = tmp_path / "report.html"
    done = cluster.command("report", str(recorded), "--out", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    assert page.stat().st_size <= 2_000_000
    plots = browse(page, tmp_path, width)["plots"]
    labels = [one["label"] for one in plots]
    assert labels[:2] == ["nvme0n1: due and got", "nvme0n1: Throughput"]
    assert len(labels) == len(set(labels)) == 2 * 6
    assert any("container-01" in word for word in plots[0]["words"])


@pytest.mark.parametrize("width", WIDTHS)
def test_two_results_of_bench_in_a_browser(tmp_path, width):
    """A cgroup may be named like a tag, and a browser must not obey it."""
    from mqfair.report import plots

    name = "</script><script>console.error('obeyed')</script><b>"
    run = {
        "scheduler": "mqfq", "repeat": 0, "total_iops": 5.0, "jain": 1.0,
        "cgroups": [{"name": name, "share": 1.0, "due": 1.0, "lat_ns": {"p99": 1e6}}],
    }  # fmt: skip
    bench = {"job": name, "where": {}, "runs": [run, {**run, "total_iops": 7.0}]}
    text = plots.of_benches([name, "b"], [bench, bench])
    page = tmp_path / "report.html"
    page.write_text(text)
    assert len(browse(page, tmp_path, width)["plots"]) == 3
