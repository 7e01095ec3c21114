"""Java properties files, as far as Kafka's own configuration files use them."""


def parse_properties(text: str) -> dict[str, str]:
    """`key=value` lines; `#` and `!` begin a comment line. Raises ValueError with the line."""
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
    """The text `parse_properties` reads back."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())
