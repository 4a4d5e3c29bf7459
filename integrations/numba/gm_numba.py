"""numba's memory from gm: a plug-in of its External Memory Management.

    NUMBA_CUDA_MEMORY_MANAGER=gm_numba python program.py
    numba.cuda.set_memory_manager(gm_numba.MemoryManager)     # or so, before the first use of a card
"""
import ctypes

import gm_cards
from numba import cuda


class MemoryManager(cuda.HostOnlyCUDAMemoryManager):
    """Memory of a card, in the order of the legacy default stream, which numba's own deallocation waits for, too."""

    interface_version = 1

    def initialize(self):
        pass

    def memalloc(self, size):
        ordinal = self.context.device.id
        address = gm_cards.alloc(size, ordinal)
        return cuda.MemoryPointer(self.context, ctypes.c_void_p(address), size,
                                  finalizer=lambda: gm_cards.free(address, ordinal))

    def get_memory_info(self):
        return cuda.MemoryInfo(*gm_cards.memory(self.context.device.id))

    def get_ipc_handle(self, memory):
        base, _ = gm_cards.base(memory.handle.value)
        handle = (ctypes.c_byte * 64)()
        cuda.cudadrv.driver.driver.cuIpcGetMemHandle(ctypes.byref(handle), base)
        return cuda.IpcHandle(memory, handle, memory.size, offset=memory.handle.value - base)

    def defer_cleanup(self):
        return super().defer_cleanup()


_numba_memory_manager = MemoryManager
