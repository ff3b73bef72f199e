// A client on the MCP TypeScript SDK that gets itself a token for the server at URL and calls tools, each to add 1 and 2.
//
//     node client_oauth.mjs 1|2 URL TOOL...
//
// 1: @modelcontextprotocol/sdk, 2: @modelcontextprotocol/client. It is its own browser: the authorization request goes
// the same way as all others. Says in one line of JSON what came of it: {"sum": 3}, or {"failed": "…"}.
const [kind, url, ...tools] = process.argv.slice(2);
const BACK = "http://localhost:3033/callback";
const ROUNDS = 2;

const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  kind === "2"
    ? await import("@modelcontextprotocol/client")
    : Object.assign(
        {},
        ...(await Promise.all(["client/index.js", "client/streamableHttp.js", "client/auth.js"].map((path) => import(`@modelcontextprotocol/sdk/${path}`)))),
      );

/** A user who grants everything, and the client's memory of what was granted. */
class Granting {
  redirectUrl = BACK;
  clientMetadata = { client_name: "oauth client", redirect_uris: [BACK], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" };
  state = () => "7";
  clientInformation = () => this.known;
  saveClientInformation = (known) => void (this.known = known);
  tokens = () => this.granted;
  saveTokens = (granted) => void (this.granted = granted);
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;

  async redirectToAuthorization(page) {
    const response = await fetch(page, { redirect: "manual", headers: { accept: "text/html" } });
    this.answer = new URL(response.headers.get("location")).searchParams;
  }
}

const provider = new Granting();
let transport;

/** Do something; whenever a page had to be visited for it, take what came of that to the server, and do it again. */
async function granted(act) {
  for (let round = 0; ; round++) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || provider.answer === undefined || round === ROUNDS) throw error;
      await transport.finishAuth(kind === "2" ? provider.answer : provider.answer.get("code"));
      provider.answer = undefined;
    }
  }
}

async function sum() {
  const client = new Client({ name: "oauth-client", version: "1.0" });
  await granted(() => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
    return client.connect(transport);
  });
  let result;
  for (const name of tools) result = await granted(() => client.callTool({ name, arguments: { a: 1, b: 2 } }));
  await client.close();
  return Number(result.content[0].text);
}

const said = await sum().then(
  (sum) => ({ sum }),
  (error) => ({ failed: `${error.name}: ${error.message}` }),
);
console.log(JSON.stringify(said));
process.exit(0);
