"""The clients of a run: each is a process that may be killed, and comes back as the next one."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect

_STOP_SECONDS = 150.0
# A client handles SIGTERM from before its first request on.
_BEFORE_IT_BEGAN = -signal.SIGTERM
# The clients send as fast as they can. They leave the processor to the brokers, and to whatever
# else runs on the machine.
_NICE = ("nice", "-n", "10")


@dataclass
class _Client:
    role: str
    folder: Path
    options: tuple[str, ...]
    incarnation: int = 0
    process: "subprocess.Popen[bytes] | None" = None


@dataclass
class ClientProcesses:
    """Runs `python -m barnabas_tools.chaos.clients`; what a client says goes to `FOLDER/errors`."""

    bootstrap: str
    _clients: dict[str, _Client] = field(default_factory=dict)

    def add(self, role: str, name: str, folder: Path, topic: str, *options: str) -> None:
        """Start a client; `name` must be unique in the run."""
        self._clients[name] = _Client(role, folder, ("--topic", topic, *options))
        self.start(name)

    def names(self, *roles: str) -> list[str]:
        return [name for name, client in self._clients.items() if client.role in roles]

    def start(self, name: str) -> None:
        """Start a client's next incarnation; nothing happens if it runs."""
        client = self._clients[name]
        if client.process is None or client.process.poll() is not None:
            client.incarnation += 1
            again = ("--incarnation", str(client.incarnation))
            client.process = self._popen(name, client, *again)

    def kill(self, name: str) -> None:
        process = self._process(name)
        process.kill()
        process.wait()

    def exit_code(self, name: str) -> int | None:
        return self._process(name).poll()

    def check(self) -> None:
        """Raise FaultError if a client has ended by itself."""
        for name in self._clients:
            if (code := self.exit_code(name)) is not None:
                raise FaultError(f"client {name} ended by itself with {code}: {self._said(name)}")

    def stop(self) -> None:
        """SIGTERM to all, and wait until they have ended what they had begun."""
        for name in self._clients:
            self._process(name).terminate()
        for name in self._clients:
            try:
                code = self._process(name).wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise FaultError(f"client {name} runs {_STOP_SECONDS:g} s after SIGTERM") from None
            if code not in (0, _BEFORE_IT_BEGAN):
                raise FaultError(f"client {name} ended with {code}: {self._said(name)}")

    def end(self) -> None:
        """Kill what runs."""
        for client in self._clients.values():
            if client.process is not None:
                client.process.kill()
                client.process.wait()

    def judge(self, folder: Path, topic: str, within: float) -> bool:
        """The final read of one folder; whether everything could be read."""
        name = f"judge-{topic}"
        judge = _Client("judge", folder, ("--topic", topic, "--within", f"{within:g}"))
        self._clients[name] = judge
        judge.process = self._popen(name, judge)
        if (code := judge.process.wait(4 * within + 60)) not in (0, 1):
            raise FaultError(f"the final read ended with {code}: {self._said(name)}")
        return code == 0

    def _process(self, name: str) -> "subprocess.Popen[bytes]":
        process = self._clients[name].process
        assert process is not None
        return process

    def _popen(self, name: str, client: _Client, *more: str) -> "subprocess.Popen[bytes]":
        command = [*_NICE, sys.executable, "-m", "barnabas_tools.chaos.clients", client.role]
        command += ["--client", name, "--folder", str(client.folder), *client.options, *more]
        with self._errors(name).open("ab") as errors:
            return subprocess.Popen(
                [*command, "--bootstrap", self.bootstrap],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the run, which ends them
            )

    def _errors(self, name: str) -> Path:
        folder = self._clients[name].folder / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.txt"

    def _said(self, name: str) -> str:
        lines = self._errors(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def as_sets(options: Mapping[str, str]) -> tuple[str, ...]:
    """The options of a client, as its command line has them."""
    return tuple(part for name, value in options.items() for part in ("--set", f"{name}={value}"))


class ClientKilled:
    """SIGKILL of a client; healing starts its next incarnation."""

    def __init__(self, clients: ClientProcesses, client: str) -> None:
        self._clients = clients
        self._client = client

    @property
    def name(self) -> str:
        return f"kill {self._client}"

    def inject(self) -> None:
        self._clients.kill(self._client)

    def verify(self) -> str:
        if (code := self._clients.exit_code(self._client)) is None:
            raise NotInEffect(f"{self.name}: it runs")
        return f"{self._client} exited with {code}"

    def heal(self) -> None:
        self._clients.start(self._client)
