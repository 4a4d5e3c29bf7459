# What `cmake --install` copies. Nothing in it names the place it was built in or installed to: the tree can be moved.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/gm DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h"
  PATTERN "*.hpp")

set(gm_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gm")
set(gm_kinds "")
foreach(kind shared static)
  if(TARGET gm_core_${kind})
    list(APPEND gm_kinds ${kind})
    foreach(part ${gm_parts})
      install(TARGETS gm_${part}_${kind} EXPORT gm-${kind}
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    endforeach()
    install(EXPORT gm-${kind} NAMESPACE gm:: DESTINATION "${gm_cmake_dir}")
  endif()
endforeach()

configure_package_config_file(cmake/gmConfig.cmake.in gmConfig.cmake INSTALL_DESTINATION "${gm_cmake_dir}")
write_basic_package_version_file(gmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gmConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/gmConfigVersion.cmake"
  DESTINATION "${gm_cmake_dir}")

# gm.pc is all libraries. gm-core.pc and the like are one each with those that it uses. They
# give -lgm…, for which a linker takes the shared library if both kinds are there. gm-static.pc names the files libgm….a,
# and no path, in which pkg-config would not mark a space.
file(RELATIVE_PATH gm_pc_to_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" gm_pc_to_prefix "${gm_pc_to_prefix}")

# gm_install_pc(name): by what the caller has set.
macro(gm_install_pc name)
  configure_file(cmake/gm.pc.in ${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endmacro()

set(gm_pc_flags "")
set(gm_pc_private "-pthread -ldl") # which the shared libraries bring by themselves
foreach(part ${gm_parts})
  set(gm_pc_name gm-${part})
  set(gm_pc_description "${gm_about_${part}}")
  set(gm_pc_libs "-l${gm_file_${part}}")
  if(NOT TARGET gm_core_shared)
    string(APPEND gm_pc_libs " ${gm_pc_private}")
  endif()
  set(gm_pc_requires "")
  foreach(lower ${gm_below_${part}})
    if(lower IN_LIST gm_parts)
      list(APPEND gm_pc_requires gm-${lower})
    endif()
  endforeach()
  list(JOIN gm_pc_requires ", " gm_pc_requires)
  gm_install_pc(gm-${part})
  string(PREPEND gm_pc_static "-l:lib${gm_file_${part}}.a ")
  list(APPEND gm_pc_names gm-${part})
endforeach()
list(JOIN gm_pc_names ", " gm_pc_requires)
set(gm_pc_description "${PROJECT_DESCRIPTION}")
set(gm_pc_libs "")
set(gm_pc_name gm)
gm_install_pc(gm)
if(TARGET gm_core_static)
  set(gm_pc_name gm-static)
  set(gm_pc_description "${PROJECT_DESCRIPTION} (static libraries)")
  set(gm_pc_requires "")
  set(gm_pc_flags " -DGM_STATIC")
  set(gm_pc_libs "${gm_pc_static}${gm_pc_private}")
  gm_install_pc(gm-static)
endif()

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
