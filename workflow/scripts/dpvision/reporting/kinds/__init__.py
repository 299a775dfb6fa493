"""Kinds of artifact: a file each, found by name.

A file of a kind has
- `Options`, a model of config/artifacts.py (`Table`, `Figure`, `FigureOfCells`): what a paper may say of an artifact of this
  kind, which files it leaves, and which files of which stage it is made of;
- of a table `frame(spec, inputs)` and `NOTE`, or `notes(spec, inputs, frame)`, and `shown(frame, spec, labels)` where people
  read other columns than all tables have, and `HEADS` where coordinates are called otherwise;
- of a figure `NOTE`, `read(spec, inputs)`, which gives the frame that lies beside the figure, and `draw(frame, labels)`.
The plan imports these files, so what is heavy (pandas, matplotlib) is imported where it is used.
"""

import sys

from dpvision.config.base import members

KINDS = members(sys.modules[__name__])
