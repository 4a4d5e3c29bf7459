# What `cmake --install` copies. Nothing in it names the place it was built in or installed to: the tree can be moved.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/gm DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h"
  PATTERN "*.hpp")

set(gm_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gm")
set(gm_kinds "")
foreach(kind shared static)
  if(TARGET gm_${kind})
    list(APPEND gm_kinds ${kind})
    install(TARGETS gm_${kind} EXPORT gm-${kind}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(EXPORT gm-${kind} NAMESPACE gm:: DESTINATION "${gm_cmake_dir}")
  endif()
endforeach()
string(REPLACE "gm_" "" gm_default_kind ${gm_chosen})

configure_package_config_file(cmake/gmConfig.cmake.in gmConfig.cmake INSTALL_DESTINATION "${gm_cmake_dir}")
write_basic_package_version_file(gmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gmConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/gmConfigVersion.cmake"
  DESTINATION "${gm_cmake_dir}")

# gm.pc gives -lgm, for which a linker takes the shared library if both kinds are there. gm-static.pc names the file libgm.a,
# and no path, in which pkg-config would not mark a space. A static link also needs what the shared library brings by itself.
set(gm_private_libs "-pthread -ldl")
foreach(name ZLIB XXHASH HWLOC LZ4 HIREDIS)
  if(GM_WITH_${name})
    string(JOIN " " flags ${GM_${name}_LDFLAGS})
    string(APPEND gm_private_libs " ${flags}")
  endif()
endforeach()
file(RELATIVE_PATH gm_pc_to_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" gm_pc_to_prefix "${gm_pc_to_prefix}")
set(gm_pc_libs "-L\${libdir} -lgm")
set(gm_pc_files gm.pc)
if(TARGET gm_static)
  list(APPEND gm_pc_files gm-static.pc)
endif()
if(NOT TARGET gm_shared)
  string(APPEND gm_pc_libs " ${gm_private_libs}")
endif()
foreach(file ${gm_pc_files})
  configure_file(cmake/${file}.in ${file} @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

if(TARGET gmem)
  install(TARGETS gmem RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  set_target_properties(gmem PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(FILES tools/gmem/gmem.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES tools/gmem/gmem.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME gmem)
endif()
if(TARGET gm-probe)
  install(TARGETS gm-probe RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/gm")
  set_target_properties(gm-probe PROPERTIES INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR}")
endif()

install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")
