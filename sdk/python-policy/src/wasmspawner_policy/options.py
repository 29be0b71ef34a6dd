"""The options of a lab, by name."""

Value = bool | int | float | str
"""One value of the spawn form. A whole number has 64 bits and a sign."""

Options = dict[str, Value]
"""The values of the spawn form. The names are the keys of `options` in the REST API."""
