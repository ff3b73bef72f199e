"""`mcpsniff ca`: where the certificate authority is, and how to trust it."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Final

import click

from mcpsniff.proxy.mitm.advice import ADVICE, Advice
from mcpsniff.proxy.mitm.trust import Authority, authority
from mcpsniff.transcript.safe import visible

NAMES: Final = tuple(each.name for each in ADVICE)
FORMATS: Final = ("text", "json", "pem")


@click.command("ca")
@click.argument("clients", nargs=-1, metavar="[CLIENT]...", type=click.Choice(NAMES))
@click.option("--path", "only_path", is_flag=True, help="Print the path of the certificate and nothing else.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="pem: the certificate itself.")
def command(*, clients: Sequence[str], only_path: bool, form: str) -> None:
    """Tell where the certificate authority is, and how to make clients trust it.

    With mcpsniff forward and mcpsniff run the certificates that clients see are signed by it. It is mitmproxy's, in
    ~/.mitmproxy, and is made when it is not there. CLIENT is any of linux, macos, windows, node, python, java, curl,
    browsers; without one, all are shown. What mcpsniff run starts trusts it without any of this, and mcpsniff http
    needs no trust.
    """
    found = authority()
    if only_path:
        click.echo(found.path)
    elif form == "pem":
        click.echo(found.pem, nl=False)
    elif form == "json":
        click.echo(_json(found, clients))
    else:
        click.echo("\n".join(_text(found, clients)))


def _text(found: Authority, clients: Sequence[str]) -> list[str]:
    made = " (made just now)" if found.is_new else ""
    lines = [
        f"Certificate to trust: {visible(found.path)}{made}",
        f"SHA-256: {found.sha256}",
        f"Ends: {found.not_after:%Y-%m-%d}",
        "",
        f"Its private key is in {visible(found.key)}. Who has that file can pose as any server to whoever trusts the",
        "certificate: keep it to yourself, and undo the trust when you do not need it any more.",
        "",
        "mcpsniff run -- CLIENT sets all of this for a client that it starts, for as long as that runs.",
    ]
    for each in _chosen(clients):
        lines += ["", f"{each.name}: {each.title}", *_lines(each.do, found.path)]
        if each.undo:
            lines += ["  To undo it:", *_lines(each.undo, found.path)]
    return lines


def _lines(lines: Sequence[str], path: str) -> list[str]:
    """Commands stand further in than what is said of them."""
    return [f"{'    ' if line.startswith('$ ') else '  '}{_filled(line.removeprefix('$ '), path)}" for line in lines]


def _filled(line: str, path: str) -> str:
    return visible(line.replace("{pem}", shlex.quote(path)))


def _chosen(clients: Sequence[str]) -> list[Advice]:
    """Return what is asked for; without a choice all, with this system first."""
    if clients:
        return [each for each in ADVICE if each.name in clients]
    here = "macos" if sys.platform == "darwin" else "linux"
    return sorted(ADVICE, key=lambda each: each.name != here)


def _json(found: Authority, clients: Sequence[str]) -> str:
    advice = {
        each.name: {
            "title": each.title,
            "do": [line.replace("{pem}", shlex.quote(found.path)) for line in each.do],
            "undo": [line.replace("{pem}", shlex.quote(found.path)) for line in each.undo],
        }
        for each in _chosen(clients)
    }
    about = {
        "path": found.path,
        "key": found.key,
        "sha256": found.sha256,
        "not_after": f"{found.not_after:%Y-%m-%dT%H:%M:%SZ}",
        "is_new": found.is_new,
        "pem": found.pem,
    }
    return json.dumps({**about, "clients": advice}, ensure_ascii=True, indent=2)
