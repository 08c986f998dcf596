"""An agent as people write one: the `openai` client and a loop, for usual servers."""

import json

import openai

PREFACE = "You carry out one task by calling tools. End with finish."


class Client:
    """Asks with whole replies."""

    def reset(self, brief, tools, memory_dir):
        self.client = openai.OpenAI(max_retries=1)
        self.tools = [tool.function for tool in tools]
        self.messages = [
            {"role": "system", "content": PREFACE},
            {"role": "user", "content": brief.text},
        ]
        self.calls = []

    def act(self, observation, info):
        if self.calls:
            done = {"role": "tool", "tool_call_id": self.calls[-1]["id"]}
            self.messages.append({**done, "content": observation["text"]})
        message = self.ask()
        self.messages.append({**message, "role": "assistant"})
        self.calls = message["tool_calls"][:1]
        message["tool_calls"] = self.calls
        function = self.calls[0]["function"]
        return {"tool": function["name"], "arguments": json.loads(function["arguments"])}

    def ask(self):
        reply = self.client.chat.completions.create(
            model="stub", messages=self.messages, tools=self.tools
        )
        return reply.choices[0].message.model_dump(exclude_none=True)

    def close(self):
        self.client.close()


class Streamer(Client):
    """Asks with streams, and asks for no usage."""

    def ask(self):
        calls = {}
        with self.client.chat.completions.create(
            model="stub", messages=self.messages, tools=self.tools, stream=True
        ) as stream:
            for chunk in stream:
                for choice in chunk.choices:
                    for part in choice.delta.tool_calls or ():
                        call = calls.setdefault(part.index, {"id": "", "text": ""})
                        call["id"] = part.id or call["id"]
                        call["name"] = part.function.name or call.get("name")
                        call["text"] += part.function.arguments or ""
        made = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["text"]},
            }
            for call in calls.values()
        ]
        return {"content": "", "tool_calls": made}
