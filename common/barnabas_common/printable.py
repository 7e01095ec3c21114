"""Text from elsewhere as a terminal or a log may show it.

Names, records and messages can hold escape sequences that move the cursor, hide text, answer as if
the user had typed, or look like another line. Such characters are shown as escapes.
"""

import re

# Control characters, line separators, bidirectional controls, surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, keep: str = "") -> str:
    """Replace what could act on a terminal by escapes such as `\\x1b`, except for `keep`."""

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        return character if character in keep else character.encode("unicode_escape").decode()

    return _UNSAFE.sub(shown, text)


def printable_json(text: str) -> str:
    """JSON with such characters escaped as JSON does it; only strings hold any."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
