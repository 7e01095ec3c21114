"""What a single-line bug is."""

import ast
from dataclasses import dataclass

from tests.support.opposites import Opposite, complaints, edited, path_of


@dataclass(frozen=True)
class SingleLineBug:
    """A slip as people make them: `old` is what the code says, `new` what it says instead, and
    `breaks` what no longer holds. `file` is below one of `opposites.FOLDERS`."""

    name: str
    file: str
    old: str
    new: str
    breaks: str

    @property
    def edit(self) -> Opposite:
        """The edit, in the form that `tests.support.opposites` makes in a copy of the packages."""
        return Opposite(self.name, self.file, ((self.old, self.new),), test="")

    def edited(self) -> str:
        """Return the text of the file with the bug."""
        return edited(self.edit, path_of(self.file).read_text())

    def misfits(self) -> list[str]:
        """Return why it does not fit the code as it is; nothing if it does."""
        found = complaints(self.edit)
        if found:
            return found
        try:
            ast.parse(self.edited())
        except SyntaxError as error:
            return [f"{self.name}: {error}"]
        return []
