"""Feeds whose cells are safe to open: titles and URLs are what strangers wrote."""

from __future__ import annotations

from typing import Any

from scrapy.exporters import CsvItemExporter

from neardup.cli.output import csv_cell


class SafeCsvItemExporter(CsvItemExporter):
    """CSV whose texts have no control characters, and are no formulas for a spreadsheet: as in ``neardup
    report --format csv``.
    """

    def serialize_field(self, field: Any, name: str, value: Any) -> Any:
        cell = super().serialize_field(field, name, value)
        return csv_cell(cell.decode(self.encoding or "utf-8") if isinstance(cell, bytes) else cell)
