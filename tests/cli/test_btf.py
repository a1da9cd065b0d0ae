# SPDX-License-Identifier: GPL-2.0
"""The generator of the private headers: on the real kernel, and on input that it refuses."""

import bz2
import copy
import gzip
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

KERNEL = ROOT / "kernel"
sys.path.insert(0, str(KERNEL / "btf"))

import generate  # noqa: E402
import needs  # noqa: E402
from errors import GenerateError  # noqa: E402
from headers import Declared, Headers  # noqa: E402
from model import Btf  # noqa: E402
from unpack import decompress  # noqa: E402

PUBLIC = KERNEL / "compat" / "public.h"
ELF = b"\x7fELF" + bytes(range(256)) * 64


# ------------------------------------------------------------ the real kernel


@pytest.fixture(scope="session")
def tree():
    """The distribution's kernel, unpacked, with its headers."""
    from lab import kernel
    from lab.errors import LabError

    for program in ("bpftool", "make"):
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            pytest.skip(f"{program} is not installed")
    try:
        return kernel.ensure()
    except LabError as error:
        pytest.skip(f"no kernel to read: {error}")


@pytest.fixture(scope="session")
def headers(tree):
    headers = Headers(tree.headers_build_dir)
    if shutil.which(headers.compiler) is None:
        pytest.skip(f"{headers.compiler} is not installed")
    return headers


@pytest.fixture(scope="session")
def btf(tree):
    return Btf.load(tree.vmlinux, "kernel")


@pytest.fixture(scope="session")
def generated(tree, headers, tmp_path_factory):
    """The three headers, made by the command from the compressed image."""
    out = tmp_path_factory.mktemp("generated")
    done = run_generate(tree.vmlinuz, tree.headers_build_dir, out)
    assert done.returncode == 0, done.stderr
    return out


def run_generate(btf, headers, out, **env):
    return subprocess.run(
        [
            sys.executable,
            KERNEL / "btf" / "generate.py",
            *("--btf", btf, "--headers", headers, "--include", PUBLIC, "--out", out),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | env,
    )


def compile_compat(headers, generated, scratch):
    """Compile kernel/compat against GENERATED; returns make's status and messages."""
    scratch.mkdir()
    for name in ("compat.c", "compat.h", "public.h"):
        shutil.copy(KERNEL / "compat" / name, scratch)
    for path in generated.iterdir():
        shutil.copy(path, scratch)
    (scratch / "Kbuild").write_text("obj-m := compat.o\nccflags-y := -I$(src) -Werror\n")
    done = headers.make(scratch, "compat.o")
    return done.returncode, done.stdout


def test_compiler_agrees_with_the_btf(headers, generated, tmp_path):
    status, messages = compile_compat(headers, generated, tmp_path / "module")
    assert status == 0, messages


def changed(text, definition, before, after):
    """TEXT with BEFORE replaced in the part that the pattern DEFINITION matches."""
    found = re.search(definition, text, re.MULTILINE | re.DOTALL)
    assert found and before in found[0]
    return text.replace(found[0], found[0].replace(before, after, 1))


def test_each_wrong_layout_is_named_by_the_compiler(headers, generated, tmp_path):
    """The public structures are compared too: the last one is eight bytes longer in the BTF, as in
    headers of another build. One run of the compiler names them all."""
    wrong = tmp_path / "generated"
    shutil.copytree(generated, wrong)
    text = (wrong / "private.h").read_text()
    private = {
        "blkcg_policy": ("\tint plid;\n", "\tlong plid_;\n\tint plid;\n"),
        "elevator_type": ("\tsize_t icq_align;\n", ""),
        "blkcg_gq": ("\tbool online;\n", "\tbool online;\n\tlong more;\n"),
    }
    for name, (before, after) in private.items():
        text = changed(text, rf"^struct {name} \{{.*?^\}};", before, after)
    size = re.search(r"sizeof\(struct request_queue\) == (\d+)", text)
    assert size
    longer = f"sizeof(struct request_queue) == {int(size[1]) + 8}"
    (wrong / "private.h").write_text(text.replace(size[0], longer))
    status, messages = compile_compat(headers, wrong, tmp_path / "module")
    assert status != 0
    disagree = set(re.findall(r"struct (\w+): headers and BTF disagree", messages))
    assert disagree == {*private, "request_queue"}


@pytest.fixture(scope="session")
def declared(headers, tmp_path_factory):
    """The declarations of the public headers."""
    scratch = tmp_path_factory.mktemp("public")
    return Declared(headers.preprocess(PUBLIC.read_text(), scratch / "public"))


def test_only_private_types_are_written(declared, generated):
    text = (generated / "private.h").read_text()
    written = re.findall(r"^(struct|union|enum) (\w+) \{", text, re.MULTILINE)
    assert ("struct", "elevator_mq_ops") in written
    assert ("struct", "request_queue") not in written
    assert [t for t in written if declared.has(*t)] == []
    assert len(written) == len(set(written))


def test_every_wanted_struct_is_declared_somewhere(declared, generated):
    text = (generated / "private.h").read_text()
    for wanted in needs.STRUCTS:
        private = f"\nstruct {wanted.name} {{\n" in text
        assert private != declared.has("struct", wanted.name), wanted.name


def test_features_tell_what_the_types_say(btf, generated):
    """Against bpftool's own text of the hooks, which the features are not made from."""
    lines = (generated / "features.h").read_text().splitlines()
    found = dict(line.split()[1:] for line in lines if line.startswith("#define MQFAIR_HAVE_"))
    assert sorted(found) == [f"MQFAIR_HAVE_{name}" for name in generate.all_features()]
    assert set(found.values()) <= {"0", "1"}
    for feature, evidence in {
        "INIT_SCHED_QUEUE": "int (*init_sched)(struct request_queue *, struct elevator_queue *);",
        "DEPTH_UPDATED_QUEUE": "void (*depth_updated)(struct request_queue *);",
        "ALLOC_SCHED_DATA": "void * (*alloc_sched_data)(struct request_queue *);",
        "INSERT_FLAGS": "(struct blk_mq_hw_ctx *, struct list_head *, blk_insert_t);",
        "ELEVATOR_FEATURES": "const unsigned int elevator_features;",
    }.items():
        assert found[f"MQFAIR_HAVE_{feature}"] == str(int(evidence in btf.text)), feature


@pytest.mark.parametrize("feature", needs.ENUMERATOR_FEATURES)
def test_an_enumerator_of_a_newer_kernel_is_a_feature(btf, feature):
    names = [{"name": needs.ENUMERATOR_FEATURES[feature], "val": 1}]
    newer = {"id": max(btf._types) + 1, "kind": "ENUM", "name": "newer", "values": names}
    with_it = Btf([*btf._types.values(), newer], btf.text, "kernel")
    assert feature in generate.Features(with_it).present


def test_each_workqueue_says_where_it_runs():
    """Newer kernels warn about a workqueue that is neither of the CPUs nor unbound."""
    calls = [
        call
        for file in KERNEL.rglob("*.c")
        for call in re.findall(r"alloc_workqueue\(.*?;", file.read_text(), re.DOTALL)
    ]
    assert calls
    assert all(re.search("WQ_(PERCPU|UNBOUND)", call) for call in calls), calls


def test_unpacked_and_compressed_kernel_give_the_same(tree, generated):
    """An unchanged header is not written again, so that make does not compile its users."""
    before = {path.name: path.stat().st_mtime_ns for path in generated.iterdir()}
    assert run_generate(tree.vmlinux, tree.headers_build_dir, generated).returncode == 0
    assert {path.name: path.stat().st_mtime_ns for path in generated.iterdir()} == before


# --------------------------------------------------- a kernel that lacks something


@pytest.fixture(scope="session")
def named_types(btf):
    """The types of the kernel without the functions and variables that the build does not name,
    which are half of all."""
    wanted = {one.name for one in needs.FUNCTIONS} | set(needs.SSD_PUBLIC_FUNCTIONS)
    others = ("FUNC", "VAR", "DATASEC")
    return [t for t in btf._types.values() if t["kind"] not in others or t["name"] in wanted]


@pytest.fixture
def altered(btf, named_types):
    """A list of the kernel's types that edit() can break, and the model of the broken types."""
    types = list(named_types)
    return types, lambda: Btf(types, btf.text, "kernel")


def edit(types, wanted):
    """The types for which WANTED is true, as copies that may be changed."""
    found = [i for i, t in enumerate(types) if wanted(t)]
    for i in found:
        types[i] = copy.deepcopy(types[i])
    return [types[i] for i in found]


def named(kind, name):
    return lambda t: t["kind"] == kind and t.get("name") == name


def refusal(call, *args):
    """The one line with which CALL refuses."""
    with pytest.raises(GenerateError) as caught:
        call(*args)
    message = str(caught.value)
    assert "\n" not in message
    return message


def rename(types, kind, name):
    """Take a type away: nothing finds it under its name any more."""
    hits = edit(types, named(kind, name))
    assert hits, name
    for t in hits:
        t["name"] = f"no_{name}"


@pytest.mark.parametrize("wanted", needs.STRUCTS, ids=lambda wanted: wanted.name)
def test_a_missing_structure_is_named(altered, wanted):
    types, load = altered
    rename(types, "STRUCT", wanted.name)
    message = refusal(generate.check_presence, load())
    assert f"struct {wanted.name} is not in its BTF" in message
    assert wanted.hint in message


def test_a_kernel_without_blk_cgroup_is_told_so(altered):
    types, load = altered
    for wanted in needs.STRUCTS:
        if wanted.name.startswith("blkcg"):
            rename(types, "STRUCT", wanted.name)
    assert "CONFIG_BLK_CGROUP=y" in refusal(generate.check_presence, load())


@pytest.mark.parametrize("dotted", needs.MEMBERS)
def test_a_missing_member_is_named(altered, btf, dotted):
    types, load = altered
    struct_name, _, path = dotted.partition(".")
    struct_id, last = btf.struct(struct_name)["id"], path.rpartition(".")[2]
    if "." in path:
        outer = btf.member(struct_name, path.rpartition(".")[0])
        struct_id = btf.resolve(outer.type_id)["id"]
    unnamed = [m for m in btf.type(struct_id)["members"] if m["name"] == "(anon)"]
    ids = {struct_id} | {btf.resolve(m["type_id"])["id"] for m in unnamed}
    owners = edit(types, lambda t: t["id"] in ids)
    for member in (m for t in owners for m in t["members"] if m["name"] == last):
        member["name"] = "other"
    message = refusal(generate.check_presence, load())
    assert f"struct {struct_name} has no member {path}" in message


def hook(types, name):
    """The FUNC_PROTO of a hook of elevator_mq_ops."""
    by_id = {t["id"]: t for t in types}
    (ops,) = edit(types, named("STRUCT", "elevator_mq_ops"))
    member = next(m for m in ops["members"] if m["name"] == name)
    proto = copy.deepcopy(by_id[by_id[member["type_id"]]["type_id"]])
    pointer = copy.deepcopy(by_id[member["type_id"]])
    proto["id"], pointer["id"] = max(by_id) + 1, max(by_id) + 2
    pointer["type_id"], member["type_id"] = proto["id"], pointer["id"]
    types.extend((proto, pointer))
    return proto


@pytest.mark.parametrize("name", needs.HOOKS)
def test_a_hook_of_another_form_is_named(altered, name):
    types, load = altered
    hook(types, name)["params"].append({"name": "more", "type_id": 0})
    message = refusal(generate.Features, load())
    assert f"elevator_mq_ops.{name} is '" in message
    assert "teach kernel/compat" in message


@pytest.mark.parametrize("name", needs.HOOKS)
def test_a_missing_hook_is_named(altered, name):
    types, load = altered
    (ops,) = edit(types, named("STRUCT", "elevator_mq_ops"))
    for member in (m for m in ops["members"] if m["name"] == name):
        member["name"] = "other"
    assert f"no hook {name}" in refusal(generate.Features, load())


@pytest.mark.parametrize("name", needs.CALLBACKS)
def test_a_missing_callback_type_is_named(altered, name):
    types, load = altered
    rename(types, "TYPEDEF", name)
    assert name in refusal(generate.Features, load())


@pytest.mark.parametrize("name", needs.SSD_PUBLIC_FUNCTIONS)
def test_only_the_ssd_needs_its_functions(altered, name):
    types, load = altered
    rename(types, "FUNC", name)
    generate.Features(load())
    assert f"function {name} is not in its BTF" in refusal(generate.Features, load(), True)


@pytest.mark.parametrize("name", needs.SSD_PUBLIC_EXPORTS)
def test_only_the_ssd_needs_its_symbols(btf, headers, name):
    exports = headers.exports - {name}
    generate.Features(btf).functions(exports)
    message = refusal(generate.Features(btf, with_ssd=True).functions, exports)
    assert f"{name} is not exported" in message


def test_the_ssd_needs_an_option(bare_headers):
    message = refusal(generate.check_options, Headers(bare_headers))
    assert needs.SSD_OPTION in message
    assert "without --with-ssd" in message


def needed_functions(btf, headers):
    features = generate.Features(btf)
    features.functions(headers.exports)
    return [f.name for f in needs.FUNCTIONS if features.hold(f.when)]


def test_a_missing_function_is_named(btf, named_types, headers):
    for name in needed_functions(btf, headers):
        types = [t for t in named_types if not named("FUNC", name)(t)]
        features = generate.Features(btf)
        features._btf = Btf(types, btf.text, "kernel")
        assert f"function {name} is not in its BTF" in refusal(features.functions, headers.exports)


def test_a_changed_prototype_is_named(btf, named_types, headers):
    for name in needed_functions(btf, headers):
        types = list(named_types)
        proto = copy.deepcopy(btf.function(name))
        proto["id"] = max(btf._types) + 1
        proto["params"].append({"name": "more", "type_id": 0})
        for function in edit(types, named("FUNC", name)):
            function["type_id"] = proto["id"]
        features = generate.Features(btf)
        features._btf = Btf([*types, proto], btf.text, "kernel")
        message = refusal(features.functions, headers.exports)
        assert f"function {name} is '" in message
        assert "kernel/compat knows '" in message


def test_a_symbol_that_is_not_exported_is_named(btf, headers):
    names = needed_functions(btf, headers)
    for name in [*names, *needs.PUBLIC_EXPORTS, *(v.name for v in needs.VARIABLES)]:
        features = generate.Features(btf)
        message = refusal(features.functions, headers.exports - {name})
        assert f"{name} is not exported" in message


def test_two_types_of_one_name_are_refused(btf, declared):
    text = btf.text.replace("struct blkg_iostat {", "struct blkg_iostat___2 {")
    private = generate.PrivateTypes(btf, declared)
    private.add("blkcg_gq")
    twice = Btf(list(btf._types.values()), text, "kernel")
    message = refusal(lambda: list(generate.write_types(twice, private, "release")))
    assert "struct blkg_iostat" in message


# ------------------------------------------------------------------- bad input


def one_line(done):
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not a kernel at all" * 100, "/sys/kernel/btf/vmlinux"),
        # An ELF file without BTF.
        (Path("/bin/true").read_bytes(), "CONFIG_DEBUG_INFO_BTF=y"),
        (None, ""),
    ],
    ids=["no kernel", "no BTF", "no file"],
)
def test_a_source_without_types(tree, tmp_path, content, said):
    source = tmp_path / "source"
    if content:
        source.write_bytes(content)
    message = one_line(run_generate(source, tree.headers_build_dir, tmp_path / "out"))
    assert str(source) in message
    assert said in message
    assert not (tmp_path / "out").exists()


def test_headers_that_are_none(tree, tmp_path):
    message = one_line(run_generate(tree.vmlinux, tmp_path, tmp_path / "out"))
    assert str(tmp_path) in message
    assert "/usr/src/linux-headers-$(uname -r)" in message


def test_the_btf_of_something_else(tree, tmp_path):
    """A real BTF section, of a program that has no block layer."""
    compiler = shutil.which("gcc-12") or shutil.which("gcc")
    source = tmp_path / "other.o"
    made = subprocess.run(
        [compiler, "-gbtf", "-c", "-x", "c", "-", "-o", source],
        input="struct other { int a; }; struct other it; int main(void) { return it.a; }",
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"{compiler} writes no BTF")
    message = one_line(run_generate(source, tree.headers_build_dir, tmp_path / "out"))
    assert f"{source}: struct elevator_mq_ops is not in its BTF" in message


@pytest.fixture
def bare_headers(tmp_path):
    """A build tree as a package unpacks it, with nothing beside it."""
    build = tmp_path / "linux-headers-1-test"
    build.mkdir()
    (build / "Makefile").write_text("include /nowhere/linux-headers-1-common/Makefile\n")
    (build / ".config").write_text("CONFIG_DEBUG_INFO_BTF_MODULES=y\n")
    (build / "Module.symvers").write_text("0x0\telv_register\tvmlinux\tEXPORT_SYMBOL_GPL\t\n")
    return build


def test_the_shared_headers_are_missing(bare_headers):
    message = refusal(lambda: Headers(bare_headers).source)
    assert "install or unpack the package linux-headers-1-common" in message


def test_the_shared_headers_lie_beside(bare_headers):
    common = bare_headers.parent / "linux-headers-1-common"
    common.mkdir()
    (common / "Makefile").write_text("")
    assert Headers(bare_headers).source == common


def test_a_kernel_built_in_its_source_tree_is_its_own_source(bare_headers):
    lines = (
        "include $(srctree)/scripts/Kbuild.include\ninclude $(srctree)/arch/$(SRCARCH)/Makefile\n"
    )
    (bare_headers / "Makefile").write_text(lines)
    assert Headers(bare_headers).source == bare_headers.resolve()


def test_a_numbered_typedef_gets_its_public_name():
    """A private type keeps its number, because the numbers tell such types apart."""
    private = generate.PrivateTypes(Btf([], "", "kernel"), Declared("typedef long ssize_t;"))
    text = "ssize_t___2 (*show)(struct elevator_queue___3 *, char *);"
    assert private.spelled(text) == "ssize_t (*show)(struct elevator_queue___3 *, char *);"


def test_the_compiler_is_missing(bare_headers):
    (bare_headers / ".kernelvariables").write_text("CC = $(CCACHE) $(CROSS_COMPILE)gcc-99\n")
    message = refusal(Headers(bare_headers).check_tools)
    assert "install the package gcc-99" in message


def test_bpftool_is_missing(monkeypatch):
    monkeypatch.setattr("model.shutil.which", lambda *args, **kwargs: None)
    message = refusal(Btf.load, Path("/sys/kernel/btf/vmlinux"), "kernel")
    assert "install the package bpftool" in message


def test_the_tree_is_not_prepared(bare_headers):
    assert "make modules_prepare" in refusal(lambda: Headers(bare_headers).release)


def test_exports_are_read_from_symvers(bare_headers):
    assert Headers(bare_headers).exports == {"elv_register"}


# ---------------------------------------------------------------- boot images


def boot_image(payload):
    """An x86 boot image around PAYLOAD, with the size that the kernel appends to it."""
    payload += struct.pack("<I", len(ELF))
    image = bytearray(5 * 512)
    image[0x1F1] = 3
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", image, 0x248, 16, len(payload))
    return bytes(image[: 4 * 512]) + bytes(16) + payload + b"trailing parts of the image"


def with_program(*argv):
    def compress(data):
        if shutil.which(argv[0]) is None:
            pytest.skip(f"{argv[0]} is not installed")
        return subprocess.run(argv, input=data, capture_output=True, check=True).stdout

    return compress


COMPRESSIONS = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
    "zstd": with_program("zstd", "-cq"),
    "lz4": with_program("lz4", "-lcq"),
    "lzop": with_program("lzop", "-c"),
}


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_every_compression_is_unpacked(name):
    assert decompress(boot_image(COMPRESSIONS[name](ELF)), "vmlinuz") == ELF


def test_an_efi_image_is_unpacked():
    payload = gzip.compress(ELF)
    image = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + bytes(48) + payload
    assert decompress(image, "vmlinuz") == ELF


def test_an_image_that_is_cut_short():
    image = boot_image(gzip.compress(ELF))
    assert "vmlinuz: the image is cut short" in refusal(decompress, image[:2100], "vmlinuz")


def test_a_damaged_image():
    payload = bytearray(lzma.compress(ELF))
    payload[len(payload) // 2] ^= 0xFF
    assert "vmlinuz: the compressed kernel is damaged" in refusal(
        decompress, boot_image(bytes(payload)), "vmlinuz"
    )


# --------------------------------------------------------------- reading C text


def test_what_public_headers_declare():
    declared = Declared(
        """
        struct plain { int a; };
        struct __attribute__((__packed__)) packed { int b; };
        enum colour { RED };
        struct mentioned;
        void f(struct argument *x);
        typedef unsigned int number_t;
        typedef int (*callback_t)(struct other *, int);
        typedef void handler_t(int);
        typedef struct { int inside; } anonymous_t;
        typedef unsigned long array_t[4];
        """
    )
    for kind, name in (
        ("struct", "plain"),
        ("struct", "packed"),
        ("enum", "colour"),
        ("typedef", "number_t"),
        ("typedef", "handler_t"),
        ("typedef", "anonymous_t"),
        ("typedef", "array_t"),
    ):
        assert declared.has(kind, name), name
    for kind, name in (("struct", "mentioned"), ("struct", "argument"), ("typedef", "inside")):
        assert not declared.has(kind, name), name


def test_declarations_are_spelt_as_c():
    types = [
        {"id": 1, "kind": "INT", "name": "int"},
        {"id": 2, "kind": "STRUCT", "name": "s", "members": [], "size": 0},
        {"id": 3, "kind": "CONST", "name": "(anon)", "type_id": 2},
        {"id": 4, "kind": "PTR", "name": "(anon)", "type_id": 3},
        {"id": 5, "kind": "CONST", "name": "(anon)", "type_id": 4},
        {"id": 6, "kind": "ARRAY", "name": "(anon)", "type_id": 1, "nr_elems": 3},
        {"id": 7, "kind": "PTR", "name": "(anon)", "type_id": 6},
        {
            "id": 8,
            "kind": "FUNC_PROTO",
            "name": "(anon)",
            "ret_type_id": 4,
            "params": [{"name": "a", "type_id": 1}, {"name": "b", "type_id": 7}],
        },
        {"id": 9, "kind": "PTR", "name": "(anon)", "type_id": 8},
        {"id": 10, "kind": "FUNC_PROTO", "name": "(anon)", "ret_type_id": 0, "params": []},
    ]
    btf = Btf(types, "", "test")
    assert btf.declare(5, "p") == "const struct s *const p"
    assert btf.declare(7, "p") == "int (*p)[3]"
    assert btf.declare(9, "f") == "const struct s *(*f)(int, int (*)[3])"
    assert btf.signature(types[7]) == "struct s * (int, int (*)[3])"
    assert btf.declare(10, "f") == "void f(void)"
