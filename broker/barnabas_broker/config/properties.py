"""Java properties files, in the subset that Kafka's configuration files use."""


def parse_properties(text: str) -> dict[str, str]:
    """Parse `key=value` lines; `#` and `!` start a comment. Raises ValueError with the line."""
    properties: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#!":
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip():
            raise ValueError(f"line {number} is not key=value: {line!r}")
        properties[name.strip()] = value.strip()
    return properties


def format_properties(properties: dict[str, str]) -> str:
    """The text that `parse_properties` reads."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())
