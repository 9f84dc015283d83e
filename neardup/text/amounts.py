"""The amounts in a text: prices, sizes, weights, doses, shares.

Adverts of one title and one long text may differ in the rent and the size of a flat alone. Such pages are no
copies, although nearly all of their words are the same. Other numbers say less: clocks, dates, counters of
visits and numbers of sessions differ in each copy of a page.
"""

from __future__ import annotations

import re

_NUMBER = r"(?<!\d)\d++(?:[.,'’ \u00a0\u202f]\d{3}(?!\d)){0,4}+(?:[.,]\d++)?+"
_SIGNS = r"[$¢£¤¥֏؋৲৳৻૱௹฿៛₠-₿﷼﹩＄￠￡￥￦]"
_CODES = (
    "AED|ARS|AUD|BDT|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|IRR|ISK|JPY|KES|"
    "KRW|KZT|LKR|MAD|MXN|MYR|NGN|NOK|NPR|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    "UYU|VND|ZAR"
)
_NAMES = "Rs|Fr|kr|zł|Kč|Ft|lei|руб|грн|元|円|원"
_UNITS = (
    "%|‰|°C|°F|°|nm|µm|μm|mm|cm|dm|m|km|inch|inches|ft|yd|mi|miles|mm²|cm²|m²|m2|km²|sqm|sq|sqft|ha|"
    "acres?|cm³|m³|m3|cc|ml|cl|dl|l|L|litres?|liters?|gal|fl|µg|μg|mcg|mg|g|kg|t|oz|lbs?|"
    "W|kW|MW|Wh|kWh|mAh|Ah|V|kV|mA|A|Hz|kHz|MHz|GHz|hp|bhp|PS|rpm|Nm|mph|km/h|kcal|kJ|bar|psi|dB|GB|TB|"
    "MP|mpx|px|ppm|IU|I\\.E\\.|坪|平米|㎡|평"
)
_AMOUNT = re.compile(
    rf"(?P<before>{_SIGNS}|\b(?:{_CODES}|{_NAMES})\b\.?)[ \u00a0\u202f]?(?P<first>{_NUMBER})"
    rf"|(?P<second>{_NUMBER})[ \u00a0\u202f-]?(?P<after>{_SIGNS}|(?:{_CODES}|{_NAMES}|{_UNITS})(?![^\W_]))"
)
_NO_DIGIT = re.compile(r"\D")


def amounts(text: str) -> set[str]:
    """The amounts in a text: the digits of each, and what stands before or behind.

    Months, days and times have no unit here, and neither have seconds: a page tells how long it took to make.

    >>> sorted(amounts("Flat 3, 54 m², rent 1,850.00 € (£1 600) at 12:30, 98 views, made in 0.3 s"))
    ['185000 €', '1600 £', '54 m²']
    """
    return {
        f"{_NO_DIGIT.sub('', found['first'] or found['second'])} {found['before'] or found['after']}"
        for found in _AMOUNT.finditer(text)
    }
