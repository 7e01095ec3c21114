"""What can go wrong with a fault. Each message is one line."""


class FaultError(Exception):
    """The fault cannot be injected or healed."""


class ToolMissing(FaultError):
    """A program or an image that the fault needs is not there."""


class NotInEffect(FaultError):
    """The fault was injected, and what it should break works."""
