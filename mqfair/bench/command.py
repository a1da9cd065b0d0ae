# SPDX-License-Identifier: GPL-2.0
"""mqfair bench: from the arguments of its command line to tables, files and progress."""

import argparse
import contextlib
import functools
import importlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from lab.tree import UML
from mqfair.bench import device as devices
from mqfair.bench import jobfile, replays, report, resume, session, ssd
from mqfair.bench.plan import HOST, SEVERAL_SCHEMA, SIM, TIMELINES_SCHEMA, VM
from mqfair.bench.result import document
from mqfair.bench.simulated import scene_file
from mqfair.bench.simulated import session as simulation
from mqfair.bench.simulated.drive import unstretched
from mqfair.bench.simulated.scene_file import SceneFile
from mqfair.bench.variant import (
    COMPARATORS,
    MQFQ,
    NONE,
    SCHEDULERS,
    WITHOUT_TUNABLES,
    parse_variants,
    scheduler_of,
    sweep,
)
from mqfair.machine.blockdev import NR_REQUESTS_MAX, NR_REQUESTS_MIN
from mqfair.text.errors import Failure, UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import require_outputs, whole_output
from mqfair.tune.calibrate import SECONDS_DEFAULT, SECONDS_LEAST, SECONDS_MOST

CPUS_MOST = 8
# The runs of --fast: long enough for the shares of small requests, and too short for latencies.
FAST_S = 3.0
ESTIMATE_IN_MINUTES_S = 120
FAST_SCHEDULERS = (NONE, MQFQ)
SEED_MOST = 1 << 60
REQUEST_NS_MOST = 1_000_000_000
PROCESSES_MOST = 1024
_PICTURES = (".png", ".svg", ".pdf")


def main(args: argparse.Namespace) -> int:
    asked = [_with_schedulers(one) for one in requests(args)]
    _require_outputs(args, asked)
    if args.cdf is not None and len(asked) > 1:
        raise UsageError(f"--cdf {args.cdf}: a picture has one drive: name one with --device")
    with _raw_folder(args.raw, args.resume, len(asked)) as folder:
        places = _places(folder, len(asked))
        outcomes, ending = _run_all(asked, places)
    if outcomes:
        _show(args, outcomes, several=len(asked) > 1)
    if ending is not None:
        if args.raw is not None and isinstance(ending, session.Interrupted):
            raise session.Interrupted(f"{ending}; --resume goes on from there", None)
        raise ending
    return 0


def _require_outputs(args: argparse.Namespace, asked: Sequence[session.Request]) -> None:
    """Raises UsageError if the results could not be written, or would replace a file that is
    read."""
    for option in ("picture", "cdf"):
        name = getattr(args, option)
        if name is not None and Path(name).suffix.lower() not in _PICTURES:
            raise UsageError(
                f"--{option} {name}: the ending names the format: use .png, .svg or .pdf"
            )
    outputs = {f"--{one}": getattr(args, one) for one in ("json", "timeline", "picture", "cdf")}
    require_outputs(outputs, [file for one in asked for file in _files_read(one)])


def _files_read(one: session.Request) -> Iterator[str]:
    for job in one.jobs:
        yield job.path
        yield from scene_file.traces(job) if isinstance(job, SceneFile) else replays.traces(job)
    model = ssd.file_of(one.device.text) if one.device.kind == devices.SSD else None
    if model is not None:
        yield model


def _run_all(
    asked: Sequence[session.Request], places: Sequence[Path]
) -> tuple[list[session.Outcome], BaseException | None]:
    """Runs the bench of each drive, one after the other. Returns the results so far, and the
    exception that ended it before its last run."""
    outcomes: list[session.Outcome] = []
    if len(asked) > 1:
        # A mistake about the last drive is told before the hours that the first ones take.
        for one in asked:
            _check(one)
    with show_progress(asked, places) as progress:
        for number, (one, place) in enumerate(zip(asked, places, strict=True)):
            run = simulation.run if one.on == SIM else session.run
            place.mkdir(exist_ok=True)
            try:
                outcomes.append(run(one, place, functools.partial(_of_drive, progress, number)))
            except session.Interrupted as interrupt:
                if interrupt.outcome is not None:
                    outcomes.append(interrupt.outcome)
                drive = f"drive {number + 1} of {len(asked)}: " if len(asked) > 1 else ""
                return outcomes, session.Interrupted(f"{drive}{interrupt}", None)
            except (Failure, UsageError) as error:
                if not outcomes:
                    raise
                return outcomes, error
    return outcomes, None


def _of_drive(progress: session.Progress, drive: int, message: Mapping[str, Any]) -> None:
    progress({**message, "drive": drive})


def _check(one: session.Request) -> None:
    if one.on == SIM:
        simulation.check(one)
    else:
        session.check(one)


def _with_schedulers(one: session.Request) -> session.Request:
    if one.on == SIM:
        return simulation.with_schedulers(one)
    return session.with_built_module(one)


def _show(args: argparse.Namespace, outcomes: Sequence[session.Outcome], *, several: bool) -> None:
    """Writes the files, and then prints the tables: a pager may have gone away."""
    try:
        _write(args, outcomes, several=several)
    finally:
        if "-" not in (args.json, args.timeline):
            _print(outcomes, several=several)


def _print(outcomes: Sequence[session.Outcome], *, several: bool) -> None:
    console = report.console_for()
    for outcome in outcomes:
        if several:
            console.print(f"drive {outcome.where['device']}", style="bold", highlight=False)
        console.print(report.render(outcome.results[0], outcome.notes))


def _write(args: argparse.Namespace, outcomes: Sequence[session.Outcome], *, several: bool) -> None:
    written = [document(one.results[0], one.where, one.notes) for one in outcomes]
    whole, times = written[0], outcomes[0].results[0].timeline
    if several:
        whole = {"schema": SEVERAL_SCHEMA, "devices": written}
        drives = [{"device": one.where["device"], **one.results[0].timeline} for one in outcomes]
        times = {"schema": TIMELINES_SCHEMA, "devices": drives}
    documents = [(args.json, whole), (args.timeline, times)]
    _write_files({name: one for name, one in documents if name not in (None, "-")})
    if args.picture is not None:
        _draw(outcomes, args.picture)
    if args.cdf is not None:
        _draw_cdf(outcomes[0], args.cdf)
    for name, one in documents:
        if name == "-":
            print(json.dumps(one, indent=1))


def _draw_cdf(outcome: session.Outcome, name: str) -> None:
    cdf = importlib.import_module("mqfair.bench.cdf")
    with _drawing("--cdf", name):
        cdf.draw(outcome.results[0], outcome.where, Path(name))


@contextlib.contextmanager
def _drawing(option: str, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write {name}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{option} {name}: cannot draw: {error}") from error


def _draw(outcomes: Sequence[session.Outcome], name: str) -> None:
    """Draws the picture, which needs matplotlib."""
    picture = importlib.import_module("mqfair.bench.picture")
    pairs = [(outcome, result) for outcome in outcomes for result in outcome.results]
    titles = [result.case.name for _, result in pairs]
    where = dict(outcomes[0].where)
    if len(outcomes) > 1:
        where["device"] = None
        titles = [
            f"{result.case.name}, {devices.in_words(outcome.where['device'])}"
            for outcome, result in pairs
        ]
    with _drawing("--picture", name):
        picture.draw([result for _, result in pairs], titles, where, Path(name))


def requests(args: argparse.Namespace) -> list[session.Request]:
    """The validated command line: a request for each drive. Raises UsageError."""
    found = devices.parse_devices(args.device)
    return [_request(args, device) for device in found] if found else [_request(args, None)]


def _request(args: argparse.Namespace, device: devices.Device | None) -> session.Request:
    schedulers = parse_variants(args.schedulers) if args.schedulers is not None else ()
    if args.sweep:
        schedulers = _swept(args, schedulers)
    simulated = args.on == SIM
    most = simulation.CPUS_MOST if simulated else CPUS_MOST
    cpus = number("--cpus", args.cpus or ("1" if args.icount else "2"), 1, most)
    if device is None:
        if args.on == HOST:
            raise UsageError("--on host needs a drive of this host: add --device /dev/NAME")
        device = devices.parse_device(devices.default_device(cpus))
    on = args.on or (HOST if device.kind == devices.DRIVE else VM)
    if on == UML and args.kernel is not None:
        raise UsageError(f"--kernel {args.kernel}: names another guest's kernel: use --on vm")
    if simulated:
        device = unstretched(device)
    else:
        _require_simulator(args, schedulers)
    runtime_s = positive("--runtime", args.runtime) if args.runtime is not None else None
    if args.fast:
        if runtime_s is not None:
            raise UsageError("--fast and --runtime exclude each other: leave out one")
        runtime_s = FAST_S
        schedulers = schedulers or FAST_SCHEDULERS
    job = _job(args, runtime_s)
    nr_requests = None
    if args.nr_requests is not None:
        nr_requests = number("--nr-requests", args.nr_requests, NR_REQUESTS_MIN, NR_REQUESTS_MAX)
    return session.Request(
        jobs=(job,),
        schedulers=schedulers,
        repeat=number("--repeat", args.repeat, 1, 1000),
        device=device,
        on=VM if on == UML else on,
        cpus=cpus,
        icount=args.icount,
        kernel=UML if on == UML else args.kernel,
        nr_requests=nr_requests,
        module=Path(args.module) if args.module else None,
        tunables=_tunables(args.tunable, schedulers),
        solo=args.solo,
        destroy_data=args.destroy_data,
        calibrate_s=_calibrate_s(args),
        seed=_scene_seed(job) if args.seed is None else number("--seed", args.seed, 0, SEED_MOST),
        at_once=number("--jobs", args.jobs, 1, PROCESSES_MOST) if args.jobs else 0,
        request_ns=_request_ns(args),
        priced=args.priced,
        sockets=_sockets(args, cpus),
        cluster=_cluster(args),
    )


# The options for which a scene has statements of its own.
_OF_SCENES = ("device", "cpus", "sockets", "request_ns", "priced", "runtime", "section", "fast")


def _job(args: argparse.Namespace, runtime_s: float | None) -> jobfile.JobFile:
    path = Path(args.job)
    if args.on == SIM and path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"{args.job}: it is read more than once: save it to a file first")
    if args.on != SIM or not scene_file.is_scene(args.job):
        return jobfile.load(args.job, runtime_s, args.section)
    for name in _OF_SCENES:
        if getattr(args, name, None):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: {args.job} is a scene, which has its own: leave it out")
    return scene_file.load(args.job)


def _scene_seed(job: jobfile.JobFile) -> int:
    return job.seed if isinstance(job, SceneFile) else 1


def _require_simulator(args: argparse.Namespace, schedulers: Sequence[str]) -> None:
    for label in schedulers:
        if scheduler_of(label) in COMPARATORS:
            raise UsageError(
                f"--schedulers: {scheduler_of(label)} is in the simulator only: add --on sim, or"
                " leave it out"
            )
    for name in ("seed", "sockets", "request_ns", "jobs", "cluster"):
        if getattr(args, name) is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} is for the simulator: add --on sim")
    if args.priced:
        raise UsageError("--priced is for the simulator: add --on sim")


def _sockets(args: argparse.Namespace, cpus: int) -> int:
    if args.sockets is None:
        return 1
    sockets = number("--sockets", args.sockets, 1, cpus)
    if cpus % sockets:
        raise UsageError(
            f"--sockets {sockets}: {cpus} CPUs are not that many equal parts:"
            " use a divisor of --cpus"
        )
    return sockets


def _cluster(args: argparse.Namespace) -> str | None:
    if args.cluster is not None and args.jobs is not None:
        raise UsageError(f"--jobs {args.jobs}: the workers of --cluster decide: leave it out")
    address: str | None = args.cluster
    return address


def _request_ns(args: argparse.Namespace) -> int | None:
    if args.request_ns is None:
        return None
    return number("--request-ns", args.request_ns, 0, REQUEST_NS_MOST)


def _swept(args: argparse.Namespace, labels: tuple[str, ...]) -> tuple[str, ...]:
    """@labels with one for each value of --sweep, in all combinations."""
    if not labels:
        if args.on != SIM:
            raise UsageError("--sweep needs --schedulers: name those to be swept")
        labels = simulation.DEFAULTS
    for word in args.sweep:
        labels = sweep(word, labels)
    return labels


def _calibrate_s(args: argparse.Namespace) -> int | None:
    if not args.calibrate:
        if args.calibrate_time is not None:
            raise UsageError("--calibrate-time needs --calibrate")
        return None
    if args.calibrate_time is None:
        return SECONDS_DEFAULT
    return number("--calibrate-time", args.calibrate_time, SECONDS_LEAST, SECONDS_MOST)


def number(option: str, text: str, least: int, most: int) -> int:
    """The number @text; raises UsageError."""
    if not is_number(text, least, most):
        raise UsageError(f"{option} {text}: use a number in {least}..{most}")
    return int(text)


def positive(option: str, text: str, most: float = jobfile.RUNTIME_MOST_S) -> float:
    """The number of seconds @text; raises UsageError."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= most:
            return float(text)
    raise UsageError(f"{option} {text}: use a number of seconds greater than 0, at most {most:.0f}")


def _tunables(words: Sequence[str], labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """The tunables by scheduler and name. Empty @labels stand for all schedulers."""
    schedulers = [scheduler_of(label) for label in labels] or (*SCHEDULERS, *COMPARATORS)
    found: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        scheduler, dot, file = name.rpartition(".")
        if not (equals and dot and file and value) or "/" in file:
            raise UsageError(
                f"--tunable {word}: write SCHEDULER.NAME=VALUE, such as mqfq.depth=128"
            )
        if scheduler not in schedulers or scheduler in WITHOUT_TUNABLES:
            raise UsageError(
                f"--tunable {word}: '{scheduler}' is not a scheduler with tunables in"
                f" --schedulers {','.join(labels) or ','.join(SCHEDULERS)}"
            )
        found.setdefault(scheduler, {})[file] = value
    return found


@contextlib.contextmanager
def _raw_folder(kept: str | None, resumed: bool, drives: int) -> Iterator[Path]:
    if kept is None:
        if resumed:
            raise UsageError("--resume needs the folder of the finished runs: add --raw FOLDER")
        with tempfile.TemporaryDirectory(prefix="mqfair-bench-") as name:
            yield Path(name)
        return
    path = Path(kept)
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            _require_resumable(path, resumed, drives)
        made = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--raw {kept}: {error.strerror}: name a folder that can be created"
        ) from error
    try:
        yield path
    except BaseException:
        # A folder with files stays: the finished runs are in it.
        if made:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _require_resumable(path: Path, resumed: bool, drives: int) -> None:
    """Raises UsageError unless a bench of so many drives has begun in the folder @path."""
    begun = len([one for one in _places(path, drives) if resume.has_begun(one)])
    if not resumed:
        more = " or add --resume" if begun else ""
        raise UsageError(f"--raw {path}: exists and is not empty: name a new folder{more}")
    if not begun or (drives > 1 and resume.has_begun(path)):
        raise UsageError(
            f"--resume: no bench with as many drives has begun in {path}: name its folder"
        )


def _places(folder: Path, drives: int) -> list[Path]:
    """The folder of each drive's raw results."""
    if drives == 1:
        return [folder]
    return [folder / f"drive-{number}" for number in range(1, drives + 1)]


def _write_files(documents: Mapping[str, object]) -> None:
    """Writes each document to the file that is its key; raises Failure after all were tried."""
    failed = []
    for name, value in documents.items():
        text = json.dumps(value, indent=1) + "\n"
        try:
            with whole_output(name) as file:
                file.write(text)
        except OSError as error:
            failed.append(f"cannot write {name}: {error.strerror}{_written_elsewhere(text)}")
    if failed:
        raise Failure("; ".join(failed))


def _written_elsewhere(text: str) -> str:
    """Saves a result that took hours to make; returns words for a message."""
    with contextlib.suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="mqfair-bench-", suffix=".json")
        with open(handle, "w") as file:  # noqa: PTH123 -- a descriptor has no path
            file.write(text)
        return f": the results are in {name}"
    return ""


class InsideRun(ProgressColumn):
    """The seconds of the present run, of those that its job file asks for. A simulated run has
    none. Starts and ends of runs come on top."""

    def render(self, task: Task) -> Text:
        seconds = task.fields["seconds"]
        if not seconds:
            return Text("")
        spent = min(task.get_time() - task.fields["began"], seconds)
        return Text(f"{spent:.0f} of {seconds:.0f} s", style="cyan")


def _seconds(one: session.Request, case: str) -> float:
    """The length of a run of the job @case, as its file states it; 0 in the simulator."""
    if one.on == SIM:
        return 0.0
    return next(job.ramp_s + job.window_s for job in one.jobs if job.name == case)


@contextlib.contextmanager
def show_progress(
    asked: Sequence[session.Request], places: Sequence[Path] = (), estimate: str = ""
) -> Iterator[session.Progress]:
    """Shows @estimate, or the least time, and then progress on standard error: a bar on a terminal,
    a line for each run elsewhere. The runs that are finished in @places count as done."""
    console = report.console_for(stderr=True)
    if asked[0].on != SIM and asked[0].schedulers:
        console.print(estimate or _estimate(asked, places), style="dim", highlight=False)
    if not console.is_terminal:

        def say(message: Mapping[str, Any]) -> None:
            # A bench goes on if its progress cannot be written.
            with contextlib.suppress(OSError):
                console.print(_step(message, asked), style="dim", highlight=False)

        yield say
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        InsideRun(),
        TimeElapsedColumn(),
    )
    runs = [len(session.plan_for(one).runs()) for one in asked]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=sum(runs), began=0.0, seconds=0.0)

        def show(message: Mapping[str, Any]) -> None:
            bar.update(task, description=_step(message, asked), seconds=0.0)
            if message["event"] == "run":
                drive = message.get("drive", 0)
                done = sum(runs[:drive]) + message["number"]
                seconds = _seconds(asked[drive], message["case"])
                bar.update(task, completed=done, seconds=seconds, began=bar.get_time())

        yield show


def _estimate(asked: Sequence[session.Request], places: Sequence[Path] = ()) -> str:
    """The least time of a bench, which the job file states. Boots and overheads come on top."""
    count = done = 0
    seconds = 0.0
    for number, one in enumerate(asked):
        place = places[number] if places else None
        each_s = {job.name: job.ramp_s + job.window_s for job in one.jobs}
        runs = list(enumerate(session.plan_for(one).runs()))
        left = [run for i, run in runs if place is None or not resume.is_finished(place, i)]
        count += len(runs)
        done += len(runs) - len(left)
        seconds += sum(each_s[run.case.name] for run in left) + (one.calibrate_s or 0)
    slower = ", more with --icount" if asked[0].icount else ""
    least = f"{seconds / 60:.0f} min" if seconds >= ESTIMATE_IN_MINUTES_S else f"{seconds:.0f} s"
    finished = f", of which {done} are finished" if done else ""
    return f"{count} runs{finished}: at least {least}, and the starts and ends of the runs{slower}"


def _step(message: Mapping[str, Any], asked: Sequence[session.Request]) -> str:
    number = message.get("drive", 0)
    one = asked[number]
    drive = f"drive {number + 1} of {len(asked)}: " if len(asked) > 1 else ""
    return drive + _step_of(message, one)


def _step_of(message: Mapping[str, Any], asked: session.Request) -> str:
    if message["event"] == "boot":
        return f"booting a guest with {asked.cpus} CPUs"
    if message["event"] == "build":
        return "building the simulator"
    if message["event"] == "calibrate":
        return f"measuring the drive for {message['what']}"
    alone = f", {message['only']} alone" if message["only"] else ""
    return (
        f"run {message['number'] + 1} of {message['runs']}: {message['case']},"
        f" repeat {message['repeat'] + 1} of {asked.repeat}, {message['scheduler']}{alone}"
    )
