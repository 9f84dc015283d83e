"""The same settings, with the one line that turns neardup on."""

from __future__ import annotations

from tests.support.sites.settings import *

ADDONS = {"neardup.Addon": 500}
