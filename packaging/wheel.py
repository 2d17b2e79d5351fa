"""Makes the wheel: the Python package, and the binaries as the scripts and data of the environment.

Usage: wheel.py --tag manylinux_2_XX_x86_64 STAGE OUT: STAGE is what 'cargo xtask dist' packs. Prints the wheel's path.

A wheel is a zip file with four files about itself (PyPA, "Binary distribution format"). Scripts go to ENVIRONMENT/bin,
data to ENVIRONMENT: that is the layout of an installation, in which the command finds its libraries and kernels by
../lib/homenode and ../share/homenode. The same input gives the same bytes.

maturin is not used: it builds one Rust crate into one extension module or one program. Here are four programs, four
libraries that are loaded into other programs, libraries of the system, and data; cargo has built them before.
"""

import argparse
import base64
import hashlib
import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The oldest time that a zip file can name.
TIME = (1980, 1, 1, 0, 0, 0)


def version_of_package():
    """The version that the Python package says of itself."""
    text = (ROOT / "python/homenode/__init__.py").read_text()
    return re.search(r'^__version__ = "(.*)"$', text, re.M).group(1)


def metadata(project):
    """The file METADATA."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Summary: {project['description']}", f"License-Expression: {project['license']}"]
    lines += ["License-File: LICENSE-MIT", "License-File: LICENSE-APACHE", f"Keywords: {','.join(project['keywords'])}"]
    lines += [f"Classifier: {c}" for c in project["classifiers"]] + [f"Requires-Python: {project['requires-python']}"]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {p}; extra == '{extra}'" for p in packages]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (ROOT / "python" / project["readme"]).read_text()


def contents(stage, project, tag):
    """Names, bytes and modes, without RECORD."""
    package = ROOT / "python"
    for path in sorted(package.glob("homenode/**/*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield str(path.relative_to(package)), path.read_bytes(), 0o644
    data = f"{project['name']}-{project['version']}.data"
    for folder, _, names in sorted(os.walk(stage)):
        for name in sorted(names):
            path = Path(folder) / name
            inside = path.relative_to(stage)
            # The script of a link is a copy: zip files have no links that pip knows.
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            if inside.parts[0] == "bin":
                yield f"{data}/scripts/{name}", path.read_bytes(), 0o755
            else:
                yield f"{data}/data/{inside}", path.read_bytes(), mode
    info = f"{project['name']}-{project['version']}.dist-info"
    yield f"{info}/METADATA", metadata(project).encode(), 0o644
    wheel = f"Wheel-Version: 1.0\nGenerator: homenode\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    yield f"{info}/WHEEL", wheel.encode(), 0o644
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        yield f"{info}/licenses/{licence}", (ROOT / licence).read_bytes(), 0o644


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", required=True)
    parser.add_argument("stage", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    versions = {workspace, project["version"], version_of_package()}
    if len(versions) != 1:
        sys.exit(f"Cargo.toml, pyproject.toml and __init__.py name several versions: {', '.join(sorted(versions))}")
    path = args.out / f"{project['name']}-{project['version']}-py3-none-{args.tag}.whl"
    record = f"{project['name']}-{project['version']}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        def add(name, data, mode):
            about = zipfile.ZipInfo(name, TIME)
            about.external_attr = (0o100000 | mode) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(about, data)

        for name, data, mode in contents(args.stage, project, args.tag):
            add(name, data, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
        add(record, ("\n".join([*lines, f"{record},,"]) + "\n").encode(), 0o644)
    print(path)


main()
