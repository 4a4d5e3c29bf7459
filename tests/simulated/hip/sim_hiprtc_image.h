/* The image that the simulated hiprtc makes, and the simulated HIP loads: a text that names the architecture it is
 * for. */
#ifndef GM_TESTS_SIMULATED_HIP_SIM_HIPRTC_IMAGE_H
#define GM_TESTS_SIMULATED_HIP_SIM_HIPRTC_IMAGE_H

/* The architecture follows, then a line end, then the entries that libcuda's modules look for. */
#define SIM_HIP_IMAGE_HEAD "simulated code object\n.version 1\n.target "
#define SIM_HIP_IMAGE_TAIL "\n.entry gm_fill()\n.entry gm_copy_many()\n.entry gm_expand()\n"

/* It is that of every simulated device, unless SIMHIP_ARCH names another one. */
#define SIM_HIP_ARCHITECTURE "gfx90a"

#endif
