"""The client of the service's REST API for one kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .child_requests import REQUEST_TIMEOUT, ChildRequests, is_gone
from .errors import Refused, Unreachable
from .json_answer import texts
from .lab import Lab, path_segment


@dataclass(frozen=True, slots=True)
class KernelState:
    """What the service says about a kernel.

    `number` counts the kernel's processes from 1, `process` is the state of the newest: `starting`, `running` or
    `ended`. They are 0 and "" as long as nothing is known about a process.
    """

    status: str
    stage: str = ""
    reason: str = ""
    message: str = ""
    number: int = 0
    process: str = ""
    exit_code: int | None = None
    connection: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, answer: Any) -> "KernelState":
        """The state in an object of the API. Raises an error for anything else."""
        process = answer.get("process") or {}
        exit_code, connection = process.get("exit_code"), answer.get("connection")
        return cls(
            status=str(answer["status"]),
            number=int(process.get("number", 0)),
            process=str(process.get("state", "")),
            exit_code=None if exit_code is None else int(exit_code),
            connection=None if connection is None else dict(connection),
            **texts(answer, "stage", "reason", "message"),
        )

    @property
    def ended_with(self) -> int | None:
        """The exit code of a process that has ended, negative for a signal; None if it has not ended."""
        if self.process != "ended":
            return None
        return 1 if self.exit_code is None else self.exit_code

    def has_started(self, after: int) -> bool:
        """True if a process with a number above `after` was started, and the kernel has an address."""
        if self.status != "running" or not self.connection:
            return False
        return self.process in ("running", "ended") and self.number > after


class KernelApi:
    """Requests about one kernel, each in one attempt. They raise `Refused` or `Unreachable`."""

    def __init__(self, url: str, lab: Lab, kernel_id: str, token: Callable[[], str]) -> None:
        url = f"{url.rstrip('/')}{lab.path}/kernels/{path_segment(kernel_id)}"
        self._requests = ChildRequests(url, token, "wasmspawner-kernel")

    async def create(self, request: Mapping[str, Any]) -> KernelState:
        """Begin to start the kernel. Raises `Refused` with status 409 if there is one of that id already."""
        return await self._state("POST", body=request)

    async def get(self, *, time_limit: float = REQUEST_TIMEOUT) -> KernelState | None:
        """The kernel's state; None if there is no such kernel."""
        try:
            return await self._state("GET", time_limit=time_limit)
        except Refused as error:
            if is_gone(error):
                return None
            raise

    async def delete(self) -> None:
        """Begin to delete the kernel, if there is one."""
        try:
            await self._requests.send("DELETE")
        except Refused as error:
            if not is_gone(error):
                raise

    async def signal(self, signum: int) -> bool:
        """Signal the kernel's process group. False if no process runs."""
        try:
            await self._requests.send("POST", "/signal", {"signum": signum})
        except Refused as error:
            if "not_running" in error.types or is_gone(error):
                return False
            if error.status == 409:
                # The pod is not connected at the moment, or takes no more commands.
                raise Unreachable(str(error), unsent=True) from error
            raise
        return True

    async def restart(self) -> KernelState | None:
        """Begin to start a new process at the same address. None if that is not possible."""
        try:
            return await self._state("POST", "/restart")
        except Refused as error:
            if error.status == 409 or is_gone(error):
                return None
            raise

    async def _state(self, method: str, path: str = "", **arguments: Any) -> KernelState:
        answer = await self._requests.send(method, path, **arguments)
        return answer.decode(KernelState.of)
