"""RMM's memory from gm, for every library on RMM.

    rmm.mr.set_current_device_resource(gm_rmm.resource())
"""
import gm_cards
import rmm.mr


def resource(ordinal=0):
    """A CallbackMemoryResource for a card. Each call goes through Python."""
    def number(stream):
        return int(stream.__cuda_stream__()[1]) if hasattr(stream, "__cuda_stream__") else 0

    return rmm.mr.CallbackMemoryResource(lambda size, stream: gm_cards.alloc(size, ordinal, number(stream)),
                                         lambda address, size, stream: gm_cards.free(address, ordinal, number(stream)))
