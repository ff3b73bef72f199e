// Hold scripted sessions with servers over HTTP, with a client of the MCP TypeScript SDK; print them as JSON.
//
//     node client_ts.mjs 1|2|2-auto < PLAN
//
// 1: @modelcontextprotocol/sdk, which most clients in use are built on. 2: @modelcontextprotocol/client, by the initialize
// handshake, or (2-auto) by server/discover first (2026-07-28). A line in: a Plan as sessions.py has it, with its steps.
// A line out for each, in the same order: {"said": SESSION}, or {"failed": TEXT}.
import { createInterface } from "node:readline";

const kind = process.argv[2];
const STEP_MS = 20_000;
const SETTLE_MS = 200;
const REMIND_MS = 2000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** What differs between the two packages: names, and how handlers and results are told apart. */
async function load() {
  if (kind !== "1") {
    const sdk = await import("@modelcontextprotocol/client");
    return {
      ...sdk,
      options: { versionNegotiation: { mode: kind === "2-auto" ? "auto" : "legacy" } },
      request: (client, method, handler) => client.setRequestHandler(method, handler),
      notification: (client, method, handler) => client.setNotificationHandler(method, handler),
      call: (client, params, options) => client.callTool(params, options),
    };
  }
  const [client, http, sse, types] = await Promise.all(
    ["client/index.js", "client/streamableHttp.js", "client/sse.js", "types.js"].map((path) => import(`@modelcontextprotocol/sdk/${path}`)),
  );
  const schemas = {
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "elicitation/create": types.ElicitRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
    "notifications/message": types.LoggingMessageNotificationSchema,
    "notifications/progress": types.ProgressNotificationSchema,
  };
  return {
    ...client,
    ...http,
    ...sse,
    options: {},
    request: (client, method, handler) => client.setRequestHandler(schemas[method], handler),
    notification: (client, method, handler) => client.setNotificationHandler(schemas[method], handler),
    call: (client, params, options) => client.callTool(params, undefined, options),
  };
}

const sdk = await load();

/** Each kind of step of sessions.py, as this SDK spells it. */
const STEPS = {
  list_tools: (client) => client.listTools(),
  call: (client, params) => sdk.call(client, params),
  async call_with_progress(client, params) {
    const progress = [];
    const note = ({ params: seen }) => void progress.push([seen.progress, seen.total, seen.message]);
    // Noted here, for the SDK forgets its own callback when the answer arrives in one read with the progress.
    sdk.notification(client, "notifications/progress", note);
    const result = await sdk.call(client, params, { onprogress: () => {} });
    return { progress, result };
  },
  async call_and_cancel(client, params) {
    const abort = new AbortController();
    const call = sdk.call(client, params, { signal: abort.signal }).catch(() => {});
    await pause(SETTLE_MS);
    abort.abort("changed my mind");
    await call;
    return "cancelled";
  },
  list_prompts: (client) => client.listPrompts(),
  get_prompt: (client, { name, arguments: given }) => client.getPrompt({ name, ...(given && { arguments: given }) }),
  complete: (client, { prompt, argument: [name, value], context }) =>
    client.complete({
      ref: { type: "ref/prompt", name: prompt },
      argument: { name, value },
      ...(context && { context: { arguments: context } }),
    }),
  list_resources: (client) => client.listResources(),
  list_templates: (client) => client.listResourceTemplates(),
  read: (client, params) => client.readResource(params),
  subscribe: (client, params) => client.subscribeResource(params),
  unsubscribe: (client, params) => client.unsubscribeResource(params),
  set_level: (client, { level }) => client.setLoggingLevel(level),
  ping: (client) => client.ping(),
  /** Open a subscription stream (2026-07-28), make the resource change, close it; else only call the tool. */
  async watch(client, { uri, tool }) {
    const change = () => sdk.call(client, { name: tool, arguments: { uri } });
    if (client.getProtocolEra?.() !== "modern") return change();
    const event = new Promise((told) => client.setNotificationHandler("notifications/resources/updated", told));
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    const answer = await change();
    const { method } = await event;
    await subscription.close();
    return { answer, method };
  },
  /** Let the server ask for roots and say that it has them; it asks in vain before the stream for it is open. */
  async wait_for_roots(client, params, told) {
    while (told.logs.length === 0) {
      const asked = await Promise.race([told.rootsAsked, pause(REMIND_MS)]);
      if (!asked) await client.sendRootsListChanged();
      await pause(SETTLE_MS);
    }
  },
};

/** What this client does when the server wants something from it. */
function answerQuestions(client, told) {
  sdk.request(client, "sampling/createMessage", async ({ params }) => {
    told.asked.push({ sampling: params });
    return { role: "assistant", model: "none", content: { type: "text", text: "sampled by the client" }, stopReason: "endTurn" };
  });
  sdk.request(client, "elicitation/create", async ({ params }) => {
    told.asked.push({ elicitation: params });
    return { action: "accept", content: { name: "Ada" } };
  });
  told.rootsAsked = new Promise((asked) => {
    sdk.request(client, "roots/list", async () => {
      if (!told.asked.includes("roots")) told.asked.push("roots");
      asked(true);
      return { roots: [{ uri: "file:///work", name: "work" }] };
    });
  });
  sdk.notification(client, "notifications/message", ({ params }) => void told.logs.push(params));
}

async function session({ transport: way, target, steps }) {
  const told = { asked: [], logs: [] };
  const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
  const client = new sdk.Client({ name: "ts-client", version: "1.0" }, { capabilities, ...sdk.options });
  answerQuestions(client, told);
  const url = new URL(target);
  const transport = way === "sse" ? new sdk.SSEClientTransport(url) : new sdk.StreamableHTTPClientTransport(url);
  await client.connect(transport);
  try {
    const opening = [client.getServerVersion(), client.getServerCapabilities()];
    const outcomes = [];
    for (const [step, given] of steps) {
      const late = pause(STEP_MS).then(() => Promise.reject(new Error(`${step} took too long`)));
      late.catch(() => {});
      try {
        const result = await Promise.race([STEPS[step](client, given, told), late]);
        outcomes.push({ step, arguments: given, result: result ?? null });
      } catch (error) {
        if (error.code === undefined) throw error;
        outcomes.push({ step, arguments: given, error: { code: error.code, message: error.message } });
      }
    }
    await pause(SETTLE_MS);
    return { opening, steps: outcomes, asked: told.asked, logs: told.logs };
  } finally {
    if (way !== "sse" && transport.sessionId) await transport.terminateSession();
    await client.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const outcome = await session(JSON.parse(line)).then(
    (said) => ({ said }),
    (error) => ({ failed: String(error?.stack ?? error) }),
  );
  console.log(JSON.stringify(outcome));
}
process.exit(0); // timers of steps that ended in time are still running
