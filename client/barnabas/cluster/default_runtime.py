"""The real world for a client that was given no other: system clock, real randomness, gRPC."""

from barnabas.runtime import Runtime, SystemClock, ThreadOffload, system_randomness


def default_runtime() -> Runtime:
    # Imported only when used: a simulation must not load gRPC, which starts threads of its own.
    from barnabas.runtime.grpc_network import GrpcNetwork

    return Runtime(SystemClock(), system_randomness(), ThreadOffload(), GrpcNetwork())
