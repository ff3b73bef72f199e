// Calls under faults with a client of the MCP TypeScript SDK: node faulty_ts.mjs 1|2 < PLANS (see faulty.py).
import { createInterface } from "node:readline";

const kind = process.argv[2];
const LAST_MS = 120_000;

/** What differs between the two packages. */
async function load() {
  if (kind !== "1") {
    const [sdk, stdio] = await Promise.all([import("@modelcontextprotocol/client"), import("@modelcontextprotocol/client/stdio")]);
    return { ...sdk, ...stdio, options: { versionNegotiation: { mode: "legacy" } }, call: (client, params, options) => client.callTool(params, options) };
  }
  const parts = ["client/index.js", "client/streamableHttp.js", "client/stdio.js"];
  const [client, http, stdio] = await Promise.all(parts.map((path) => import(`@modelcontextprotocol/sdk/${path}`)));
  return { ...client, ...http, ...stdio, options: {}, call: (one, params, options) => one.callTool(params, undefined, options) };
}

const sdk = await load();

/** What a call came to: the text of its result, or its error. */
async function outcome(client, message, seconds) {
  const params = { name: "echo", arguments: { message } };
  const hangs = new Promise((done) => setTimeout(done, LAST_MS, { hangs: true }).unref());
  const call = sdk.call(client, params, { timeout: seconds * 1000 }).then(
    (result) => ({ result: result.content[0].text }),
    (error) => ({ error: error.constructor.name, code: error.code ?? null, message: String(error.message).slice(0, 200) }),
  );
  return Promise.race([call, hangs]);
}

async function session({ transport: way, target, faults }) {
  const client = new sdk.Client({ name: "ts-client", version: "1.0" }, { capabilities: {}, ...sdk.options });
  const transport =
    way === "http"
      ? new sdk.StreamableHTTPClientTransport(new URL(target))
      : new sdk.StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "ignore" });
  await client.connect(transport);
  const steps = {};
  for (const [fault, [seconds, more]] of Object.entries(faults)) {
    const struck = await outcome(client, `struck <${fault}>`, seconds);
    steps[fault] = [struck, await outcome(client, "plain", more)];
  }
  await client.close().catch(() => {});
  return steps;
}

const plans = [];
for await (const line of createInterface({ input: process.stdin })) plans.push(JSON.parse(line));
const told = await Promise.all(
  plans.map((plan) =>
    session(plan).then(
      (steps) => ({ steps }),
      (error) => ({ failed: String(error?.stack ?? error) }),
    ),
  ),
);
for (const one of told) console.log(JSON.stringify(one));
process.exit(0);
