"""Chat templates in the manner of the supported families, and conversations to render with them.

Written for these tests: the real ones belong to their authors. Each uses the constructs of jinja2's
language that its family's templates are built from.
"""

from __future__ import annotations

CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}\
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{#- The system message stands first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: " + builtin_tools | reject('equalto', 'none') | join(", ") }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif message.role == "tool" %}
        {{- message.content | tojson }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}{{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in message.content %}
                {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
                {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate user and assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS]" }}
        {%- endif %}
        {%- if loop.first and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("only user and assistant roles, and a system message first") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

PHI3 = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}\
{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}\
{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}\
{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

GRANITE = """{%- if messages[0]['role'] == 'system' %}
     {%- set system_message = messages[0]['content'] %}
     {%- set loop_messages = messages[1:] %}
 {%- else %}
     {%- set system_message = "Knowledge Cutoff Date: April 2024.\\nYou are Granite." %}
     {%- if tools and documents %}
         {%- set system_message = system_message + " Tools and documents." %}
     {%- endif %}
     {%- set loop_messages = messages %}
 {%- endif %}
 {{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\\n' }}
 {%- if documents %}
     {%- for document in documents %}
         {{- '<|start_of_role|>document ' + document['doc_id'] | string }}
     {%- endfor %}
 {%- endif %}
 {%- for message in loop_messages %}
     {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}
     {%- if loop.last and add_generation_prompt %}
         {{- '<|start_of_role|>assistant' }}
             {%- if controls %}
                 {{- ' ' + controls | tojson()}}
             {%- endif %}
         {{- '<|end_of_role|>' }}
     {%- endif %}
 {%- endfor %}
"""

SMOLLM3 = """{% set reasoning_mode = "/think" if enable_thinking | default(true) else "/no_think" %}
{%- if messages[0].role == "system" and "/no_think" in messages[0].content -%}
    {%- set reasoning_mode = "/no_think" -%}
{%- endif -%}
{{- "<|im_start|>system\\n" }}
{%- macro listed(items, mark="-") -%}
    {%- for item in items if item -%}
        {{ mark ~ " " ~ item }}{{ "; " if not loop.last }}
    {%- endfor -%}
{%- endmacro -%}
{{- "## Metadata\\n" ~ listed(["a", "", "b"]) ~ listed(items=["c"], mark="*") ~ "\\n" }}
{{- "Reasoning Mode: " ~ reasoning_mode ~ "<|im_end|>\\n" }}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\\n" + content + "<|im_end|>\\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if reasoning_mode == "/think" -%}
            {{ "<|im_start|>assistant\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\\n" + "<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ "<|im_start|>assistant\\n" }}
{%- endif -%}
"""

LANGUAGE = """{# every part of the language once #}
    {% set a, b = 1, "two" %}
{{ a + 2 * 3 - 4 // 3 ** 2 }} {{ 7 % 3 }} {{ -7 // 2 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ -a }} {{ 1.5 + 1 }}
  {%+ if a == 1 and b != 'x' or false +%}
kept
  {%- endif %}
{{ [1, 2.0, 'x\\n', none, true, {'k': [1]}] }} {{ {'a': "it's"} }} {{ (1, 2)[0] }}
{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ [1, 2, 3][-1] }} {{ [1, 2, 3][:-1] }} {{ messages[5:] }}
{{ 'x' ~ 1 ~ none ~ true }} {{ 'a' 'b' }} {{ 'ab' * 2 }} {{ 1 if false }}|{{ missing }}|{{ missing is defined }}
{{ ' a b '.strip() }}|{{ 'a,b,c'.split(',', 1) }}|{{ ' a  b '.split() }}|{{ 'xay'.replace('a', '-') }}|{{ 'aXb'.lower() }}
{{ 'abc' | upper | lower | capitalize | length }} {{ 'hello world' | title }} {{ '' | default('d', true) }} {{ missing | default('e') }}
{{ [3, 1, 2] | join('-') }} {{ ['b', 'a'] | first }}{{ ['b', 'a'] | last }} {{ 'abc' | list }} {{ '12' | int + 1 }} {{ 'x' | int(5) }}
{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }}
{{ messages | rejectattr('role', 'in', ['user']) | map(attribute='role') | list }} {{ [1, 2, 3] | select('odd') | list }}
{{ {'b': 1, 'a': [2, {'c': none}]} | tojson }} {{ {'b': 1, 'a': [2, {'c': 'ü"\\\\'}], 'e': {}} | tojson(indent=2) }}
{% for k, v in {'x': 1, 'y': 2}.items() %}{{ loop.index }}:{{ k }}={{ v }}{{ ',' if not loop.last }}{% endfor %}
{% for i in range(10) if i % 2 %}{% if i == 7 %}{% break %}{% endif %}{% if i == 3 %}{% continue %}{% endif %}{{ i }}{{ loop.revindex }}{% else %}none{% endfor %}
{% for i in [] %}x{% else %}empty{% endfor %} {{ 1 in [1, 2] }} {{ 'k' not in {'k': 1} }} {{ 1 < 2 <= 2 }} {{ not 1 > 2 }}
{% set text %}  block {{ a }}
{% endset %}[{{ text | trim }}] {% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set lost = m %}{% endfor %}{{ ns.n }} {{ lost is undefined }}
{% raw %}{{ not a tag }}{% endraw %} {{ 'a' is string }} {{ 1 is number }} {{ none is none }} {{ {} is mapping }} {{ [] is iterable }} {{ 4 is divisibleby 2 }} {{ 3 is even }} {{ a is not none }}
{{ dict(x=1, y='z') }} {{ "line\\ttab \\u00e9 \\x41" }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'a-b'.split('-')[-1] }} {{ {'k': 'v'}.get('k') }}{{ {}.get('z', 9) }}
{{ 'one\\ntwo' | indent(2) }} {{ 'éa' | length }} {{ '🙂x'[0] }} {{ 'X' | trim('X') }} {{ [1, 1, 2] | unique | list }} {{ '%' }}
{%- for m in messages %}
  {{- m.role }}
  {%- if loop.first %} first{% elif loop.last %} last {% else %} middle {{ loop.previtem.role }}
  {% endif %}
{% endfor %}
end
"""

TEMPLATES = {
    "chatml": CHATML,
    "llama3": LLAMA3,
    "qwen": QWEN,
    "mistral": MISTRAL,
    "gemma": GEMMA,
    "phi3": PHI3,
    "granite": GRANITE,
    "smollm3": SMOLLM3,
    "language": LANGUAGE,
}

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def _chat(*contents: str, system: str | None = None) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]
    return said if system is None else [{"role": "system", "content": system}, *said]


CONVERSATIONS = [
    _chat("Hello"),
    _chat("  Hello \n", "Hi!", "And {{ now }}?"),
    _chat("Was ist das? 你好 🙂", " <think>\nhm\n</think>\n\nDas.", "Ja\u00a0", "Gut", "Ende"),
    _chat("Hi", system="Be brief. /no_think"),
    _chat("Hi", "Ho", "He", system="  spaces  "),
    [{"role": "assistant", "content": "I begin"}, {"role": "user", "content": "no"}],
    [{"role": "tool", "content": "x"}],
]
