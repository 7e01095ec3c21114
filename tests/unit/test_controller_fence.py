"""The fence of a broker against controllers and requests that come late."""

from barnabas_broker.replica.controller_fence import ControllerFence
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import UpdateMetadataRequest


def request(epoch: int, number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(1, epoch, broker_epoch=7, number=number)


def test_a_request_that_comes_after_a_later_one_is_refused() -> None:
    fence = ControllerFence(lambda: 7)
    assert fence.check(request(3, 10)) is ErrorCode.NONE
    assert fence.check(request(3, 10)) is ErrorCode.NONE, "its answer was lost"
    assert fence.check(request(3, 12)) is ErrorCode.NONE
    assert fence.check(request(3, 10)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert fence.check(request(3, 0)) is ErrorCode.NONE, "it has no number"
    assert fence.check(request(3, 11)) is ErrorCode.STALE_CONTROLLER_EPOCH


def test_each_controller_numbers_its_own_requests() -> None:
    fence = ControllerFence(lambda: 7)
    assert fence.check(request(3, 10)) is ErrorCode.NONE
    assert fence.check(request(4, 1)) is ErrorCode.NONE
    assert fence.check(request(4, 2)) is ErrorCode.NONE
    assert fence.check(request(4, 1)) is ErrorCode.STALE_CONTROLLER_EPOCH
