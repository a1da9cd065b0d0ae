# SPDX-License-Identifier: GPL-2.0
"""Shrinks a scene that breaks a promise: fewer tenants, and plain numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from scene import Scene, Tenant

# The plain value of each word, and of each number of the host.
_PLAIN_WORDS: dict[str, str | int | None] = {
    "order": None, "arrivals": None, "think_us": None, "pace_ns": None, "burst_ios": None,
    "write": 0, "urgent": None, "discard": None, "move_ms": None, "start_ms": None,
    "stop_ms": None,
}  # fmt: skip
_PLAIN_ANSWERS = "answers 65536 1000"
_PLAIN_HOST = {
    "most_bytes": 0, "wake_ns": 0, "submit_ns": 0, "complete_ns": 0, "sockets": 1, "fetch": 0,
}  # fmt: skip
_PLAIN_DEPTHS = (1, 4, 32, 64)
_PLAIN_BYTES = (4096, 65536)


def shrink(scene: Scene, breaks: Callable[[Scene], bool], most: int = 200) -> Scene:
    """A smaller scene for which @breaks is true, as it is for @scene; after @most plays at most."""
    left = most
    again = True
    while again and left > 0:
        again = False
        for smaller in _smaller(scene):
            left -= 1
            if breaks(smaller):
                scene, again = smaller, True
                break
            if left <= 0:
                break
    return scene


def _smaller(scene: Scene) -> Iterator[Scene]:
    """Scenes with one thing less, the largest steps first."""
    if len(scene.loaded) > 3:
        half = scene
        for tenant in scene.loaded[len(scene.loaded) // 2 :]:
            half = half.without(tenant.name)
        yield half
    if len(scene.loaded) > 1:
        for tenant in reversed(scene.loaded):
            yield scene.without(tenant.name)
    if scene.actions:
        yield dataclasses.replace(scene, actions=())
    for line in scene.drive:
        if line.startswith("answers "):
            for plain in ((), (_PLAIN_ANSWERS,)):
                if (line,) != plain:
                    kept = tuple(one for one in scene.drive if one != line)
                    yield dataclasses.replace(scene, drive=(*kept, *plain))
    for tenant in scene.tenants:
        yield from _plainer(scene, tenant)
    for name, value in _PLAIN_HOST.items():
        if dict(scene.host).get(name, value) != value:
            host = tuple((n, value if n == name else v) for n, v in scene.host)
            yield dataclasses.replace(scene, host=host)


def _plainer(scene: Scene, tenant: Tenant) -> Iterator[Scene]:
    if tenant.parent and not tenant.load:
        yield scene.replace_tenant(dataclasses.replace(tenant, parent=""))
    if tenant.weight != 100:
        yield scene.replace_tenant(dataclasses.replace(tenant, weight=100))
    if not tenant.load:
        return
    if tenant.parent:
        yield scene.replace_tenant(dataclasses.replace(tenant, parent=""))
    words = tenant.words
    changes: list[dict[str, str | int | None]] = [
        {name: plain} for name, plain in _PLAIN_WORDS.items() if words.get(name, plain) != plain
    ]
    if "on_ms" in words:
        changes.append({"on_ms": None, "off_ms": None})
    if "sizes" in words:
        changes.append({"sizes": None, "bytes": 4096})
    if words.get("bytes", 4096) not in _PLAIN_BYTES:
        changes += [{"bytes": n} for n in _PLAIN_BYTES]
    changes += [{"depth": n} for n in _PLAIN_DEPTHS if n < int(words["depth"])]
    for change in changes:
        yield scene.replace_tenant(tenant.with_words(**change))
