"""What is enough not to request a URL at all."""

from __future__ import annotations

import pytest

from neardup.urls.dropping import may_drop
from neardup.urls.leads import Leads
from neardup.urls.rules import Prediction, Rule, Slot


@pytest.mark.parametrize(
    ("slot", "value", "drops"),
    [
        (Slot.EXTRA, "print", True),
        (Slot.EXTRA, "v2", False),
        (Slot.EXTRA, "3.10", False),
        (Slot.EXTRA, "de", False),
        (Slot.EXTRA, "pt-BR", False),
        (Slot.TOGETHER, "parameter:sid extra:print", True),
        (Slot.TOGETHER, "parameter:sid extra:v2", False),
        (Slot.PARAMETER, "v2", True),
        (Slot.SEGMENT, "0", False),
    ],
)
def test_versions_and_languages_cost_no_request(slot: Slot, value: str, drops: bool) -> None:
    rule, leads = Rule("a.example", slot, value), Leads()
    for _ in range(200):
        leads.fetched(rule, leads_on=False, is_sure=True)

    assert may_drop(Prediction(1.0, 1.0, rule, "http://a.example/"), leads) is drops
