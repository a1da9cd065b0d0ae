# SPDX-License-Identifier: GPL-2.0
"""Tests of the program sim-run: its figures, its determinism and its messages.

usage: sim_run.py [CLASS] SIM_RUN
"""

import json
import statistics
import subprocess
import sys
import tempfile
import unittest

HEAD = "scheduler mqfq\ndevice 2 80000 500\n"
FLOW = "flow a weight 100\n"
LOAD = "load a depth 4 bytes 4096\n"
SOUND = HEAD + FLOW + LOAD + "run_ms 20\n"
DRIVE = "scheduler mqfq\nqueues 4\ndrive 980pro 128 {fill}\n" + FLOW

THREE_TO_ONE = """
    scheduler {scheduler}   # a comment
    {depth}
    device 2 80000 500

    warm_ms 100
    run_ms 2000
    flow big weight 300
    flow small weight 100
    load big depth 32 bytes 4096
    load small depth 32 bytes 4096
"""

# The numbers of the 980 PRO.
MODEL = (
    "channels 8 dies 2 planes 2 page_bytes 4096 read_pages 4 program_pages 16 block_programs 16"
    " spare_permille 90 gc_start 2 gc_stop 3 buffer_pages 1024 command_ns 1000 read_fixed_ns 18000"
    " write_fixed_ns 15000 link_ns 585 channel_ns 4000 read_ns 36000 program_ns 460000"
    " erase_ns 200000 read_burst 4"
)

WRONG = {
    "#" * 5000: "the line is too long: use less than 4095 bytes",
    "bogus 1": "no key 'bogus': use scheduler, set, device,",
    "seed -1": "seed '-1': use a number from 0 to",
    "sockets 0": "sockets '0': use a number from 1 to 1024",
    "fetch 65537": "fetch '65537': use a number from 0 to 65536",
    "answers 0 5": "answers '0': use a number from 1 to 65536",
    "answers 4": "US is missing: use a number from 1 to 1000000",
    "answers 4 0": "US '0': use a number from 1 to 1000000",
    "queues 0": "queues '0': use a number from 1 to 1024",
    "tags 70000": "tags '70000': use a number from 0 to 65536",
    "run_ms": "run_ms is missing: use a number from 1 to",
    "scheduler none": "scheduler 'none': it is mqfq already",
    "ftl": "ftl is missing: use device, host",
    "load": "the flow is missing: name one of a line before",
    "load a depth 1 bytes 4096 mib 5": "load: first_mib and mib are for a drive",
    "load a depth 1 bytes 4096 start_ms 5 stop_ms 5": "load: stop_ms 5 is not after start_ms 5",
    "at 20 weight a 5": "at 20: the run ends at 20 ms",
    "run_ms 5 6": "'6' follows the end of the statement",
    "set bogus 1": "set: no tunable 'bogus': mqfq has depth, threshold_kb, cost",
    "set depth 0": "set: depth '0': use a number from 1 to 65536, auto, or N auto",
    "set cost magic": "set: cost 'magic': use bytes, iops, linear, learned, or linear A B C D",
    "set cost linear 1 2 3": "set: cost 'linear 1 2 3': use bytes",
    "set depth 0 auto": "set: depth '0 auto': use a number from 1 to 65536, auto, or N auto",
    "set depth 65537 auto": "set: depth '65537 auto': use a number",
    "set depth 8 auto 8": "set: depth '8 auto 8': use a number",
    "set threshold_kb 8 auto": "set: threshold_kb '8 auto': use a number",
    "device 0 1 1": "SLOTS '0': use a number from 1 to",
    "drive floppy 64 empty": "drive 'floppy': use p3700, p4500, 980pro,",
    "drive 980pro 128 full": "FILL 'full': use empty, sequential, random, steady",
    "ftl both": "ftl 'both': use device, host",
    "audit some": "audit 'some': use all, end",
    "flow a weight 1": "flow 'a': it is there already",
    "flow b/c weight 1": "flow 'b/c': use a name of letters, digits",
    "flow b": "flow 'b': give its weight",
    "flow b weight 0": "weight '0': use a number from 1 to 10000",
    "flow b weight 1 parent x": "no flow 'x': describe it on a line before",
    "flow b colour red": "flow: no word 'colour': use weight, parent",
    "load x depth 1 bytes 4096": "no flow 'x': describe it on a line before",
    "load a depth 1": "load: give its depth, and its bytes or its sizes",
    "load a bytes 100": "bytes '100': use N or N-M, multiples of 512",
    "load a bytes 8192-4096": "bytes '8192-4096': use N or N-M",
    "load a dept 1": "load: no word 'dept': use bytes, sizes, order, arrivals, trace, depth,",
    "load a depth 1 bytes 512 trace": "trace '': name a file, in less than 256 bytes",
    "load a depth 1 sizes 512/1 trace x": "load: trace: give its largest size as bytes",
    "load a depth 1 bytes 512 pace_ns 5 trace x": "load: trace: give its largest size as bytes",
    "load a write 1001": "write '1001': use a number from 0 to 1000",
    "load a sizes 4096": "sizes '4096': use N/W,N/W.. with multiples of 512",
    "load a sizes 100/5": "sizes '100': use N/W,N/W..",
    "load a sizes 4096/0": "sizes '4096': use N/W,N/W..",
    "load a sizes 4096/1,": "sizes '': use N/W,N/W..",
    "load a depth 1 bytes 4096 sizes 512/1": "load: give its depth, and its bytes or its sizes",
    "load a pace_ns 0": "pace_ns '0': use a number from 1 to",
    "load a arrivals soon": "arrivals 'soon': use even, random",
    "load a burst_ios 0": "burst_ios '0': use a number from 1 to",
    "load a depth 1 bytes 4096 kib 4": "load: first_mib and mib are for a drive",
    "part a 50 1": "part: it is for a drive",
    "part a 0 1": "PERCENT '0': use a number from 1 to 100",
    "part x 1 1": "no flow 'x': describe it on a line before",
    "series 5 half": "series 'half': use whole",
    "time_scale 0": "time_scale '0': use a number from 1 to 100000",
    "load a order tidy": "order 'tidy': use random, sequential",
    "load a depth 1 bytes 4096 on_ms 5": "load: give both on_ms and off_ms, or neither",
    "load a depth 1 bytes 4096 queue 1": "load: queues 1 to 1, but the host has queues 0 to 0",
    "at 5 explode": "at 'explode': use retime, stall, weight, set",
    "at 5 weight x 1": "no flow 'x': describe it on a line before",
    "at 5 retime 0": "retime '0': use a number from 1 to 100000",
    "at 5 retime 200": "retime: it is for a drive",
    "at 5 set depth many": "set: depth 'many': use a number from 1 to 65536, auto, or N auto",
}


TRACE = "mqfair trace 1\n"
WRONG_TRACE = {
    "mqfair trace 2\n": "1: 'mqfair trace 2': the first line is 'mqfair trace 1'",
    "": "0: '': the first line is 'mqfair trace 1'",
    f"{TRACE}5 read 0\n": "2: '5': write NS OPERATION OFFSET BYTES",
    f"{TRACE}# x\n5 trim 0 512\n": "3: 'trim': use read or write",
    f"{TRACE}x read 0 512\n": "2: 'x': a time in ns, not before the last",
    f"{TRACE}5 read 0 512\n4 read 0 512\n": "3: '4': a time in ns, not before the last",
    f"{TRACE}5 read 100 512\n": "2: '100': an offset is a multiple of 512",
    f"{TRACE}5 read 0 100\n": "2: '100': a size is a multiple of 512, up to that of the load",
    f"{TRACE}5 read 0 16384\n": "2: '16384': a size is a multiple of 512, up to that of the load",
    f"{TRACE}5 read 134217728 512\n": "2: '134217728': the request ends beyond the drive",
}


def run(text: str) -> subprocess.CompletedProcess:
    return subprocess.run([SIM_RUN], input=text, capture_output=True, text=True, check=False)


def figures(text: str) -> dict:
    done = run(text)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class Figures(unittest.TestCase):
    def test_flows_share_the_device_by_weight(self):
        found = figures(THREE_TO_ONE.format(scheduler="mqfq", depth="set depth 16"))
        big, small = (found["flows"][name]["bytes"] for name in ("big", "small"))
        self.assertAlmostEqual(big / (big + small), 0.75, delta=0.0075)
        self.assertEqual(found["depth"], 16)

    def test_flows_share_equally_without_a_scheduler(self):
        found = figures(THREE_TO_ONE.format(scheduler="none", depth=""))
        big, small = (found["flows"][name]["bytes"] for name in ("big", "small"))
        self.assertAlmostEqual(big / (big + small), 0.5, delta=0.005)

    def test_rates_and_latency_agree_with_the_device(self):
        """A request of 4 KiB takes 82 us, and one is outstanding."""
        found = figures(HEAD + FLOW + "load a depth 1 bytes 4096\nwarm_ms 10\nrun_ms 410\n")
        flow = found["flows"]["a"]
        self.assertEqual(flow["ios"], 5000)
        self.assertEqual(flow["mean_ns"], 82000)
        self.assertEqual(flow["max_ns"], 82000)
        self.assertAlmostEqual(flow["iops"], 5000 / 0.41, places=0)
        self.assertEqual(found["totals"]["bytes"], 5000 * 4096)

    def test_automatic_depth_begins_with_its_start(self):
        """The device has 64 slots, and the load fills all of them."""
        load = "load a depth 256 bytes 4096\n"
        text = "scheduler mqfq\nset depth {depth}\ndevice 64 80000 500\n" + FLOW + load
        for depth, first in (("8 auto", 8), ("auto", 16), ("5000 auto", 1024)):
            found = figures(text.format(depth=depth) + "run_ms 1\n")
            self.assertEqual(found["depth"], first)
        for depth, least, most in (("8 auto", 32, 256), ("8", 8, 8)):
            found = figures(text.format(depth=depth) + "run_ms 2000\n")
            self.assertTrue(least <= found["depth"] <= most, found["depth"])

    def test_same_description_gives_the_same_bytes(self):
        text = DRIVE.format(fill="steady") + (
            "run_ms 30\nwake_ns 3000\nload a depth 8 bytes 4096-65536 write 500 queues 4\n"
        )
        first, second = (run(text).stdout.split('"wall_s"')[0] for _ in range(2))
        self.assertIn('"copied"', first)
        self.assertEqual(first, second)
        other = run(text + "seed 2\n").stdout.split('"wall_s"')[0]
        self.assertNotEqual(first, other)

    def test_automatic_values_follow_tags_and_depth(self):
        """D begins with 16, and T is that of all tags."""
        for tags, depth, threshold_kb in ((24, 16, 12), (12, 12, 6)):
            tunables = figures(SOUND + f"tags {tags}\nset depth auto\n")["tunables"]
            self.assertEqual(tunables["depth"], depth)
            self.assertEqual(tunables["threshold_kb"], threshold_kb)
        self.assertEqual(figures(SOUND)["tunables"]["depth"], 16)

    def test_series_adds_up(self):
        flow = figures(SOUND + "series 3\n")["flows"]["a"]
        self.assertEqual(len(flow["series"]), 7)
        self.assertEqual(sum(one["ios"] for one in flow["series"]), flow["ios"])
        self.assertEqual(sum(one["bytes"] for one in flow["series"]), flow["bytes"])

    def test_whole_series_has_the_warm_up(self):
        found = figures(SOUND + "warm_ms 20\nseries 10 whole\n")["flows"]["a"]
        self.assertEqual(len(found["series"]), 4)
        self.assertEqual(sum(one["ios"] for one in found["series"][2:]), found["ios"])
        self.assertEqual(found["ios"], figures(SOUND + "warm_ms 20\n")["flows"]["a"]["ios"])

    def test_histogram_has_each_request_and_its_ends_are_those_of_the_percentiles(self):
        text = DRIVE.format(fill="steady") + "run_ms 40\nseries 7\n"
        flow = figures(text + "load a depth 8 bytes 4096-65536 write 300\n")["flows"]["a"]
        ends, counts = zip(*flow["histogram"], strict=True)
        self.assertEqual(sum(counts), flow["ios"])
        self.assertEqual(list(ends), sorted(set(ends)))
        self.assertIn(flow["p50_ns"], ends)
        below = sum(n for end, n in flow["histogram"] if end <= flow["p50_ns"])
        before = sum(n for end, n in flow["histogram"] if end < flow["p50_ns"])
        self.assertTrue(before < flow["ios"] / 2 <= below)

    def test_series_has_the_requests_inside_and_the_window(self):
        """A device of two slots, and a load that keeps as many requests as it has time for."""
        for depth, think, inside in ((4, 0, 4), (1, 0, 1), (1, 82, 0.5)):
            load = f"load a depth {depth} bytes 4096 think_us {think}\nset depth 4\n"
            found = figures(HEAD + FLOW + load + "warm_ms 40\nrun_ms 60\nseries 20\n")["series"]
            self.assertEqual(len(found), 3)
            for one in found:
                self.assertAlmostEqual(one["inside"], inside, delta=0.01)
                self.assertEqual(one["window"], 4)
        none = figures("scheduler none\ndevice 2 80000 500\nrun_ms 20\nseries 20\n" + FLOW + LOAD)
        self.assertEqual([one["window"] for one in none["series"]], [None])

    def test_pressure_is_one_where_the_limit_is(self):
        """One resource each is all that a load can use. The others have their part of it."""
        busy = "flow a weight 100\nwarm_ms 20\nrun_ms 100\n"
        drive = "scheduler none\ndrive 980pro 128 {fill}\n" + busy
        large = "load a depth 32 bytes 131072 order sequential\n"
        cases = {
            "slots": HEAD + busy + "load a depth 8 bytes 4096\n",
            "planes": drive.format(fill="random") + "load a depth 1000 bytes 4096\n",
            "link": drive.format(fill="sequential") + large,
            # Unwritten pages are in no plane.
            "controller": drive.format(fill="empty") + "load a depth 1000 bytes 4096\n",
            "busiest_cpu": HEAD + busy + "queues 2\nsubmit_ns 99000\nload a depth 8 bytes 4096\n",
        }
        for name, text in cases.items():
            pressure = figures(text)["pressure"]
            self.assertEqual(max(pressure, key=pressure.get), name, pressure)
            self.assertTrue(0.85 < pressure[name] < 1.02, pressure)
        self.assertAlmostEqual(pressure["cpus"], pressure["busiest_cpu"] / 2, places=3)
        one = figures(drive.format(fill="random") + "load a depth 1 bytes 4096\n")
        iops = one["totals"]["iops"]
        for name, ns in (("controller", 1000), ("link", 585), ("channels", 4000 / 8)):
            self.assertAlmostEqual(one["pressure"][name], iops * ns / 1e9, delta=0.002)
        self.assertAlmostEqual(one["pressure"]["planes"], iops * 36000 / 32 / 1e9, delta=0.002)

    def test_shared_map_of_tags_serves_all_queues(self):
        """Two queues of which one is idle: a map for each leaves half of the tags unused."""
        text = "scheduler none\nqueues 2\ntags 4\ndevice 8 100000 0\nrun_ms 100\n" + FLOW
        text += "load a depth 32 bytes 4096\n"
        alone = figures(text)["flows"]["a"]["ios"]
        self.assertEqual(figures(text + "tag_maps 1\n")["flows"]["a"]["ios"], alone)
        self.assertAlmostEqual(alone, 4 * 1000, delta=40)
        text = text.replace("tags 4", "tags 8") + "load a queue 1 depth 32 bytes 4096\ntag_maps 1\n"
        self.assertAlmostEqual(figures(text)["flows"]["a"]["ios"], 8 * 1000, delta=40)

    def test_queues_of_one_map_share_by_weight_whatever_the_depth(self):
        """A free driver tag goes to the queue with the least head tag, as in the kernel."""
        for depth in (32, 64, 128):
            found = figures(
                f"scheduler mqfq\nset depth {depth}\nqueues 2\ntags 64\ntag_maps 1\n"
                "sched_tags 128\nwake_ns 2000\ndevice 64 16000000 0\nwarm_ms 1000\nrun_ms 3000\n"
                "flow light weight 100\nflow heavy weight 900\n"
                "load light queue 0 depth 128 bytes 4096\n"
                "load heavy queue 1 depth 128 bytes 4096\n"
            )["flows"]
            part = found["light"]["ios"] / (found["light"]["ios"] + found["heavy"]["ios"])
            self.assertAlmostEqual(part, 0.1, delta=0.002)

    def test_driver_tag_is_for_the_queue_that_is_asked(self):
        """D is the number of driver tags, so each completion gives one back. It is for the queue
        with the least head tag, and not for the request that the same completion makes its task
        send."""
        text = (
            "scheduler mqfq\nset depth 64\nset isolation 0\nqueues 16\ntags 64\ntag_maps 2\n"
            "sched_tags 128\nmost_bytes 131072\nsubmit_ns 2000\ndevice 1 250000 10000\n"
            "run_ms 10000\nflow group weight 200\nflow light weight 10000 parent group\n"
            "flow heavy weight 10 parent group\nflow other weight 100\n"
            "load light depth 1 bytes 1024 pace_ns 100000000 queue 1\n"
        )
        deep = "depth 128 sizes 4096/90,262144/10 write 300"
        text += f"load heavy {deep} queue 2\nload other {deep} queue 3\n"
        found = figures(text)["flows"]
        self.assertGreater(found["light"]["ios"], 90)
        # Two to one, and the group's first tenant needs little.
        self.assertGreater(found["heavy"]["ios"], found["other"]["ios"])

    def test_scheduler_tags_are_taken_under_none_alone(self):
        """25 tasks write 1,000 requests at once; a reader has one."""
        text = "device 16 100000 0\nwarm_ms 300\nrun_ms 300\nflow w weight 100\n" + FLOW
        text += "load w depth 40 bytes 4096 write 1000\n" * 25 + "load a depth 1 bytes 4096\n"
        free, scarce = (
            [
                figures(f"scheduler {name}\n{more}{text}")["flows"]["a"]["ios"]
                for name in ("none", "mqfq")
            ]
            for more in ("", "sched_tags 64\n")
        )
        # Without a limit the reader waits behind 1,000 requests under none.
        self.assertLess(free[0], 60)
        self.assertLess(scarce[0], 600)
        self.assertGreater(scarce[1], 2 * scarce[0])
        # The device ends 16 requests at once: a read waits for half of that time, or for all.
        self.assertGreater(scarce[1], 0.7 * free[1])

    def test_latency_ends_when_the_task_takes_the_completion(self):
        """Two tasks with 32 requests each share 16 tags, and the device does 160,000 a second."""
        text = "scheduler none\ndevice 16 100000 0\nsched_tags 16\nwarm_ms 100\nrun_ms 500\n"
        load = "load a depth 32 bytes 4096 reaped {}\n" * 2
        done, reaped = (figures(text + FLOW + load.format(n, n))["flows"]["a"] for n in (0, 1))
        self.assertEqual(done["ios"], reaped["ios"])
        self.assertLess(done["mean_ns"], 130000)
        # Little's law for the 64 requests that the tasks have not taken back.
        self.assertAlmostEqual(reaped["mean_ns"], 64e9 / reaped["iops"], delta=4000)
        # A task that waits for no tag takes each completion at once.
        text = HEAD + FLOW + "load a depth 2 bytes 4096\nrun_ms 100\n"
        plain, same = (figures(text.replace("4096", f"4096 reaped {n}")) for n in (0, 1))
        self.assertEqual(plain["flows"], same["flows"])

    def test_sockets_change_the_way_of_slots_and_not_the_shares(self):
        text = "scheduler mqfq\nset depth 64\nqueues 16\nwake_ns 2000\nsubmit_ns 2000\n"
        text += "device 64 100000 500\nrun_ms 50\nflow b weight 300\n" + FLOW
        text += "".join(
            f"load {flow} queue {n} depth 32 bytes 4096-65536\n" for n in range(16) for flow in "ab"
        )
        one, four = (figures(text + more) for more in ("", "sockets 4\n"))
        self.assertEqual(one, {**figures(text + "sockets 1\n"), "wall_s": one["wall_s"]})
        self.assertNotEqual(one["flows"], four["flows"])
        for found in (one, four):
            share = found["flows"]["b"]["bytes"] / found["totals"]["bytes"]
            self.assertAlmostEqual(share, 0.75, delta=0.02)

    def test_time_scale_and_write_times_slow_the_drive(self):
        text = DRIVE.format(fill="random") + "run_ms 200\nload a depth 1 bytes 4096\n"
        plain, slow = (figures(text + more)["flows"]["a"] for more in ("", "time_scale 10\n"))
        self.assertAlmostEqual(slow["mean_ns"] / plain["mean_ns"], 10, delta=0.1)
        busy = [
            figures(text + f"write_times {n}\nload a depth 8 bytes 4096 write 1000\n")["drive"]
            for n in (1, 8)
        ]
        written = [one["program_busy_ns"] / one["written"] for one in busy]
        self.assertGreater(written[1], 4 * written[0])

    def test_described_model_is_as_a_built_in_one_with_its_numbers(self):
        """It may have the name of a built-in one, too."""
        text = DRIVE.format(fill="steady") + LOAD + "load a depth 8 bytes 65536 write 500\n"
        expected = figures(text)
        del expected["wall_s"]
        for name, more in (("980pro", ""), ("m", ""), ("980pro", " read_ns 72000")):
            described = text.replace("drive 980pro", f"model {name} {MODEL}{more}\ndrive {name}")
            found = figures(described)
            del found["wall_s"]
            self.assertEqual(found == expected, more == "", (name, more))

    def test_model_is_described_once_and_named_among_the_known(self):
        text = f"model m {MODEL}\n"
        for more, message in (
            (text, "line 2: model 'm': it is m already"),
            ("drive floppy 64 empty\n", "line 2: drive 'floppy': use p3700, p4500, 980pro, fabric"),
        ):
            said = run(text + more).stderr
            self.assertIn(message, said)
        self.assertIn("four-dies, m\n", said)

    def test_spread_of_reads_keeps_the_mean_and_follows_the_seed(self):
        """A read of a plane takes 36 us, and half of that more at most."""
        text = DRIVE.format(fill="random").replace("drive 980pro", f"model m {MODEL}\ndrive m")
        text += "run_ms 200\nload a depth 1 bytes 4096\n"
        even = figures(text)["flows"]["a"]
        spread = text.replace("read_burst 4", "read_burst 4 read_spread_permille 500")
        found = [figures(spread + f"seed {seed}\n")["flows"]["a"] for seed in (1, 1, 2)]
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])
        self.assertAlmostEqual(found[0]["mean_ns"] / even["mean_ns"], 1, delta=0.02)
        self.assertLess(even["max_ns"], 1.02 * even["mean_ns"])
        self.assertAlmostEqual(found[0]["max_ns"] - found[0]["mean_ns"], 18000, delta=1000)
        self.assertGreater(found[0]["p99_ns"], 1.2 * found[0]["mean_ns"])

    def test_parts_of_the_drive_belong_to_flows(self):
        """Under hwabc on a map on the host, overwritten pages cost their owner."""
        text = DRIVE.format(fill="random").replace("mqfq", "hwabc") + "ftl host\nrun_ms 50\n"
        text += "flow b weight 100\nload b depth 8 bytes 4096 write 1000\n" + LOAD
        full = figures(text)["drive"]
        parts = figures(text + "part a 40 0\npart b 50 3\n")["drive"]
        self.assertNotEqual(full, parts)

    def test_full_drive_reads_flash_and_an_empty_one_does_not(self):
        busy = {}
        for fill in ("empty", "sequential", "random", "steady"):
            text = DRIVE.format(fill=fill) + LOAD + "run_ms 10\n"
            busy[fill] = figures(text)["drive"]["read_busy_ns"]
        self.assertEqual(busy.pop("empty"), 0)
        self.assertTrue(all(busy.values()))


class Arbitration(unittest.TestCase):
    """The device fetches commands from the queues in turn."""

    def rates(self, text: str, more: str) -> dict[str, float]:
        found = figures(text + more + "run_ms 200\n")["flows"]
        return {name: one["bytes_per_s"] for name, one in found.items()}

    def test_queues_take_turns(self):
        """One slot of 100 us: the flow with one request is done every 200 us, not every 400."""
        text = "scheduler none\nqueues 2\ntag_maps 2\ndevice 1 100000 0\nwarm_ms 1\n"
        text += "flow a weight 100\nflow b weight 100\n"
        text += "load a depth 3 bytes 4096\nload b depth 1 bytes 4096 queue 1\n"
        for more, ns in (("", 400_000), ("fetch 0\n", 400_000), ("fetch 1\n", 200_000)):
            self.assertEqual(figures(text + more + "run_ms 50\n")["flows"]["b"]["mean_ns"], ns)

    def test_queues_of_one_map_have_one_turn(self):
        text = "scheduler none\nqueues 4\ntag_maps 2\ndevice 1 100000 0\nwarm_ms 10\n"
        text += "flow a weight 100\nflow b weight 100\nfetch 1\n"
        text += "load a depth 8 bytes 4096 queues 2\nload b depth 8 bytes 4096 queue 2\n"
        found = self.rates(text, "")
        self.assertAlmostEqual(found["a"] / found["b"], 1, delta=0.05)

    def test_bytes_follow_sizes_and_queues(self):
        """MQFQ (USENIX ATC 2019), section 5: without a scheduler the drive alternates between the
        queues, so a tenant gets bytes by its request size, and by its number of queues."""
        head = "scheduler none\ndrive p3700 1024 random\nwarm_ms 20\n"
        head += "flow a weight 1\nflow b weight 1\n"
        sizes = (
            head + "queues 2\nload a depth 128 bytes 65536\nload b depth 128 bytes 4096 queue 1\n"
        )
        queues = head + "queues 12\nload a depth 1024 queues 8 bytes 4096\n"
        queues += "load b depth 512 queue 8 queues 4 bytes 4096\n"
        for text, ratio in ((sizes, 16), (queues, 2)):
            found = self.rates(text, "fetch 64\n")
            self.assertAlmostEqual(found["a"] / found["b"], ratio, delta=0.1 * ratio)
        found = self.rates(sizes, "")
        self.assertLess(found["a"] / found["b"], 14)

    def test_room_for_all_changes_nothing(self):
        text = DRIVE.format(fill="steady") + "load a depth 64 queues 4 bytes 16384 write 300\n"
        for scheduler in ("mqfq", "none", "wdt"):
            run = text.replace("mqfq", scheduler)
            found = [figures(run + more) for more in ("", "fetch 65536\n", "fetch 64\n")]
            self.assertEqual(found[0]["flows"], found[1]["flows"])
            self.assertEqual(found[0]["flows"], found[2]["flows"])

    def test_stalled_device_goes_on(self):
        for device in ("device 4 50000 0\n", "drive 980pro 128 random\n"):
            text = f"scheduler mqfq\n{device}fetch 2\n" + FLOW + LOAD + "at 50 stall 50\n"
            found = figures(text + "run_ms 150\nseries 50\n")["flows"]["a"]["series"]
            ios = [one["ios"] for one in found]
            self.assertLess(ios[1], 5)
            self.assertAlmostEqual(ios[2] / ios[0], 1, delta=0.1)


class Answers(unittest.TestCase):
    """The device tells several ends together."""

    def test_a_full_batch_is_told_at_once_and_a_rest_in_time(self):
        """The example of sim/device.h: six ends, 100 to 600 us after the start."""
        text = "scheduler none\ndevice 1 100000 0\nanswers {}\n" + FLOW
        text += "load a depth 6 bytes 4096 think_us 1000000\nrun_ms 5\n"
        for answers, told in (
            ("1 1000", [100, 200, 300, 400, 500, 600]),
            ("4 1000", [400] * 4 + [1500] * 2),
            ("6 1000", [600] * 6),
            ("7 1000", [1100] * 6),
            ("7 150", [250] * 2 + [450] * 2 + [650] * 2),
        ):
            flow = figures(text.format(answers))["flows"]["a"]
            self.assertEqual(flow["ios"], 6)
            self.assertEqual(flow["mean_ns"], sum(told) * 1000 // 6, answers)
            self.assertEqual(flow["max_ns"], told[-1] * 1000)

    def test_each_map_has_batches_of_its_own(self):
        text = "scheduler none\nqueues 2\ntag_maps {}\ndevice 2 100000 0\nanswers 2 1000\n" + FLOW
        text += "load a depth 1 bytes 4096\nload a depth 1 bytes 4096 queue 1\nrun_ms 50\n"
        for maps, ns in ((1, 100_000), (2, 1_100_000)):
            self.assertEqual(figures(text.format(maps))["flows"]["a"]["mean_ns"], ns)

    def test_the_device_serves_while_an_answer_waits(self):
        """One slot, or one command inside: the load has enough requests for the time of a batch."""
        for more in ("device 1 100000 0\n", "device 2 100000 0\nfetch 1\n"):
            text = f"scheduler none\n{more}answers 64 1000\n{FLOW}"
            text += "load a depth 64 bytes 4096\nwarm_ms 10\nrun_ms 110\n"
            found = figures(text)
            self.assertAlmostEqual(found["flows"]["a"]["iops"], 10_000, delta=100)
            # One is served, and 63 wait for the device or for their answer.
            self.assertAlmostEqual(found["flows"]["a"]["mean_ns"], 6_400_000, delta=64_000)

    def test_a_device_that_stalls_tells_nothing(self):
        for device in ("device 4 50000 0\n", "drive 980pro 128 random\n"):
            text = f"scheduler mqfq\n{device}answers 8 5000\n{FLOW}{LOAD}at 49 stall 52\n"
            found = figures(text + "run_ms 150\nseries 50\n")["flows"]["a"]["series"]
            ios = [one["ios"] for one in found]
            self.assertEqual(ios[1], 0)
            self.assertAlmostEqual(ios[2] / ios[0], 1, delta=0.2)

    def test_batches_leave_shares_by_weight(self):
        for scheduler in ("mqfq", "ifq", "kyber-fair", "wdt", "hwabc"):
            text = THREE_TO_ONE.format(scheduler=scheduler, depth="set depth 16")
            found = figures(text + "answers 8 1000\n")["flows"]
            part = found["big"]["bytes"] / (found["big"]["bytes"] + found["small"]["bytes"])
            self.assertAlmostEqual(part, 0.75, delta=0.02)


class Actions(unittest.TestCase):
    def rates(self, text: str, flow: str = "a") -> list[int]:
        found = figures(text + "run_ms 100\nseries 50\n")
        return [one["ios"] for one in found["flows"][flow]["series"]]

    def test_retimed_drive_is_slower(self):
        before, after = self.rates(DRIVE.format(fill="random") + LOAD + "at 50 retime 200\n")
        self.assertAlmostEqual(after / before, 0.5, delta=0.05)

    def test_stalled_device_completes_nothing(self):
        for text in (HEAD + FLOW, DRIVE.format(fill="random")):
            before, after = self.rates(text + LOAD + "at 50 stall 50\n")
            self.assertGreater(before, 0)
            self.assertLess(after, 5)

    def test_backlog_is_the_time_with_a_waiting_request_and_cost_is_charged(self):
        flows = figures(
            "scheduler mqfq\nset depth 2\ndevice 2 100000 0\nwarm_ms 10\nrun_ms 100\n"
            "flow deep weight 100\nflow idle weight 100\n"
            "load deep depth 32 bytes 512\n"
            "load idle depth 1 bytes 4096 start_ms 200\n"
        )["flows"]
        self.assertEqual(flows["deep"]["backlog_permille"], 1000)
        self.assertEqual(flows["deep"]["cost"], 4096 * flows["deep"]["ios"])
        self.assertEqual(flows["idle"]["backlog_permille"], 0)
        self.assertEqual(flows["idle"]["cost"], 0)

    def test_discards_and_metadata_are_requests_of_their_own_sort(self):
        text = SOUND.replace("depth 4 bytes 4096", "depth 4 bytes 8388608 discard 1")
        flow = figures(text)["flows"]["a"]
        self.assertEqual(flow["cost"], 2 * 4096 * flow["ios"])
        beside = (
            "scheduler mqfq\nset depth 2\ndevice 2 100000 0\nrun_ms 100\nflow a weight 100\n"
            "flow deep weight 100\nload deep depth 32 bytes 65536\nload a depth 1 bytes 4096"
        )
        plain, urgent = (figures(beside + word)["flows"]["a"] for word in ("\n", " urgent 1000\n"))
        self.assertLess(urgent["wait_ns"], plain["wait_ns"])

    def test_weight_changes(self):
        text = HEAD + FLOW + "flow b weight 100\nset depth 4\nload b depth 32 bytes 4096\n"
        text += "load a depth 32 bytes 4096\nat 50 weight b 300\n"
        before, after = self.rates(text, "b")
        self.assertAlmostEqual(after / before, 1.5, delta=0.05)

    def test_tunable_changes(self):
        found = figures(SOUND + "at 10 set depth 3\n")
        self.assertEqual(found["depth"], 3)
        self.assertEqual(figures(SOUND + "set depth 3\nat 10 set depth auto\n")["depth"], 16)

    def test_load_begins_pauses_and_ends(self):
        timed = HEAD + FLOW + "load a depth 4 bytes 4096 {}\n"
        self.assertEqual(self.rates(timed.format("start_ms 50"))[0], 0)
        self.assertLess(self.rates(timed.format("stop_ms 50"))[1], 5)
        on, off = self.rates(timed.format("on_ms 50 off_ms 50"))
        self.assertGreater(on, 100)
        self.assertLess(off, 5)


class Loads(unittest.TestCase):
    """A request of 4 KiB takes 82 us."""

    def flow(self, load: str, head: str = HEAD) -> dict:
        return figures(head + FLOW + f"load a {load}\nrun_ms 1000\n")["flows"]["a"]

    def test_pace_bounds_the_rate(self):
        self.assertEqual(self.flow("depth 4 bytes 4096 pace_ns 1000000")["ios"], 1000)
        poisson = self.flow("depth 4 bytes 4096 pace_ns 1000000 arrivals random")["ios"]
        self.assertAlmostEqual(poisson, 1000, delta=100)
        self.assertNotEqual(poisson, 1000)

    def test_overdue_requests_of_a_pace_catch_up(self):
        """Requests are due every 100 us, and the device does nothing for the first half."""
        text = HEAD + FLOW + "load a depth 4 bytes 4096 pace_ns 100000\nrun_ms 1000\n"
        found = figures(text + "at 0 stall 500\nseries 500\n")["flows"]["a"]
        self.assertLess(found["series"][0]["ios"], 5)
        self.assertAlmostEqual(found["ios"], 10000, delta=10)

    def replayed(self, trace: str, load: str, device: str = "device 2 80000 500") -> tuple:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(trace)
            file.flush()
            text = f"scheduler mqfq\n{device}\n{FLOW}load a {load} trace {file.name}\n"
            return run(text + "run_ms 100\nseries 10\n"), file.name

    def test_replay_submits_the_requests_of_a_file_at_their_times(self):
        lines = [f"{ms * 1000000} {op} {ms * 8192} {size} a" for ms, op, size in (
            (0, "read", 4096), (0, "write", 8192), (25, "read", 512), (99, "read", 4096),
        )]  # fmt: skip
        done, _ = self.replayed(TRACE + "\n".join(lines) + "\n", "depth 4 bytes 8192")
        flow = json.loads(done.stdout)["flows"]["a"]
        self.assertEqual((flow["ios"], flow["bytes"]), (4, 4096 + 8192 + 512 + 4096))
        self.assertEqual([one["ios"] for one in flow["series"]], [2, 0, 1, 0, 0, 0, 0, 0, 0, 1])
        self.assertEqual(flow["max_ns"] // 1000, 84)

    def test_overdue_requests_of_a_replay_catch_up_in_order(self):
        lines = "".join(f"{number} read 0 4096 a\n" for number in range(20))
        done, _ = self.replayed(TRACE + lines, "depth 1 bytes 4096 start_ms 10")
        flow = json.loads(done.stdout)["flows"]["a"]
        self.assertEqual(flow["ios"], 20)
        self.assertEqual([one["ios"] for one in flow["series"]][:3], [0, 20, 0])
        self.assertLess(flow["max_ns"], 90_000)

    def test_fault_in_a_replayed_file_ends_the_run(self):
        for trace, message in WRONG_TRACE.items():
            with self.subTest(trace=trace):
                done, name = self.replayed(trace, "depth 1 bytes 8192", "drive 980pro 128 empty")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"sim-run: {name}:{message}", done.stderr)

    def test_task_moves_over_its_cpus_and_has_one_at_a_time(self):
        """Each of two CPUs takes 100 us for a request: alone it bounds the rate."""
        head = "scheduler none\nqueues 2\nsubmit_ns 100000\ndevice 8 1000 0\n"
        load = "depth 8 bytes 4096 queues 2"
        moved = self.flow(f"{load} move_ms 10\nseries 5", head)
        self.assertAlmostEqual(moved["ios"], 10000, delta=200)
        self.assertAlmostEqual(moved["series"][3]["ios"], 50, delta=10)
        self.assertAlmostEqual(self.flow(load, head)["ios"], 20000, delta=50)

    def test_pause_after_some_requests(self):
        """Four requests, two at a time, and a pause of 836 us: 4 in 1 ms."""
        flow = self.flow("depth 2 bytes 4096 burst_ios 4 think_us 836")
        self.assertAlmostEqual(flow["ios"], 4000, delta=8)

    def test_pause_after_some_time(self):
        """Half of the time two requests of 82 us are outstanding, then none is."""
        flow = self.flow("depth 2 bytes 4096 burst_us 10000 think_us 10000")
        self.assertAlmostEqual(flow["ios"], 0.5 * 2 * 1e6 / 82, delta=150)

    def test_sizes_have_their_weights(self):
        flow = self.flow("depth 4 sizes 4096/3,65536/1")
        self.assertAlmostEqual(flow["bytes"] / flow["ios"], (3 * 4096 + 65536) / 4, delta=1500)

    def test_large_request_is_split_and_counted_once(self):
        """Four parts of 64 KiB take 112 us each; the device serves two at a time."""
        flow = self.flow("depth 1 bytes 262144", HEAD + "most_bytes 65536\n")
        self.assertEqual(flow["mean_ns"], 2 * 112000)
        self.assertEqual(flow["bytes"], flow["ios"] * 262144)

    def test_cpu_bounds_the_requests_and_tasks_take_turns(self):
        """A request takes 50 us of its CPU, so a CPU does 20 000 of them."""
        head = HEAD.replace("2 80000", "64 80000") + "submit_ns 40000\ncomplete_ns 10000\n"
        loads = "depth 8 bytes 4096\nflow b weight 100\nload b depth 32 bytes 4096"
        found = figures(head + FLOW + f"load a {loads}\nrun_ms 1000\n")["flows"]
        total = found["a"]["ios"] + found["b"]["ios"]
        self.assertAlmostEqual(total, 20000, delta=200)
        self.assertAlmostEqual(found["a"]["ios"] / total, 0.5, delta=0.02)

    def test_cpus_take_turns_at_the_lock_of_the_device(self):
        """A request needs the lock for 10 us, so all CPUs together do 100 000 in a second. One that
        comes while seven wait has the lock 70 us later. The lock does not move to the only CPU."""
        loads = "".join(f"load a queue {n} depth 1 bytes 4096\n" for n in range(8))
        for locked_ns, ios, mean_ns in ((0, 400_000, 20_000), (10_000, 100_000, 80_000)):
            with self.subTest(locked_ns=locked_ns):
                head = f"scheduler none\nqueues 8\nlocked_ns {locked_ns}\ndevice 64 20000 0\n"
                found = figures(head + FLOW + loads + "run_ms 1000\n")["flows"]["a"]
                self.assertAlmostEqual(found["ios"], ios, delta=ios / 100)
                self.assertAlmostEqual(found["mean_ns"], mean_ns, delta=mean_ns / 50)
        alone = figures(f"{head}{FLOW}load a queue 1 depth 8 bytes 4096\nrun_ms 1000\n")
        self.assertAlmostEqual(alone["flows"]["a"]["ios"], 400_000, delta=4000)


class Comparators(unittest.TestCase):
    """The host audits the schedulers of the literature as it does ours."""

    def shares(self, head: str, depths: tuple[int, int], **more: str) -> list[float]:
        text = head + "flow big weight 300\nflow small weight 100\n"
        for flow, depth in zip(("big", "small"), depths, strict=True):
            words = f"depth {depth} bytes 4096 queues 4 {more.get(flow, '')}"
            text += f"load {flow} {words}\n"
        found = figures(text + "warm_ms 100\nrun_ms 1000\n")["flows"]
        total = sum(one["bytes"] for one in found.values())
        return [found[name]["bytes"] / total for name in ("big", "small")]

    def test_sfq_divides_the_device_by_weight_over_all_queues(self):
        for depth in (1, 8, 64):
            for slots in (1, 8, 100):
                with self.subTest(depth=depth, slots=slots):
                    head = f"scheduler sfq\nset depth {depth}\nqueues 4\nwake_ns 2000\n"
                    big, _ = self.shares(f"{head}device {slots} 80000 500\n", (256, 256))
                    self.assertAlmostEqual(big, 0.75, delta=0.0075)

    def check_equal_bytes(self, head):
        """Two flows of equal weight get equal bytes, with requests of 4 and of 64 KiB."""
        text = head + "flow a weight 100\nflow b weight 100\nrun_ms 2000\n"
        text += "load a depth 32 bytes 4096 queues 4\nload b depth 32 bytes 65536 queues 4\n"
        found = figures(text)["flows"]
        self.assertAlmostEqual(found["a"]["bytes"] / found["b"]["bytes"], 1, delta=0.02)

    def test_sfq_charges_bytes(self):
        head = "scheduler sfq\nset depth 4\nqueues 4\ndevice 4 80000 500\n"
        self.check_equal_bytes(head)

    def test_sfq_gives_unused_service_to_the_other_flow(self):
        head = "scheduler sfq\nset depth 8\nqueues 4\ndevice 8 80000 500\n"
        big, small = self.shares(head, (1, 256))
        self.assertLess(big, 0.13)
        self.assertGreater(small, 0.87)

    def test_sfq_goes_on_when_the_driver_has_few_tags(self):
        head = "scheduler sfq\nset depth 64\nqueues 4\ntags 2\ndevice 8 80000 500\n"
        big, _ = self.shares(head, (256, 256))
        self.assertGreater(big, 0.5)

    def test_bwf2q_divides_the_device_by_weight_over_all_queues(self):
        for budget in (512, 8192):
            for slots in (1, 8, 64):
                with self.subTest(budget=budget, slots=slots):
                    head = f"scheduler bwf2q\nset budget_kb {budget}\nqueues 4\nwake_ns 2000\n"
                    head += f"tags 64\ntag_maps 1\ndevice {slots} 80000 500\nwarm_ms 1000\n"
                    big, _ = self.shares(head, (256, 256))
                    self.assertAlmostEqual(big, 0.75, delta=0.02)

    def test_bwf2q_charges_bytes_and_goes_on_with_few_tags(self):
        head = "scheduler bwf2q\nset budget_kb 512\nqueues 4\ntags 2\ndevice 4 80000 500\n"
        self.check_equal_bytes(head)

    def test_flow_in_service_that_thinks_holds_the_drive(self):
        """With idle_us a flow with one request holds the drive, and without it gets little."""
        for name in ("bwf2q", "mfap"):
            rates = []
            for idle in (0, 8000):
                head = f"scheduler {name}\nset idle_us {idle}\nqueues 4\ntags 64\ntag_maps 1\n"
                text = head + "device 64 80000 500\nrun_ms 1000\n"
                text += "flow a weight 100\nflow b weight 100\n"
                text += "load a depth 1 bytes 4096\nload b depth 256 bytes 4096 queues 4\n"
                found = figures(text)
                rates.append((found["flows"]["a"]["iops"], found["totals"]["iops"]))
            with self.subTest(name=name):
                self.assertGreater(rates[1][0], 5 * rates[0][0])
                self.assertLess(rates[1][1], 0.6 * rates[0][1])

    def test_bwf2q_ends_the_turn_of_a_flow_after_its_timeout(self):
        """The other flow gets nothing while a flow with one request is in service."""
        head = "scheduler bwf2q\nset timeout_ms {}\nqueues 2\ntags 64\ntag_maps 1\n"
        head += "device 64 80000 500\nrun_ms 1000\nseries 10\n"
        head += "flow a weight 100\nflow b weight 100\n"
        head += "load a depth 1 bytes 4096\nload b depth 256 bytes 4096 queues 2\n"
        pauses = []
        for timeout in (20, 200):
            pauses.append(max(self.pauses(head.format(timeout), "b"), default=0))
        self.assertLessEqual(pauses[0], 2)
        self.assertGreaterEqual(pauses[1], 15)

    def pauses(self, text: str, flow: str) -> list[int]:
        """The lengths of the times without an end of an io of @flow, in intervals."""
        series = figures(text)["flows"][flow]["series"]
        idle = "".join("0" if one["ios"] else "1" for one in series)
        return [len(one) for one in idle.split("0") if one]

    def pair(self, head: str, loads: tuple[str, str], drive: str) -> list[dict]:
        """The figures of two flows of weights 300 and 100 with @loads on four CPUs."""
        text = f"{head}queues 4\nwake_ns 2000\n{drive}flow a weight 300\nflow b weight 100\n"
        text += "".join(f"load {flow} {load}\n" for flow, load in zip("ab", loads, strict=True))
        found = figures(f"{text}warm_ms 2000\nrun_ms 1000\n")["flows"]
        return [found["a"], found["b"]]

    def test_deadline_and_kyber_know_no_weights(self):
        for name in ("mq-deadline", "kyber"):
            with self.subTest(name=name):
                head = f"scheduler {name}\nqueues 4\nwake_ns 2000\ntags 8\ntag_maps 1\n"
                big, _ = self.shares(f"{head}device 8 80000 500\n", (256, 256))
                self.assertAlmostEqual(big, 0.5, delta=0.02)

    def test_deadline_serves_two_batches_of_reads_for_one_of_writes(self):
        loads = ("depth 256 bytes 4096 queues 4", "depth 256 bytes 4096 queues 4 write 1000")
        drive = "tags 8\ntag_maps 1\ndevice 8 80000 500\n"
        for starved in (1, 2, 4):
            head = f"scheduler mq-deadline\nset writes_starved {starved}\n"
            with self.subTest(starved=starved):
                reads, writes = self.pair(head, loads, drive)
                self.assertAlmostEqual(reads["ios"] / writes["ios"], starved, delta=0.02 * starved)
        reads, writes = self.pair("scheduler none\n", loads, drive)
        self.assertAlmostEqual(reads["ios"] / writes["ios"], 1, delta=0.02)

    def test_deadline_sends_the_oldest_first(self):
        """A reader waits for the requests before it, and for no others."""
        loads = ("depth 1 bytes 4096", "depth 96 bytes 4096")
        drive = "tags 8\ndevice 8 80000 0\n"
        reader, _ = self.pair("scheduler mq-deadline\n", loads, drive)
        self.assertAlmostEqual(reader["mean_ns"], 80_000 * 97 / 8, delta=20_000)
        self.assertLess(reader["max_ns"], 80_000 * (97 / 8 + 2))

    def test_kyber_has_tokens_for_256_reads_and_128_writes(self):
        loads = ("depth 600 bytes 4096 queues 4", "depth 600 bytes 4096 queues 4 write 1000")
        head = "scheduler kyber\nset read_lat_nsec 100000000\nset write_lat_nsec 100000000\n"
        reads, writes = self.pair(head, loads, "device 2000 1000000 0\n")
        self.assertAlmostEqual(reads["ios"], 256_000, delta=2560)
        self.assertAlmostEqual(writes["ios"], 128_000, delta=1280)

    def test_kyber_takes_tokens_from_writes_while_reads_are_late(self):
        """128 writes are a wait of 320 us at this drive. A target of 200 us gives reads less."""
        loads = ("depth 1 bytes 4096", "depth 512 bytes 4096 queues 4 write 1000")
        means = {}
        for target in (2_000_000, 200_000):
            head = f"scheduler kyber\nset read_lat_nsec {target}\n"
            reads, _ = self.pair(head, loads, "device 32 80000 500\n")
            means[target] = reads["mean_ns"]
        self.assertGreater(means[2_000_000], 300_000)
        self.assertLess(means[200_000], 200_000)
        head = "scheduler kyber\nset read_lat_nsec 200000\nset write_lat_nsec 200000\n"
        reads, _ = self.pair(head, loads, "device 32 80000 500\n")
        self.assertGreater(reads["mean_ns"], 300_000)

    def test_mfap_slices_are_inverse_to_the_time_used(self):
        """A flow that is there for half of the time uses a third of it beside another. So its
        slices become twice as long, 40 ms, as in the paper's example."""
        head = "scheduler mfap\nset slice_ms 20\nset window_ms {}\nqueues 2\ntags 4\n"
        head += "tag_maps 1\ndevice 4 80000 500\nwarm_ms 10000\nrun_ms 500\nseries 1\n"
        head += "flow half weight 100\nflow whole weight 100\n"
        head += "load half depth 64 bytes 4096 queues 2 on_ms 500 off_ms 500\n"
        head += "load whole depth 64 bytes 4096 queues 2\n"
        for window, pause in ((100000, 20), (1000, 40)):
            found = self.pauses(head.format(window), "whole")
            with self.subTest(window=window):
                self.assertAlmostEqual(statistics.median(found), pause, delta=6)

    def test_mfap_divides_the_first_window_by_weight(self):
        head = "scheduler mfap\nset slice_ms 5\nqueues 4\nwake_ns 2000\n"
        head += "tags 64\ntag_maps 1\ndevice 16 80000 500\n"
        big, _ = self.shares(head, (256, 256))
        self.assertAlmostEqual(big, 0.75, delta=0.02)

    def test_mfap_reader_waits_for_the_slices_of_the_others(self):
        head = "scheduler mfap\nset slice_ms {}\nqueues 3\ntags 64\ntag_maps 1\n"
        head += "device 16 80000 500\nrun_ms 5000\nflow reader weight 100\n"
        head += "load reader depth 1 bytes 4096 think_us 9000\n"
        head += "".join(
            f"flow {one} weight 100\nload {one} depth 64 bytes 4096 queue {queue}\n"
            for queue, one in ((1, "b"), (2, "c"))
        )
        for slice_ms in (10, 100):
            with self.subTest(slice_ms=slice_ms):
                reader = figures(head.format(slice_ms))["flows"]["reader"]
                self.assertGreater(reader["max_ns"], 1.5e6 * slice_ms)
                self.assertLess(reader["max_ns"], 2.1e6 * slice_ms)

    def test_flashfq_divides_the_device_by_weight_over_all_queues(self):
        for slots in (1, 8, 64):
            with self.subTest(slots=slots):
                head = "scheduler flashfq\nset depth 8\nqueues 4\nwake_ns 2000\n"
                big, _ = self.shares(f"{head}device {slots} 80000 500\n", (256, 256))
                self.assertAlmostEqual(big, 0.75, delta=0.0075)
        head = "scheduler flashfq\nset depth 4\nqueues 4\ndevice 4 80000 500\n"
        self.check_equal_bytes(head)

    def thinker(self, head: str) -> list[float]:
        """The requests per second of a flow that thinks for 50 us after each, and of a flow with
        many, on a drive of 195,000."""
        text = head + "queues 4\nwake_ns 2000\ntags 64\ntag_maps 1\ndevice 16 80000 500\n"
        text += "warm_ms 100\nrun_ms 500\nflow a weight 100\nflow b weight 100\n"
        text += "load a depth 1 bytes 4096 think_us 50\nload b depth 64 bytes 4096 queues 4\n"
        return [one["iops"] for one in figures(text)["flows"].values()]

    def test_flashfq_waits_for_a_flow_that_thinks(self):
        """Deceptive idleness: with anticipation both flows get the same, at the thinker's rate."""
        one, other = self.thinker("scheduler flashfq\nset depth 8\n")
        self.assertAlmostEqual(other / one, 1, delta=0.02)
        self.assertGreater(one, 7000)
        one, other = self.thinker("scheduler flashfq\nset depth 8\nset anticipate_us 40\n")
        self.assertGreater(other / one, 1.5)

    def test_flashfq_does_not_throttle_within_its_threshold(self):
        """A flow that ends its pause is at most the threshold behind."""
        head = "scheduler flashfq\nset depth 8\nset threshold_kb 1000000\n"
        one, other = self.thinker(head)
        self.assertGreater(other / one, 10)

    def test_stf_serves_the_flow_first_that_is_slowed_down_most(self):
        """A read alone takes 82 us. In the order of arrival it also waits for the others."""
        fair, _ = self.thinker("scheduler stf\nset depth 8\n")
        arrival, _ = self.thinker("scheduler stf\nset depth 8\nset alpha_pct 100000\n")
        self.assertGreater(fair, 5500)
        self.assertLess(arrival, 1500)

    def test_stf_raises_a_slowdown_by_the_weight_and_promises_no_shares(self):
        head = "scheduler stf\nset depth 8\nqueues 4\ndevice 8 80000 500\n"
        big, _ = self.shares(head, (64, 64))
        self.assertGreater(big, 0.55)
        self.assertLess(big, 0.7)
        text = head + "flow a weight 100\nflow b weight 100\nrun_ms 500\n"
        text += "load a depth 32 bytes 4096 queues 4\nload b depth 32 bytes 65536 queues 4\n"
        found = figures(text)["flows"]
        self.assertGreater(found["b"]["bytes"] / found["a"]["bytes"], 5)

    def test_cfq_divides_the_time_of_the_drive_by_weight(self):
        """A flow with requests of 64 KiB gets the same time, and so more bytes."""
        head = "scheduler cfq\nset slice_ms 5\nset idle_us 1000\nqueues 4\nwake_ns 2000\n"
        head += "tags 64\ntag_maps 1\ndevice 16 80000 500\nwarm_ms 100\nrun_ms 2000\n"
        for size, ns in ((4096, 82000), (65536, 112000)):
            text = head + "flow big weight 300\nflow small weight 100\n"
            text += "load big depth 64 bytes 4096 queues 4\n"
            text += f"load small depth 64 bytes {size} queues 4\n"
            found = figures(text)["flows"]
            times = [found["big"]["ios"] * 82000, found["small"]["ios"] * ns]
            with self.subTest(size=size):
                self.assertAlmostEqual(times[0] / sum(times), 0.75, delta=0.02)

    def test_cfq_keeps_few_requests_in_the_drive_while_another_flow_waits(self):
        head = "scheduler cfq\nset quantum {}\nqueues 4\nwake_ns 2000\n"
        head += "tags 64\ntag_maps 1\ndevice 16 80000 500\nrun_ms 500\n"
        both = "flow a weight 100\nload a depth 64 bytes 4096 queues 4\n"
        both += "flow b weight 100\nload b depth 64 bytes 4096 queues 4\n"
        alone = "flow a weight 100\nload a depth 64 bytes 4096 queues 4\n"
        rates = [
            figures(head.format(quantum) + loads)["totals"]["iops"]
            for quantum, loads in ((8, both), (16, both), (8, alone))
        ]
        self.assertAlmostEqual(rates[0] / rates[1], 0.5, delta=0.02)
        self.assertAlmostEqual(rates[2] / rates[1], 1, delta=0.02)

    def test_cfq_slices_follow_the_number_of_flows(self):
        """Three of weight 100 have slices of 100 ms, and six have a sixth of 300 ms."""
        for flows, slice_ms in ((3, 100), (6, 50)):
            head = "scheduler cfq\nqueues 2\ntags 16\ntag_maps 1\ndevice 16 80000 500\n"
            head += "run_ms 4000\nseries 5\n"
            for number in range(flows):
                head += f"flow f{number} weight 100\n"
                head += f"load f{number} depth 32 bytes 4096 queues 2\n"
            with self.subTest(flows=flows):
                found = self.pauses(head, "f1")
                expected = slice_ms * (flows - 1) / 5
                self.assertAlmostEqual(statistics.median(found), expected, delta=2)

    def test_cfq_serves_the_real_time_class_at_once(self):
        """CFQ-P. The reader of weight 1000 waits for no slice, and the others only for it."""
        head = "scheduler cfq\nset realtime_weight {}\nqueues 3\ntags 64\ntag_maps 1\n"
        head += "device 16 80000 500\nrun_ms 5000\nflow reader weight 1000\n"
        head += "load reader depth 1 bytes 4096 think_us 9000 queue 2\n"
        head += "".join(
            f"flow {one} weight 100\nload {one} depth 64 bytes 4096 queue {queue}\n"
            for queue, one in ((0, "b"), (1, "c"))
        )
        plain, raised = (figures(head.format(weight))["flows"] for weight in (0, 1000))
        self.assertGreater(plain["reader"]["max_ns"], 40e6)
        self.assertLess(raised["reader"]["max_ns"], 1e6)
        self.assertGreater(raised["reader"]["ios"], 500)
        self.assertGreater(raised["b"]["ios"], 1000)

    IOCOST = (
        "scheduler iocost\nset rbps_kib 9142857\nset rseqiops 195000\nset rrandiops 195000\n"
        "queues 4\nwake_ns 2000\ntags 64\ntag_maps 1\ndevice 16 80000 500\n"
    )

    def test_iocost_divides_the_time_of_the_model_by_weight(self):
        """A request costs 4.69 us and 0.44 us for each 4 KiB."""
        text = f"{self.IOCOST}warm_ms 100\nrun_ms 1000\n"
        text += "flow big weight 300\nflow small weight 100\n"
        for size, cost in ((4096, 5.13), (65536, 11.70)):
            loads = "load big depth 64 bytes 4096 queues 4\n"
            loads += f"load small depth 64 bytes {size} queues 4\n"
            found = figures(text + loads)["flows"]
            times = [found["big"]["iops"] * 5.13, found["small"]["iops"] * cost]
            with self.subTest(size=size):
                self.assertAlmostEqual(times[0] / sum(times), 0.75, delta=0.01)
                self.assertAlmostEqual(sum(times), 0.95e6, delta=0.02e6)

    def test_iocost_goes_on_at_its_rate_whatever_the_drive_does(self):
        rates = []
        for vrate in (50, 90):
            text = f"{self.IOCOST}set vrate_pct {vrate}\nrun_ms 500\n"
            text += FLOW + "load a depth 64 bytes 4096 queues 4\n"
            rates.append(figures(text)["flows"]["a"]["iops"])
        self.assertAlmostEqual(rates[0], 97500, delta=1500)
        self.assertAlmostEqual(rates[1] / rates[0], 1.8, delta=0.03)

    def test_iocost_gives_unused_shares_away_and_takes_them_back(self):
        """The flow of weight 300 uses 4 % of the drive, and later all that it may. It takes its
        share back at once, and not at the end of the period of 240 ms."""
        text = f"{self.IOCOST}set vrate_pct 50\nset period_us 240000\nrun_ms 700\nseries 100\n"
        text += "flow big weight 300\nflow small weight 100\n"
        text += "load big depth 1 bytes 4096 think_us 50\n"
        text += "load big depth 64 bytes 4096 queues 4 start_ms 500\n"
        text += "load small depth 64 bytes 4096 queues 4\n"
        found = figures(text)["flows"]
        light, heavy = (found[one]["series"][4]["ios"] * 10 for one in ("big", "small"))
        self.assertGreater(light, 7500)
        self.assertGreater(heavy, 80000)
        ours, theirs = (found[one]["series"][5]["ios"] for one in ("big", "small"))
        self.assertGreater(ours / (ours + theirs), 0.65)
        ours, theirs = (found[one]["series"][6]["ios"] for one in ("big", "small"))
        self.assertAlmostEqual(ours / (ours + theirs), 0.75, delta=0.02)

    def test_iocost_charges_requests_in_order_less(self):
        head = "scheduler iocost\nset rbps_kib 4000000\nset rseqiops 100000\n"
        head += "set rrandiops 10000\ndrive 980pro 128 random\nrun_ms 500\n"
        rates = [
            figures(f"{head}{FLOW}load a depth 16 bytes 4096 order {order}\n")["flows"]["a"]
            for order in ("sequential", "random")
        ]
        self.assertAlmostEqual(rates[0]["iops"], 95000, delta=2000)
        # A place within 16 MiB of the last one counts as in order: 25 % of 128 MiB.
        self.assertAlmostEqual(rates[1]["iops"], 12200, delta=600)

    def test_first_come_first_served_fails(self):
        """The bounds above tell a comparator from no scheduler."""
        for slots in (1, 8, 64):
            big, _ = self.shares(f"scheduler none\nqueues 4\ndevice {slots} 80000 500\n", (64, 64))
            self.assertLess(big, 0.55)
        with self.assertRaises(AssertionError):
            self.check_equal_bytes("scheduler none\nqueues 4\ndevice 4 80000 500\n")
        one, other = self.thinker("scheduler none\n")
        self.assertLess(one, 5500)
        self.assertGreater(other / one, 10)

    def test_sfq_takes_new_depth_and_weight(self):
        text = "scheduler sfq\nset depth 1\nqueues 2\ndevice 16 80000 500\nrun_ms 200\n"
        text += "flow a weight 100\nflow b weight 100\n"
        text += "".join(f"load {one} depth 64 bytes 4096 queues 2\n" for one in "ab")
        found = figures(text + "at 100 set depth 16\nat 100 weight a 300\nseries 100\n")["flows"]
        before, after = ([found[one]["series"][i]["ios"] for one in "ab"] for i in (0, 1))
        self.assertGreater(sum(after), 12 * sum(before))
        self.assertAlmostEqual(before[0] / sum(before), 0.5, delta=0.01)
        self.assertAlmostEqual(after[0] / sum(after), 0.75, delta=0.01)

    # A request takes 1 ms in an idle drive, and 10 ms with eighty inside.
    IOLATENCY = (
        "scheduler iolatency\nset window_ms 50\nqueues 4\ndevice 8 1000000 500\n"
        "flow few weight 300\nflow many weight 100\n"
    )
    MANY = "load many depth 72 bytes 4096 queues 4\n"

    def test_iolatency_holds_back_a_greater_target(self):
        text = self.IOLATENCY + "warm_ms 2000\nrun_ms 2000\nload few depth 8 bytes 4096 queues 4\n"
        met, free = (
            figures(f"{text}{self.MANY}set target_us {us}\n")["flows"] for us in (6000, 1000000)
        )
        self.assertAlmostEqual(free["many"]["ios"] / free["few"]["ios"], 9, delta=0.5)
        self.assertGreater(met["few"]["ios"], 4 * met["many"]["ios"])
        # The target of weight 300, which a tenth may miss.
        self.assertLess(met["few"]["mean_ns"], 2_000_000)

    def test_iolatency_holds_back_no_equal_target(self):
        text = (
            self.IOLATENCY + "at 1 weight few 100\nwarm_ms 1000\nrun_ms 1000\nset target_us 100\n"
        )
        found = figures(f"{text}load few depth 8 bytes 4096 queues 4\n{self.MANY}")["flows"]
        self.assertAlmostEqual(found["many"]["ios"] / found["few"]["ios"], 9, delta=0.5)

    def test_iolatency_forgets_a_victim_that_has_left_for_five_seconds(self):
        text = self.IOLATENCY + "set target_us 6000\nwarm_ms 0\nrun_ms 10000\nseries 1000\n"
        text += "load few depth 8 bytes 4096 queues 4 on_ms 2000 off_ms 100000\n"
        series = [one["ios"] for one in figures(text + self.MANY)["flows"]["many"]["series"]]
        self.assertLess(max(series[2:6]), 0.2 * 8000)
        self.assertGreater(series[-1], 0.95 * 8000)

    def test_throttle_gives_each_flow_its_rate_and_no_more(self):
        head = "scheduler throttle\nset kib_per_weight 20\nqueues 4\ndevice 64 80000 500\n"
        text = head + "flow big weight 300\nflow small weight 100\nrun_ms 2000\n"
        big = "load big depth 64 bytes 4096 queues 4\n"
        small = "load small depth 64 bytes 65536 queues 4\n"
        for loads, rates in ((big + small, (6000, 2000)), (big, (6000, 0)), (small, (0, 2000))):
            with self.subTest(loads=loads):
                found = figures(text + loads)["flows"]
                for name, rate in zip(("big", "small"), rates, strict=True):
                    seen = found[name]["bytes_per_s"] / 1024
                    self.assertAlmostEqual(seen, rate, delta=0.02 * rate + 1)

    def test_throttle_follows_a_new_rate(self):
        text = "scheduler throttle\nset kib_per_weight 10\ndevice 64 80000 500\nrun_ms 2000\n"
        text += FLOW + "load a depth 8 bytes 4096\nat 1000 set kib_per_weight 40\nseries 1000\n"
        before, after = (one["bytes"] for one in figures(text)["flows"]["a"]["series"])
        self.assertAlmostEqual(after / before, 4, delta=0.1)

    def test_throttle_saves_nothing_in_a_pause(self):
        text = "scheduler throttle\nset kib_per_weight 40\ndevice 64 80000 500\nrun_ms 2000\n"
        text += FLOW + "load a depth 8 bytes 4096 on_ms 500 off_ms 500\n"
        found = figures(text)["flows"]["a"]
        self.assertAlmostEqual(found["bytes_per_s"] / 1024, 2000, delta=100)


class Messages(unittest.TestCase):
    def test_help_has_an_example_that_runs(self):
        done = subprocess.run([SIM_RUN, "--help"], capture_output=True, text=True, check=True)
        example = [line for line in done.stdout.splitlines() if line.startswith("    ")]
        self.assertEqual(set(figures("\n".join(example))["flows"]), {"big", "small"})

    def test_other_arguments_are_refused(self):
        for words in (["file"], ["--help", "file"]):
            done = subprocess.run([SIM_RUN, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("sim-run < FILE", done.stderr)

    def test_wrong_line_is_named_with_the_accepted_values(self):
        for line, message in WRONG.items():
            with self.subTest(line=line):
                done = run(f"{SOUND}{line}\n")
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertTrue(done.stderr.startswith("sim-run: line 6: " + message), done.stderr)

    def test_missing_statements(self):
        for text, message in (
            ("", "no scheduler: write scheduler NAME"),
            ("device 2 1 1\n", "no scheduler: write scheduler NAME"),
            ("scheduler\n", "line 1: scheduler is missing: use none, mqfq,"),
            ("scheduler fastest\n", "line 1: scheduler 'fastest': use none, mqfq,"),
            ("scheduler mqfq\n", "write one of device SLOTS BASE_NS NS_PER_KIB and drive MODEL"),
            (SOUND + "drive 980pro 128 empty\n", "write one of device SLOTS"),
            (SOUND + "ftl host\n", "ftl: it is for a drive"),
            (SOUND + "time_scale 2\n", "time_scale and write_times: they are for a drive"),
            (SOUND + "tag_maps 2\n", "tag_maps 2: use at most 1, the queues"),
            (SOUND + "queues 6\nsockets 4\n", "sockets 4: use a divisor of 6, the queues"),
            (SOUND + "most_bytes 5\n", "most_bytes 5: use a multiple of 512"),
            (SOUND + "warm_ms 5\nseries 2 whole\n", "series 2 whole: warm_ms 5 is not a"),
            (
                DRIVE.format(fill="random") + LOAD + "part a 60 1\npart a 41 1\n",
                "line 7: part: 101 % in all: use at most 100",
            ),
            (
                DRIVE.format(fill="random 50") + LOAD + "part a 60 1\n",
                "line 6: part: leave out the PERCENT of the drive",
            ),
            (HEAD, "no load: write load FLOW depth N bytes N"),
            ("set depth 4\n", "line 1: set: name the scheduler on a line before"),
        ):
            with self.subTest(text=text):
                done = run(text)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith(f"sim-run: {message}"), done.stderr)

    def test_drive_that_is_too_small_or_a_range_beyond_its_end(self):
        for text, message in (
            (DRIVE.format(fill="empty").replace("128", "1") + LOAD, "drive 980pro of 1 MiB: the"),
            (
                DRIVE.format(fill="empty") + "load a depth 1 bytes 4096 first_mib 100 mib 64\n",
                "line 5: load: the range ends at 164 MiB, the drive at 128 MiB",
            ),
        ):
            with self.subTest(text=text):
                done = run(text)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith(f"sim-run: {message}"), done.stderr)


if __name__ == "__main__":
    SIM_RUN = sys.argv.pop()
    unittest.main()
