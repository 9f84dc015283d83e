"""The amounts in a text: prices, sizes, weights, doses, shares.

Adverts of one title and one long text may differ in the rent and the size of a flat alone. Such pages are no
copies, although nearly all of their words are the same. Other numbers say less: clocks, dates, counters of
visits and numbers of sessions differ in each copy of a page.
"""

from __future__ import annotations

import re

_SPACE = " \u00a0\u202f"
_ONE = rf"(?<!\d)\d++(?:[.,'’{_SPACE}]\d{{2,3}}(?!\d)){{0,5}}+(?:[.,]\d++)?+"
_NUMBER = rf"[-−]?{_ONE}(?:[{_SPACE}]?[-–—x×/][{_SPACE}]?{_ONE}){{0,3}}+(?:[,.:][-–—]{{1,2}})?+"
"""A number, or a few in a range or a product, with the groups, the fraction and the dash of prices."""

_SIGNS = r"[$¢£¤¥֏؋৲৳৻૱௹฿៛₠-₿﷼﹩＄￠￡￥￦]"
_CODES = (
    "AED|ARS|AUD|BDT|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|IRR|ISK|JPY|KES|"
    "KRW|KZT|LKR|MAD|MXN|MYR|NGN|NOK|NPR|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    "UYU|VND|ZAR"
)
_NAMES = (
    '[Ee]uros?|Rs|Rp|RM|R|TL|kr|zł|Kč|Ft|lei|đ|руб\\w{0,4}|грн|лв|тенге|сум|रुपये|रुपए|ש["״]ח|'
    "ريال|درهم|دينار|جنيه|ليرة|ر\\.س|د\\.إ|ج\\.م"
)
_UNITS = (
    "%|‰|°C|°F|°|nm|µm|μm|mm|cm|dm|m|km|inch|inches|ft|yd|mi|miles|mm²|cm²|m²|m2|km²|qm|mq|sqm|sq|sqft|ha|"
    "acres?|cm³|m³|m3|cc|ml|cl|dl|l|L|litres?|liters?|gal|fl|µg|μg|mcg|mg|g|kg|t|oz|lbs?|"
    "W|kW|MW|Wh|kWh|mAh|Ah|V|kV|mA|A|Hz|kHz|MHz|GHz|hp|bhp|PS|rpm|Nm|mph|km/h|kcal|kJ|bar|psi|dB|GB|TB|"
    "MP|mpx|px|ppm|IU|I\\.E\\.|"
    "мм|см|м|км|мм²|см²|м²|м2|км²|кв|га|мл|л|гр|кг|Вт|кВт|мАч|Гц|МГц|ГГц|ГБ|ТБ|км/ч"
)
_UNSPACED = (
    "[万億亿만억천]?(?:円|元|日元|원|坪|平米|平方メートル|㎡|평|グラム|キロ|公斤|万|億|亿|만|บาท|กรัม|กก)"
)
"""Units of scripts without spaces: a word may follow at once."""

_AMOUNT = re.compile(
    rf"(?:{_SIGNS}|\b(?:{_CODES}|{_NAMES})\b\.?)[{_SPACE}]?{_NUMBER}(?:[{_SPACE}]?[kKmM]\b)?"
    rf"|{_NUMBER}[{_SPACE}-]?(?:{_SIGNS}|{_UNSPACED}|(?:{_CODES}|{_NAMES}|{_UNITS})(?![^\W_]))"
)
_BETWEEN = re.compile(rf"[{_SPACE}]")


def amounts(text: str) -> set[str]:
    """The amounts in a text as they are written, without spaces.

    Days and times have no unit here, and neither have seconds: a page tells how long it took to make.

    >>> sorted(amounts("Flat 3, 54 m², rent 1,850.00 € (£1 600) at 12:30, 98 views, made in 0.3 s"))
    ['1,850.00€', '54m²', '£1600']
    """
    return {_BETWEEN.sub("", found[0]) for found in _AMOUNT.finditer(text)}
