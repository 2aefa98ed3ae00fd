// OpenAI's and Anthropic's clients for Node and Vercel's AI SDK: node use_node.mjs URL, where they
// are installed.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const url = process.argv[2];
const here = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(here.resolve(name)).href);
const version = (name) =>
  JSON.parse(here("node:fs").readFileSync(`node_modules/${name}/package.json`)).version;
const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { zodTextFormat } = await load("openai/helpers/zod");
const { z } = await load("zod");
const { generateText, streamText, stepCountIs, tool: made, Output, jsonSchema } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
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
const tool = { type: "function", function: { name: "pet", parameters: schema } };
const flat = { type: "function", name: "pet", parameters: schema, strict: true };
const block = { name: "pet", input_schema: schema };
const claude = new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: "none", maxRetries: 0 });
const respond = (more) =>
  client.responses.create({ model: "tiny", input: "Hi", max_output_tokens: 8, ...more });
const message = (more) =>
  claude.messages.create({ model: "tiny", messages, max_tokens: 8, ...more });
const forced = { tool_choice: "required", parallel_tool_calls: false };
const called = async () => {
  const asked = { tools: [flat], parallel_tool_calls: false };
  const said = await respond({ ...asked, tool_choice: "required", max_output_tokens: 200 });
  const result = { type: "function_call_output", call_id: said.output[0].call_id, output: "Rex" };
  return respond({ ...asked, input: [result], previous_response_id: said.id });
};
const blocks = async () => {
  const choice = { type: "any", disable_parallel_tool_use: true };
  const said = await message({ tools: [block], tool_choice: choice, max_tokens: 200 });
  const result = { type: "tool_result", tool_use_id: said.content[0].id, content: "Rex" };
  return message({ tools: [block], messages: [...messages,
    { role: "assistant", content: said.content }, { role: "user", content: [result] }] });
};
const everyType = z.object({ mail: z.email().max(20), day: z.iso.date(), id: z.uuidv4(),
  span: z.iso.duration().max(12) });
const form = { type: "json_schema", json_schema: { name: "pet", strict: true, schema } };
const provider = createOpenAICompatible({ name: "here", baseURL: url, includeUsage: true,
  supportsStructuredOutputs: true });
const sdk = { model: provider("tiny"), prompt: "Hi", maxOutputTokens: 8, maxRetries: 0 };
const openai = createOpenAI({ baseURL: url, apiKey: "none" });
const anthropic = createAnthropic({ baseURL: url, apiKey: "none" });
const pet = made({ description: "Makes a pet.", inputSchema: z.object({ dog: z.boolean() }),
  execute: async ({ dog }) => (dog ? "Rex" : "Tom") });
const calling = { tools: { pet }, toolChoice: "required", maxOutputTokens: 200,
  stopWhen: stepCountIs(2) };

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
  ["openai", "chat, a call", async () =>
    (await chat({ tools: [tool], ...forced, max_tokens: 200 })).choices[0].message],
  ["openai", "response", () => respond()],
  ["openai", "response, streamed", async () => drained(await respond({ stream: true }))],
  ["openai", "response, a call and its result", called],
  ["openai", "response, parsed by zod", async () =>
    (await client.responses.parse({ model: "tiny", input: "Hi", max_output_tokens: 2000,
      text: { format: zodTextFormat(everyType, "all") } })).output_parsed],
  ["@anthropic-ai/sdk", "message", () => message()],
  ["@anthropic-ai/sdk", "message, streamed", () =>
    claude.messages.stream({ model: "tiny", messages, max_tokens: 8 }).finalMessage()],
  ["@anthropic-ai/sdk", "a call and its result", blocks],
  ["@anthropic-ai/sdk", "tokens counted", () =>
    claude.messages.countTokens({ model: "tiny", messages })],
  ["ai", "generateText", async () => (await generateText(sdk)).finishReason],
  ["ai", "streamText", async () => drained(streamText(sdk).textStream)],
  ["ai", "generateText with a schema", async () =>
    (await generateText({
      ...sdk, maxOutputTokens: 40, output: Output.object({ schema: jsonSchema(schema) }),
    })).output],
  ["ai", "generateText with a tool", async () =>
    (await generateText({ ...sdk, ...calling })).steps.map((step) => step.toolCalls)],
  ["ai", "streamText with a tool", async () =>
    drained(streamText({ ...sdk, ...calling }).fullStream)],
  ["@ai-sdk/openai", "generateText, by responses", async () =>
    (await generateText({ ...sdk, model: openai("tiny"), maxOutputTokens: 16 })).text],
  ["@ai-sdk/openai", "generateText with a tool", async () =>
    (await generateText({ ...sdk, ...calling, model: openai("tiny") })).steps.length],
  ["@ai-sdk/anthropic", "generateText", async () =>
    (await generateText({ ...sdk, model: anthropic("tiny") })).text],
  ["@ai-sdk/anthropic", "generateText with a tool", async () =>
    (await generateText({ ...sdk, ...calling, model: anthropic("tiny") })).steps.length],
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
