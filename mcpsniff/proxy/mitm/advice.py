"""How to trust an authority, and how to stop trusting it: per system, language and program, as data.

``{pem}`` stands for the certificate's file, quoted for a shell.
"""

from typing import Final, NamedTuple


class Advice(NamedTuple):
    """How one kind of client is made to trust a certificate."""

    name: str
    """What it is asked for by."""
    title: str
    do: tuple[str, ...]
    """Lines: what begins with ``$ `` is a command, all else is for people."""
    undo: tuple[str, ...] = ()


ADVICE: Final = (
    Advice(
        "linux",
        "Linux, for programs that use the system's certificates (curl, wget, git, Go, .NET, system Python)",
        (
            "Debian, Ubuntu, Mint, Alpine:",
            "$ sudo cp {pem} /usr/local/share/ca-certificates/mitmproxy.crt && sudo update-ca-certificates",
            "Fedora, RHEL, CentOS, Amazon Linux:",
            "$ sudo cp {pem} /etc/pki/ca-trust/source/anchors/mitmproxy.pem && sudo update-ca-trust",
            "openSUSE, SLES:",
            "$ sudo cp {pem} /etc/pki/trust/anchors/mitmproxy.pem && sudo update-ca-certificates",
            "Arch:",
            "$ sudo trust anchor --store {pem}",
            "NixOS: security.pki.certificateFiles = [ {pem} ]; in configuration.nix",
        ),
        (
            "Remove the copied file and run the same update command again. Debian and its kin:",
            "$ sudo rm /usr/local/share/ca-certificates/mitmproxy.crt && sudo update-ca-certificates --fresh",
            "Arch:",
            "$ sudo trust anchor --remove {pem}",
        ),
    ),
    Advice(
        "macos",
        "macOS, for Safari, Chrome, Edge, Go, and what uses the keychain",
        (
            "For you alone; macOS asks for your password:",
            "$ security add-trusted-cert -r trustRoot -p ssl -k ~/Library/Keychains/login.keychain-db {pem}",
            "For all users:",
            "$ sudo security add-trusted-cert -d -p ssl -p basic -k /Library/Keychains/System.keychain {pem}",
        ),
        ("$ security delete-certificate -t -c mitmproxy",),
    ),
    Advice(
        "windows",
        "Windows, for clients there while mcpsniff runs in WSL",
        (
            "In WSL; Windows asks whether you are sure:",
            '$ certutil.exe -user -addstore Root "$(wslpath -w {pem})"',
        ),
        ("$ certutil.exe -user -delstore Root mitmproxy",),
    ),
    Advice(
        "node",
        "Node.js, and what runs on it (Claude Code, mcp-remote, the Inspector, TypeScript SDK)",
        (
            "$ export NODE_EXTRA_CA_CERTS={pem}",
            "It adds to what Node trusts, and is read once, when the process starts. Bun reads it, too.",
            "Node heeds HTTP_PROXY and HTTPS_PROXY only with this, and from 22.21 and 24.0 on:",
            "$ export NODE_USE_ENV_PROXY=1",
            "Deno:",
            "$ export DENO_CERT={pem}",
        ),
        ("$ unset NODE_EXTRA_CA_CERTS NODE_USE_ENV_PROXY DENO_CERT",),
    ),
    Advice(
        "python",
        "Python: ssl, httpx (Python SDK), aiohttp, requests, pip, uv",
        (
            "These variables replace what is trusted otherwise, so they need a file that has both:",
            '$ cat "$(python3 -m certifi)" {pem} > ~/mcpsniff-bundle.pem',
            "$ export SSL_CERT_FILE=~/mcpsniff-bundle.pem  # ssl, httpx, aiohttp, uv",
            "$ export REQUESTS_CA_BUNDLE=~/mcpsniff-bundle.pem  # requests, pip",
            "Without the package certifi, take the system's file, such as /etc/ssl/certs/ca-certificates.crt.",
            (
                'In code: context = ssl.create_default_context(); context.load_verify_locations("FILE");'
                " httpx.AsyncClient(verify=context)"
            ),
            "aiohttp heeds the proxy's variables only with ClientSession(trust_env=True).",
        ),
        ("$ unset SSL_CERT_FILE REQUESTS_CA_BUNDLE",),
    ),
    Advice(
        "java",
        "Java (Java SDK, Spring AI, JetBrains with a runtime of their own)",
        (
            "The store of the JDK that `keytool` belongs to; sudo where that is the system's:",
            "$ keytool -importcert -cacerts -storepass changeit -noprompt -alias mitmproxy -file {pem}",
            "Java does not read HTTPS_PROXY:",
            (
                '$ export JAVA_TOOL_OPTIONS="-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=PORT'
                ' -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=PORT -Dhttp.nonProxyHosts="'
            ),
        ),
        ("$ keytool -delete -cacerts -storepass changeit -alias mitmproxy",),
    ),
    Advice(
        "curl",
        "curl and wget, for one call",
        (
            "$ curl --cacert {pem} --proxy http://127.0.0.1:PORT https://api.example.com/mcp",
            "$ wget --ca-certificate={pem} -e https_proxy=http://127.0.0.1:PORT https://api.example.com/mcp",
            "By a variable, which replaces what curl trusts otherwise: CURL_CA_BUNDLE, with a file that has both.",
        ),
    ),
    Advice(
        "browsers",
        "Browsers",
        (
            (
                "Chrome, Edge and Safari on macOS and Windows, and Electron apps (VS Code, Claude Desktop, Cursor), use"
                " the system's certificates: see macos and windows."
            ),
            "Chrome and Chromium on Linux (`certutil` is in libnss3-tools or nss-tools):",
            '$ certutil -d sql:"$HOME/.pki/nssdb" -A -t "C,," -n mitmproxy -i {pem}',
            (
                "Firefox: Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import this file,"
                " and tick that it may identify websites."
            ),
        ),
        ('$ certutil -d sql:"$HOME/.pki/nssdb" -D -n mitmproxy', "Firefox: in the same place, Delete or Distrust."),
    ),
)


def advice_for(name: str) -> Advice:
    """Return the advice called ``name``. Raises KeyError."""
    return {each.name: each for each in ADVICE}[name]
