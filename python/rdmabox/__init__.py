# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Remote memory for programs: RDMAbox from Python.

    with rdmabox.Context() as context:
        with context.volume("10.0.0.1:7471,10.0.0.2:7471", "1G", replicas=2) as volume:
            volume.write(b"hello", 4096)
            print(volume.read(4096, 5))
"""

from ._buffers import Buffer
from ._context import Context
from ._errors import Error
from ._futures import Future
from ._headers import VERSION as __version__
from ._headers import ServerStats, Stats
from ._named import VolumeInfo
from ._plugs import Plug
from ._region import Region, RegionPart
from ._server import Server
from ._sizes import parse_size
from ._volume import Event, EventKind, Request, Volume, VolumeStatus

__all__ = [
    "Buffer", "Context", "Error", "Event", "EventKind", "Future", "Plug", "Region", "RegionPart",
    "Request", "Server", "ServerStats", "Stats", "Volume", "VolumeInfo", "VolumeStatus",
    "__version__", "parse_size",
]
