#include "tests/simulated/cuda/sim_cuda_layout.h"
