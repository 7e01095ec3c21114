"""Log records as a terminal may show them."""

import logging
from typing import Any

from barnabas_common.printable import printable


class PrintableFormatter(logging.Formatter):
    """Warnings of the client, which quote brokers and members, on the terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return printable(super().formatException(ei), keep="\n")
