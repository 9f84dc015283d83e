"""What ``neardup check`` fetches and what it refuses, from real servers on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from neardup.cli import fetch as fetching
from neardup.cli.fetch import fetch
from neardup.cli.main import main
from neardup.errors import NeardupError
from tests.support.crawling import Page, Site, serve
from tests.support.spiders import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HTML = {"Content-Type": "text/html"}
OK = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as served:
        served.add("/page", WORDS)
        yield served


@pytest.fixture
def inner() -> Iterator[Site]:
    """Another site on a private address."""
    with serve() as served:
        served.add("/page", "within")
        yield served


def redirect(to: str, status: int = 302) -> Page:
    return Page(b"", status=status, headers={"Location": to})


class TestRedirects:
    def test_what_is_asked_for_may_be_private(self, site: Site) -> None:
        assert WORDS.split()[0] in fetch(f"{site.url}/page").text

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_the_same_host_and_port_may_be_gone_to(self, site: Site, status: int) -> None:
        site.pages["/start"] = redirect("/next?q=" + "ü#part".encode().decode("latin-1"), status)
        site.pages["/next?q=%C3%BC"] = redirect(f"{site.url}/page", status)

        response = fetch(f"{site.url}/start")

        assert (response.url, response.status) == (f"{site.url}/page", 200)

    def test_another_port_of_a_private_address_is_refused_unless_asked_for(
        self, site: Site, inner: Site
    ) -> None:
        site.pages["/start"] = redirect(f"{inner.url}/page")

        with pytest.raises(NeardupError, match=r"at the private address 127\.0\.0\.1; --private follows it"):
            fetch(f"{site.url}/start")
        assert inner.requested == []

        assert "within" in fetch(f"{site.url}/start", private=True).text

    @pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"])
    def test_another_name_of_it_is_refused(self, site: Site, name: str) -> None:
        site.pages["/start"] = redirect(site.url.replace("127.0.0.1", name) + "/page")

        with pytest.raises(NeardupError, match="private address"):
            fetch(f"{site.url}/start")
        assert site.requested == ["/start"]

    def test_every_hop_is_checked(self, site: Site, inner: Site) -> None:
        site.pages["/1"] = redirect("/2")
        site.pages["/2"] = redirect(f"//{inner.url.partition('//')[2]}/page")

        with pytest.raises(NeardupError, match="private address"):
            fetch(f"{site.url}/1")
        assert inner.requested == []

    def test_the_first_place_stays_at_the_address_it_had(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The name's address is asked for once: a server that then answers with another one (DNS rebinding)
        # changes nothing.
        asked: list[object] = []
        resolve = socket.getaddrinfo

        def count(host: object, *rest: object, **more: object) -> object:
            if host == "localhost":
                asked.append(host)
            return resolve(host, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "getaddrinfo", count)
        site.pages["/start"] = redirect("/page")

        assert fetch(site.url.replace("127.0.0.1", "localhost") + "/start").status == 200
        assert asked == ["localhost"]

    @pytest.mark.parametrize(
        "to",
        ["file:///etc/hostname", "ftp://127.0.0.1/a", "data:text/html,<p>a", "javascript:alert(1)"],
    )
    @pytest.mark.parametrize("private", [False, True])
    def test_nothing_but_http_is_followed(self, site: Site, to: str, *, private: bool) -> None:
        site.pages["/start"] = redirect(to)

        with pytest.raises(NeardupError, match=r"only http\(s\) URLs are followed"):
            fetch(f"{site.url}/start", private=private)

    def test_circles_end(self, site: Site) -> None:
        site.pages["/start"] = redirect("/start")

        with pytest.raises(NeardupError, match="more than 10 redirects"):
            fetch(f"{site.url}/start")
        assert len(site.requested) == 11

    @pytest.mark.parametrize(
        ("to", "reason"),
        [
            ("http://a.example:abc/", "Port could not be cast"),
            ("//a.example:99999/", "Port out of range"),
            ("http://[a/", "Invalid IPv6 URL"),
        ],
    )
    def test_a_redirect_to_what_is_no_url_is_named(self, to: str, reason: str, site: Site) -> None:
        site.pages["/start"] = redirect(to)

        with pytest.raises(NeardupError) as caught:
            fetch(f"{site.url}/start")

        wanted = f"{site.url}/start cannot be fetched: a redirect leads to {to}, which is no URL: {reason}"
        assert str(caught.value).startswith(wanted)

    def test_a_password_in_such_a_redirect_is_not_shown(self, site: Site) -> None:
        site.pages["/start"] = redirect("http://user:secret@a.example:abc/")

        with pytest.raises(
            NeardupError, match=r"a redirect leads to http://\*\*\*@a\.example:abc/"
        ) as caught:
            fetch(f"{site.url}/start")

        assert "secret" not in str(caught.value)

    def test_a_redirect_to_nowhere_is_its_status(self, site: Site) -> None:
        site.pages["/start"] = Page(b"<p>moved", status=302, headers=HTML)

        with pytest.raises(NeardupError, match="HTTP status 302"):
            fetch(f"{site.url}/start")

    def test_option_of_the_command(
        self, site: Site, inner: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        database = f"sqlite:///{tmp_path}/n.db"
        assert main(["db", "upgrade", "--database", database]) == 0
        site.pages["/start"] = redirect(f"{inner.url}/page")

        with pytest.raises(SystemExit, match="1"):
            main(["check", f"{site.url}/start", "--database", database])
        assert "--private follows it" in capsys.readouterr().err

        assert main(["check", f"{site.url}/start", "--database", database, "--private"]) == 0
        assert f"{inner.url}/page: too short" in capsys.readouterr().out


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of a page at ``localhost`` by https, whose certificate the system trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(OK + b"<p>secure")

        def log_message(self, *args: object) -> None:
            """Keep the test output free of access logs."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"https://localhost:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class TestProxy:
    """The proxy of the environment is a server on loopback here; it is asked by the whole URL."""

    @pytest.fixture(autouse=True)
    def proxy(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", site.url)
        site.pages["http://far.invalid/"] = Page(b"<p>far", headers=HTML)

    def test_is_used(self) -> None:
        assert "far" in fetch("http://far.invalid/").text

    def test_names_in_redirects_are_checked_before_it_is_asked(self, site: Site, inner: Site) -> None:
        site.pages["http://far.invalid/start"] = redirect(f"{inner.url}/page")
        site.pages[f"{inner.url}/page"] = Page(b"<p>through the proxy", headers=HTML)

        with pytest.raises(NeardupError, match="private address"):
            fetch("http://far.invalid/start")
        assert site.requested == ["http://far.invalid/start"]

        assert "through the proxy" in fetch("http://far.invalid/start", private=True).text

    def test_what_goes_past_it_is_checked_even_at_the_first_place(self, site: Site, secure: str) -> None:
        # Where the proxy found the first page is not known here.
        start = secure.replace("https:", "http:") + "start"
        site.pages[start] = redirect(secure)

        with pytest.raises(NeardupError, match="private address"):
            fetch(start)

        assert "secure" in fetch(start, private=True).text


@contextmanager
def listening(answer: list[bytes], pause: float = 0.0) -> Iterator[str]:
    """A server that sends an answer in pieces, whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            try:
                for piece in answer:
                    self.wfile.write(piece)
                    ended.wait(pause)
            except OSError:  # the other side has had enough
                return

    ended = threading.Event()
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


class TestLimits:
    def test_size(self, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "page.html"
        file.write_bytes(site.pages["/page"].body)
        size = file.stat().st_size
        for most, larger in ((size, False), (size - 1, True)):
            monkeypatch.setattr(fetching, "_MOST_BYTES", most)
            for page in (f"{site.url}/page", str(file)):
                if larger:
                    with pytest.raises(NeardupError, match=f"is larger than {most:,} bytes"):
                        fetch(page)
                else:
                    assert len(fetch(page).body) == size

    def test_a_server_that_never_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fetching, "_MOST_SECONDS", 0.3)

        with (
            listening([OK, *[b"<p>" for _ in range(200)]], pause=0.05) as url,
            pytest.raises(NeardupError, match=r"takes longer than 0\.3 seconds"),
        ):
            fetch(url)

    def test_a_server_that_says_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fetching, "_TIMEOUT_SECONDS", 0.2)

        with listening([b""], pause=5) as url, pytest.raises(NeardupError, match="timed out"):
            fetch(url)

    @pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.0 abc\r\n\r\n"])
    def test_what_is_not_http(self, answer: bytes) -> None:
        with listening([answer]) as url, pytest.raises(NeardupError, match="cannot be fetched"):
            fetch(url)


class TestNames:
    @pytest.mark.parametrize(
        "page", ["ftp://a.example/x", "data:text/html,<p>a", "javascript:alert(1)", "gopher://a.example/"]
    )
    def test_other_schemes(self, page: str) -> None:
        with pytest.raises(
            NeardupError, match=f"only http.s. and file URLs are, not {page.partition(':')[0]}"
        ):
            fetch(page)

    def test_a_file_with_a_colon_in_its_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "std:string.html").write_text("<p>text")

        assert fetch("std:string.html").url == (tmp_path / "std:string.html").as_uri()

    @pytest.mark.parametrize(
        "url", ["http://[bad/", "http://", "http://a.example:port/", "http://a..example/"]
    )
    def test_broken_urls(self, url: str) -> None:
        with pytest.raises(NeardupError, match="cannot be fetched"):
            fetch(url)

    def test_passwords_are_not_shown(self, site: Site) -> None:
        host = site.url.partition("//")[2]
        site.pages["/start"] = redirect(f"http://user:secret@{host}/page")
        for url in (f"http://user:secret@{host}/page", f"{site.url}/start"):
            with pytest.raises(NeardupError, match="with a user in it, is not fetched") as caught:
                fetch(url)
            assert "secret" not in str(caught.value)

    def test_what_a_server_sends_does_not_reach_the_terminal(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        database = f"sqlite:///{tmp_path}/n.db"
        main(["db", "upgrade", "--database", database])
        answer = b"HTTP/1.0 302 Found\r\nLocation: ftp://a.example/\x1b[2J\x9b\r\n\r\n"
        with listening([answer]) as url, pytest.raises(SystemExit):
            main(["check", url, "--database", database])

        error = capsys.readouterr().err
        assert "only http(s) URLs are followed" in error
        assert error.count("\n") == 1
        assert error.removesuffix("\n").isprintable()


class TestTls:
    def test_a_certificate_of_the_name_is_taken_and_of_another_name_is_not(self, secure: str) -> None:
        assert "secure" in fetch(secure).text
        with pytest.raises(NeardupError, match="certificate verify failed"):
            fetch(secure.replace("localhost", "127.0.0.1"))
