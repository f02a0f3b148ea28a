# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
from typing import Any

ffi: Any
lib: Any
