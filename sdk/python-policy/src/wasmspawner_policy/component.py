"""The exports of a component. It is imported where the component is made, and not in native tests."""

import json
import random
import sys
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from componentize_py_types import Err
from wit_world.imports import host as wit_host
from wit_world.imports import types as wit

from . import bindings, host, lowering
from .authorize import Allow, AuthorizeRequest, Deny
from .config import ConfigErrors, read
from .errors import Denied, FieldError, Internal, Invalid, PolicyError, RetryLater
from .form import Fields, Html
from .form import checked as checked_fields
from .images import ImageMenu
from .inject import Access
from .lab_server import Settings
from .options import Options
from .pod import Customization
from .policy import Policy, checked
from .quota import Quota


def exports(policy: type[Policy], information: tuple[str, str, str]) -> dict[str, Callable[[], Any]]:
    """What componentize-py looks for in the module of a component. The information is name, version and description."""
    bindings.put_in_place()
    sys.stdout, sys.stderr = Log(host.Level.INFO), Log(host.Level.WARN)
    loaded = Loaded(policy, information)
    # componentize-py calls what it finds under these names and uses the result.
    return {name: partial(hook, loaded) for name, hook in _HOOKS.items()}


class Log:
    """Writes what the policy prints to the service's log, line by line."""

    def __init__(self, level: host.Level) -> None:
        self._level = level
        self._line = ""

    def write(self, text: str) -> int:
        """Takes a piece of text. Returns its length, as every stream does."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            host.log(self._level, line)
        return len(text)

    def flush(self) -> None:
        """Does nothing: a line is complete where it ends."""


class Loaded:
    """A policy with the configuration of this component's service."""

    def __init__(self, policy: type[Policy], information: tuple[str, str, str]) -> None:
        self.policy = policy
        self.information = information
        self._prepared: Policy | None = None

    def prepare(self) -> None:
        """Creates the policy, which the calls then find in their memory."""
        # A configuration that is wrong is reported by the call that needs it.
        try:
            self._prepared = self._create()
        except Exception as error:
            host.debug(f"the policy is not prepared: {error}")

    def _create(self) -> Policy:
        return read(wit_host.config(), self.policy)[0]

    def call(self, hook: Callable[[Policy], Any]) -> Any:
        """The answer of a hook. Whatever it raises becomes an error of the contract."""
        try:
            if self._prepared is None:
                return hook(self._create())
            # The generator was copied with the memory, and would give the same numbers in every call.
            random.seed()
            return hook(self._prepared)
        except PolicyError as error:
            raise Err(error) from None
        except ConfigErrors as error:
            raise Err(Internal(f"the configuration is wrong: {error}")) from None
        except Exception as error:
            raise Err(Internal(_told(error))) from None


def _told(error: Exception) -> str:
    """An exception with the places in the policy. The source is not there, so `traceback` cannot be used."""
    places = []
    traceback: TracebackType | None = error.__traceback__
    while traceback:
        folder, _, file = traceback.tb_frame.f_code.co_filename.rpartition("/")
        if folder != __file__.rpartition("/")[0]:
            places.append(f"{file}:{traceback.tb_lineno} in {traceback.tb_frame.f_code.co_qualname}")
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {error}" + (f" ({', '.join(places)})" if places else "")


def _options(entries: list[Any]) -> Options:
    return {entry.name: entry.value.value for entry in entries}


def _entries(options: Options) -> list[Any]:
    return [wit.OptionEntry(name, _value(value)) for name, value in options.items()]


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return wit.Value_Boolean(value)
    if isinstance(value, int):
        return wit.Value_Integer(value)
    return wit.Value_Number(value) if isinstance(value, float) else wit.Value_Text(checked("parse", value, str))


class _Hook:
    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded


class _Metadata(_Hook):
    def describe(self) -> Any:
        metadata = bindings.module("exports.metadata")
        return metadata.Info(*self.loaded.information)  # type: ignore[union-attr]

    def config_schema(self) -> str:
        return json.dumps(self.loaded.policy.config_schema)


class _Config(_Hook):
    def validate(self, config_json: str) -> list[str]:
        try:
            return read(config_json, self.loaded.policy, is_check=True)[1]
        except ConfigErrors as error:
            raise Err(error.errors) from None
        except Exception as error:
            raise Err([FieldError("", f"the policy failed: {_told(error)}")]) from None


class _Prepare(_Hook):
    def run(self) -> None:
        self.loaded.prepare()


class _Form(_Hook):
    def render(self, context: Any) -> Any:
        def render(policy: Policy) -> Fields | Html:
            form = policy.form(context)
            return form if isinstance(form, Html) else Fields([lowering.field(field) for field in checked_fields(form)])

        return self.loaded.call(render)

    def parse(self, submission: list[Any], context: Any) -> list[Any]:
        def parse(policy: Policy) -> list[Any]:
            return _entries(checked("parse", policy.parse(_options(submission), context), dict))

        try:
            return self.loaded.call(parse)  # type: ignore[no-any-return]
        except Err as error:
            raise Err(_no_form(error.value)) from None


def _no_form(error: PolicyError) -> list[FieldError]:
    """The reason why there is no form, as errors of the submission."""
    if isinstance(error, Invalid):
        return error.value
    if isinstance(error, Denied | RetryLater):
        return [FieldError("", str(error))]
    host.error(str(error))
    return [FieldError("", "the form is not available at the moment")]


class _Quota(_Hook):
    def limits(self, user: Any, usage: Any) -> Any:
        return self.loaded.call(lambda policy: lowering.quota(checked("quota", policy.quota(user, usage), Quota)))


class _Authorize(_Hook):
    def decide(self, request: Any) -> Any:
        asked = AuthorizeRequest(request.action, request.user, request.server, _options(request.options))
        return self.loaded.call(lambda policy: checked("authorize", policy.authorize(asked), Allow, Deny))


class _Inject(_Hook):
    def decide(self, request: Any) -> Any:
        inject: Any = bindings.module("exports.inject")

        def decide(policy: Policy) -> Any:
            asked = (request.user, request.server, _options(request.options), request.workload)
            answer = checked("inject", policy.inject(*asked), Access, Deny)
            return answer if isinstance(answer, Deny) else inject.Verdict_Allow(answer)

        return self.loaded.call(decide)


class _Events(_Hook):
    def on_event(self, event: Any) -> None:
        try:
            self.loaded.call(lambda policy: policy.on_event(event))
        except Err as error:
            # The contract has no error here.
            host.error(f"the event is not handled: {error.value}")


class _BuildPod(_Hook):
    def customize(self, request: Any) -> Any:
        def customize(policy: Policy) -> Any:
            lab = policy.build_pod(request.user, request.server, _options(request.options))
            return lowering.customization(checked("build_pod", lab, Customization))

        return self.loaded.call(customize)


class _LabServer(_Hook):
    def decide(self, request: Any) -> Any:
        def decide(policy: Policy) -> Any:
            settings = policy.lab_server(request.user, request.server, _options(request.options))
            return checked("lab_server", settings, Settings)

        return self.loaded.call(decide)


class _LabFiles(_Hook):
    def decide(self, request: Any) -> Any:
        def decide(policy: Policy) -> Any:
            files = policy.lab_files(request.user, request.server, _options(request.options))
            return lowering.text_files(checked("lab_files", files, dict))

        return self.loaded.call(decide)


class _Images(_Hook):
    def menu(self, request: Any) -> Any:
        def menu(policy: Policy) -> Any:
            return checked("images", policy.images(request.user, request.server), ImageMenu, type(None))

        return self.loaded.call(menu)

    def prepull(self) -> list[Any]:
        return self.loaded.call(  # type: ignore[no-any-return]
            lambda policy: [lowering.wanted_image(image) for image in policy.prepull()]
        )


_HOOKS: dict[str, type[_Hook]] = {
    "Metadata": _Metadata,
    "Config": _Config,
    "Prepare": _Prepare,
    "Form": _Form,
    "Quota": _Quota,
    "Authorize": _Authorize,
    "Inject": _Inject,
    "Events": _Events,
    "BuildPod": _BuildPod,
    "LabServer": _LabServer,
    "LabFiles": _LabFiles,
    "Images": _Images,
}
