"""Lets EasyBuild read the easyconfig, find its dependencies, and carry out its steps in a built source tree.

Usage: check.py EASYCONFIG TREE PREFIX: TREE is the unpacked source tarball. EasyBuild's own easyblock runs the steps
build, install, the commands after it, and the checks. The build finds what TREE already has.

Not done, for want of a site's modules: loading the toolchain and the dependencies. The compilers and libraries of this
machine take their place.
"""

import os
import sys
import tempfile
from pathlib import Path

from easybuild.tools.options import set_up_configuration


def set_up(folder):
    """EasyBuild, told to use no tool for modules and to keep its files in a folder."""
    words = ["--fetch", "--ignore-osdeps", f"--prefix={folder}", f"--tmpdir={folder}"]
    if os.getuid() == 0:
        words.append("--allow-use-as-root-and-accept-consequences")
    set_up_configuration(args=words, silent=True)


def found(dependencies):
    """Refuses a dependency of which EasyBuild's collection has no easyconfig with that version and toolchain."""
    from easybuild.framework.easyconfig.easyconfig import robot_find_easyconfig
    from easybuild.tools.module_naming_scheme.utilities import det_full_ec_version

    for dependency in dependencies:
        version = det_full_ec_version(dependency)
        if not robot_find_easyconfig(dependency["name"], version):
            sys.exit(f"EasyBuild's collection has no {dependency['name']} {version}")
    return len(dependencies)


def main():
    easyconfig, tree, prefix = (Path(p).resolve() for p in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        from easybuild.framework.easyblock import get_easyblock_instance
        from easybuild.framework.easyconfig.easyconfig import process_easyconfig
        from easybuild.framework.easyconfig.style import check_easyconfigs_style

        if check_easyconfigs_style([str(easyconfig)]):
            sys.exit(f"{easyconfig} breaks the rules of style of EasyBuild's collection")
        (parsed,) = process_easyconfig(str(easyconfig))
        count = found(parsed["ec"].dependencies())
        block = get_easyblock_instance(parsed)
        block.installdir = str(prefix)
        block.cfg["start_dir"] = str(tree)
        block.cfg.template_values["installdir"] = block.installdir
        block.cfg.template_values["builddir"] = str(tree.parent)
        block.set_parallel()
        os.chdir(tree)
        block.build_step()
        block.install_step()
        block.run_post_install_commands()
        checks = block.cfg["sanity_check_paths"]
        for kind, there in (("files", Path.is_file), ("dirs", Path.is_dir)):
            for path in checks[kind]:
                if not there(prefix / path):
                    sys.exit(f"EasyBuild's sanity check finds no {prefix / path}")
        os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
        from easybuild.tools.run import run_shell_cmd

        for command in block.cfg["sanity_check_commands"]:
            run_shell_cmd(command)
        print(f"EasyBuild: {count} dependencies are in its collection; steps and sanity checks passed")


main()
