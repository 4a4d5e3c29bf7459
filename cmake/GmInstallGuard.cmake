# The first rule of an installation, before any that copies.

# Who installs into the clone would mix its sources with what is installed.
install(CODE "
  file(REAL_PATH \"\${CMAKE_INSTALL_PREFIX}\" gm_prefix)
  file(REAL_PATH \"${PROJECT_SOURCE_DIR}\" gm_source)
  if(\"\$ENV{DESTDIR}\" STREQUAL \"\" AND gm_prefix STREQUAL gm_source)
    message(FATAL_ERROR \"gm: \${gm_prefix} is the source folder of gm. Install into another one: --prefix ~/gm-install\")
  endif()
")
