"""The patterns of text fields.

A pattern is checked by the browser (a regular expression of JavaScript with the flag `v`) and by the SDK of the policy's
language. So a pattern may have only what means the same in JavaScript, Python and Rust; `wit/README.md` lists it. The SDKs
read patterns alike, which `tests/tables/form-fields.json` holds.
"""

import re

_MAX_SIZE = 1000
"""The most characters of a pattern whose repetitions are written out."""
_MAX_DEPTH = 10
"""The most groups in each other."""
_SYNTAX = r"^$\.*+?()[]{}|/"
"""Characters with a meaning outside of brackets."""
_IN_BRACKETS = "([{}/|)-"
"""Characters that must be escaped within brackets."""
_NOT_TWICE = "&!#$%*+,.:;<=>?@^`~"
"""Characters that are an operator of sets if they stand twice within brackets."""
_SETS = "dDwW"
"""The letters of escapes for several characters: digits, letters of words, and all others."""


class PatternError(ValueError):
    """What in a pattern cannot be checked, and what to write instead."""


def check(pattern: str) -> None:
    """Raises `PatternError` unless browsers and all SDKs can check the pattern alike."""
    try:
        _Reader(pattern).read()
    except PatternError as problem:
        raise PatternError(f"the pattern {pattern} {problem}") from None


def is_match(pattern: str, text: str) -> bool:
    """Whether the whole text matches the pattern. Raises `PatternError` as `check` does."""
    check(pattern)
    return re.fullmatch(pattern, text, re.ASCII) is not None


class _Reader:
    """Reads a pattern from its beginning to its end."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        # The position of the last character that was read; the first is 1.
        self.at = 0
        # The sizes of the pattern and of the groups that are open.
        self.sizes = [0]
        # The size of what a repetition would repeat.
        self.last: int | None = None

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def next(self) -> str:
        char = self.peek()
        self.at += len(char)
        return char

    def next_if(self, wanted: str) -> bool:
        is_next = self.peek() == wanted
        self.at += is_next
        return is_next

    def read(self) -> None:
        while char := self.next():
            at = self.at
            if char == "\\":
                self.escape(_SYNTAX)
                self.add(1)
            elif char == "[":
                self.brackets()
                self.add(1)
            elif char == "(":
                self.open()
            elif char == ")":
                self.close()
            elif char in "|^$":
                self.last = None
            elif char in "*+?":
                self.repeat(char, at, 1)
            elif char == "{":
                times = self.times()
                if times is None:
                    raise PatternError(f"has {{ at position {at}; write {{n}}, {{n,}} or {{n,m}} to repeat, or \\{{")
                self.repeat(char, at, times)
            elif char in "]}":
                raise _unescaped(char, at)
            else:
                self.add(1)
        if len(self.sizes) > 1:
            raise PatternError("has a group that does not end")

    def add(self, size: int) -> None:
        """Adds an item of this size to the innermost group."""
        self.last = size
        self.grow(size)

    def grow(self, size: int) -> None:
        self.sizes[-1] += size
        if self.sizes[-1] > _MAX_SIZE:
            raise PatternError(f"is too large: written without repetitions it may have {_MAX_SIZE} characters")

    def open(self) -> None:
        at = self.at
        if self.next_if("?") and not self.next_if(":"):
            raise PatternError(f"has (? at position {at}, which this form cannot check; groups begin with ( or (?:")
        self.sizes.append(0)
        self.last = None
        if len(self.sizes) > _MAX_DEPTH + 1:
            raise PatternError(f"has more than {_MAX_DEPTH} groups in each other")

    def close(self) -> None:
        if len(self.sizes) == 1:
            raise PatternError(f"has the character ) at position {self.at}, where no group ends; write \\)")
        # An empty group counts, too, because it can be repeated.
        self.add(max(self.sizes.pop(), 1))

    def repeat(self, char: str, at: int, times: int) -> None:
        """Repeats the last item. A repetition cannot be repeated; a `?` after it changes nothing for a whole text."""
        if self.last is None:
            raise PatternError(f"has {char} at position {at}, which repeats nothing")
        size, self.last = self.last, None
        self.next_if("?")
        self.grow(size * (max(times, 1) - 1))

    def times(self) -> int | None:
        """The most times that `{n}` and `{n,m}` repeat, and the fewest of `{n,}`. `None` if it is none of these."""
        least = self.number()
        if least is None:
            return None
        most = self.number() if self.next_if(",") else least
        if not self.next_if("}") or (most is not None and most < least):
            return None
        return least if most is None else most

    def number(self) -> int | None:
        number = None
        while (char := self.peek()) and char in "0123456789":
            self.next()
            number = min((number or 0) * 10 + int(char), 2**32 - 1)
        return number

    def escape(self, escaped: str) -> str | None:
        """Reads what follows a backslash. `None` if it stands for several characters."""
        at = self.at
        char = self.next()
        if not char:
            raise PatternError("ends with \\")
        if char in _SETS:
            return None
        if char in escaped:
            return char
        raise PatternError(f"has \\{char} at position {at}, which this form cannot check")

    def brackets(self) -> None:
        start = self.at
        self.next_if("^")
        if self.peek() == "]":
            raise PatternError(f"has brackets without a character at position {start}")
        while not self.next_if("]"):
            first = self.item()
            begin = self.at
            if first is None or not self.next_if("-"):
                continue
            dash = self.at
            if self.peek() == "]":
                raise _unescaped("-", dash)
            last = self.item()
            if last is None:
                raise _unescaped("-", dash)
            if last < first:
                raise PatternError(f"has a range at position {begin} that ends before it begins")

    def item(self) -> str | None:
        """Reads a character within brackets. `None` if it stands for several."""
        char = self.next()
        if not char:
            raise PatternError("has brackets that do not end")
        if char == "\\":
            return self.escape(_SYNTAX + "-")
        if char in _IN_BRACKETS:
            raise _unescaped(char, self.at)
        if char in _NOT_TWICE and self.peek() == char:
            raise PatternError(f"has the character {char} twice at position {self.at}; write it once")
        return char


def _unescaped(char: str, at: int) -> PatternError:
    return PatternError(f"has the character {char} at position {at}; write \\{char}")
