# One compile of core and backends feeds the libraries: gm_shared, gm_static (what is installed) and gm_internal (the
# same with the internal headers in reach, for tests of internals).

# gm_warnings(target): our warnings, errors only where a preset asks for that.
function(gm_warnings target)
  if(GM_WARNINGS)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
    # Messages that do not fit are cut on purpose.
    target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
  endif()
  if(GM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
endfunction()

# gm_add_folders(folder...): those that have a CMakeLists.txt.
macro(gm_add_folders)
  foreach(folder ${ARGN})
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory(${folder})
    endif()
  endforeach()
endmacro()

# Links and definitions that come with the objects.
add_library(gm_requirements INTERFACE)
target_link_libraries(gm_requirements INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
foreach(name ZLIB XXHASH HWLOC LZ4 HIREDIS)
  if(GM_WITH_${name})
    target_link_libraries(gm_requirements INTERFACE PkgConfig::GM_${name})
    target_compile_definitions(gm_requirements INTERFACE GM_HAVE_${name}=1)
  endif()
endforeach()
if(GM_WITH_ZSTD)
  target_compile_definitions(gm_requirements INTERFACE GM_HAVE_ZSTD=1)
endif()
foreach(name CPU NULL CUDA HIP OPENCL VULKAN)
  if(GM_HAVE_BACKEND_${name})
    target_compile_definitions(gm_requirements INTERFACE GM_HAVE_BACKEND_${name}=1)
    if(GM_${name}_INCLUDE_DIR)
      target_include_directories(gm_requirements SYSTEM INTERFACE "${GM_${name}_INCLUDE_DIR}")
    endif()
  endif()
endforeach()

add_library(gm_objects OBJECT)
target_link_libraries(gm_objects PRIVATE gm_requirements)
target_include_directories(gm_objects PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(gm_objects PRIVATE _GNU_SOURCE GM_BUILDING)
set_target_properties(gm_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
gm_warnings(gm_objects)

# gm_public_library(target): what both installed libraries share.
function(gm_public_library target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:gm_objects>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gm_requirements>)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  set_target_properties(${target} PROPERTIES OUTPUT_NAME gm LINKER_LANGUAGE C)
endfunction()

if(GM_BUILD_SHARED)
  set(export_list "${PROJECT_SOURCE_DIR}/cmake/gm.map")
  add_library(gm_shared SHARED)
  gm_public_library(gm_shared)
  # nodelete: threads and fork handlers of a driver may outlive a dlclose of gm.
  target_link_options(gm_shared PRIVATE "LINKER:--version-script=${export_list}" "LINKER:-z,nodelete")
  if(NOT GM_SANITIZE) # whose runtime clang leaves to the program
    target_link_options(gm_shared PRIVATE "LINKER:--no-undefined")
  endif()
  # Before 1.0 each minor version may break: a program finds only the library of its own (docs/stability.md).
  set(gm_soversion ${PROJECT_VERSION_MAJOR})
  if(gm_soversion EQUAL 0)
    string(APPEND gm_soversion ".${PROJECT_VERSION_MINOR}")
  endif()
  set_target_properties(gm_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${gm_soversion} LINK_DEPENDS "${export_list}")
endif()
if(GM_BUILD_STATIC)
  add_library(gm_static STATIC)
  gm_public_library(gm_static)
  target_link_libraries(gm_static INTERFACE $<INSTALL_INTERFACE:gm::gm_dependencies>)
  target_compile_definitions(gm_static INTERFACE GM_STATIC)
endif()

if((BUILD_SHARED_LIBS AND GM_BUILD_SHARED) OR NOT GM_BUILD_STATIC)
  set(gm_chosen gm_shared)
else()
  set(gm_chosen gm_static)
endif()
add_library(gm ALIAS ${gm_chosen})
add_library(gm::gm ALIAS ${gm_chosen})

if(GM_BUILD_TESTS)
  add_library(gm_internal STATIC $<TARGET_OBJECTS:gm_objects>)
  target_link_libraries(gm_internal PUBLIC gm_requirements)
  target_include_directories(gm_internal PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(gm_internal PUBLIC _GNU_SOURCE)
  set_target_properties(gm_internal PROPERTIES LINKER_LANGUAGE C)
endif()
