"""Builds conda's package with rattler-build, and runs the recipe's tests in an environment with the package.

Usage: check.py RECIPE TREE OUT BUILD: TREE is the unpacked source tarball, built by the command BUILD.

Three things differ from a site's build, for conda's channels are not asked. The first command of the script must be
BUILD, and TREE's binaries take its place. Requirements are rendered, and then left out: the
package uses the libraries of this machine. A module that the tests import must be among the files.
"""

import shutil
import sys
from pathlib import Path

from rattler_build import Package, Stage0Recipe, ToolConfiguration

#: What the package must ask for, by kind of requirement.
NEEDED = {"build": ("rust", "gcc", "pkg-config"), "host": ("libhwloc", "zstd", "python"), "run": ("libhwloc", "zstd")}


def rendered(recipe):
    """The recipe as rattler-build reads it: held to its schema, its expressions evaluated."""
    variants = recipe.render()
    if len(variants) != 1:
        sys.exit(f"the recipe has {len(variants)} variants instead of one")
    whole = variants[0].recipe.to_dict()
    for kind, names in NEEDED.items():
        for name in names:
            if not any(str(r).startswith(name) for r in whole["requirements"][kind]):
                sys.exit(f"the recipe asks for no {name} in its requirements '{kind}'")
    return whole


def local(whole, tree, build):
    """The recipe for this machine, without a channel; and the modules that its tests import."""
    first, *script = whole["build"]["script"]
    if first != build:
        sys.exit(f"the recipe builds by '{first}', and {tree} was built by '{build}'")
    imports = [m for t in whole["tests"] for m in t.get("python", {}).get("imports", [])]
    # conda's folder of Python packages, which its Python would bring.
    packages = f"$PREFIX/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    prepare = [f'export SP_DIR="{packages}"', 'mkdir -p "$SP_DIR" target', f"ln -s '{tree}/target/release' target/release"]
    recipe = {
        "schema_version": whole["schema_version"],
        "package": whole["package"],
        "source": {"path": str(tree), "use_gitignore": False, "filter": {"exclude": ["target/**"]}},
        "build": {
            "number": whole["build"]["number"],
            "script": [*prepare, *script],
            # Libraries of this machine are not in the environment.
            "dynamic_linking": {"missing_dso_allowlist": ["*"], "overlinking_behavior": "ignore"},
        },
        "tests": [t for t in whole["tests"] if "script" in t],
        "about": whole["about"],
    }
    return recipe, imports


def main():
    given, tree, out = (Path(p).resolve() for p in sys.argv[1:4])
    recipe, imports = local(rendered(Stage0Recipe.from_file(given)), tree, sys.argv[4])
    shutil.rmtree(out, ignore_errors=True)
    # The tests run below, where their output is read.
    tools = ToolConfiguration(test_strategy="skip")
    (result,) = Stage0Recipe.from_dict(recipe).run_build(tool_config=tools, output_dir=out, channels=[])
    (path,) = result.packages
    package = Package.from_file(path)
    for module in imports:
        if not any(file.endswith(f"/site-packages/{module}/__init__.py") for file in package.files):
            sys.exit(f"{path} has no Python module {module}")
    # Without a channel it would ask conda-forge.
    tests = package.run_tests(channel=[out.as_uri()])
    for test in tests:
        if not test.success:
            sys.exit(f"{path}: test {test.test_index} fails:\n" + "\n".join(test.output))
    if not tests:
        sys.exit(f"{path} has no test")
    size = Path(path).stat().st_size / (1 << 20)
    print(f"conda: {Path(path).name}, {size:.1f} MiB, built; {len(tests)} test passed in an environment with it")


main()
