// The client that the conformance suite puts to the test, on the MCP TypeScript SDK 2.x.
//
//     node client_conformance.mjs URL
//
// The suite names the scenario, its revision and what else the client has to know in the environment. All scenarios are
// held alike: connect, list the tools, call each with arguments that its schema allows. Whatever the server asks for is
// granted, and so is an authorization: this client is its own browser. What it said to the server and heard from it, as
// bodies of HTTP, is left in the file that CONFORMANCE_SAID names, a line of JSON for each exchange.

import { writeFileSync } from "node:fs";

import { Client, ClientCredentialsProvider, CrossAppAccessProvider, DpopSession, PrivateKeyJwtProvider, StreamableHTTPClientTransport, UnauthorizedError, requestJwtAuthorizationGrant } from "@modelcontextprotocol/client";

const MODERN = "2026-07-28";
const CALLBACK = "http://localhost:3000/callback";
const DOCUMENT = "https://conformance-test.local/client-metadata.json";
const ROUNDS = 2;

const {
  MCP_CONFORMANCE_SCENARIO: scenario,
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision,
  MCP_CONFORMANCE_CONTEXT: given = "{}",
  CONFORMANCE_SAID: noted,
} = process.env;
const known = JSON.parse(given);

const address = new URL(process.argv[2]).href;
const said = [];

/** Fetch, and note what goes either way if it goes to the MCP server. */
async function noting(url, init) {
  if (String(url) !== address) return fetch(url, init);
  const exchange = { sent: init?.body ?? "", kind: "", got: "" };
  said.push(exchange);
  const response = await fetch(url, init);
  const { status, statusText, headers } = response;
  exchange.kind = headers.get("content-type") ?? "";
  if (response.body === null) return response;
  const text = new TextDecoder();
  const listening = new TransformStream({
    transform(piece, next) {
      exchange.got += text.decode(piece, { stream: true });
      next.enqueue(piece);
    },
  });
  return new Response(response.body.pipeThrough(listening), { status, statusText, headers });
}

/** A user who grants everything, and the client's memory of what was granted. */
class Granting {
  redirectUrl = CALLBACK;
  clientMetadataUrl = DOCUMENT;
  clientMetadata = {
    client_name: "conformance client",
    redirect_uris: [CALLBACK],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    application_type: "native",
  };
  #registered = new Map();
  #tokens;

  constructor(registered) {
    if (registered) this.#registered.set(registered.issuer, registered);
  }

  clientInformation(about) {
    return this.#registered.get(about?.issuer) ?? this.#registered.get(undefined);
  }

  saveClientInformation(information, about) {
    this.#registered.set(about?.issuer, information);
  }

  tokens() {
    return this.#tokens;
  }

  saveTokens(tokens) {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  saveDiscoveryState(state) {
    this.discovered = state;
  }

  discoveryState() {
    return this.discovered;
  }

  invalidateCredentials(what) {
    if (what === "all" || what === "discovery") this.discovered = undefined;
    if (what === "all" || what === "tokens") this.#tokens = undefined;
    if (what === "all" || what === "client") this.#registered.clear();
  }

  /** Visit the page as a browser would; where it leads to is the answer. */
  async redirectToAuthorization(url) {
    const page = await fetch(url, { redirect: "manual" });
    this.answer = new URL(page.headers.get("location")).searchParams;
  }
}

class Proving extends Granting {
  #session = DpopSession.create();

  dpop() {
    return this.#session;
  }
}

/** A workload, which has an assertion about itself instead of a user. */
class Workload extends Granting {
  redirectUrl = undefined;

  prepareTokenRequest() {
    return new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: known.valid_jwt });
  }
}

/** How this client identifies itself, by scenario. */
const PROVIDERS = {
  "auth/client-credentials-jwt": () =>
    new PrivateKeyJwtProvider({ clientId: known.client_id, privateKey: known.private_key_pem, algorithm: known.signing_algorithm }),
  "auth/client-credentials-basic": () => new ClientCredentialsProvider({ clientId: known.client_id, clientSecret: known.client_secret }),
  "auth/pre-registration": () => new Granting({ client_id: known.client_id, client_secret: known.client_secret, issuer: known.issuer }),
  "auth/enterprise-managed-authorization": crossApp,
  "auth/cross-app-access-complete-flow": crossApp,
  "auth/wif-jwt-bearer": () => new Workload({ client_id: known.client_id }),
  "auth/dpop": () => new Proving(),
  "auth/dpop-nonce": () => new Proving(),
};

function crossApp() {
  return new CrossAppAccessProvider({
    clientId: known.client_id,
    clientSecret: known.client_secret,
    async assertion({ authorizationServerUrl, resourceUrl, scope, fetchFn }) {
      const granted = await requestJwtAuthorizationGrant({
        tokenEndpoint: known.idp_token_endpoint,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        idToken: known.idp_id_token,
        clientId: known.idp_client_id,
        scope,
        fetchFn,
      });
      return granted.jwtAuthGrant;
    },
  });
}

/** Do something; whenever a page had to be visited for it, take what came of that to the server, and do it again. */
async function granted(transport, provider, act) {
  for (let round = 0; ; round++) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || provider?.answer === undefined || round === ROUNDS) throw error;
      const { answer } = provider;
      provider.answer = undefined;
      await transport().finishAuth(answer);
      provider.discovered = undefined; // next time it may be another authorization server
    }
  }
}

/** A value that a schema allows; an object of any kind is the schema of the first tool, as far as there is one. */
function allowed(schema, first) {
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case "string":
      return "text";
    case "number":
    case "integer":
      return schema.minimum ?? 3;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      if (schema.properties === undefined) return first;
      return Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, allowed(member, first)]));
    default:
      return null;
  }
}

async function session(url) {
  const provider = scenario.startsWith("auth/") ? (PROVIDERS[scenario] ?? (() => new Granting()))() : undefined;
  const client = new Client(
    { name: "conformance-client", version: "1.0" },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      ...(revision === MODERN && { versionNegotiation: { mode: { pin: MODERN } } }),
    },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: {} }));
  // Servers of 2025-03-26 have metadata that name another issuer than the server itself; nobody had asked them not to.
  const skipIssuerMetadataValidation = scenario.startsWith("auth/2025-03-26-");
  let transport;
  const connect = () => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider, fetch: noting, skipIssuerMetadataValidation });
    return client.connect(transport);
  };
  await granted(() => transport, provider, connect);
  const { tools } = await granted(() => transport, provider, () => client.listTools());
  const calls = known.toolCalls ?? tools.map(({ name, inputSchema }) => ({ name, arguments: allowed(inputSchema, tools[0].inputSchema) ?? {} }));
  for (const call of calls) {
    await granted(() => transport, provider, () => client.callTool(call));
  }
  await client.close();
}

let status = 0;
try {
  await session(address);
} catch (error) {
  console.error(error);
  status = 1;
}
if (noted) writeFileSync(noted, said.map((exchange) => `${JSON.stringify(exchange)}\n`).join(""));
process.exit(status);
