// OpenAI's client for Node and Vercel's AI SDK: node use_node.mjs URL, where both are installed.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const url = process.argv[2];
const here = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(here.resolve(name)).href);
const version = (name) =>
  JSON.parse(here("node:fs").readFileSync(`node_modules/${name}/package.json`)).version;
const { default: OpenAI } = await load("openai");
const { generateText, streamText, Output, jsonSchema } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const messages = [{ role: "user", content: "Hi" }];
const schema = { type: "object", properties: { dog: { type: "boolean" } }, required: ["dog"],
  additionalProperties: false };
const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
const chat = (more) =>
  client.chat.completions.create({ model: "tiny", messages, max_tokens: 8, ...more });
const drained = async (stream) => {
  let last;
  for await (const part of stream) last = part;
  return last;
};
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const form = { type: "json_schema", json_schema: { name: "pet", strict: true, schema } };
const provider = createOpenAICompatible({ name: "here", baseURL: url, includeUsage: true,
  supportsStructuredOutputs: true });
const sdk = { model: provider("tiny"), prompt: "Hi", maxOutputTokens: 8, maxRetries: 0 };

const tasks = [
  ["openai", "chat", () => chat()],
  ["openai", "chat, streamed, with usage", async () =>
    drained(await chat({ stream: true, stream_options: { include_usage: true } }))],
  ["openai", "chat, the client's accumulated stream", async () =>
    client.chat.completions.stream({ model: "tiny", messages, max_tokens: 8 }).finalMessage()],
  ["openai", "chat, a parsed answer", () =>
    client.chat.completions.parse({
      model: "tiny", messages, max_tokens: 40, response_format: form })],
  ["openai", "completion, streamed", async () =>
    drained(await client.completions.create({
      model: "tiny", prompt: "Once", max_tokens: 8, stream: true }))],
  ["openai", "models", () => client.models.list()],
  ["openai", "chat with a tool", () => chat({ tools: [tool] })],
  ["ai", "generateText", async () => (await generateText(sdk)).finishReason],
  ["ai", "streamText", async () => drained(streamText(sdk).textStream)],
  ["ai", "generateText with a schema", async () =>
    (await generateText({
      ...sdk, maxOutputTokens: 40, output: Output.object({ schema: jsonSchema(schema) }),
    })).output],
];

for (const [name, task, run] of tasks) {
  const about = { client: `${name} ${version(name)} (Node)`, task };
  await fetch(`${url.replace(/\/v1$/, "")}/recorder?${new URLSearchParams(about)}`);
  let said;
  try {
    said = { answer: JSON.stringify((await run()) ?? "").slice(0, 200) };
  } catch (error) {
    said = { error: `${error.name}: ${error.message}`.replace(/\s+/g, " ").slice(0, 300) };
  }
  console.log(JSON.stringify({ ...about, ...said }));
}
