# SPDX-License-Identifier: GPL-2.0
"""Runs on the workers of a Dask cluster.

The program sim-run and the traces are sent from here, each once to a worker that needs it. So all
runs are played by the same program, whatever a worker has installed. Workers need the processor and
the C library for which sim-run was built.
"""

import contextlib
import hashlib
import logging
import operator
import pickle
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import distributed

from mqfair.bench.simulated import program, remote
from mqfair.text.errors import Failure

# A scheduler and a first worker have this time to answer.
PATIENCE_S = 5
# Workers that are lost during a run have this time to come back.
ABSENCE_S = 30
_LOOK_S = 5
# Of the threads that wait for runs here. The cluster decides how many are played at the same time.
AT_ONCE = 256
_TRACE = re.compile(r" trace (\S+)")


@contextlib.contextmanager
def connected(address: str, binary: Path, folder: Path) -> Iterator["Cluster"]:
    """A player on the cluster of the scheduler at @address. Raises Failure if there is none."""
    # A broken connection is told by an exception, too.
    logging.getLogger(distributed.__name__).setLevel(logging.CRITICAL)
    cloudpickle.register_pickle_by_value(remote)
    try:
        client = distributed.Client(address, timeout=f"{PATIENCE_S}s", set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise Failure(
            f"--cluster {address}: no scheduler answers within {PATIENCE_S} s: start one by"
            " `dask scheduler`"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError as error:
            raise Failure(
                f"--cluster {address}: no worker within {PATIENCE_S} s: start some by"
                f" `dask worker {address}`"
            ) from error
        yield Cluster(client, address, binary, folder)


class Cluster:
    """A player: each run is a task of @client. @folder has the traces."""

    def __init__(
        self, client: distributed.Client, address: str, binary: Path, folder: Path
    ) -> None:
        self.at_once = AT_ONCE
        self._client = client
        self._address = address
        self._folder = folder
        self._program = self._sent(bytes, binary.read_bytes())
        # By value, since a worker need not have this package.
        self._play = self._sent(pickle.loads, cloudpickle.dumps(remote.play))
        self._traces: dict[str, distributed.Future] = {}
        self._running: set[distributed.Future] = set()
        self._ended = False

    def play(self, text: str) -> Any:
        names = sorted(set(_TRACE.findall(text)))
        for name in names:
            if name not in self._traces:
                self._traces[name] = self._sent(bytes, (self._folder / name).read_bytes())
        contents = [self._traces[name] for name in names]
        future = self._client.submit(
            operator.call, self._play, self._program, names, contents, text, pure=False
        )
        self._running.add(future)
        try:
            if self._ended:
                future.cancel()
            status, figures, said = self._result(future)
        except distributed.CancelledError as error:
            raise Failure(f"--cluster {self._address}: the scheduler is gone") from error
        except Failure:
            raise
        except Exception as error:
            raise Failure(f"--cluster {self._address}: a run failed: {error}") from error
        finally:
            self._running.discard(future)
        return program.outcome(status, figures, said, f"a worker of {self._address}")

    def end(self) -> None:
        """A run that has begun goes on to its end on its worker, and its figures are dropped."""
        self._ended = True
        for future in list(self._running):
            future.cancel()

    def _result(self, future: distributed.Future) -> Any:
        """The result of @future. Dask itself waits for ever if no worker is left."""
        absent_since = None
        while True:
            try:
                return future.result(timeout=_LOOK_S)
            except TimeoutError:
                now = time.monotonic()
                absent_since = None if self._client.nthreads() else absent_since or now
                if absent_since is not None and now - absent_since > ABSENCE_S:
                    raise Failure(
                        f"--cluster {self._address}: no worker for {ABSENCE_S} s: start some; with"
                        " --raw, --resume goes on"
                    ) from None

    def _sent(self, made: Callable[[bytes], Any], content: bytes) -> distributed.Future:
        """@made of @content, which a worker can get again if another one with it is lost."""
        key = f"mqfair-{hashlib.sha256(content).hexdigest()}"
        with warnings.catch_warnings():
            # The graph of tasks is large because the content is a part of it.
            warnings.simplefilter("ignore")
            return self._client.submit(made, content, key=key)
