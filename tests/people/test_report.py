# SPDX-License-Identifier: GPL-2.0
"""The report in a browser: each plot is drawn and responds, without the network and without an
error on the console."""

import json
import re
import subprocess
import threading

import pytest
from conftest import require

LIMIT_S = 180
# The page is asked to zoom each plot, and to hide its first line, as a user would.
PROBE = """
<script>
window.onload = async () => {
  const plots = [...document.querySelectorAll('.js-plotly-plot')];
  const found = [];
  for (const plot of plots) {
    await Plotly.relayout(plot, {'yaxis.range': [0, 7]});
    const toggle = plot.querySelector('.legendtoggle');
    if (toggle) {
      await Plotly.restyle(plot, {visible: 'legendonly'}, [0]);
    }
    found.push({
      title: plot.layout.title.text, range: plot.layout.yaxis.range[1],
      lines: plot.data.length, drawn: plot.querySelectorAll('.main-svg').length,
      hidden: plot._fullData.filter(one => one.visible === 'legendonly').length,
    });
  }
  const box = document.createElement('pre');
  box.id = 'probe';
  box.textContent = JSON.stringify(found);
  document.body.append(box);
};
</script></body>
"""


def browse(page, folder):
    """The plots of @page, as the probe in it found them, after a check of the console."""
    text = page.read_text()
    assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=\"https?:", text)
    probed = folder / "probed.html"
    probed.write_text(text.replace("</body>", PROBE))
    argv = [
        require("chromium-headless-shell"), "--no-sandbox", "--disable-gpu", "--dump-dom",
        "--enable-logging=stderr", "--virtual-time-budget=20000",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile",
        probed.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert console == []
    return json.loads(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)[1])


def check(plots):
    for plot in plots:
        assert plot["drawn"] > 0, plot
        assert plot["range"] == 7, plot
        assert plot["hidden"] == (1 if plot["lines"] > 1 else 0), plot


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


def test_a_recording_in_a_browser(cluster, recorded, tmp_path):
    page = tmp_path / "report.html"
    done = cluster.command("report", str(recorded), "--out", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    plots = browse(page, tmp_path)
    assert len(plots) == 2 * 9
    assert {"Achieved share", "99th percentile of the latency"} <= {one["title"] for one in plots}
    check(plots)


def test_names_cannot_inject(cluster, tmp_path):
    """A cgroup may be named like a tag, and a browser must not obey it."""
    from mqfair.report import plots

    name = "</script><script>console.error('obeyed')</script><b>"
    run = {
        "scheduler": "mqfq", "repeat": 0, "total_iops": 5.0, "jain": 1.0,
        "cgroups": [{"name": name, "share": 1.0, "lat_ns": {"p99": 1e6}}],
    }  # fmt: skip
    bench = {"job": name, "where": {}, "runs": [run, {**run, "total_iops": 7.0}]}
    page = tmp_path / "report.html"
    page.write_text(plots.of_benches([name, "b"], [bench, bench]))
    found = browse(page, tmp_path)
    assert len(found) == 4
    check(found)
