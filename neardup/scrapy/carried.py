"""What a request hands on from the page that it came out of: values of an item, or settings of components."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, NoneType
from typing import TYPE_CHECKING

from scrapy import Spider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

_META_OF_COMPONENTS = frozenset(
    {
        "_auth_proxy", "_ban", "_dont_cache", "_rotating_proxy", "_scheme_proxy", "allow_offsite",
        "cache_timestamp", "depth", "dont_cache", "dont_merge_cookies", "dont_obey_robotstxt",
        "dont_proxy", "dont_redirect", "dont_retry", "download_fail_on_dataloss",
        "download_latency", "download_maxsize", "download_slot", "download_timeout",
        "download_warnsize", "ftp_local_filename", "ftp_passive", "ftp_password", "ftp_user",
        "give_up_log_level", "handle_httpstatus_all", "handle_httpstatus_list", "http_auth_domain",
        "http_pass", "http_user", "impersonate", "is_secure", "is_start_request", "link_text",
        "max_proxies_to_try", "max_retry_times", "priority_adjust", "proxy", "proxy_retry_times",
        "proxy_url", "referrer_policy", "refresh_cache", "retry_times", "rule", "verbatim",
        "verbatim_url",
    }
)  # fmt: skip
"""Keys of Scrapy and of its components, if a setting is the value."""

_SETTING = (str, bytes, int, float, type, NoneType)
_SETTINGS = (list, tuple, set, frozenset, range)
"""What has several numbers, such as statuses. A dictionary, or another object, may be an item."""

_PREFIXES_OF_COMPONENTS = (
    "autothrottle_", "bindaddress", "cached_response", "cookiejar", "impersonate_args",
    "impersonate_request", "impersonate_response", "neardup", "playwright", "redirect_", "splash", "zyte_api",
)  # fmt: skip
"""With what other keys of components begin, whatever the value is."""


def values_carried(request: Request) -> list[str]:
    """The names of what a request hands on that was read on another page: its page is to complete an item.

    The values may be anything: a whole item, an ItemLoader, or a name and a price. They may be held by the
    callback, too.
    """
    return [
        *(f"cb_kwargs {name!r}" for name, value in request.cb_kwargs.items() if not _is_own(value, request)),
        *(f"meta {name!r}" for name, value in request.meta.items() if not is_of_component(name, value)),
        *(["the callback"] if _holds_values(request.callback) else []),
    ]


def _is_own(value: object, request: Request) -> bool:
    """Whether a value is a page object that scrapy-poet has made of the page of this very request."""
    is_page_object = any(base.__module__.partition(".")[0] == "web_poet" for base in type(value).__mro__)
    return is_page_object and str(getattr(value, "url", request.url)) == request.url


def is_of_component(name: object, value: object) -> bool:
    """Whether Scrapy or a component wrote a value into the meta of a request, or reads it there.

    A spider may hand on an item under a name like those of components.
    """
    text = str(name)
    if text.startswith(_PREFIXES_OF_COMPONENTS):
        return True
    return text in _META_OF_COMPONENTS and (
        isinstance(value, _SETTING)
        or (isinstance(value, _SETTINGS) and all(isinstance(each, int) for each in value))
    )


def _holds_values(callback: object) -> bool:
    """Whether a callback holds values that are neither a spider nor callbacks.

    It may be a partial, a method of an item, or a function within another one that has variables of that.
    """
    if callback is None:
        return False
    if isinstance(callback, FunctionType):
        kept = [
            *(callback.__defaults__ or ()),
            *(callback.__kwdefaults__ or {}).values(),
            *enclosed(callback),
        ]
        return any(not (value is None or callable(value) or isinstance(value, Spider)) for value in kept)
    return not (isinstance(callback, MethodType) and isinstance(callback.__self__, Spider))


def without_values(callback: object) -> object:
    """What is the same of two callbacks that hold other values."""
    if isinstance(callback, partial):
        return callback.func
    if not isinstance(callback, FunctionType):
        return callback
    return callback.__code__, *(value for value in enclosed(callback) if callable(value))


def enclosed(function: FunctionType) -> Iterator[object]:
    """The variables of the functions around a function that it uses."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it has no value yet
            yield cell.cell_contents
