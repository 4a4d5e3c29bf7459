# Every switch of the build. Who embeds gm with add_subdirectory gets the library alone: no tests, no tools, no
# optional dependency, no warning flags, nothing installed, unless asked for.
if(PROJECT_IS_TOP_LEVEL)
  option(BUILD_SHARED_LIBS "gm::gm is the shared library" ON)
endif()

if(BUILD_SHARED_LIBS)
  set(gm_static_default ${PROJECT_IS_TOP_LEVEL})
  set(gm_shared_default ON)
else()
  set(gm_static_default ON)
  set(gm_shared_default ${PROJECT_IS_TOP_LEVEL})
endif()
option(GM_BUILD_SHARED "Build libgm.so" ${gm_shared_default})
option(GM_BUILD_STATIC "Build libgm.a" ${gm_static_default})

option(GM_WITH_JSON "Read config.json and safetensors headers with json-c" ${PROJECT_IS_TOP_LEVEL})
option(GM_WITH_ZLIB "Read compressed traces with zlib" ${PROJECT_IS_TOP_LEVEL})
option(GM_WITH_XXHASH "Checksums with xxHash" ${PROJECT_IS_TOP_LEVEL})

option(GM_BUILD_TOOLS "Build gmem and gm-probe" ${PROJECT_IS_TOP_LEVEL})
option(GM_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(GM_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(GM_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(GM_INSTALL "Generate the install rules" ${PROJECT_IS_TOP_LEVEL})
option(GM_TEST_INSTALL "Test the installed package with small consumer projects" ON)

option(GM_WARNINGS "Compile gm with warnings" ${PROJECT_IS_TOP_LEVEL})
option(GM_WERROR "Warnings are errors (the presets set this)" OFF)
set(GM_SANITIZE "" CACHE STRING "Sanitizers: 'address,undefined' or 'thread'; empty: none")
option(GM_COVERAGE "Instrument for line coverage" OFF)

# The backends that a test run must not skip, by name: "cpu,opencl,vulkan". From the cache or the environment.
set(GM_REQUIRE_BACKENDS "$ENV{GM_REQUIRE_BACKENDS}" CACHE STRING "Backends whose tests must not be skipped")
if(GM_BUILD_TESTS AND DEFINED ENV{CI} AND GM_REQUIRE_BACKENDS STREQUAL "")
  message(FATAL_ERROR "gm: CI is set, so GM_REQUIRE_BACKENDS must list what must not be skipped, "
                      "for example GM_REQUIRE_BACKENDS=cpu,opencl,vulkan")
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
  if(GM_SANITIZE)
    add_compile_options(-fsanitize=${GM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${GM_SANITIZE})
  endif()
  if(GM_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
  endif()
endif()
