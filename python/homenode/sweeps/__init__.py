"""Sweeps: programs × machines × policies, a row for each.

=====================  ================================================================================
module                 what
=====================  ================================================================================
:mod:`.spec`           the file that describes a sweep, checked whole before anything runs
:mod:`.cells`          what a worker does: record a program, simulate a recording on a machine
:mod:`.store`          results by content: what is there is not done again
:mod:`.run`            the loop that hands work to an executor
:mod:`.slurm`          an executor whose tasks are jobs of Slurm
:mod:`.command`        ``python -m homenode sweep``
=====================  ================================================================================
"""

from .run import Outcome, Progress, sweep
from .slurm import SlurmExecutor
from .spec import Program, Spec

__all__ = ["Outcome", "Program", "Progress", "SlurmExecutor", "Spec", "sweep"]
