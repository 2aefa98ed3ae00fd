"""Chat templates of public families' shapes, their tokens, and those with which an answer ends."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models

FAMILIES = Path(__file__).parent / "android" / "templates_of_families"
PROMPT = "{% if add_generation_prompt %}"

LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
ZEPHYR = (
    "{% for message in messages %}\n{{ '<|' + message['role'] + '|>\n' + message['content']"
    " + eos_token }}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n"
    "{% endif %}\n{% endfor %}"
)
DEEPSEEK_R1 = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '<｜User｜>' + message['content'] }}{% endif %}{% if message['role'] == 'assistant' %}"
    "{% set content = message['content'] %}{% if '</think>' in content %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
    + PROMPT
    + "{{ '<｜Assistant｜><think>\n' }}{% endif %}"
)
GLM4 = (
    "[gMASK]<sop>{% for item in messages %}{{ '<|' + item['role'] + '|>\n' + item['content'] }}"
    "{% endfor %}" + PROMPT + "{{ '<|assistant|>\n' }}{% endif %}"
)
HUNYUAN = (
    "{{ '<｜hy_begin▁of▁sentence｜>' }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '<｜hy_User｜>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ '<｜hy_Assistant｜>' }}"
    "{% if loop.last %}{{ '<think>\n\n</think>\n<answer>\n' + message['content'] + '\n</answer>' }}"
    "{% else %}{{ message['content'] }}{% endif %}{{ '<｜hy_place▁holder▁no▁2｜>' }}"
    "{% endif %}{% endfor %}" + PROMPT + "{{ '<｜hy_Assistant｜>' }}{% endif %}"
)
ERNIE = (
    "{{ cls_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ 'User: ' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}"
    "{{ 'Assistant: ' + message['content'] + '<|end_of_sentence|>' }}{% endif %}{% endfor %}"
    + PROMPT
    + "{{ 'Assistant: ' }}{% endif %}"
)
GPT_OSS = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "{% if loop.last and not add_generation_prompt %}{% if 'thinking' in message %}"
    "{{ '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking + '<|end|>' }}"
    "{% endif %}{{ '<|start|>assistant<|channel|>final<|message|>' + message.content }}<|return|>"
    "{% else %}{{ '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}"
    "{% endif %}{% else %}{{ '<|start|>' + message.role + '<|message|>' + message.content }}<|end|>"
    "{% endif %}{% endfor %}" + PROMPT + "<|start|>assistant{% endif %}"
)
COMMAND_A = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>' + message.content }}"
    "<|END_RESPONSE|>{% else %}{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + message.content }}"
    "{% endif %}<|END_OF_TURN_TOKEN|>{% endfor %}"
    + PROMPT
    + "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}"
)
MAGISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}"
    "{{ '[INST]' + message.content + '[/INST]' }}{% elif message.role == 'assistant' %}"
    "{% if message.reasoning_content %}{{ '[THINK]' + message.reasoning_content + '[/THINK]' }}"
    "{% endif %}{{ message.content + eos_token }}{% endif %}{% endfor %}"
)
NO_PROMPT = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}"
)
CHATML_OF_BOS = (
    "{% for m in messages %}{{ bos_token + m.role + '\n' + m.content + eos_token + '\n' }}"
    "{% endfor %}" + PROMPT + "{{ bos_token + 'assistant\n' }}{% endif %}"
)
EXAONE = (
    "{% for m in messages %}{{ '[|' + m.role + '|]' + m.content }}"
    "{% if m.role == 'assistant' %}[|endofturn|]{% endif %}{{ '\n' }}{% endfor %}"
    + PROMPT
    + "[|assistant|]{% endif %}"
)
NEMOTRON_MINI = (
    "{% for m in messages %}{{ '<extra_id_1>' + m.role + '\n' + m.content + '\n' }}{% endfor %}"
    + PROMPT
    + "<extra_id_1>Assistant\n{% endif %}"
)
THINKING_TURN = (
    "{% for m in messages %}{% if m.thinking %}{{ '<|im_start|>think\n' + m.thinking }}<|im_end|>\n"
    "{% endif %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}" + PROMPT + "<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM_NO_HISTORY = (
    "{% if messages | length > 2 or messages[0].role == 'system' %}"
    "{{ raise_exception('one question only') }}{% endif %}"
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    + PROMPT
    + "<|assistant|>{% endif %}"
)
LAST_ONLY = (
    "{% for m in messages %}{% if m.role == 'user' %}"
    "{{ '### Instruction:\n' + m.content + '\n\n' }}"
    "{% else %}{{ '### Response:\n' + m.content + '\n\n' }}{% endif %}{% endfor %}"
    + PROMPT
    + "{{ '### Response:\n' }}{% else %}{{ eos_token }}{% endif %}"
)
ALPACA = LAST_ONLY.replace("{% else %}{{ eos_token }}{% endif %}", "{% endif %}")


def tokenizer_of(special: str, plain: str = "") -> Tokenizer:
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special.split()])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in plain.split()])
    return tokenizer


def family(name: str) -> str:
    return (FAMILIES / f"{name}.jinja").read_text(encoding="utf-8")


CHATML = "<|endoftext|> <|im_start|> <|im_end|>"


CASES: list[tuple[str, str, str, str]] = [
    (family("chatml"), CHATML, "", "<|im_end|>"),
    (family("qwen"), CHATML, "<think> </think> <tool_call> </tool_call>", "<|im_end|>"),
    (family("smollm3"), CHATML, "<think> </think>", "<|im_end|>"),
    (family("qwen"), "<|endoftext|>", "<|im_start|> <|im_end|> <think> </think>", "<|im_end|>"),
    (family("gemma"), "<bos> <eos>", "<start_of_turn> <end_of_turn> <b>", "<end_of_turn>"),
    (family("granite"), "<|end_of_text|> <|start_of_role|> <|end_of_role|>", "",
     "<|end_of_text|>"),
    (family("llama3"), "<|begin_of_text|> <|end_of_text|> <|eot_id|> <|eom_id|>"
     " <|start_header_id|> <|end_header_id|>", "", "<|eot_id|>"),
    (family("mistral"), "<s> </s> [INST] [/INST] [TOOLS]", "", "</s>"),
    (family("phi3"), "<s> </s> <|end|> <|user|> <|system|> <|assistant|>", "", "<|end|>"),
    (LLAMA2, "<s> </s>", "", "</s>"),
    (ZEPHYR, "<s> </s>", "", "</s>"),
    (CHATML_OF_BOS, "<s> </s>", "", "</s>"),
    (DEEPSEEK_R1, "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜>",
     "<think> </think>", "<｜end▁of▁sentence｜>"),
    (GLM4, "<|endoftext|> [gMASK] <sop> <|system|> <|user|> <|assistant|>", "", "<|user|>"),
    (HUNYUAN, "<｜hy_begin▁of▁sentence｜> <｜hy_User｜> <｜hy_Assistant｜>"
     " <｜hy_place▁holder▁no▁2｜> <think> </think> <answer> </answer>", "",
     "<｜hy_place▁holder▁no▁2｜>"),
    (ERNIE, "<s> </s> <|end_of_sentence|> <|begin_of_sentence|>", "", "<|end_of_sentence|>"),
    (GPT_OSS, "<|return|> <|start|> <|end|> <|message|> <|channel|> <|call|>", "",
     "<|return|>"),
    (COMMAND_A, "<|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|> <|USER_TOKEN|>"
     " <|CHATBOT_TOKEN|> <|START_RESPONSE|> <|END_RESPONSE|>", "", "<|END_OF_TURN_TOKEN|>"),
    (MAGISTRAL, "<s> </s> [INST] [/INST] [THINK] [/THINK]", "", "</s>"),
    (NO_PROMPT, CHATML, "", "<|im_end|>"),
    (EXAONE, "[BOS] [|endofturn|] [|user|] [|assistant|] [|system|]", "", "[|endofturn|]"),
    (NEMOTRON_MINI, "<s> </s> <extra_id_1>", "", "<extra_id_1>"),
    (THINKING_TURN, CHATML, "", "<|im_end|>"),
    (NO_SYSTEM_NO_HISTORY, "<|end|> <|user|> <|assistant|>", "", "<|end|>"),
    (LAST_ONLY, "<s> </s>", "", "</s>"),
    (ALPACA, "<s> </s>", "<b>", ""),
    (family("chatml"), "<s> </s>", "", ""),  # its marks are no tokens of this vocabulary
    ("{{ messages[-1].content.lower() }}<|im_end|>", CHATML, "", ""),  # hides the answer
    ("{{ raise_exception('never') }}", CHATML, "", ""),
    ("{% for i in range(10000000) %}{% for j in range(10000000) %}{% endfor %}{% endfor %}",
     CHATML, "", ""),
]  # fmt: skip
"""Each: the template, its special tokens, its other tokens, and the ends of an answer."""


def names_of(special: str) -> dict[str, str]:
    """What the template knows as `bos_token` and its like."""
    bos, eos, *_ = special.split() * 2
    return {"bos_token": bos, "eos_token": eos, "cls_token": bos}
