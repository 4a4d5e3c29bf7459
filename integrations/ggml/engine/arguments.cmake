# Builds the parser of llama.cpp's command lines from LLAMA_SOURCE, without optimisation: it is read by a test alone.
cmake_minimum_required(VERSION 3.25)
project(gm_ggml_arguments LANGUAGES C CXX)

set(LLAMA_SOURCE "" CACHE PATH "llama.cpp's source tree")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(BUILD_SHARED_LIBS OFF)
foreach(name GGML_NATIVE GGML_OPENMP GGML_LLAMAFILE GGML_CCACHE LLAMA_BUILD_TESTS LLAMA_BUILD_TOOLS LLAMA_BUILD_EXAMPLES
        LLAMA_BUILD_SERVER LLAMA_CURL LLAMA_OPENSSL)
  set(${name} OFF)
endforeach()
set(LLAMA_BUILD_COMMON ON)
add_subdirectory(${LLAMA_SOURCE} llama EXCLUDE_FROM_ALL)
add_executable(arguments arguments.cpp)
target_link_libraries(arguments PRIVATE llama-common llama)
