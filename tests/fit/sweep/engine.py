"""Asks the engine, by the program `measure` of integrations/ggml/engine."""
import json
import os
import re
import subprocess

SECONDS = 120  # the longest that one question may take


class Engine:
    def __init__(self, program):
        self.program = program

    def ask(self, *arguments):
        """(exit code, output, messages); the output is what was said before it died, if it died."""
        environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, env=environment,
                              timeout=SECONDS, check=False, errors="replace")
        return done.returncode, done.stdout, done.stderr

    def tensors(self, path):
        """(names and shapes of the tensors that the loader creates, None), or (None, why it refuses)."""
        code, text, messages = self.ask("tensors", path)
        lines = text.splitlines()
        if code != 0 or (lines and lines[-1].startswith("refused: ")):
            return None, lines[-1][len("refused: "):] if code == 0 else death(code, messages)
        shapes = {}
        for line in lines:
            name, *shape = line.split(" ")
            shapes.setdefault(name, [int(size) for size in shape])
        return list(shapes.items()), None

    def refusal(self, path):
        """Why the engine does not load a model, or None."""
        code, text, messages = self.ask("memory", path, "device=0,ctx=512,batch=32")
        if code != 0:
            return death(code, messages)
        answer = json.loads(text)
        return answer.get("refused") or answer.get("error")

    def memory(self, path, settings):
        """The memory that the engine takes at each setting. An {"error": ...} is the engine's reason not to run so."""
        answers = []
        while len(answers) < len(settings):
            code, text, messages = self.ask("memory", path, *settings[len(answers):])
            answers += [json.loads(line) for line in text.splitlines()]
            if code != 0:
                answers.append({"error": death(code, messages)})
            elif answers and "refused" in answers[-1]:
                return [answers[-1]] * len(settings)
        return answers


def death(code, messages):
    """The reason that an engine's last message gives for its end."""
    found = re.findall(r"^.*(?:GGML_ASSERT|GGML_ABORT|terminate called|what\(\)|fatal error).*$", messages, re.M)
    lines = found or messages.strip().splitlines() or [f"exit code {code}"]
    return re.sub(r"^\S*/(?=[\w.-]+:\d+)", "", lines[-1].strip())
