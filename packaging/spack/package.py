# SPDX-License-Identifier: MIT OR Apache-2.0
"""Spack's recipe. 'cargo xtask dist' fills in version and checksum; the tarball has all crates, so cargo asks nobody.

Checked: base class, directives and dependencies, against Spack's packages (API v2.2). Spack itself was not at hand.
"""

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Homenode(Package):
    """Finds the source line that puts memory on the wrong NUMA node, moves pages, and simulates placements."""

    license("MIT OR Apache-2.0")

    # The site's mirror has the tarball: spack mirror add, or --source-cache.
    version("@VERSION@", sha256="@SHA256@", url="file:///opt/mirror/homenode-@VERSION@-source.tar.xz")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("zstd")
    # The kernels are built where they are recorded.
    depends_on("cmake", type="run")
    depends_on("python@3.9:", type=("build", "run"), when="+python")

    variant("python", default=True, description="The Python package")

    extends("python", when="+python")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("build", "--release", "--offline", "--locked", "--workspace", "--exclude", "xtask")
        make("install", f"PREFIX={prefix}", "BUILD=target/release")
        if spec.satisfies("+python"):
            install_tree("python/homenode", join_path(python_purelib, "homenode"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.homenode)("--version")
